"""Length: the length of a candidate in words and characters, and relative to its source."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.features.source import Features, FeatureSource, compute_by_text
from bpa_ppl.lists.candidate_columns import require_answers
from bpa_ppl.lists.nbest import NBest


class Length(FeatureSource, frozen=True):
    """The length of each candidate.

    Attributes:
        words: add `LengthWords`, the number of words, which are separated by spaces.
        characters: add `LengthCharacters`, spaces included.
        ratio: add `LengthRatio`, words per word of the source; an empty source counts as one word.
    """

    words: bool = True
    characters: bool = False
    ratio: bool = False

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"sources"}) if self.ratio else frozenset()

    def columns(self, lists: NBest) -> Features:
        """Return the lengths.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b c", "a"]], [[[0.0]] * 2], ["LM0"], sources=["x y"])
        >>> columns = Length(ratio=True).columns(lists)
        >>> {name: column.tolist() for name, column in columns.items()}
        {'LengthWords': [3.0, 1.0], 'LengthRatio': [1.5, 0.5]}
        """
        require_answers(lists, "length")
        columns: dict[str, Float64] = {}
        words = compute_by_text(lists, _count_words)
        if self.words:
            columns["LengthWords"] = words
        if self.characters:
            columns["LengthCharacters"] = compute_by_text(lists, len)
        if self.ratio:
            sources = np.array(
                [max(_count_words(s), 1) for s in lists.sources or ()], dtype=np.float64
            )
            columns["LengthRatio"] = np.divide(words, np.repeat(sources, lists.sizes))
        return columns


def _count_words(text: str) -> int:
    return len(text.split())
