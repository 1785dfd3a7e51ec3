"""Predictive decoding with 1000 draws, beside a NumPy loop over sentences.

    python tests/benchmarks/bench_decoding.py [--pool NAME] [--draws N] [--repeats N]

Both sides average p(e|f,λ) over the same draws for the same lists, in one process, and must agree.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from measuring import canonical, lists, timed

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
    posterior = bpa.Draws({"weights": weights[None]}, pool.feature_names)
    run = partial(bpa.rerank, pool, posterior, unchecked=True)
    ours = timed(run, options.repeats)
    agree = np.mean(ours.result.choice == loop(pool, weights, np.float64))
    print(f"{len(pool)} lists, {len(pool.features)} hypotheses, {options.draws} draws")
    print(f"choices equal to float64 NumPy: {100 * agree:.1f}%; first run {ours.first:.2f} s more")
    print(f"{'':<24}{'seconds':>10}{'ratio':>10}")
    loops = {
        "NumPy loop, float64": timed(partial(loop, pool, weights, np.float64)),
        "NumPy loop, float32": timed(partial(loop, pool, weights, np.float32)),
    }
    slowest = loops["NumPy loop, float64"].seconds
    for name, side in {**loops, "rerank": ours}.items():
        print(f"{name:<24}{side.seconds:>10.2f}{slowest / side.seconds:>9.1f}×")


if __name__ == "__main__":
    main()
