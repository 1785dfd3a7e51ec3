"""Predictive decoding with 1000 draws, beside a NumPy loop over sentences.

    python tests/benchmarks/bench_decoding.py [--pool NAME] [--draws N] [--repeats N]

Both sides average p(e|f,λ) over the same draws for the same lists, in one process, and must agree.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import arviz as az
import numpy as np
from measuring import Peak, canonical, lists, timed

import bpa_ppl as bpa
from bpa_ppl.weights import match


def loop(pool: bpa.NBest, weights: np.ndarray, dtype: type) -> np.ndarray:
    """Return the predictive choice of each list, one sentence after the other, in NumPy."""
    choice = np.empty(len(pool), np.int64)
    columns = weights.T.astype(dtype)
    for s in range(len(pool)):
        features = pool.features[pool.rows(s)]
        scores = (features - features[0]).astype(dtype) @ columns
        p = np.exp(scores - scores.max(axis=0))
        choice[s] = (p / p.sum(axis=0)).mean(axis=1).argmax()
    return choice


def best_of(work: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of some work, compilation left out."""
    return statistics.median(timed(work).seconds for _ in range(repeats))


def main() -> None:
    """Read the command line, time both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", default="medical")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    pool = lists(options.pool, "test")
    centre = match(canonical(), pool).values
    rng = np.random.default_rng(0)
    weights = centre + 0.1 * rng.normal(size=(options.draws, len(centre)))
    posterior = az.from_dict(
        posterior={"weights": weights[None]},
        coords={"feature": list(pool.feature_names)},
        dims={"weights": ["feature"]},
    )
    run = partial(bpa.rerank, pool, posterior, unchecked=True)
    first = timed(run)
    agree = np.mean(first.result.choice == loop(pool, weights, np.float64))
    print(f"{len(pool)} lists, {len(pool.features)} hypotheses, {options.draws} draws")
    print(
        f"choices equal to float64 NumPy: {100 * agree:.1f}%; compilation {first.compiling:.2f} s"
    )
    print(f"{'':<24}{'seconds':>10}{'ratio':>10}")
    sides = {
        "NumPy loop, float64": partial(loop, pool, weights, np.float64),
        "NumPy loop, float32": partial(loop, pool, weights, np.float32),
        "rerank": run,
    }
    seconds = {name: best_of(work, options.repeats) for name, work in sides.items()}
    for name, value in seconds.items():
        print(f"{name:<24}{value:>10.2f}{seconds['NumPy loop, float64'] / value:>9.1f}×")
    with Peak() as peak:
        run()
    print(f"peak memory of rerank: {peak.bytes / pool.features.nbytes:.2f} × the feature table")


if __name__ == "__main__":
    main()
