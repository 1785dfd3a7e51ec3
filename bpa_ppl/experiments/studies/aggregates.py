"""Points of learning curves, differences between methods, and times, from rows of results."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.experiments.estimates import holm
from bpa_ppl.experiments.studies.results import KEYS, detail_names, list_metrics, read_counts
from bpa_ppl.metrics.gains import resolve_without_lists
from bpa_ppl.metrics.scoreboard import draw_resamples, score_resamples

#: A row of a table, by the names of the columns.
Row = dict[str, Any]
#: Columns that say where a method was run; its draws of A make one point of a curve.
_CONDITION = tuple(name for name in KEYS if name != "draw")
#: The detail with the ratio of the words of choices and references.
LENGTH = "length_ratio"
#: Stages in which a method learns from A; the others apply what was learned.
_LEARNING = ("adapt", "tune", "decode")
# Enough that the smallest p-value survives the adjustment for all pairs of 14 methods.
_SAMPLES = 10_000
_INTERVAL = (2.5, 97.5)  # percentiles


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
                counts = read_counts(results, rows, metric)  # (draws, sentences, S)
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
        entry = totals.setdefault(tuple(row[key] for key in KEYS), [0.0, 0.0])
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
