"""Tables of a study as they are read: scores, seconds, precisions, significance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.experiments.aggregates import Difference, Point
from bpa_ppl.experiments.results import KEYS

#: Stages in which a method learns from A; the others apply what it has learned.
LEARNING = ("adapt", "tune")
_SIGNIFICANT = 0.05


class Seconds(NamedTuple):
    """Median seconds of a method at one place, over the draws of A."""

    domain: str
    size: int
    method: str
    setting: str
    learning: float
    all: float


def scores_table(points: Iterable[Point], domain: str, metric: str) -> Table:
    """Return `mean ± interval size` of each method, one column a size of A."""
    chosen = [p for p in points if p.domain == domain and p.metric == metric and not p.setting]
    sizes = sorted({point.size for point in chosen})
    shown = {(p.method, p.size): f"{p.mean:.1f} ± {p.interval:.1f}" for p in chosen}
    methods = dict.fromkeys(point.method for point in chosen)
    rows = [[name, *(shown[name, size] for size in sizes)] for name in methods]
    header = ["method", *(f"|A| = {size}" for size in sizes)]
    return Table(header, rows, f"{metric.upper()} of the test text of {domain}: mean ± 2σ.")


def verdict_table(points: Iterable[Point], domain: str) -> Table:
    """Return the share of posteriors that passed their check, one column a size of A."""
    chosen = [
        p
        for p in points
        if p.domain == domain and p.metric == "ter" and not p.setting and np.isfinite(p.passed)
    ]
    sizes = sorted({point.size for point in chosen})
    shown = {(p.method, p.size): f"{p.passed:.0%}" for p in chosen}
    rows = [
        [name, *(shown[name, size] for size in sizes)]
        for name in dict.fromkeys(point.method for point in chosen)
    ]
    header = ["method", *(f"|A| = {size}" for size in sizes)]
    return Table(header, rows, f"Posteriors that passed their check, {domain}.")


def median_seconds(seconds: pa.Table) -> list[Seconds]:
    """Return the median seconds of each method, of learning and of all stages."""
    totals: dict[tuple, list[float]] = {}
    for row in seconds.to_pylist():
        entry = totals.setdefault(tuple(row[key] for key in KEYS), [0.0, 0.0])
        entry[0] += row["seconds"] if row["stage"] in LEARNING else 0.0
        entry[1] += row["seconds"]
    places: dict[tuple, list[list[float]]] = {}
    for (domain, size, _, method, setting), pair in totals.items():
        places.setdefault((domain, size, method, setting), []).append(pair)
    return [Seconds(*place, *np.median(pairs, axis=0).tolist()) for place, pairs in places.items()]


def seconds_table(times: Iterable[Seconds], domain: str) -> Table:
    """Return the median seconds of learning of each method, one column a size of A."""
    chosen = [t for t in times if t.domain == domain and not t.setting]
    sizes = sorted({time.size for time in chosen})
    shown = {(t.method, t.size): t.learning for t in chosen if t.learning}
    methods = dict.fromkeys(name for name, _ in shown)
    rows = [[name, *(f"{shown[name, size]:.2f}" for size in sizes)] for name in methods]
    header = ["method", *(f"|A| = {size}" for size in sizes)]
    return Table(header, rows, f"Median seconds to adapt or tune, {domain}.")


def precision_table(results: pa.Table, domain: str) -> Table:
    """Return BLEU, its precisions and its brevity penalty, means over draws of the largest A."""
    here = results.filter((pc.field("domain") == domain) & (pc.field("setting") == ""))
    largest = pc.max(here["size"]).as_py()
    columns = ["bleu", *(f"precision_{n}" for n in range(1, 5)), "brevity_penalty"]
    grouped = (
        here.filter(pc.field("size") == largest)
        .group_by("method", use_threads=False)
        .aggregate([(column, "mean") for column in columns])
    )
    rows = [
        [row["method"], *(f"{row[f'{column}_mean']:.3g}" for column in columns)]
        for row in grouped.to_pylist()
    ]
    header = ["method", "BLEU", "1-grams", "2-grams", "3-grams", "4-grams", "brevity penalty"]
    return Table(header, rows, f"Precisions in percent, {domain}, |A| = {largest}.")


def significance_table(differences: Sequence[Difference], domain: str, metric: str) -> Table:
    """Return for each method against each other at how many sizes of A it differs, and how."""
    here = [d for d in differences if d.domain == domain and d.metric == metric]
    methods = list(dict.fromkeys(name for d in here for name in (d.first, d.second)))
    lower = _counted(here, sign=-1)
    higher = _counted(here, sign=1)
    rows = [
        [
            ours,
            *("" if ours == theirs else _cell(ours, theirs, lower, higher) for theirs in methods),
        ]
        for ours in methods
    ]
    sizes = len({d.size for d in here})
    caption = (
        f"{metric.upper()}, {domain}: at how many of the {sizes} sizes of A the method of the row "
        "is significantly lower (−) and higher (+) than that of the column, at 5% by paired "
        "bootstrap over draws and sentences, adjusted by Holm's method."
    )
    return Table(["method", *methods], rows, caption)


def _counted(differences: Iterable[Difference], sign: int) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for one in differences:
        if one.adjusted < _SIGNIFICANT and one.difference:
            below = one.difference * sign > 0
            pair = (one.first, one.second) if below else (one.second, one.first)
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def _cell(ours: str, theirs: str, lower: dict, higher: dict) -> str:
    below, above = lower.get((ours, theirs), 0), higher.get((ours, theirs), 0)
    return " ".join(f"{sign}{n}" for sign, n in (("−", below), ("+", above)) if n) or "·"
