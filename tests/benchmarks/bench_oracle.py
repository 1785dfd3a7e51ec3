"""Speed of TER oracles of 500-best lists, compared with sacreBLEU on every line.

    python tests/benchmarks/bench_oracle.py [--sentences 25]

All alternatives score the same sample of sentences of medical, in one process and without the
cache, and must return the same oracles. Compilation is excluded. The last line is the time for the
250,000 hypotheses of the pool.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measuring import Table, best_time, parse_options, read_lists
from sacrebleu import metrics

from bpa_ppl import NBest, oracles
from bpa_ppl.quality import resolve
from bpa_ppl.quality.scoring import distinct_lists


def sacrebleu_scores(lists: list[list[str]], references: tuple) -> np.ndarray:
    """Return sacreBLEU's sentence TER of every line."""
    ter = metrics.TER()
    return np.array(
        [
            ter.sentence_score(text, refs).score
            for texts, refs in zip(lists, references, strict=True)
            for text in texts
        ]
    )


def lowest(lists: NBest, scores: np.ndarray) -> np.ndarray:
    """Return the oracle of each list: the lowest score, then the highest total."""
    ranked = np.lexsort((np.arange(len(scores)), -lists.totals, scores))
    sentence = np.repeat(np.arange(len(lists)), lists.sizes)[ranked]
    _, first = np.unique(sentence, return_index=True)
    return ranked[first] - lists.offsets[:-1]


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, sentences=25)
    pool = read_lists("medical", "adapt")
    chosen = np.random.default_rng(1).choice(len(pool), options.sentences, replace=False)
    sample = pool.select(chosen)
    references = sample.references
    distinct, inverse = distinct_lists(sample, resolve("ter"))
    lines = [sample.texts(s) for s in range(len(sample))]
    oracles(pool[:1], cache=False)  # compiles
    alternatives: dict[str, tuple[Callable[[], np.ndarray], int]] = {
        "sacreBLEU, every line": (lambda: lowest(sample, sacrebleu_scores(lines, references)), 1),
        "sacreBLEU, distinct lines": (
            lambda: lowest(sample, sacrebleu_scores(distinct, references)[inverse]),
            1,
        ),
        "oracles": (lambda: oracles(sample, cache=False).index, 5),
        "oracles, jobs=2": (lambda: oracles(sample, cache=False, jobs=2).index, 5),
    }
    times = {name: best_time(*call) for name, call in alternatives.items()}
    base = times["sacreBLEU, every line"]
    table = Table(f"{len(sample.features)} lines", "seconds", "lines/s", "times as fast")
    for name, time in times.items():
        assert np.array_equal(time.result, base.result), f"{name} returns other oracles"
        rate = f"{len(sample.features) / time.seconds:.0f}"
        table.row(name, f"{time.seconds:.3f}", rate, base.seconds / time.seconds)
    seconds = best_time(lambda: oracles(pool, cache=False), 3).seconds
    print(f"\noracles of all {len(pool.features)} lines: {seconds:.2f} s")


if __name__ == "__main__":
    main()
