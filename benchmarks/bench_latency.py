"""Latency of one list: `Reranker.choose` against a NumPy loop over the same draws.

    python benchmarks/bench_latency.py [--draws 4000] [--calls 300]

Lists are random. Printed are the median and the 99th percentile in milliseconds, and the ratio to
NumPy in the same run; then which choices fewer draws change on real lists, where they are at hand.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from measuring import DATA, Table, canonical, few, read_lists, require_data, run_tables

import bpa_ppl as bpa
from bpa_ppl.weight_draws import name_weights

#: Candidates and features of a list.
SIZES = ((10, 20), (100, 14), (500, 14))


def posterior(draws: int, width: int) -> bpa.Draws:
    """Return random draws of some weights."""
    weights = np.random.default_rng(0).normal(0.3, 0.1, size=(4, draws // 4, width))
    return name_weights(weights, tuple(f"feature{k}" for k in range(width)))


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


def choose(options: Any) -> None:
    """Print the milliseconds of a choice."""
    rng = np.random.default_rng(1)
    table = Table(
        f"candidates × features, {options.draws} draws", "median", "p99", "NumPy", "ratio"
    )
    for size, width in SIZES:
        draws = posterior(options.draws, width)
        reranker = bpa.Reranker(draws)
        texts = [f"candidate {i}" for i in range(size)]
        tables = [2 * rng.normal(size=(size, width)) for _ in range(options.calls)]
        one = milliseconds(lambda table, r=reranker, t=texts: r.choose(t, table), tables)
        loop = milliseconds(lambda table, w=draws.flat: numpy_choice(table, w), tables[:50])
        middle, high = np.quantile(one, [0.5, 0.99]).tolist()
        plain = float(np.median(loop))
        table.row(f"{size} × {width}", middle, high, plain, plain / middle)


def fewer(_: Any) -> None:
    """Print the share of equal choices with fewer draws, on real lists."""
    require_data()
    sizes = (100, 200, 400, 800)
    table = Table("choices (%) equal to those of all 4000 draws, with", *map(str, sizes))
    cases = [
        (f"{name} {count}", read_lists(name, "adapt")[:count], read_lists(name, "test"), {})
        for name in ("medical", "captions")
        for count in few((5, 20, 60))
    ]
    judged = bpa.read_nbest(DATA / "judged/wmt23.zh-en.jsonl.gz", features="*")
    cases += [(f"WMT 2023 {n}", judged[:n], judged[60:600], {"gain": "mqm"}) for n in (10, 40)]
    for name, adaptation, test, options in cases:
        posterior = bpa.adapt(adaptation, None if options else canonical(), seed=3, **options)
        every = bpa.Reranker(posterior, draws="all", unchecked=True)(test).choice
        choices = [bpa.Reranker(posterior, unchecked=True, draws=n)(test).choice for n in sizes]
        table.row(name, *(float(100 * np.mean(choice == every)) for choice in choices))


if __name__ == "__main__":
    run_tables(__doc__, (choose, fewer), needs_data=False, draws=4000, calls=300)
