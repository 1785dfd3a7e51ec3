"""Outliers in a feature: the weight and the choices, by what the spread of the feature counts.

    python benchmarks/bench_outliers.py [--tables NAME ...] [--draws 10] [--files NAME ...]

The scale of the prior is divided by the spread of the feature, its standard deviation within lists.
`robust` leaves out what `bpa_ppl.gains.problems.describe_outliers` calls outliers. All posteriors
are modes. The tables show means over the draws.

Tables:
    simulated    20 lists of 10, with outliers in the best of four features: its weight, and the
                 headroom won on lists without outliers; `corrected` has none to adapt to either
    collections  the headroom won on judged lists with features of their texts; the differences
                 have two standard errors
    warnings     how many columns of 10 to 100 lists have a warning
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from itertools import product
from typing import Any
from unittest.mock import patch

import measuring
import numpy as np
from bench_judged import COMPUTED, CONSENSUS_SETS, SIZES, SUMMARIES, draw_lists, read_halves
from measuring import DATA, DOMAINS, Table, read_lists, run_tables

import bpa_ppl as bpa
from bpa_ppl.diagnostics.ways.headroom import headroom_won
from bpa_ppl.gains.problems import describe_outliers, measure_distances
from bpa_ppl.lists.candidate_columns import numeric_columns
from bpa_ppl.lists.nbest import NBest, centre

#: The outliers: how many of 200 values, and what they are.
OUTLIERS = ((0, 0.0), (1, 1e2), (1, 1e4), (1, -1e4), (1, 1e9), (2, -1e2), (2, 1e9))
WEIGHTS = np.array([1.0, 0.5, 0.25, 0.0])


def measure_robustly(nbest: NBest, column: Any) -> float:
    """Return the standard deviation within lists without outliers."""
    values = np.asarray(column, np.float64)
    distance = measure_distances(values, nbest.sizes)
    differing = distance[distance > 0]
    if not len(differing):
        return 0.0
    is_near = distance <= 10 * np.quantile(differing, 0.9, method="inverted_cdf")
    left = np.add.reduceat(is_near.astype(np.int64), nbest.offsets[:-1])
    return float(np.sqrt(np.mean(centre(values[is_near], left) ** 2)))


def choose(lists: NBest, test: NBest, gain: str, robust: bool) -> tuple[float, float]:
    """Return the weight of the first feature, and the headroom won on test lists."""
    with ExitStack() as patches:
        for module in ("lists.nbest", "adapting.observe") if robust else ():
            name = f"bpa_ppl.{module}.measure_deviation"
            patches.enter_context(patch(name, measure_robustly))
        posterior = bpa.adapt(lists, None, gain="gain", sampler="map")
    choices = bpa.rerank(test, posterior, unchecked=True).choice
    weight = bpa.as_weight_draws(posterior).at_point("mean")[lists.feature_names[0]]
    return weight, headroom_won(test, choices, gain)


def simulate(rng: np.random.Generator, count: int, outliers: int = 0, value: float = 0) -> NBest:
    """Return lists of ten candidates; outliers are in the first feature, not in the gain."""
    table = rng.normal(size=(10 * count, len(WEIGHTS)))
    gain = table @ WEIGHTS + rng.normal(size=len(table))
    table[rng.choice(len(table), outliers, replace=False), 0] = value
    features = table.reshape(count, 10, -1).tolist()
    names = ["best", "second", "third", "noise"]
    return bpa.from_lists([["a"] * 10] * count, features, names).with_extras(gain=gain)


def simulated(options: Any) -> None:
    """Print the weight of the best feature, and the headroom won."""
    ways = ("standard deviation", "robust", "corrected")
    table = Table("outliers in 200 values: weight / headroom won", *ways, width=18)
    for count, value in OUTLIERS:
        results = []
        for seed in range(options.draws):
            test = simulate(np.random.default_rng([seed, 1]), 500)
            results.append(
                [
                    # New lists each time, because they keep their spread.
                    choose(simulate(np.random.default_rng(seed), 20, *of), test, "gain", robust)
                    for of, robust in (((count, value), False), ((count, value), True), ((), False))
                ]
            )
        means = np.mean(results, axis=0)
        table.row(f"{count} of {value:g}", *(f"{w:.3f} / {won:.3f}" for w, won in means))


def collections(options: Any) -> None:
    """Print the headroom won, and the difference that a robust spread makes."""
    table = Table("headroom won", *(f"{size} judged lists" for size in SIZES), width=28)
    for file in options.files:
        halves = read_halves((file,), (*COMPUTED, "chars"))
        cells = []
        for size in SIZES:
            results = np.array(
                [
                    [
                        [choose(draw_lists(h, size, s), h.test, "mqm", r)[1] for r in (False, True)]
                        for h in halves
                    ]
                    for s in range(options.draws)
                ]
            ).mean(axis=1)
            difference = results[:, 1] - results[:, 0]
            error = 2 * difference.std(ddof=1) / np.sqrt(options.draws)
            cells.append(f"{results[:, 0].mean():.3f}, {difference.mean():+.3f} ± {error:.3f}")
        table.row(file, *cells)


def read_all() -> dict[str, NBest]:
    """Return judged lists, and the Moses lists."""
    paths = [*(DATA / "judged").glob("*.jsonl.gz"), *(DATA / "mqm").glob("*.jsonl.gz")]
    result = {path.name: bpa.read_nbest(path, features="*") for path in sorted(paths)}
    return result | {domain: read_lists(domain, "adapt") for domain in DOMAINS}


def warnings(options: Any) -> None:
    """Print the columns that have a warning, by file."""
    table = Table("columns of 10, 20, 50 or 100 lists", "columns", "warnings", "most in", width=18)
    for file, lists in read_all().items():
        notes: Counter[str] = Counter()
        drawn = 0
        for size, seed in product((10, 20, 50, 100), range(options.draws)):
            part = measuring.draw_lists(lists, min(size, len(lists)), seed)
            names = numeric_columns(part)
            notes.update(name for name in names if describe_outliers(part, name))
            drawn += len(names)
        table.row(file, drawn, notes.total(), *(f"{n} {k}" for n, k in notes.most_common(1)))


if __name__ == "__main__":
    run_tables(
        __doc__, (simulated, collections, warnings), draws=10, files=(*CONSENSUS_SETS, SUMMARIES)
    )
