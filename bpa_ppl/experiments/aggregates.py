"""Points of learning curves, differences between methods, and times, from rows of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.arrays import Float64
from bpa_ppl.experiments.estimates import holm
from bpa_ppl.experiments.results import KEYS, counts_of, metrics_of
from bpa_ppl.quality.bootstrap import Replicates, replicates, resamples
from bpa_ppl.quality.column import by_name

#: Stages in which a method learns from A; the others apply what was learned.
_LEARNING = ("adapt", "tune", "decode")
# Enough that the smallest p-value survives the adjustment for all pairs of 14 methods.
_SAMPLES = 10_000
_INTERVAL = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class Condition:
    """Where a method was run; its draws of A make one point of a curve.

    Attributes:
        domain: the name of the domain.
        size: |A|.
        method: the name of the method.
        setting: `name=value` if it is swept, else empty.
    """

    domain: str
    size: int
    method: str
    setting: str

    @property
    def key(self) -> tuple[str, int, str]:
        """Domain, size and method."""
        return self.domain, self.size, self.method


@dataclass(frozen=True)
class CurvePoint(Condition):
    """The corpus scores of a method over the draws of A, in percent.

    Attributes:
        metric: the name of the metric, such as "ter".
        draws: the number of draws of A.
        mean: over the draws.
        interval: the published size of the 95% interval, 2 · the empirical standard deviation
            over draws; NaN for a single draw.
        low: lower end of the 95% bootstrap interval of the mean, over test sentences and draws.
        high: upper end.
        sentence_error: standard error of the mean due to the sampling of test sentences alone.
        draw_error: due to the sampling of A alone.
        passed: share of the draws whose posterior passed its check; NaN if there is none.
    """

    metric: str
    draws: int
    mean: float
    interval: float
    low: float
    high: float
    sentence_error: float
    draw_error: float
    passed: float


@dataclass(frozen=True)
class Seconds(Condition):
    """Median seconds of a method over the draws of A.

    Attributes:
        learning: to adapt or to tune, with the time of the decoder if A is decoded again.
        all: of all stages.
    """

    learning: float
    all: float


@dataclass(frozen=True)
class Difference:
    """The mean score of one method minus that of another, on the same draws and sentences.

    Attributes:
        domain: the name of the domain.
        size: |A|.
        metric: the name of the metric.
        first: the name of the one method.
        second: the name of the other method.
        difference: of their means, in percent.
        low: lower end of its 95% bootstrap interval, over test sentences and draws.
        high: upper end.
        p_value: two-sided, of no difference.
        adjusted: adjusted by Holm's method for all pairs of methods.
    """

    domain: str
    size: int
    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float = 1.0


class Aggregates(NamedTuple):
    """All points and all differences of a study."""

    points: list[CurvePoint]
    differences: list[Difference]


class _Scores(NamedTuple):
    """The scores of a method at one condition, under one metric."""

    values: Float64  # (draws,)
    verdicts: list[str]
    replicates: Replicates


def aggregate(results: pa.Table, samples: int = _SAMPLES) -> Aggregates:
    """Return means, interval sizes and differences of all methods.

    Args:
        results: from `read_results`.
        samples: of the bootstrap.
    """
    points: list[CurvePoint] = []
    differences: list[Difference] = []
    for metric in metrics_of(results):
        for group in _groups(results):
            scores = _scores(results, group, metric, samples)
            points += [_point(key, metric, point_scores) for key, point_scores in scores.items()]
            differences += _differences(scores, metric)
    return Aggregates(points, differences)


def median_seconds(seconds: pa.Table) -> list[Seconds]:
    """Return the median seconds of each method, of learning and of all stages.

    Args:
        seconds: from `read_results`.
    """
    totals: dict[tuple[Any, ...], list[float]] = {}
    for row in seconds.to_pylist():
        entry = totals.setdefault(tuple(row[key] for key in KEYS), [0.0, 0.0])
        entry[0] += row["seconds"] if row["stage"] in _LEARNING else 0.0
        entry[1] += row["seconds"]
    groups: dict[tuple[Any, ...], list[list[float]]] = {}
    for (domain, size, _, method, setting), pair in totals.items():
        groups.setdefault((domain, size, method, setting), []).append(pair)
    return [Seconds(*key, *np.median(pairs, axis=0).tolist()) for key, pairs in groups.items()]


def _groups(results: pa.Table) -> Iterator[dict[Condition, list[int]]]:
    """Yield for each domain and size the rows of each method and setting."""
    groups: dict[tuple[str, int], dict[Condition, list[int]]] = {}
    names = [field.name for field in fields(Condition)]
    for row, key in enumerate(results.select(names).to_pylist()):
        of_size = groups.setdefault((key["domain"], key["size"]), {})
        of_size.setdefault(Condition(**key), []).append(row)
    yield from groups.values()


def _scores(
    results: pa.Table, group: dict[Condition, list[int]], metric: str, samples: int
) -> dict[Condition, _Scores]:
    """Return the scores of the methods of a group, with bootstrap replicates on shared samples."""
    result: dict[Condition, _Scores] = {}
    config, shared = by_name(metric), None
    for condition, rows in group.items():
        counts = counts_of(results, rows, metric)  # (draws, sentences, S)
        shared = shared or resamples(samples, counts.shape[1], len(rows))
        verdicts = [results["verdict"][row].as_py() for row in rows]
        values = config.value(counts.sum(axis=1))
        result[condition] = _Scores(values, verdicts, replicates(counts, config, shared))
    return result


def _point(condition: Condition, metric: str, scores: _Scores) -> CurvePoint:
    values, verdicts = scores.values, scores.verdicts
    low, high = np.percentile(scores.replicates.both, _INTERVAL).tolist()
    return CurvePoint(
        **vars(condition),
        metric=metric,
        draws=len(values),
        mean=float(values.mean()),
        interval=2 * float(values.std(ddof=1)) if len(values) > 1 else np.nan,
        low=low,
        high=high,
        sentence_error=float(scores.replicates.sentences.std()),
        draw_error=float(scores.replicates.draws.std()),
        passed=float(np.mean([v == "passed" for v in verdicts])) if all(verdicts) else np.nan,
    )


def _differences(scores: dict[Condition, _Scores], metric: str) -> list[Difference]:
    plain = {condition: values for condition, values in scores.items() if not condition.setting}
    raw = []
    for (first, a), (second, b) in combinations(plain.items(), 2):
        change = a.replicates.both - b.replicates.both
        # One is added to both counts, so that no p-value of a finite bootstrap is 0.
        tail = 1 + min(int((change <= 0).sum()), int((change >= 0).sum()))
        p_value = min(1.0, 2 * tail / (len(change) + 1))
        difference = float(a.values.mean() - b.values.mean())
        numbers = (difference, *np.percentile(change, _INTERVAL).tolist(), p_value)
        names = (first.domain, first.size, metric, first.method, second.method)
        raw.append(Difference(*names, *numbers))
    adjusted = holm([d.p_value for d in raw])
    return [replace(d, adjusted=float(p)) for d, p in zip(raw, adjusted, strict=True)]
