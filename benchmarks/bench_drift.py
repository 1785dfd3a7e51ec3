"""Drift: how often features of new lists are named, and what the comparison costs.

    python benchmarks/bench_drift.py [--tables NAME ...] [--runs 40]

Tables:
    level   new lists of the same collection, half of which is reserved for them, and of another
            domain: the share of runs (%) in which any feature is reported, for up to 256 new lists
            that arrive one by one
    power   one feature of the new lists times 5, 1/5, 20 or −1, or constant: the share of runs (%)
            in which it is reported, the median number of lists until then, and the number of other
            features reported
    cost    the processor time of `Reranker.choose` with the comparison, divided by the time without
            it

The adaptation lists are drawn without replacement. The weights come from a ridge regression of the
gain; for pairs they are equal, and for translations by Moses (100 candidates per list) they are
canonical.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from measuring import DATA, DOMAINS, Table, canonical, few, read_lists, run_tables

import bpa_ppl as bpa
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.decoding.drift import DriftMonitor, feature_scales
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.posterior.record import Record
from bpa_ppl.posterior.weight_draws import name_weights

GAINS = ("mqm", "esa", "human", "edits")
SIZES = few((10, 20, 50))
NEW = few(range(256), 20)
CHANGES = {"× 5": 5.0, "÷ 5": 0.2, "× 20": 20.0, "negated": -1.0, "constant": 0.0}


class Collection(NamedTuple):
    """Lists without their gain, the gain of each candidate, and the domain of each list."""

    lists: bpa.NBest
    gains: np.ndarray | None
    domains: np.ndarray | None


@cache
def collections() -> dict[str, Collection]:
    """Read all collections."""
    result = {}
    for path in sorted((DATA / "judged").glob("*.jsonl.gz")):
        lists = bpa.read_nbest(path, features="*")
        columns = (*lists.feature_names, *lists.extras)
        gain = next((name for name in GAINS if name in columns), None)
        gains = None if gain is None else np.nan_to_num(read_column(lists, gain))
        domains = lists.sentence_extras.get("domain")
        lists = lists.without(*(name for name in GAINS if name in columns))
        several = domains is not None and len(set(domains)) > 1
        of_lists = np.array(domains, str) if several else None
        result[path.name.removesuffix(".jsonl.gz")] = Collection(lists, gains, of_lists)
    for domain in DOMAINS:
        result[f"Moses {domain}"] = Collection(read_lists(domain, "test").truncate(100), None, None)
    return result


def fitted(lists: bpa.NBest, gains: np.ndarray | None) -> np.ndarray:
    """Return weights of the features."""
    if lists.totals is not None:
        weights = canonical()
        return np.array([weights.get(name, 1.0) for name in lists.feature_names])
    spread = np.where(lists.spread > 0, lists.spread, 1.0)
    if gains is None:
        return 1 / spread
    number = np.repeat(np.arange(len(lists)), lists.sizes)

    def centred(values: np.ndarray) -> np.ndarray:
        return values - np.bincount(number, values)[number] / lists.sizes[number]

    table = np.stack([centred(column.astype(float)) for column in lists.features.T], axis=1)
    table, target = table / spread, centred(gains)
    solved = np.linalg.solve(table.T @ table + 5 * np.eye(len(spread)), table.T @ target)
    return solved / (target.std() or 1.0) / spread


def named(
    of: Collection, adapted: np.ndarray, new: np.ndarray, change: Callable[[Any], Any] = lambda x: x
) -> dict[str, int]:
    """Return the features that are named, and after how many new lists."""
    lists, gains = of.lists[adapted], of.gains
    if gains is not None:
        gains = np.concatenate([gains[of.lists.rows(s)] for s in adapted])
    weights = fitted(lists, gains)
    names = lists.feature_names
    scales = feature_scales(lists, weights)
    monitor = DriftMonitor(scales, dict(zip(names, weights.tolist(), strict=True)), names)
    later = change(of.lists[new])
    found: dict[str, int] = {}
    for s in range(len(later)):
        with capture_notes() as notes:
            monitor.add_one(names, later.features[later.rows(s)])
        words = " ".join(note.message for note in notes).replace(",", " ").split()
        found |= {name: s + 1 for name in names if name in words and name not in found}
    return found


def level_table(options: Any) -> None:
    """Print how often unchanged features are named."""
    table = Table("any feature named (%), |A| =", *map(str, SIZES), *(f"domain {n}" for n in SIZES))
    totals = np.zeros((2, 2 * len(SIZES)))
    for name, of in collections().items():
        rng, cells = np.random.default_rng(0), []
        for other in (False, True):
            for size in SIZES:
                alarms = runs = 0
                for _ in range(options.runs):
                    pool = rng.permutation(len(of.lists))
                    first, second = pool[: len(pool) // 2], pool[len(pool) // 2 :]
                    if other and of.domains is not None:
                        one, two = rng.permutation(np.unique(of.domains))[:2]
                        first, second = (pool[of.domains[pool] == domain] for domain in (one, two))
                    if (other and of.domains is None) or len(first) < size:
                        continue
                    runs += 1
                    alarms += bool(named(of, first[:size], second[: len(NEW)]))
                totals[:, len(cells)] += alarms, runs
                cells.append(100 * alarms / runs if runs else np.nan)
        table.row(name, *cells)
    table.row("all", *(100 * totals[0] / totals[1]))


def power_table(options: Any) -> None:
    """Print how often changed features are named."""
    for size in SIZES:
        table = Table(f"named (%), lists until then, others named; |A| = {size}", *CHANGES)
        for name, of in collections().items():
            rng, cells = np.random.default_rng(1), []
            if len(of.lists) < 2 * size:
                continue
            for factor in CHANGES.values():
                counts: list[int] = []
                others: Counter[str] = Counter()
                for run in range(options.runs):
                    pool = rng.permutation(len(of.lists))
                    varying = np.flatnonzero(of.lists.spread)
                    k = varying[run % len(varying)]
                    factors = np.ones(len(of.lists.feature_names), np.float32)
                    factors[k] = factor

                    def change(lists: bpa.NBest, factors: np.ndarray = factors) -> bpa.NBest:
                        return replace(lists, features=lists.features * factors)

                    half = len(pool) // 2
                    found = named(of, pool[:size], pool[half : half + len(NEW)], change)
                    feature = of.lists.feature_names[k]
                    counts += [found[feature]] if feature in found else []
                    others.update(other for other in found if other != feature)
                share = 100 * len(counts) / options.runs
                until = np.median(counts) if counts else np.nan
                extra = others.total() / options.runs
                cells.append(f"{share:.0f}, {until:.0f}, {extra:.2f}")
            table.row(name, *cells)


def cost_table(options: Any) -> None:
    """Print the time of a choice with the comparison over that without it."""
    table = Table("candidates × features", "µs without", "with / without, 300 calls", "3000 calls")
    for candidates, features in few(((2, 9), (12, 17), (100, 14), (500, 14))):
        rng = np.random.default_rng(0)
        names = [f"feature{k}" for k in range(features)]
        drawn = rng.normal(0.3, 0.1, (4, 1000, features))
        table_of = rng.normal(size=(3000, candidates, features)).astype(np.float32)
        texts = [f"candidate {i}" for i in range(candidates)]
        lists = bpa.from_lists([texts] * 50, table_of[:50], names)
        record = Record(feature_scales=feature_scales(lists, drawn.mean(axis=(0, 1))))
        ratios: dict[int, list[float]] = {300: [], 3000: []}
        plain = np.inf
        for calls, of in ratios.items():
            for _ in range(3):
                seconds = []
                for recorded in (Record(), record):
                    draws = name_weights(drawn, tuple(names), record=recorded)
                    reranker = bpa.Reranker(draws, unchecked=True)
                    reranker.choose(texts, table_of[0])
                    start = process_time()
                    for one in table_of[:calls]:
                        reranker.choose(texts, one)
                    seconds.append(process_time() - start)
                of.append(seconds[1] / seconds[0])
                plain = min(plain, 1e6 * seconds[0] / calls)
        medians = [float(np.median(of)) for of in ratios.values()]
        table.row(f"{candidates} × {features}", plain, *medians)


if __name__ == "__main__":
    run_tables(__doc__, (level_table, power_table, cost_table), runs=40)
