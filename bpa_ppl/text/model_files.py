r"""Language models from files: text to learn from, and ARPA files.

ARPA files are n-gram models as text, the exchange format of KenLM, SRILM and IRSTLM:

    \data\
    ngram 1=4

    \1-grams:
    -0.9    <unk>   0
    …
    \end\

Each line has the logarithm (base 10) of a probability, an n-gram, and, unless it has the highest
order, the logarithm of its back-off weight, which is 0 if it is missing.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl._runtime.streams import AnyPath, atomic_writer, origin_name, read_beginning
from bpa_ppl.errors import DataError, UsageError, list_names
from bpa_ppl.text.language_model import NgramModel, TextModel
from bpa_ppl.text.ngrams import build_hash_table, choose_table_size, find_numbers
from bpa_ppl.text.words import SPECIAL, iter_lines, iter_sentences, split_words

#: log10 p of unknown words if a model has no `<unk>`, as in KenLM.
_NO_UNKNOWN = -100.0

#: The first line of an ARPA file.
_TITLE = "\\data\\"
_END = "\\end\\"
_BATCH = 1000  # n-grams: larger batches are slower
_LARGEST_FLOAT32 = 3e38
_COUNT = re.compile(r"ngram\s+(\d{1,9})\s*=\s*(\d{1,18})")  # an order, a number of n-grams


def is_model(path: AnyPath) -> bool:
    """Return whether a file is a finished model; a pipe, which can be read only once, is text.

    Raises:
        DataError: if it cannot be read.
    """
    return os.path.isfile(path) and read_beginning(path).lstrip().startswith(_TITLE.encode())


def read_or_train(
    paths: Sequence[AnyPath], order: int = 3, progress: bool | Reporter = False
) -> NgramModel:
    """Return the language model of some texts, or of one finished model.

    Raises:
        DataError: if a file cannot be read, is damaged, or has no text.
        UsageError: if a finished model is not the only file.
    """
    finished = [path for path in paths if is_model(path)]
    if not finished:
        return NgramModel.train(paths, order, progress)
    if len(paths) > 1:
        message = f"{finished[0]} is a finished language model: leave out the other files"
        raise UsageError(message, code="conflict")
    return read_arpa(finished[0])


class _TextStatistics(NamedTuple):
    """The perplexity of a text under a language model.

    Attributes:
        words: the number of words.
        unknown: the number of unknown words.
        perplexity: exp(−mean log p) over words and ends of sentences.
        known: the perplexity without unknown words.
    """

    words: int
    unknown: int
    perplexity: float
    known: float

    def __str__(self) -> str:
        """Return a part of a line, as commands print it."""
        return (
            f"perplexity {self.perplexity:.2f}, {self.known:.2f} without the "
            f"{self.unknown:,} unknown of {self.words:,} words"
        )


def evaluate_text(model: TextModel, paths: Iterable[AnyPath]) -> _TextStatistics:
    """Return the perplexity of text files, which are concatenated, and their unknown words.

    Raises:
        DataError: if a file cannot be read, or there is no line.
    """
    files = list(paths)
    count = unknown = sentences = 0
    total = known_total = 0.0
    for part in chain.from_iterable(map(iter_sentences, files)):
        scores, missing = model.by_word(part)
        count, sentences = count + len(scores), sentences + len(part)
        unknown += int(missing.sum())
        total += scores.sum()
        known_total += scores[~missing].sum()
    if not sentences:
        origins = list_names(map(origin_name, files))
        raise DataError("no sentence: give text of the domain", origins, code="no-data")
    perplexity, without_unknown = (
        math.exp(-total / count),
        math.exp(-known_total / (count - unknown)),
    )
    return _TextStatistics(count - sentences, unknown, perplexity, without_unknown)


def read_arpa(path: AnyPath) -> NgramModel:
    """Return the model of an ARPA file; without `<unk>`, unknown words have the logarithm −100.

    Raises:
        DataError: with the line, if the file is invalid.
    """
    return _ArpaReader(path).model()


def write_arpa(model: NgramModel, path: AnyPath) -> None:
    """Write a model as an ARPA file; the suffix of the path chooses the compression.

    Reading it returns bitwise equal probabilities.

    Raises:
        DataError: if the file cannot be written.
    """
    with atomic_writer(path) as file:
        file.write(f"{_TITLE}\n")
        file.writelines(f"ngram {n}={count}\n" for n, count in enumerate(model.counts, 1))
        for n in range(1, model.order + 1):
            file.write(f"\n\\{n}-grams:\n")
            for lines in _read_lines(model, n):
                file.write(lines)
        file.write(f"\n{_END}\n")


def _read_lines(model: NgramModel, n: int) -> Iterator[str]:
    """Yield batches of lines with the n-grams of one order."""
    firsts, keys = model.tables.firsts, model.tables.keys
    words = np.array(model.words, dtype=object)
    for start in range(firsts[n - 1], firsts[n], _BATCH):
        rows = slice(start, min(start + _BATCH, int(firsts[n])))
        texts, gram = [], keys[rows]
        for shorter in range(n - 1, 0, -1):
            texts.append(words[gram & 0xFFFFFFFF])
            gram = keys[firsts[shorter - 1] + (gram >> 32)]
        texts.append(words[gram])
        columns = [
            # The shortest decimals that identify the float32.
            model.tables.log10[rows].astype(str).tolist(),
            list(map(" ".join, zip(*reversed(texts), strict=True))),
        ]
        if n < model.order:
            columns.append(model.tables.backoff[rows].astype(str).tolist())
        yield "".join(f"{line}\n" for line in map("\t".join, zip(*columns, strict=True)))


#: The keys, hash table, log10 p and back-off weights of one order, as arguments of `NgramModel`.
_Section = tuple[Int64, Int32, Float32, Float32]


class _ArpaReader:
    """Read an ARPA file in batches of lines, and report errors with their line."""

    def __init__(self, path: AnyPath):
        self._path = path
        self._line = 0  # number of lines that have been returned
        self._lines = chain.from_iterable(iter_lines(path))
        self._numbers = {word: number for number, word in enumerate(SPECIAL)}
        self._sections: list[_Section] = []

    def model(self) -> NgramModel:
        """Return the model."""
        counts = self._counts()
        for n, count in enumerate(counts, 1):
            self._sections.append(self._section(n, count, n == len(counts)))
        self._expect(_END)
        return NgramModel(list(self._numbers), *zip(*self._sections, strict=True))

    def _counts(self) -> list[int]:
        """Return the announced numbers of n-grams of each order."""
        self._expect(_TITLE)
        counts: list[int] = []
        while (line := self._next(empty=True)) or not counts:
            match = _COUNT.fullmatch(line)
            if match is None or int(match[1]) != len(counts) + 1:
                self._fail(f"expected ngram {len(counts) + 1}=NUMBER, not {line!r}")
            counts.append(int(match[2]))
        return counts

    def _section(self, n: int, count: int, last: bool) -> _Section:
        self._expect(f"\\{n}-grams:")
        begins, left = self._line + 1, count
        parts = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))]
        while left:
            lines = self._take(min(left, _BATCH))
            if not lines:
                message = f"the file is truncated after {count - left} of {count} {n}-grams"
                self._fail(message, code="damaged")
            left -= len(lines)
            parts.append(self._parse(lines, n, last))
        keys, log10, backoff = (np.concatenate(column) for column in zip(*parts, strict=True))
        slots = build_hash_table(keys, choose_table_size(len(keys)))
        repeated = find_numbers(keys, slots, keys) != np.arange(len(keys))
        if repeated.any():
            line = begins + int(np.argmax(repeated))
            self._fail(f"the {n}-gram occurs for the second time", line, "duplicate")
        if n == 1:
            return self._words(keys, log10, backoff)
        return keys, slots, log10.astype(np.float32), backoff.astype(np.float32)

    def _words(self, keys: Int64, log10: Float64, backoff: Float64) -> _Section:
        """Return the unigrams in the order of the numbers of words."""
        for word in SPECIAL[1:]:
            if self._numbers[word] not in keys:
                self._fail(f"the 1-gram {word} is missing", code="damaged")
        count = len(self._numbers)
        columns = np.full(count, _NO_UNKNOWN, np.float32), np.zeros(count, np.float32)
        columns[0][keys], columns[1][keys] = log10, backoff
        return np.arange(count), np.zeros(0, np.int32), *columns

    def _parse(self, lines: list[str], n: int, last: bool) -> tuple[Int64, Float64, Float64]:
        """Return keys, probabilities and back-off weights of the n-grams in some lines."""
        rows = [split_words(line) for line in lines]
        widths = np.fromiter(map(len, rows), np.int64, len(rows))
        form = f"a number, {n} words{'' if last else ' and optionally a number'}"
        wrong = (widths != n + 1) & (last | (widths != n + 2))
        self._check(wrong, lambda k: f"expected {form}, not {lines[k]!r}")
        if not last and widths.min() == n + 1:
            rows = [row if len(row) > n + 1 else [*row, "0"] for row in rows]
        columns = list(zip(*rows, strict=True))
        log10 = self._decimals(columns[0])
        backoff = np.zeros(len(log10)) if last else self._decimals(columns[n + 1])
        self._check(log10 > 0, lambda _: "the logarithm is positive: p is above 1", "bad-number")
        return self._keys(columns[1 : n + 1]), log10, backoff

    def _decimals(self, texts: Sequence[str]) -> Float64:
        values = np.fromiter(map(_number, texts), np.float64, len(texts))
        wrong = ~(np.abs(values) < _LARGEST_FLOAT32)
        self._check(wrong, lambda k: f"{texts[k]!r} is not a finite number", "bad-number")
        return values

    def _keys(self, columns: Sequence[Sequence[str]]) -> Int64:
        """Return the keys of n-grams with known contexts; unigrams are new words."""
        numbers = self._numbers
        if len(columns) == 1:
            return np.array([numbers.setdefault(w, len(numbers)) for w in columns[0]], np.int64)
        return (self._grams(columns[:-1]) << 32) | self._grams(columns[-1:])

    def _grams(self, columns: Sequence[Sequence[str]]) -> Int64:
        """Return the numbers of n-grams of a section that has been read."""
        n = len(columns)
        if n == 1:
            gram = np.fromiter(map(self._numbers.get, columns[0], repeat(-1)), np.int64)
        else:
            keys, slots, *_ = self._sections[n - 1]
            gram = find_numbers(keys, slots, self._keys(columns))
        self._check(
            gram < 0,
            lambda k: f"{' '.join(words[k] for words in columns)!r} is not among the {n}-grams",
            "mismatch",
        )
        return gram

    def _take(self, count: int) -> list[str]:
        """Return the next lines; fewer at the end of the file."""
        lines = list(islice(self._lines, count))
        self._line += len(lines)
        return lines

    def _next(self, empty: bool = False) -> str:
        """Return the next line, stripped; an empty text at the end of the file."""
        while lines := self._take(1):
            if (line := lines[0].strip()) or empty:
                return line
        return ""

    def _expect(self, title: str) -> None:
        if (line := self._next()) != title:
            actual = repr(line) if line else "the end of the file"
            self._fail(f"expected {title}, not {actual}: is this a complete ARPA file?")

    def _check(
        self, wrong: npt.NDArray[np.bool_], message: Callable[[int], str], code: str = "bad-line"
    ) -> None:
        """Raise an error that names the first wrong line of the last batch, if there is one."""
        if wrong.any():
            first = int(np.argmax(wrong))
            self._fail(message(first), self._line - len(wrong) + 1 + first, code)

    def _fail(self, message: str, line: int | None = None, code: str = "bad-line") -> NoReturn:
        raise DataError(message, origin_name(self._path), line or max(self._line, 1), code=code)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
