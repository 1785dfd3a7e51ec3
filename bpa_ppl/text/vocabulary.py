"""Words as numbers, for compiled code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, count, repeat

import numpy as np

from bpa_ppl.nbest import Int32, Int64

#: The concatenated words of sentences, and the start of each sentence (and the end).
Ragged = tuple[Int32, Int64]


class Vocabulary:
    """Number words from 0, in the order of occurrence.

    >>> words, starts = Vocabulary().number([["a", "b", "a"], [], ["c"]])
    >>> words.tolist(), starts.tolist()
    ([0, 1, 0, 2], [0, 3, 3, 4])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = defaultdict(count().__next__)

    def __len__(self) -> int:
        """Return the number of different words."""
        return len(self._numbers)

    def words(self) -> list[str]:
        """Return the words in the order of their numbers.

        >>> vocabulary = Vocabulary()
        >>> _ = vocabulary.number([["b", "a", "b"]])
        >>> vocabulary.words()
        ['b', 'a']
        """
        return list(self._numbers)

    def number(self, sentences: Sequence[Sequence[str]]) -> Ragged:
        """Return the words of some sentences as numbers."""
        starts = starts_of(sentences)
        numbers = map(self._numbers.__getitem__, chain.from_iterable(sentences))
        return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts


def numbered(
    sentences: Sequence[Sequence[str]], numbers: Mapping[str, int], unknown: int = -1
) -> Ragged:
    """Return the words of some sentences as numbers.

    Args:
        sentences: the words of each.
        numbers: of the words.
        unknown: the number of other words.

    >>> words, starts = numbered([["a", "b"], [], ["a"]], {"a": 7})
    >>> words.tolist(), starts.tolist()
    ([7, -1, 7], [0, 2, 2, 3])
    """
    starts = starts_of(sentences)
    words = map(numbers.get, chain.from_iterable(sentences), repeat(unknown))
    return np.fromiter(words, dtype=np.int32, count=starts[-1]), starts


def starts_of(parts: Sequence[Sequence[object]]) -> Int64:
    """Return the start of each part in their concatenation, and its end.

    >>> starts_of([["a", "b", "c"], [], ["d"]]).tolist()
    [0, 3, 3, 4]
    """
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)
