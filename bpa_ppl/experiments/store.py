"""The folder of a study's results: one small file a finished cell, and two tables at the end.

study.json        what the results are of: settings, versions, checksums of the files
cells/*.json      one finished cell each; the same bytes whenever and wherever it runs
seconds/*.json    how long its stages took: clock times are never the same twice
results.parquet   all cells in the order of the study; the same bytes again
seconds.parquet   all stages
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bpa_ppl.errors import DataError
from bpa_ppl.experiments.grid import Cell
from bpa_ppl.experiments.results import RESULTS, SECONDS, Outcome, second_rows
from bpa_ppl.experiments.study import Study
from bpa_ppl.formats.streams import atomic_path, atomic_writer

#: Packages whose versions the results depend on.
VERSIONS = ("bpa_ppl", "jax", "numpy", "numpyro", "sacrebleu")


class Store:
    """The results of one study, on disk.

    Args:
        folder: made if it is not there.
        study: whose results these are.

    Raises:
        DataError: if the folder holds anything else, or cannot be written.
    """

    def __init__(self, folder: Path, study: Study):
        self.folder = folder
        self._claim(identity(study))
        for leftover in (*folder.glob("*/.*.part.*"), *folder.glob(".*.part.*")):
            leftover.unlink()  # of a run that was killed while it wrote

    def missing(self, cells: Iterable[Cell]) -> set[Cell]:
        """Return the cells that are not finished."""
        return {cell for cell in cells if not self._cell(cell).exists()}

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Keep the outcome of a cell: whole, or after a kill not at all."""
        _write_json(self._seconds(cell), outcome.seconds)
        _write_json(self._cell(cell), outcome.row)

    def finish(self, cells: list[Cell]) -> Path:
        """Write the tables of all cells, and return the path of the results.

        Raises:
            DataError: if the file of a cell is damaged.
        """
        seconds = [
            row for cell in cells for row in second_rows(cell, _read_json(self._seconds(cell)))
        ]
        _write_table(seconds, SECONDS, self.folder / "seconds.parquet")
        results = self.folder / "results.parquet"
        _write_table([_read_json(self._cell(cell)) for cell in cells], RESULTS, results)
        return results

    def _claim(self, own: dict[str, Any]) -> None:
        """Make the folder this study's, or see that it is."""
        _make(self.folder)
        known = self.folder / "study.json"
        if known.exists():
            _check_identity(_read_json(known), own, self.folder)
        elif any(self.folder.iterdir()):
            raise DataError("holds files, but no study: name an empty or a new folder", self.folder)
        for name in ("cells", "seconds"):
            _make(self.folder / name)
        if not known.exists():
            _write_json(known, own)

    def _cell(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.name}.json"

    def _seconds(self, cell: Cell) -> Path:
        return self.folder / "seconds" / f"{cell.name}.json"


def identity(study: Study) -> dict[str, Any]:
    """Return what the results of a study depend on; files are known by their content."""
    return {
        "study": json.loads(json.dumps(asdict(study), default=_checksum)),
        "versions": {name: version(name) for name in VERSIONS},
    }


def read_results(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the tables of results and of seconds of a finished study.

    Raises:
        DataError: if the study is not there, not finished, or a table is damaged.
    """
    results, seconds = folder / "results.parquet", folder / "seconds.parquet"
    if not results.is_file():
        raise DataError("no results here: let `bpa experiment` finish first", folder)
    return _read_table(results, RESULTS), _read_table(seconds, SECONDS)


def read_identity(folder: Path) -> dict[str, Any]:
    """Return what the results in a folder depend on, as `identity` has it.

    Raises:
        DataError: if the study is not there, or its file is damaged.
    """
    return _read_json(folder / "study.json")


def _check_identity(known: dict[str, Any], own: dict[str, Any], folder: Path) -> None:
    for part in ("study", "versions"):
        differing = [key for key in own[part] if known.get(part, {}).get(key) != own[part][key]]
        if differing:
            raise DataError(
                f"holds the results of another study, with other {', '.join(differing)}: "
                "name a new folder",
                folder,
            )


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make this folder ({error.strerror})", folder) from error


def _write_json(path: Path, value: dict[str, Any]) -> None:
    with atomic_writer(path) as file:
        json.dump(value, file, separators=(",", ":"))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(
            "damaged: remove it, and its namesake in cells or seconds, and run the study again",
            path,
        ) from error
    return value


def _write_table(rows: list[dict[str, Any]], schema: pa.Schema, path: Path) -> None:
    with atomic_path(path) as beside:
        parquet.write_table(pa.Table.from_pylist(rows, schema), beside, compression="zstd")


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = parquet.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"not a readable Parquet file: {error}", path) from error
    if table.schema != schema:
        raise DataError("a Parquet file of something else: name a folder of results", path)
    return table
