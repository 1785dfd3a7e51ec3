"""Texts as words separated by spaces, and as numbers for compiled code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from typing import NamedTuple

import numpy as np

from bpa_ppl.arrays import Int32, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import AnyPath, decoded, origin_name, read_blocks

#: The first words of the vocabulary of a language model: numbers 0, 1 and 2.
SPECIAL = ("<unk>", "<s>", "</s>")
UNKNOWN, BEGIN, END = range(3)

#: The concatenated words of sentences, and the start of each sentence (and the end).
Ragged = tuple[Int32, Int64]

# A no-break space is part of a word, as in Moses and KenLM.
_between_spaces = re.compile(r"[^ \t\n\v\f\r]+").findall


def words_of(text: str) -> list[str]:
    r"""Return the words of a text, which are separated by spaces or tabs.

    >>> words_of("the  cat , it sat "), words_of("10\u00a0000 chats")
    (['the', 'cat', ',', 'it', 'sat'], ['10\xa0000', 'chats'])
    """
    return text.split() if text.isascii() else _between_spaces(text)


def lines_of(path: AnyPath) -> Iterator[list[str]]:
    """Yield the lines of a text file in batches.

    Raises:
        DataError: if the file cannot be read, or is not UTF-8.
    """
    line = 1
    for block in read_blocks(path):
        lines = decoded(block, path, line).split("\n")[:-1]
        yield lines
        line += len(lines)


def sentences_of(path: AnyPath) -> Iterator[list[list[str]]]:
    """Yield the words of the lines of a text file, in batches of lines.

    Raises:
        DataError: if the file cannot be read, or is not UTF-8.
    """
    return (list(map(words_of, lines)) for lines in lines_of(path))


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


class Corpus(NamedTuple):
    """A numbered text, from which a language model can be estimated.

    Attributes:
        words: the vocabulary in the order of its numbers; it begins with `SPECIAL`.
        sentences: the numbers of the words of all sentences, and the start of each.
        origin: of the text, for messages.
    """

    words: list[str]
    sentences: Ragged
    origin: str

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]], origin: str = "the text") -> Corpus:
        """Return the corpus of some sentences.

        Raises:
            DataError: if there is no word, or a reserved one: `<s>`.

        >>> Corpus.of([["a", "b"], ["a"]]).sentences[0].tolist()
        [3, 4, 3]
        """
        return cls._joined([(origin, 0, sentences)], origin)

    @classmethod
    def read(
        cls, paths: Iterable[AnyPath], report: Callable[[str], object] = lambda note: None
    ) -> Corpus:
        """Return the corpus of text files, which are concatenated, one sentence per line.

        Args:
            paths: plain or compressed.
            report: called with the number of lines that have been read.

        Raises:
            DataError: if a file cannot be read or is not UTF-8, or as `of`.
        """
        files, total = list(paths), 0

        def parts() -> Iterator[tuple[str, int, list[list[str]]]]:
            nonlocal total
            for path in files:
                before = total
                for sentences in sentences_of(path):
                    yield origin_name(path), total - before, sentences
                    total += len(sentences)
                    report(f"{total:,} lines")

        return cls._joined(parts(), ", ".join(map(origin_name, files)))

    @classmethod
    def _joined(
        cls, parts: Iterable[tuple[str, int, Sequence[Sequence[str]]]], origin: str
    ) -> Corpus:
        """Return the corpus of parts: (file, number of lines before the part, sentences)."""
        vocabulary = Vocabulary()
        vocabulary.number([SPECIAL])
        words, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for file, line, sentences in parts:
            numbers, starts = vocabulary.number(sentences)
            special = np.flatnonzero(numbers < len(SPECIAL))
            if len(special):
                line += int(np.searchsorted(starts, special[0], side="right"))
                message = f"the word {SPECIAL[numbers[special[0]]]} is reserved: replace it"
                raise DataError(message, file, line, code="bad-name")
            words.append(numbers)
            lengths.append(np.diff(starts))
        if len(vocabulary) == len(SPECIAL):
            raise DataError("there is no word in the text", origin, code="no-data")
        starts = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        return cls(vocabulary.words(), (np.concatenate(words), starts), origin)
