"""The results of a study: a row a cell, kept one by one in a folder, and two tables at the end.

study.json        what the results are of: settings, versions, checksums of the files
cells/*.json      one finished cell each; the same bytes whenever and wherever it runs
seconds/*.json    how long its stages took: clock times are never the same twice
results.parquet   all cells in the order of the study; the same bytes again
seconds.parquet   all stages
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bpa_ppl.errors import DataError
from bpa_ppl.experiments.study import Cell, Study
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_path, atomic_writer
from bpa_ppl.nbest import Float64
from bpa_ppl.quality import by_name
from bpa_ppl.registry import METRICS

#: Packages whose versions the results depend on.
VERSIONS = ("bpa_ppl", "jax", "numpy", "numpyro", "sacrebleu")
#: Columns that name a cell.
KEYS = Cell._fields
_KEY_FIELDS = [
    ("domain", pa.string()),
    ("size", pa.int64()),
    ("draw", pa.int64()),
    ("method", pa.string()),
    ("setting", pa.string()),
]
#: One row a stage of a cell.
SECONDS = pa.schema([*_KEY_FIELDS, ("stage", pa.string()), ("seconds", pa.float64())])
_COUNTS = "_counts"


class Outcome(NamedTuple):
    """What a finished cell leaves.

    Attributes:
        row: of the results: the same whenever and wherever the cell runs.
        seconds: of each stage.
    """

    row: dict[str, Any]
    seconds: dict[str, float]


def results_schema(metrics: Iterable[str]) -> pa.Schema:
    """Return the columns of the results, one row a cell.

    Each metric has its value, its details (BLEU: precisions, brevity penalty, length), and its
    counts of the chosen hypotheses, (sentences × S) row by row.

    >>> results_schema(["ter"]).names[5:]
    ['ter', 'verdict', 'failed', 'ter_counts']
    """
    names = list(metrics)
    details = [detail for name in names for detail in detail_names(name)]
    return pa.schema(
        [
            *_KEY_FIELDS,
            *((name, pa.float64()) for name in [*names, *details]),
            ("verdict", pa.string()),
            ("failed", pa.list_(pa.string())),
            *((name + _COUNTS, pa.list_(pa.float64())) for name in names),
        ]
    )


def detail_names(metric: str) -> list[str]:
    """Return the names of what a metric says beyond its value.

    >>> detail_names("bleu")[:2]
    ['precision_1', 'precision_2']
    """
    found = by_name(metric)
    return list(found.details_of(np.ones(found.width)))


def metrics_of(results: pa.Table) -> tuple[str, ...]:
    """Return the names of the metrics that results were counted for."""
    return tuple(name.removesuffix(_COUNTS) for name in results.column_names if _COUNTS in name)


def counts_of(results: pa.Table, rows: Iterable[int], metric: str) -> Float64:
    """Return the counts of some rows of the results, (rows, sentences, S)."""
    column = results[metric + _COUNTS]
    counts = np.array([column[row].values.to_numpy() for row in rows])
    return counts.reshape(len(counts), -1, by_name(metric).width)


def result_row(
    cell: Cell, counts: Mapping[str, Float64], verdict: str, failed: Iterable[str]
) -> dict[str, Any]:
    """Return the row of a cell, given the counts of the chosen hypotheses, (sentences, S).

    >>> counts = {"ter": np.array([[1.0, 4.0]]), "bleu": np.array([[3.0, 2, 1, 0, 3, 2, 1, 0, 4]])}
    >>> result_row(Cell("d", 10, 0, "imh", ""), counts, "passed", [])["ter"]
    25.0
    """
    sums = {name: each.sum(axis=0) for name, each in counts.items()}
    details: dict[str, float] = {}
    for name, each in sums.items():
        details |= by_name(name).details_of(each)
    return {
        **cell._asdict(),
        **{name: float(by_name(name).value(each)) for name, each in sums.items()},
        **details,
        "verdict": verdict,
        "failed": list(failed),
        **{name + _COUNTS: each.ravel().tolist() for name, each in counts.items()},
    }


def second_rows(cell: Cell, seconds: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return one row a stage.

    >>> second_rows(Cell("d", 10, 0, "imh", ""), {"adapt": 0.5})[0]["stage"]
    'adapt'
    """
    return [{**cell._asdict(), "stage": s, "seconds": value} for s, value in seconds.items()]


class Store:
    """The results of one study, on disk.

    Args:
        folder: made if it is not there.
        study: whose results these are.

    Raises:
        DataError: if the folder holds anything else, or cannot be written.
    """

    def __init__(self, folder: Path, study: Study):
        self.folder, self._metrics = folder, study.metrics
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
        rows = [_read_json(self._cell(cell)) for cell in cells]
        results = self.folder / "results.parquet"
        _write_table(rows, results_schema(self._metrics), results)
        return results

    def _claim(self, own: dict[str, Any]) -> None:
        """Make the folder this study's, or see that it is."""
        make_folder(self.folder)
        known = self.folder / "study.json"
        if known.exists():
            _check_identity(_read_json(known), own, self.folder)
        elif any(self.folder.iterdir()):
            raise DataError("holds files, but no study: name an empty or a new folder", self.folder)
        for name in ("cells", "seconds"):
            make_folder(self.folder / name)
        if not known.exists():
            _write_json(known, own)

    def _cell(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.name}.json"

    def _seconds(self, cell: Cell) -> Path:
        return self.folder / "seconds" / f"{cell.name}.json"


def identity(study: Study) -> dict[str, Any]:
    """Return what the results of a study depend on; files are known by their content."""
    # Results of studies from before there were these keys stay theirs.
    later = ("columns", "categorical")
    settings = {k: v for k, v in asdict(study).items() if v or k not in later}
    return {
        "study": json.loads(json.dumps(settings, default=_plain)),
        "versions": {name: version(name) for name in VERSIONS},
    }


def read_results(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the tables of results and of seconds of a finished study.

    Raises:
        DataError: if the study is not there, not finished, or a table is damaged.
    """
    path = folder / "results.parquet"
    if not path.is_file():
        raise DataError("no results here: let `bpa experiment` finish first", folder)
    results = _read_table(path)
    columns = read_identity(folder)["study"].get("columns", []) if _known(folder) else []
    metrics = [name for name in metrics_of(results) if name in (*METRICS, *columns)]
    _check_schema(results, results_schema(metrics), path)
    seconds = _read_table(folder / "seconds.parquet")
    _check_schema(seconds, SECONDS, folder / "seconds.parquet")
    return results, seconds


def read_identity(folder: Path) -> dict[str, Any]:
    """Return what the results in a folder depend on, as `identity` has it.

    Raises:
        DataError: if the study is not there, or its file is damaged.
    """
    return _read_json(folder / "study.json")


def _known(folder: Path) -> bool:
    return (folder / "study.json").is_file()


def _check_identity(known: dict[str, Any], own: dict[str, Any], folder: Path) -> None:
    for part in ("study", "versions"):
        differing = [key for key in own[part] if known.get(part, {}).get(key) != own[part][key]]
        if differing:
            raise DataError(
                f"holds the results of another study, with other {', '.join(differing)}: "
                "name a new folder",
                folder,
            )


def _plain(value: Any) -> Any:
    """Return a file as the checksum of its content, and a method by its settings."""
    if isinstance(value, Path):
        return sha256(value.read_bytes()).hexdigest()
    return msgspec.to_builtins(value)


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
    with atomic_path(path) as temporary:
        parquet.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")


def _read_table(path: Path) -> pa.Table:
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"not a readable Parquet file: {error}", path) from error


def _check_schema(table: pa.Table, schema: pa.Schema, path: Path) -> None:
    if table.schema != schema:
        raise DataError("a Parquet file of something else: name a folder of results", path)
