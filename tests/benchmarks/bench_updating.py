"""Sentences added one by one, compared with adapting again to all of them.

    python tests/benchmarks/bench_updating.py [--domains NAME …] [--draws 3] [--likelihood margin]

Each draw begins with 10 sentences of a domain and adds 100 others one by one. Printed after 10, 40
and 100 of them: the distance from a posterior adapted to all at once, as the root mean square of
the differences of the means, in posterior standard deviations, and the mean ratio of the standard
deviations; and test TER, BLEU and length. Rows: `starting over`, with another seed, shows the
Monte Carlo error; `exact`, with the lists of the first 10; `Gaussian`, without them. Then times per
sentence, without compilation: reweighting, new draws, and starting over.
"""

from __future__ import annotations

import argparse
import warnings
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from bench_features import scores_of
from measuring import canonical, lists

import bpa_ppl as bpa
from bpa_ppl import Draws, NBest
from bpa_ppl.sampling import Sequential

FIRST, STOPS = 10, (10, 40, 100)


def adapted(sample: NBest, likelihood: str, seed: int) -> Draws:
    """Return the posterior of some sentences at once."""
    posterior = bpa.adapt(sample, canonical(), sampler="imh", likelihood=likelihood, seed=seed)
    return bpa.as_draws(posterior)


def compared(draws: Draws, truth: Draws, test: NBest) -> list[float]:
    """Return distance of the means, ratio of the deviations, and test TER, BLEU and length."""
    shift = (draws.mean - truth.mean) / truth.deviation
    ratio = float(np.mean(draws.deviation / truth.deviation))
    weights = draws.at_point("mean")
    scores = scores_of(test, [weights[name] for name in test.feature_names])
    return [float(np.sqrt(np.mean(shift**2))), ratio, *scores]


class Timed:
    """Sentences added one by one, with the seconds that each took."""

    def __init__(self, first: NBest, likelihood: str, seed: int, exact: bool):
        posterior = adapted(first, likelihood, seed)
        self.sequential = Sequential(
            posterior, adaptation_lists=first if exact else None, seed=seed
        )
        self.seconds: list[float] = []

    def add(self, more: NBest) -> None:
        """Add sentences one after the other."""
        for one in more:
            start = perf_counter()
            self.sequential.add(one)
            self.seconds.append(perf_counter() - start)

    def times(self, afresh: bool) -> list[float]:
        """Return the seconds of the steps that reweighted, or of those that made new draws."""
        pairs = zip(self.sequential.steps, self.seconds, strict=True)
        return [seconds for step, seconds in pairs if bool(step.afresh) == afresh]


def study(name: str, likelihood: str, draws: int) -> None:
    """Print the tables of one domain."""
    pool, test = lists(name, "adapt"), lists(name, "test")
    found: dict[str, list[Any]] = {"starting over": [], "exact": [], "Gaussian": []}
    seconds: dict[str, list[float]] = {"reweighted": [], "new draws": [], "starting over": []}
    afresh = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(pool))[: FIRST + max(STOPS)]
        first = pool.select(order[:FIRST])
        updates = {n: Timed(first, likelihood, seed, n == "exact") for n in ("exact", "Gaussian")}
        rows: dict[str, list[Any]] = {n: [] for n in found}
        for begin, stop in zip((0, *STOPS), STOPS, strict=False):
            whole = pool.select(order[: FIRST + stop])
            truth = adapted(whole, likelihood, 1000 + seed)
            start = perf_counter()
            again = adapted(whole, likelihood, 2000 + seed)
            seconds["starting over"].append(perf_counter() - start)
            rows["starting over"].append(compared(again, truth, test))
            for row, timed in updates.items():
                timed.add(pool.select(order[FIRST + begin : FIRST + stop]))
                rows[row].append(compared(timed.sequential.draws(), truth, test))
        for row, values in rows.items():
            found[row].append(values)
        for timed in updates.values():
            seconds["reweighted"] += timed.times(False)
            seconds["new draws"] += timed.times(True)
            afresh.append(len(timed.times(True)))
    head = "".join(f"{f'10 + {stop}':>42}" for stop in STOPS)
    print(f"\n{f'{name}, {likelihood}':<16}{head}", flush=True)
    for row, table in found.items():
        mean = np.array(table).mean(axis=0)
        cells = [
            f"{shift:.3f} sd, × {ratio:.3f}, {ter:.2f} / {bleu:.1f} / {length:.3f}"
            for shift, ratio, ter, bleu, length in mean
        ]
        print(f"{row:<16}" + "".join(f"{cell:>42}" for cell in cells), flush=True)
    whole = median(seconds["starting over"])
    for row, times in seconds.items():
        middle = median(times)
        print(
            f"{row:<16}{1e3 * middle:>9.1f} ms (best {1e3 * min(times):.1f}), "
            f"1 / {whole / middle:.1f} of starting over"
        )
    print(f"new draws were made {np.mean(afresh):.1f} times in {max(STOPS)} sentences")


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domains", nargs="+", default=["captions"])
    parser.add_argument("--likelihood", default="margin")
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for name in options.domains:
        study(name, options.likelihood, options.draws)


if __name__ == "__main__":
    main()
