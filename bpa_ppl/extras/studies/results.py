"""The results of a study: the files of its folder, and aggregates of their rows.

study.json        what the results depend on: settings, versions, checksums of the files
cells/*.json      one finished cell each; byte-identical in any process
seconds/*.json    how long its stages took
results.parquet   all cells in the order of the study; byte-identical
seconds.parquet   all stages

Aggregates are the points of learning curves, differences between methods, and times.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.samplers.moments import holm
from bpa_ppl.diagnostics.ways.paired import draw_resamples, score_resamples
from bpa_ppl.errors import DataError
from bpa_ppl.extras.studies.study import Cell, Study
from bpa_ppl.formats.parquet import parquet_errors
from bpa_ppl.formats.streams import atomic_path, atomic_writer, output_folder
from bpa_ppl.gains.gains import resolve_without_lists

#: Packages on whose versions the results depend.
_VERSIONS = ("bpa_ppl", "jax", "numpy", "numpyro", "sacrebleu")
#: Columns that identify a cell.
_KEYS = Cell._fields
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
#: A row of a table, by the names of the columns.
Row = dict[str, Any]
#: Columns that say where a method was run; its draws of A make one point of a curve.
_CONDITION = tuple(name for name in _KEYS if name != "draw")
#: The detail with the ratio of the words of choices and references.
LENGTH = "length_ratio"
#: Stages in which a method learns from A; the others apply what was learned.
_LEARNING = ("adapt", "tune", "decode")
# Enough that the smallest p-value survives the adjustment for all pairs of 14 methods.
_SAMPLES = 10_000
_INTERVAL = (2.5, 97.5)  # percentiles


def make_result_schema(metrics: Iterable[str]) -> pa.Schema:
    """Return the columns of the results, one row a cell.

    Each metric has its value, its details (BLEU: precisions, brevity penalty, length), and its
    counts for the chosen candidates, (sentences × S) row by row.

    >>> make_result_schema(["ter"]).names[5:]
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


def _read_counts(results: pa.Table, rows: Iterable[int], metric: str) -> Float64:
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
        if path.exists():
            recorded = read_study_file(path)
            for part in ("study", "versions"):
                values, previous = new[part], recorded.get(part, {})
                if other := ", ".join(key for key in values if previous.get(key) != values[key]):
                    message = f"has results of a study with other {other}: choose a new folder"
                    raise DataError(message, folder, code="mismatch")
        elif any(folder.iterdir()):
            message = "contains files, but no study: choose an empty or a new folder"
            raise DataError(message, folder, code="cannot-write")
        cells = [folder / name for name in ("cells", "seconds")]
        for of_cells in cells:
            folders.enter_context(output_folder(of_cells))
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
        [read_study_file(folder / kind / f"{cell.name}.json") for cell in cells]
        for kind in ("cells", "seconds")
    )
    stages = [
        {**cell._asdict(), "stage": stage, "seconds": value}
        for cell, times in zip(cells, seconds, strict=True)
        for stage, value in times.items()
    ]
    tables = ((rows, make_result_schema(metrics)), (stages, _SECONDS))
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
        if table.schema != (_SECONDS if tables else make_result_schema(list_metrics(table))):
            message = "not a table of a study: choose a folder of results"
            raise DataError(message, path, code="unknown-format")
        tables.append(table)
    return tables[0], tables[1]


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file atomically."""
    with atomic_writer(path) as file:
        json.dump(value, file, separators=(",", ":"))


def read_study_file(path: Path) -> dict[str, Any]:
    """Read a file of a study.

    Raises:
        DataError: if it does not exist, or is damaged.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        message = f"not a table of a study ({error}): remove it in cells and seconds, and run again"
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


def aggregate(results: pa.Table, samples: int = _SAMPLES) -> tuple[list[Row], list[Row]]:
    """Return the points of all methods, and the differences between methods.

    A point is the mean score of a method over the draws of A, in percent:

    * `domain`, `size` (|A|), `method`, `setting` (`name=value` if it is swept, else empty),
      `metric`, and the number of `draws`;
    * `mean` over the draws; `interval`, the published size of the 95% interval, 2 · the empirical
      standard deviation over draws (NaN for a single one);
    * `low` and `high`, the ends of the 95% bootstrap interval of the mean, over test sentences and
      draws; `sentence_error` and `draw_error`, the standard errors of the mean due to the sampling
      of test sentences alone, and of A alone;
    * `passed`, the share of the draws whose posterior passed its check; NaN if there is none.

    A difference is the mean of one method minus that of another, on the same draws and sentences,
    without swept settings: `domain`, `size`, `metric`; the methods `first` and `second`;
    `difference` with the ends `low` and `high` of its 95% bootstrap interval; `p_value`, two-sided,
    of no difference; and `adjusted`, adjusted by Holm's method for all pairs of methods.

    Args:
        results: from `read_results`.
        samples: of the bootstrap.
    """
    points: list[Row] = []
    differences: list[Row] = []
    groups: dict[tuple[str, int], dict[tuple[str, str], list[int]]] = {}
    for number, row in enumerate(results.select(_CONDITION).to_pylist()):
        of_size = groups.setdefault((row["domain"], row["size"]), {})
        of_size.setdefault((row["method"], row["setting"]), []).append(number)
    for metric in list_metrics(results):
        config = resolve_without_lists(metric)
        for (domain, size), of_size in groups.items():
            shared, plain = None, {}
            for (method, setting), rows in of_size.items():
                counts = _read_counts(results, rows, metric)  # (draws, sentences, S)
                shared = shared or draw_resamples(samples, counts.shape[1], len(rows))
                both, of_sentences, of_draws = score_resamples(counts, config, shared)
                values = config.value(counts.sum(axis=1))
                verdicts = [results["verdict"][number].as_py() for number in rows]
                passed = [verdict == "passed" for verdict in verdicts]
                low, high = np.percentile(both, _INTERVAL).tolist()
                point = {
                    **dict(zip(_CONDITION, (domain, size, method, setting), strict=True)),
                    "metric": metric,
                    "draws": len(values),
                    "mean": float(values.mean()),
                    "interval": 2 * float(values.std(ddof=1)) if len(values) > 1 else np.nan,
                    "low": low,
                    "high": high,
                    "sentence_error": float(of_sentences.std()),
                    "draw_error": float(of_draws.std()),
                    "passed": float(np.mean(passed)) if all(verdicts) else np.nan,
                }
                points.append(point)
                if not setting:
                    plain[method] = float(values.mean()), both
            place = {"domain": domain, "size": size, "metric": metric}
            differences += [place | row for row in _compare_methods(plain)]
    return points, differences


def _compare_methods(scores: Mapping[str, tuple[float, Float64]]) -> list[Row]:
    """Return the differences of all pairs of methods, given means and their replicates."""
    result = []
    for (first, (mean, a)), (second, (other, b)) in combinations(scores.items(), 2):
        change = a - b
        low, high = np.percentile(change, _INTERVAL).tolist()
        # One is added to both counts, so that no p-value of a finite bootstrap is 0.
        tail = 1 + min(int((change <= 0).sum()), int((change >= 0).sum()))
        row = {"first": first, "second": second, "difference": mean - other, "low": low}
        result.append({**row, "high": high, "p_value": min(1.0, 2 * tail / (len(change) + 1))})
    adjusted = holm([row["p_value"] for row in result]).tolist()
    return [{**row, "adjusted": p} for row, p in zip(result, adjusted, strict=True)]


def average_seconds(seconds: pa.Table) -> list[Row]:
    """Return the median seconds of each method over the draws of A.

    Args:
        seconds: from `read_results`.

    Returns:
        `domain`, `size`, `method`, `setting`; `learning`, to adapt or to tune, with the time of the
        decoder if A is decoded again; and `all` stages.
    """
    totals: dict[tuple[Any, ...], list[float]] = {}
    for row in seconds.to_pylist():
        entry = totals.setdefault(tuple(row[key] for key in _KEYS), [0.0, 0.0])
        entry[0] += row["seconds"] if row["stage"] in _LEARNING else 0.0
        entry[1] += row["seconds"]
    groups: dict[tuple[Any, ...], list[list[float]]] = {}
    for (domain, size, _, method, setting), pair in totals.items():
        groups.setdefault((domain, size, method, setting), []).append(pair)
    columns = (*_CONDITION, "learning", "all")
    return [
        dict(zip(columns, (*key, *np.median(pairs, axis=0).tolist()), strict=True))
        for key, pairs in groups.items()
    ]


def average_details(results: pa.Table, metric: str) -> list[Row]:
    """Return a metric with its details, means over draws, of each domain, size and method.

    BLEU has the n-gram precisions in percent and three measures of length: `brevity_penalty` and
    `length_ratio` of sacreBLEU, and `brevity`, min(1, c/r) with c words of translations and r of
    references.

    Args:
        results: from `read_results`.
        metric: one with details.
    """
    columns = [metric, *detail_names(metric)]
    plain = results.filter(pc.field("setting") == "")
    if LENGTH in columns:
        columns.append("brevity")
        plain = plain.append_column("brevity", pc.min_element_wise(1.0, plain[LENGTH]))
    keys = ["domain", "size", "method"]
    grouped = plain.group_by(keys, use_threads=False)
    means = grouped.aggregate([(column, "mean") for column in columns]).to_pylist()
    return [
        {**{key: row[key] for key in keys}, **{name: row[f"{name}_mean"] for name in columns}}
        for row in means
    ]
