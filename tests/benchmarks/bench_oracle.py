"""How long the TER oracles of real 500-best lists take, beside brute force with sacreBLEU.

    python tests/benchmarks/bench_oracle.py [--pool NAME] [--sentences N] [--seed S]

All sides score the same seeded sample of sentences, in one process and without the cache, and
must find the same oracles. Compilation is reported apart.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from sacrebleu import metrics

from bpa_ppl import NBest, oracles, read_nbest
from bpa_ppl.quality import resolve, ter_edits
from bpa_ppl.quality.scoring import distinct_lists

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def timed(work: Callable[[], np.ndarray], repeats: int = 1) -> tuple[float, np.ndarray]:
    """Return the median of the seconds that some work takes, and its result."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds), result


def score_lines(lists: list[list[str]], references: tuple) -> np.ndarray:
    """Return sacreBLEU's sentence TER of every line."""
    judge = metrics.TER()
    return np.array(
        [
            judge.sentence_score(text, refs).score
            for texts, refs in zip(lists, references, strict=True)
            for text in texts
        ]
    )


def choose(lists: NBest, scores: np.ndarray) -> np.ndarray:
    """Return the oracle of each list: the lowest score, then the highest total."""
    assert lists.totals is not None
    ranked = np.lexsort((np.arange(len(scores)), -lists.totals, scores))
    owner = np.repeat(np.arange(len(lists)), lists.sizes)[ranked]
    _, first = np.unique(owner, return_index=True)
    return ranked[first] - lists.offsets[:-1]


def compare(pool: NBest, sentences: int, seed: int) -> None:
    """Time every side on the same sentences and print the table."""
    chosen = np.random.default_rng(seed).choice(len(pool), min(sentences, len(pool)), replace=False)
    sample = pool.select(chosen)
    references = sample.references
    assert references is not None
    distinct, inverse = distinct_lists(sample, resolve("ter"))
    lines = [sample.texts(s) for s in range(len(sample))]
    sides: list[tuple[str, Callable[[], np.ndarray], int]] = [
        ("sacreBLEU, every line", lambda: choose(sample, score_lines(lines, references)), 1),
        (
            "sacreBLEU, equal strings once",
            lambda: choose(sample, score_lines(distinct, references)[inverse]),
            1,
        ),
        ("oracles", lambda: oracles(sample, cache=False).index, 5),
        ("oracles, jobs=2", lambda: oracles(sample, cache=False, jobs=2).index, 5),
    ]
    distinct_lines = sum(map(len, distinct))
    print(f"{len(sample)} sentences, {len(sample.features)} lines, {distinct_lines} distinct")
    print(f"{'':<32}{'seconds':>10}{'lines/s':>12}{'ratio':>9}")
    brute = expected = None
    for name, work, repeats in sides:
        seconds, index = timed(work, repeats)
        brute = seconds if brute is None else brute
        expected = index if expected is None else expected
        assert np.array_equal(index, expected), f"{name} finds other oracles"
        rate = len(sample.features) / seconds
        print(f"{name:<32}{seconds:>10.3f}{rate:>12.0f}{brute / seconds:>9.1f}")


def main() -> None:
    """Read the arguments, compile, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", default="medical/adapt", help="folder/part of the real lists")
    parser.add_argument("--sentences", type=int, default=25, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    path = DATA / options.pool
    pool = read_nbest(f"{path}.nbest.gz", references=f"{path}.ref")
    ready, _ = timed(lambda: ter_edits(["a"], [("a",)])[0])
    print(f"compilation, or loading what was compiled before: {ready:.2f} s")
    compare(pool, options.sentences, options.seed)
    whole, _ = timed(lambda: oracles(pool, cache=False).index, 3)
    print(f"oracles of the whole pool, {len(pool.features)} lines: {whole:.2f} s")


if __name__ == "__main__":
    main()
