"""Speed of IBM Model 1, compared with Python dictionaries.

    python tests/benchmarks/bench_lexicon.py [--pairs 3000]

Both run five iterations of EM on the same sentence pairs of captions and must return the same
log-probabilities. The time of the compiled one is the best of three runs, after one that compiles.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from measuring import Table, best_time, caption_corpus, parse_options

from bpa_ppl.formats.streams import read_lines
from bpa_ppl.text.ibm1 import IBM1

Sentences = list[list[str]]


def dictionary_em(sources: Sentences, targets: Sentences) -> dict[tuple[str, str], float]:
    """Estimate p(target word | source word) with dictionaries."""
    uniform = 1 / len({word for target in targets for word in target})
    table: dict[tuple[str, str], float] = defaultdict(lambda: uniform)
    for _ in range(5):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            with_null = ["", *source]
            for e in target:
                norm = sum(table[f, e] for f in with_null)
                for f in with_null:
                    share = table[f, e] / norm
                    counts[f, e] += share
                    totals[f] += share
        table = defaultdict(float, {(f, e): c / totals[f] for (f, e), c in counts.items()})
    return table


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, pairs=3000)
    sides = (read_lines(path)[: options.pairs] for path in caption_corpus())
    sources, targets = ([line.split() for line in lines] for lines in sides)
    IBM1.estimate(sources, targets, 1)  # compiles
    compiled = best_time(lambda: IBM1.estimate(sources, targets, 5), 3)
    plain = best_time(lambda: dictionary_em(sources, targets))
    sums = [
        [sum(plain.result[f, e] for f in ["", *source]) / (len(source) + 1) for e in target]
        for source, target in zip(sources, targets, strict=True)
    ]
    expected = [np.log(np.maximum(row, 1e-7)).sum() for row in sums]
    values = compiled.result.log_probabilities(sources, targets, np.arange(len(sources)))
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    table = Table(f"EM, {len(sources)} pairs", "seconds", "times as fast")
    table.row("Python dictionaries", plain.seconds, 1.0)
    table.row("IBM1", compiled.seconds, plain.seconds / compiled.seconds)


if __name__ == "__main__":
    main()
