"""The results of a study in a folder: a file per finished cell, and two tables at the end.

study.json        what the results depend on: settings, versions, checksums of the files
cells/*.json      one finished cell each; byte-identical wherever it runs
seconds/*.json    how long its stages took
results.parquet   all cells in the order of the study; byte-identical
seconds.parquet   all stages
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.experiments.studies.study import Cell, Study
from bpa_ppl.formats.parquet import parquet_errors
from bpa_ppl.formats.streams import (
    atomic_path,
    atomic_writer,
    output_folder,
    remove_leftovers,
)
from bpa_ppl.metrics.gains import resolve_without_lists

#: Packages on whose versions the results depend.
_VERSIONS = ("bpa_ppl", "jax", "numpy", "numpyro", "sacrebleu")
#: Columns that identify a cell.
KEYS = Cell._fields
_KEY_FIELDS = [
    ("domain", pa.string()),
    ("size", pa.int64()),
    ("draw", pa.int64()),
    ("method", pa.string()),
    ("setting", pa.string()),
]
#: One row for each stage of a cell.
_SECONDS = pa.schema([*_KEY_FIELDS, ("stage", pa.string()), ("seconds", pa.float64())])
_COUNTS = "_counts"
_TABLES = ("results.parquet", "seconds.parquet")


def make_schema(metrics: Iterable[str]) -> pa.Schema:
    """Return the columns of the results, one row a cell.

    Each metric has its value, its details (BLEU: precisions, brevity penalty, length), and its
    counts for the chosen candidates, (sentences × S) row by row.

    >>> make_schema(["ter"]).names[5:]
    ['ter', 'verdict', 'failed', 'ter_counts']
    """
    names = list(metrics)
    numbers = [*names, *(detail for name in names for detail in detail_names(name))]
    return pa.schema(
        [
            *_KEY_FIELDS,
            *((name, pa.float64()) for name in numbers),
            ("verdict", pa.string()),
            ("failed", pa.list_(pa.string())),
            *((name + _COUNTS, pa.list_(pa.float64())) for name in names),
        ]
    )


def detail_names(metric: str) -> list[str]:
    """Return the names of the details of a metric.

    >>> detail_names("bleu")[:2]
    ['precision_1', 'precision_2']
    """
    config = resolve_without_lists(metric)
    return list(config.details_of(np.ones(config.width)))


def list_metrics(results: pa.Table) -> tuple[str, ...]:
    """Return the names of the metrics in a table of results."""
    return tuple(name.removesuffix(_COUNTS) for name in results.column_names if _COUNTS in name)


def read_counts(results: pa.Table, rows: Iterable[int], metric: str) -> Float64:
    """Return the counts in some rows of the results, (rows, sentences, S)."""
    column = results[metric + _COUNTS]
    counts = np.array([column[row].values.to_numpy() for row in rows])
    return counts.reshape(len(counts), -1, resolve_without_lists(metric).width)


def make_row(
    cell: Cell, counts: Mapping[str, Float64], verdict: str, failed: Iterable[str]
) -> dict[str, Any]:
    """Return the row of a cell, given the counts for the chosen candidates, (sentences, S).

    >>> counts = {"ter": np.array([[1.0, 4.0]]), "bleu": np.array([[3.0, 2, 1, 0, 3, 2, 1, 0, 4]])}
    >>> make_row(Cell("d", 10, 0, "imh", ""), counts, "passed", [])["ter"]
    25.0
    """
    sums = {name: values.sum(axis=0) for name, values in counts.items()}
    details: dict[str, float] = {}
    for name, values in sums.items():
        details |= resolve_without_lists(name).details_of(values)
    return {
        **cell._asdict(),
        **{name: float(resolve_without_lists(name).value(values)) for name, values in sums.items()},
        **details,
        "verdict": verdict,
        "failed": list(failed),
        **{name + _COUNTS: values.ravel().tolist() for name, values in counts.items()},
    }


@contextmanager
def claim_folder(folder: Path, study: Study) -> Iterator[None]:
    """Prepare a folder for the results of a study, or for resuming it.

    After an error in the block, the folder is as before if it has no result of a cell.

    Args:
        folder: created if it does not exist.
        study: the study.

    Raises:
        DataError: if the folder contains anything else, or cannot be written.
    """

    def checksum(path: Path) -> str:
        # The only folder is that of the study, where its decoder runs.
        return "" if path.is_dir() else sha256(path.read_bytes()).hexdigest()

    path, versions = folder / "study.json", {name: version(name) for name in _VERSIONS}
    settings = json.loads(msgspec.json.encode(study, enc_hook=checksum))
    new = {"study": settings, "versions": versions}
    with ExitStack() as folders:
        folders.enter_context(output_folder(folder))
        remove_leftovers(folder)
        if path.exists():
            recorded = read_json(path)
            for part in ("study", "versions"):
                values, known = new[part], recorded.get(part, {})
                if differing := [key for key in values if known.get(key) != values[key]]:
                    message = f"has results of a study with other {', '.join(differing)}: choose"
                    raise DataError(f"{message} a new folder", folder, code="mismatch")
        elif any(folder.iterdir()):
            message = "contains files, but no study: choose an empty or a new folder"
            raise DataError(message, folder, code="cannot-write")
        cells = [folder / name for name in ("cells", "seconds")]
        for of_cells in cells:
            folders.enter_context(output_folder(of_cells))
            remove_leftovers(of_cells)
        first = not path.exists()
        try:
            if first:
                write_json(path, new)
            yield
        except BaseException:
            if first and not any(file for of_cells in cells for file in of_cells.iterdir()):
                path.unlink(missing_ok=True)
            raise


def write_tables(folder: Path, cells: list[Cell], metrics: Iterable[str]) -> Path:
    """Write the tables of all cells, and return the path of the results.

    Raises:
        DataError: if the file of a cell is damaged.
    """
    rows, seconds = (
        [read_json(folder / kind / f"{cell.name}.json") for cell in cells]
        for kind in ("cells", "seconds")
    )
    stages = [
        {**cell._asdict(), "stage": stage, "seconds": value}
        for cell, times in zip(cells, seconds, strict=True)
        for stage, value in times.items()
    ]
    tables = ((rows, make_schema(metrics)), (stages, _SECONDS))
    for name, (values, schema) in zip(_TABLES, tables, strict=True):
        with atomic_path(folder / name) as temporary:
            table = pa.Table.from_pylist(values, schema)
            parquet.write_table(table, temporary, compression="zstd")
    return folder / _TABLES[0]


def read_results(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Return the tables of results and of seconds of a finished study.

    Raises:
        DataError: if the study does not exist, is not finished, or a table is damaged.
    """
    tables: list[pa.Table] = []
    for path in (folder / name for name in _TABLES):
        if not path.is_file():
            message = "no results here: finish `bpa experiment` first"
            raise DataError(message, path, code="missing-file")
        with parquet_errors(str(path)):
            table = parquet.read_table(path)
        if table.schema != (_SECONDS if tables else make_schema(list_metrics(table))):
            message = "not a table of a study: choose a folder of results"
            raise DataError(message, path, code="unknown-format")
        tables.append(table)
    return tables[0], tables[1]


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file atomically."""
    with atomic_writer(path) as file:
        json.dump(value, file, separators=(",", ":"))


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of a study.

    Raises:
        DataError: if it does not exist, or is damaged.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        message = "damaged: remove it, and its namesake in cells or seconds, and run again"
        raise DataError(message, path, code="damaged") from error
    return value


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    r"""Write rows as a table (CSV), with all digits; cells that a row does not have are empty.

    Args:
        rows: their columns are written in the order of their first occurrence.
        path: of the file.

    Raises:
        DataError: if the file cannot be written.

    >>> write_rows([{"run": 0, "ESS": 0.1}, {"run": 1, "R-hat": None}], Path("rows.csv"))
    >>> Path("rows.csv").read_text(encoding="utf-8")
    'run,ESS,R-hat\n0,0.1,\n1,,\n'
    """
    rows = list(rows)
    with atomic_writer(path) as file:
        columns = dict.fromkeys(column for row in rows for column in row)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
