"""Speed of predictive decoding, compared with a NumPy loop over sentences.

    python tests/benchmarks/bench_decoding.py [--pool medical] [--draws 1000] [--repeats 3]

Both average p(e|f,λ) over the same draws for the same lists in one process, after a first run that
compiles; the share of equal choices is printed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from measuring import Table, best_time, canonical, parse_options, read_lists

import bpa_ppl as bpa
from bpa_ppl.weights import match


def numpy_choices(lists: bpa.NBest, weights: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the predictive choice of each list, one sentence at a time."""
    choice = np.empty(len(lists), np.int64)
    columns = weights.T.astype(dtype)
    for s in range(len(lists)):
        features = lists.features[lists.rows(s)]
        scores = (features - features[0]).astype(dtype) @ columns
        p = np.exp(scores - scores.max(axis=0))
        choice[s] = (p / p.sum(axis=0)).mean(axis=1).argmax()
    return choice


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, pool="medical", draws=1000, repeats=3)
    lists = read_lists(options.pool, "test")
    mean = match(canonical(), lists).values
    weights = mean + 0.1 * np.random.default_rng(0).normal(size=(options.draws, len(mean)))
    posterior = bpa.Draws({"weights": weights[None]}, lists.feature_names)
    rerank = partial(bpa.rerank, lists, posterior, unchecked=True)
    first = best_time(rerank).seconds
    rerank_time = best_time(rerank, options.repeats)
    float64, float32 = (
        best_time(partial(numpy_choices, lists, weights, dtype), options.repeats)
        for dtype in (np.float64, np.float32)
    )
    equal = np.mean(rerank_time.result.choice == float64.result)
    print(f"{len(lists)} lists, {len(lists.features)} hypotheses, {options.draws} draws")
    print(f"{equal:.1%} of the choices equal those of NumPy; the first run takes {first:.2f} s")
    table = Table("", "seconds", "times as fast")
    for name, time in (
        ("NumPy loop, float64", float64),
        ("NumPy loop, float32", float32),
        ("rerank", rerank_time),
    ):
        table.row(name, time.seconds, float64.seconds / time.seconds)


if __name__ == "__main__":
    main()
