"""Texts as words separated by spaces, and as numbers for compiled code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from typing import Any, NamedTuple, Self

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl._runtime.streams import AnyPath, decode, read_chunks
from bpa_ppl.errors import DataError, list_names

#: The first words of the vocabulary of a language model: numbers 0, 1 and 2.
SPECIAL = ("<unk>", "<s>", "</s>")
UNKNOWN, BEGIN, END = range(3)

#: The concatenated words of sentences, and the start of each sentence (and the end).
Ragged = tuple[Int32, Int64]

# A no-break space is part of a word, as in Moses and KenLM.
_between_spaces = re.compile(r"[^ \t\n\v\f\r]+").findall


def split_words(text: str) -> list[str]:
    r"""Return the words of a text, which are separated by spaces or tabs.

    >>> split_words("the  cat , it sat "), split_words("10\u00a0000 chats")
    (['the', 'cat', ',', 'it', 'sat'], ['10\xa0000', 'chats'])
    """
    return text.split() if text.isascii() else _between_spaces(text)


def iter_lines(path: AnyPath) -> Iterator[list[str]]:
    """Yield the lines of a text file in batches.

    Raises:
        DataError: if the file cannot be read, or is not UTF-8.
    """
    line = 1
    for block in read_chunks(path):
        lines = decode(block, path, line).split("\n")[:-1]
        yield lines
        line += len(lines)


def iter_sentences(path: AnyPath) -> Iterator[list[list[str]]]:
    """Yield the words of the lines of a text file, in batches of lines.

    Raises:
        DataError: if the file cannot be read, or is not UTF-8.
    """
    return (list(map(split_words, lines)) for lines in iter_lines(path))


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
        """Return the words in the order of their numbers."""
        return list(self._numbers)

    def number(self, sentences: Sequence[Sequence[str]]) -> Ragged:
        """Return the words of some sentences as numbers."""
        starts = find_starts(sentences)
        numbers = map(self._numbers.__getitem__, chain.from_iterable(sentences))
        return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts


class NumberedText(NamedTuple):
    """The sentences of one language, their words as numbers.

    Attributes:
        words: the vocabulary, in the order of numbers, which is the order of occurrence.
        numbers: (tokens,) int32, the words of all sentences.
        starts: (sentences + 1,) int64, the start of each sentence, and the number of tokens.
    """

    words: list[str]
    numbers: Int32
    starts: Int64

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]]) -> Self:
        """Return some sentences, given as lists of words.

        >>> NumberedText.of([["a", "b"], [], ["a"]]).numbers.tolist()
        [0, 1, 0]
        """
        return cls.join([sentences])

    @classmethod
    def read(cls, path: AnyPath) -> Self:
        """Return the lines of a text file (plain, gzip, xz or zstd), words separated by spaces.

        Raises:
            DataError: if the file cannot be read, or is not UTF-8.
        """
        return cls.join(iter_sentences(path))

    @classmethod
    def join(cls, parts: Iterable[Sequence[Sequence[str]]], reserved: Sequence[str] = ()) -> Self:
        """Return the sentences of all parts.

        Args:
            parts: sentences, given as lists of words.
            reserved: the first words of the vocabulary.
        """
        vocabulary = Vocabulary()
        vocabulary.number([reserved])
        words, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for sentences in parts:
            numbers, starts = vocabulary.number(sentences)
            words.append(numbers)
            lengths.append(np.diff(starts))
        starts = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        return cls(vocabulary.words(), np.concatenate(words), starts)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.starts) - 1

    @property
    def sentences(self) -> Ragged:
        """The numbers of the words, and the start of each sentence, for compiled code."""
        return self.numbers, self.starts

    def word_counts(self) -> Any:
        """Return the matrix (sentences, words), with an entry of 1 for each token.

        >>> NumberedText.of([["a", "b", "a"], ["b"]]).word_counts().toarray().tolist()
        [[2.0, 1.0], [0.0, 1.0]]
        """
        from scipy.sparse import csr_array

        ones = np.ones(len(self.numbers))
        return csr_array((ones, self.numbers, self.starts), (len(self), len(self.words)))


def number_words(
    sentences: Sequence[Sequence[str]], numbers: Mapping[str, int], unknown: int = -1
) -> Ragged:
    """Return the words of some sentences as numbers.

    >>> words, starts = number_words([["a", "b"], [], ["a"]], {"a": 7})
    >>> words.tolist(), starts.tolist()
    ([7, -1, 7], [0, 2, 2, 3])
    """
    starts = find_starts(sentences)
    words = map(numbers.get, chain.from_iterable(sentences), repeat(unknown))
    return np.fromiter(words, dtype=np.int32, count=starts[-1]), starts


def find_starts(parts: Sequence[Sequence[object]]) -> Int64:
    """Return the start of each part in their concatenation, and its end.

    >>> find_starts([["a", "b", "c"], [], ["d"]]).tolist()
    [0, 3, 3, 4]
    """
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def sum_segments(values: Float64, starts: Int64) -> Float64:
    """Return the sum of the values of each segment.

    >>> sum_segments(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3])).tolist()
    [3.0, 0.0, 4.0]
    """
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(owner, values, minlength=len(starts) - 1).astype(np.float64)


def join_texts(
    texts: Iterable[tuple[str, Iterable[Sequence[Sequence[str]]]]],
    report: Callable[[str], object] = lambda note: None,
) -> NumberedText:
    """Return some texts as one, from which a language model can be estimated.

    Its vocabulary begins with `SPECIAL`.

    Args:
        texts: the origin of each, for messages, and parts of its sentences.
        report: called with the number of sentences that have been read.

    Raises:
        DataError: if there is no word, or a reserved one: `<s>`.

    >>> join_texts([("text", [[["a", "b"], ["a"]]])]).numbers.tolist()
    [3, 4, 3]
    """
    origins, begins = list[str](), list[int]()

    def parts() -> Iterator[Sequence[Sequence[str]]]:
        total = 0
        for origin, sentences_of_text in texts:
            origins.append(origin)
            begins.append(total)
            for sentences in sentences_of_text:
                yield sentences
                total += len(sentences)
                report(f"{total:,} lines")

    text = NumberedText.join(parts(), SPECIAL)
    special = np.flatnonzero(text.numbers < len(SPECIAL))
    if len(special):
        sentence = int(np.searchsorted(text.starts, special[0], side="right")) - 1
        number = int(np.searchsorted(begins, sentence, side="right")) - 1
        message = f"the word {SPECIAL[text.numbers[special[0]]]} is reserved: replace it"
        line = sentence - begins[number] + 1
        raise DataError(message, origins[number], line, code="bad-name")
    if len(text.words) == len(SPECIAL):
        raise DataError("no word in the text: give sentences", list_names(origins), code="no-data")
    return text
