"""Speed of n-gram language models, compared with Python dictionaries and with reading lists.

    python tests/benchmarks/bench_language_model.py [--lines 100000] [--repeats 3]

1. Training on lines of the general corpus, compared with only counting the same n-grams in Python
   dictionaries.
2. The two columns of a language model for the hypotheses of captions, compared with reading them.

Each time is the best of several runs, after one that compiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from measuring import (
    CORPORA,
    DATA,
    Table,
    best_time,
    caption_corpus,
    parse_options,
    write_lines,
)

from bpa_ppl import read_nbest
from bpa_ppl.features import LanguageModel
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.text.language_model import NgramModel

ORDER = 3


def count_ngrams(lines: Sequence[str]) -> list[int]:
    """Return the number of distinct n-grams of each order."""
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(ORDER)]
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        for n in range(1, ORDER + 1):
            counts[n - 1].update(zip(*(words[i:] for i in range(n)), strict=False))
    return [len(count) for count in counts]


def main() -> None:
    """Print both comparisons."""
    options = parse_options(__doc__, lines=100_000, repeats=3)
    lines = read_lines(CORPORA / "out.en.xz")[: options.lines]
    path = write_lines("text", lines)
    NgramModel.train([caption_corpus()[1]], ORDER)  # compiles
    training = best_time(lambda: NgramModel.train([path], ORDER), options.repeats)
    counting = best_time(lambda: count_ngrams(lines))
    counts = training.result.counts
    assert counting.result == [counts[0] - 1, *counts[1:]]  # <unk> is not counted
    table = Table(f"{len(lines):,} lines, order {ORDER}", "seconds", "ratio")
    table.row("training", training.seconds, 1.0)
    table.row("counting in Python", counting.seconds, counting.seconds / training.seconds)

    path = DATA / "captions/adapt.nbest.gz"
    read_nbest(path)  # compiles
    reading = best_time(lambda: read_nbest(path), options.repeats)
    lists = reading.result
    columns = LanguageModel(text=caption_corpus()[1], order=ORDER).opened()
    columns(lists)  # compiles
    scoring = best_time(lambda: columns(lists), options.repeats)
    table = Table(f"{len(lists.features):,} hypotheses", "seconds", "ratio")
    table.row("reading the lists", reading.seconds, 1.0)
    table.row("columns lm and lm.oov", scoring.seconds, scoring.seconds / reading.seconds)


if __name__ == "__main__":
    main()
