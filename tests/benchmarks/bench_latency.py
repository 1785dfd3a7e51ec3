"""Latency of one list: `Reranker.choose` against a NumPy loop over the same draws.

    python tests/benchmarks/bench_latency.py [--draws 4000] [--calls 300]

Lists are random. Printed are the median and the 99th percentile in milliseconds, and the ratio to
NumPy in the same run; then which choices fewer draws change on real lists, where they are at hand;
and the memory after 10,000 calls with lists of 1 to 1000 candidates.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
import psutil
from measuring import DATA, canonical, read_lists

import bpa_ppl as bpa

#: Candidates and features of a list.
SIZES = ((10, 20), (100, 14), (500, 14))


def posterior(draws: int, width: int) -> bpa.Draws:
    """Return random draws of some weights."""
    weights = np.random.default_rng(0).normal(0.3, 0.1, size=(4, draws // 4, width))
    return bpa.Draws({"weights": weights}, tuple(f"feature{k}" for k in range(width)))


def numpy_choice(features: np.ndarray, weights: np.ndarray) -> int:
    """Return the predictive choice by NumPy, in 64 bits."""
    scores = (features - features[0]) @ weights.T
    p = np.exp(scores - scores.max(axis=0))
    return int((p / p.sum(axis=0)).mean(axis=1).argmax())


def milliseconds(call: object, tables: list[np.ndarray]) -> np.ndarray:
    """Return the milliseconds of a call for each table."""
    seconds = []
    for table in tables:
        start = perf_counter()
        call(table)
        seconds.append(perf_counter() - start)
    return 1000 * np.array(seconds)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{options.draws} draws, milliseconds a list")
    print(f"{'candidates × features':<24}{'median':>8}{'p99':>8}{'NumPy':>8}{'ratio':>8}")
    for size, width in SIZES:
        draws = posterior(options.draws, width)
        reranker = bpa.Reranker(draws)
        texts = [f"candidate {i}" for i in range(size)]
        tables = [2 * rng.normal(size=(size, width)) for _ in range(options.calls)]
        one = milliseconds(lambda table, r=reranker, t=texts: r.choose(t, table), tables)
        loop = milliseconds(lambda table, w=draws.flat: numpy_choice(table, w), tables[:50])
        middle, high = np.quantile(one, [0.5, 0.99])
        plain = np.median(loop)
        print(
            f"{f'{size} × {width}':<24}{middle:>8.2f}{high:>8.2f}{plain:>8.2f}"
            f"{plain / middle:>7.1f}×"
        )
    if DATA.is_dir():
        fewer_draws()
    memory(posterior(options.draws, 14))


def fewer_draws() -> None:
    """Print the share of equal choices with fewer draws, on real lists."""
    sizes = (100, 200, 400, 800)
    print("\nchoices (%) equal to those of all 4000 draws, with so many of them")
    print(f"{'lists, adaptation sentences':<32}" + "".join(f"{few:>8}" for few in sizes))
    cases = [
        (f"{name} {count}", read_lists(name, "adapt")[:count], read_lists(name, "test"), {})
        for name in ("medical", "captions")
        for count in (5, 20, 60)
    ]
    judged = bpa.read_nbest(DATA / "judged/wmt23.zh-en.jsonl.gz")
    cases += [(f"WMT 2023 {n}", judged[:n], judged[60:600], {"metric": "mqm"}) for n in (10, 40)]
    for name, adaptation, test, options in cases:
        weights = None if options else canonical()
        posterior = bpa.adapt(adaptation, weights, seed=3, **options)
        every = bpa.Reranker(posterior, draws="all", unchecked=True)(test).choice
        print(f"{name:<32}", end="", flush=True)
        for few in sizes:
            choice = bpa.Reranker(posterior, unchecked=True, draws=few)(test).choice
            print(f"{100 * np.mean(choice == every):>8.1f}", end="")
        print()


def memory(draws: bpa.Draws) -> None:
    """Print what 10,000 calls with lists of all sizes leave in memory."""
    reranker, process = bpa.Reranker(draws), psutil.Process()
    rng = np.random.default_rng(2)
    features, texts = rng.normal(size=(1000, len(draws.features))), ["a"] * 1000
    print("\nresident memory in MiB after calls with 1 to 1000 candidates")
    for calls in range(10_001):
        if calls % 2000 == 0:
            print(f"{calls:>6} calls {process.memory_info().rss / 2**20:>8.0f}", flush=True)
        size = int(rng.integers(1, 1001))
        reranker.choose(texts[:size], features[:size])


if __name__ == "__main__":
    main()
