"""Points of learning curves, differences between methods, and seconds, from rows of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.diagnostics.significance import holm
from bpa_ppl.experiments.results import KEYS, counts_of, metrics_of
from bpa_ppl.nbest import Float64
from bpa_ppl.quality import by_name
from bpa_ppl.quality.bootstrap import Replicates, Resamples, replicates, resamples

#: Stages in which a method learns from A; the others apply what it has learned.
LEARNING = ("adapt", "tune")

# So many that the smallest p-value survives the adjustment for the pairs of 14 methods.
_SAMPLES = 10_000
_TAIL = 2.5  # percent on either side of an interval of 95%


class Place(NamedTuple):
    """Where a method was tried; its draws of A make one point of a curve."""

    domain: str
    size: int
    method: str
    setting: str


@dataclass(frozen=True)
class Point:
    """The corpus scores of a method over the draws of A, in percent.

    Attributes:
        domain: its name.
        size: |A|, in sentences.
        method: its name.
        setting: the varied setting, empty for none.
        metric: its name, such as "ter".
        draws: of A.
        mean: over the draws.
        interval: its published 95% interval size, 2 · the empirical standard deviation over
            draws; NaN of a single draw.
        low: lower end of the 95% bootstrap interval of the mean, over test sentences and draws.
        high: its upper end.
        sentence_error: standard error of the mean by the sampling of test sentences alone.
        draw_error: likewise by the sampling of A alone.
        passed: share of the draws whose posterior passed its check; NaN where there is none.
    """

    domain: str
    size: int
    method: str
    setting: str
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
class Difference:
    """The mean score of one method less that of another, on the same draws and sentences.

    Attributes:
        domain: its name.
        size: |A|, in sentences.
        metric: its name.
        first: one method.
        second: the other one.
        difference: of their means, in percent.
        low: lower end of its 95% bootstrap interval, over test sentences and draws.
        high: its upper end.
        p_value: two-sided, of no difference.
        adjusted: the same, adjusted by Holm's method for all pairs at this place.
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

    points: list[Point]
    differences: list[Difference]


class Seconds(NamedTuple):
    """Median seconds of a method at one place, over the draws of A.

    Attributes:
        domain: its name.
        size: |A|, in sentences.
        method: its name.
        setting: the varied setting, empty for none.
        learning: to adapt or to tune.
        all: stages.
    """

    domain: str
    size: int
    method: str
    setting: str
    learning: float
    all: float


class _Sample(NamedTuple):
    """What is known of a method at one place, for one metric."""

    counts: Float64  # (draws, sentences, kinds)
    verdicts: list[str]
    replicates: Replicates


def aggregate(results: pa.Table, samples: int = _SAMPLES) -> Aggregates:
    """Return means, interval sizes and differences of all methods.

    Args:
        results: from `read_results`.
        samples: of the bootstrap.
    """
    points: list[Point] = []
    differences: list[Difference] = []
    for metric in metrics_of(results):
        for group in _groups(results):
            found = _resampled(results, group, metric, samples)
            points += [_point(place, metric, one) for place, one in found.items()]
            differences += _differences(found, metric)
    return Aggregates(points, differences)


def median_seconds(seconds: pa.Table) -> list[Seconds]:
    """Return the median seconds of each method, of learning and of all stages.

    Args:
        seconds: from `read_results`.
    """
    totals: dict[tuple[Any, ...], list[float]] = {}
    for row in seconds.to_pylist():
        entry = totals.setdefault(tuple(row[key] for key in KEYS), [0.0, 0.0])
        entry[0] += row["seconds"] if row["stage"] in LEARNING else 0.0
        entry[1] += row["seconds"]
    places: dict[tuple[Any, ...], list[list[float]]] = {}
    for (domain, size, _, method, setting), pair in totals.items():
        places.setdefault((domain, size, method, setting), []).append(pair)
    return [Seconds(*place, *np.median(pairs, axis=0).tolist()) for place, pairs in places.items()]


def _groups(results: pa.Table) -> Iterator[dict[Place, list[int]]]:
    """Yield for each domain and size the rows of each method and setting."""
    groups: dict[tuple[str, int], dict[Place, list[int]]] = {}
    for row, key in enumerate(results.select(list(Place._fields)).to_pylist()):
        place = Place(**key)
        groups.setdefault(place[:2], {}).setdefault(place, []).append(row)
    yield from groups.values()


def _resampled(
    results: pa.Table, group: dict[Place, list[int]], metric: str, samples: int
) -> dict[Place, _Sample]:
    """Return what is known of the methods of a group, on the same new samples."""
    known: dict[Place, _Sample] = {}
    new: Resamples | None = None
    for place, rows in group.items():
        counts = counts_of(results, rows, metric)
        if new is None:
            new = resamples(samples, counts.shape[1], len(rows))
        verdicts = [results["verdict"][row].as_py() for row in rows]
        known[place] = _Sample(counts, verdicts, replicates(counts, by_name(metric), new))
    return known


def _point(place: Place, metric: str, sample: _Sample) -> Point:
    values = by_name(metric).value(sample.counts.sum(axis=1))
    low, high = _interval(sample.replicates.both)
    return Point(
        **place._asdict(),
        metric=metric,
        draws=len(values),
        mean=float(values.mean()),
        interval=2 * float(values.std(ddof=1)) if len(values) > 1 else np.nan,
        low=low,
        high=high,
        sentence_error=float(sample.replicates.sentences.std()),
        draw_error=float(sample.replicates.draws.std()),
        passed=float(np.mean([v == "passed" for v in sample.verdicts]))
        if all(sample.verdicts)
        else np.nan,
    )


def _differences(found: dict[Place, _Sample], metric: str) -> list[Difference]:
    plain = {place: sample for place, sample in found.items() if not place.setting}
    raw = [
        _difference(first, second, plain[first], plain[second], metric)
        for first, second in combinations(plain, 2)
    ]
    adjusted = holm([one.p_value for one in raw])
    return [replace(one, adjusted=float(p)) for one, p in zip(raw, adjusted, strict=True)]


def _difference(
    first: Place, second: Place, ours: _Sample, theirs: _Sample, metric: str
) -> Difference:
    means = [by_name(metric).value(one.counts.sum(axis=1)).mean() for one in (ours, theirs)]
    change = ours.replicates.both - theirs.replicates.both
    low, high = _interval(change)
    # One is added to both counts, so that no finite bootstrap claims certainty.
    tail = 1 + min(int((change <= 0).sum()), int((change >= 0).sum()))
    return Difference(
        domain=first.domain,
        size=first.size,
        metric=metric,
        first=first.method,
        second=second.method,
        difference=float(means[0] - means[1]),
        low=low,
        high=high,
        p_value=min(1.0, 2 * tail / (len(change) + 1)),
    )


def _interval(values: Float64) -> tuple[float, float]:
    low, high = np.percentile(values, (_TAIL, 100 - _TAIL))
    return float(low), float(high)
