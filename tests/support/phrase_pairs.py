"""Tables of phrase pairs as dictionaries, and numbered text as lists of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpa_ppl.extras.phrases.tables import PhraseCounts, PhrasePairs
from bpa_ppl.text.words import NumberedText


def pairs_of(table: PhrasePairs) -> list[tuple[str, str]]:
    """Return the pairs of a table as texts."""
    sides = table.texts("source").to_pylist(), table.texts("target").to_pylist()
    return list(zip(*sides, strict=True))


def counts_by_pair(table: PhraseCounts) -> dict[tuple[str, str], float]:
    """Return the counts by pairs of texts."""
    return dict(zip(pairs_of(table), table.count.tolist(), strict=True))


def tables_equal(one: PhraseCounts, two: PhraseCounts) -> bool:
    """Return whether two tables have equal pairs, counts and marginals."""
    names = ("source", "target", "count", "source_count", "target_count")
    numbers = all(np.array_equal(getattr(one, n), getattr(two, n)) for n in names)
    return numbers and one.sources.equals(two.sources) and one.targets.equals(two.targets)


def numbered(*sides: Sequence[list[str]]) -> list[NumberedText]:
    """Return the sides of a corpus, lists of words, as numbered texts."""
    return list(map(NumberedText.of, sides))


def sentences_of(text: NumberedText) -> list[list[str]]:
    """Return the sentences of a text as lists of words."""
    parts = np.split(text.numbers, text.starts[1:-1])
    return [[text.words[number] for number in part] for part in parts]
