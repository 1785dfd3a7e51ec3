"""Hypotheses as plain text, a fixed number of lines a sentence, with scores in files beside.

The file has n lines for each sentence, as `qaware-decode` and other rerankers take them. A file of
scores has a number, or several, for each of its lines: NumPy's `.npy`, of shape (lines,) or
(lines, columns), or text, with numbers separated by blanks and perhaps their names in a first line.
Numbers without names are called after the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from bpa_ppl.component import CountOrNone
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.codecs import CODECS
from bpa_ppl.formats.numbers import finite, printed
from bpa_ppl.formats.streams import (
    AnyPath,
    arrow_file,
    atomic_path,
    atomic_writer,
    decoded,
    line_count,
    read_blocks,
)
from bpa_ppl.labels import expand
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.arrow import pieces, values_of
from bpa_ppl.rows.base import TOO_LARGE

_NPY = ".npy"


class Plain(NBestFormat, frozen=True):
    """Lines of hypotheses, and scores; it cannot be told by its content, and has to be named.

    Attributes:
        nbest: how many hypotheses each sentence has.
        scores: files of scores, which become features; `.npy` or text.
    """

    nbest: CountOrNone = 0
    scores: str | tuple[str, ...] = ()

    def detect(self, first_line: bytes) -> bool:
        """Return False: any text might be such a file."""
        return False

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: if the lines are no whole lists, or a file of scores has another number.
            UsageError: if the number of hypotheses is not set.

        >>> blocks = [b"a cat\nthe cat\nhello\nhi\n"]
        >>> rows = next(Plain(nbest=2).parse(blocks, ReadOptions("dev")))
        >>> rows.ids.tolist(), rows.strings
        ([0, 0, 1, 1], ['a cat', 'the cat', 'hello', 'hi'])
        """
        if not self.nbest:
            raise UsageError(
                "the format plain needs the number of hypotheses of each sentence: plain:nbest=50"
            )
        scores = [_opened(path) for path in self._files()]
        names = _names(scores)
        first = 1
        for block in blocks:
            texts, index = _texts(block, first, options)
            lines = np.arange(first, first + len(index))
            parts = [file.read(first, len(index), options) for file in scores]
            yield self._rows(texts, index, lines, parts, names, options)
            first += len(index)
        self._check_end(first - 1, scores, options)

    def write_file(self, nbest: NBest, path: AnyPath) -> None:
        """Write the texts, and the features to the files of scores.

        With one such file it has all features; with several, each has one.

        Raises:
            DataError: if a file cannot be written, the lists are not all of one size or their ids
                not in order, or a text has a line break.
            UsageError: if the files of scores are too few or too many.
        """
        files = self._files()
        count = len(nbest.feature_names)
        if len(files) not in ({1, count} if count else {0}):
            raise UsageError(
                f"{count} features need one file of scores, or as many as they are, not "
                f"{len(files)}: plain:nbest=50,scores=scores.txt"
            )
        parts = [slice(None)] if len(files) == 1 else [slice(k, k + 1) for k in range(count)]
        words = not any(_is_number(name) or len(name.split()) != 1 for name in nbest.feature_names)
        if not words and not all(file.endswith(_NPY) for file in files):
            raise DataError("a name of a feature is no word, or a number: rename it", nbest.origin)
        super().write_file(nbest, path)
        for file, part in zip(files, parts, strict=False):
            _write_scores(file, nbest.features[:, part], nbest.feature_names[part])

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the texts alone.

        Raises:
            DataError: if the lists are not all of one size, their ids not in order, or a text has
                a line break.

        >>> import sys
        >>> lists = NBest.from_lists([["a cat", "the cat"]], [[[], []]], [])
        >>> Plain(nbest=2).write(lists, sys.stdout)
        a cat
        the cat
        """
        sizes = set(nbest.sizes.tolist())
        expected = {self.nbest} if self.nbest else sizes
        if sizes != expected or len(sizes) > 1:
            raise DataError(
                f"lists of {min(sizes)} to {max(sizes)} hypotheses, where plain text needs as many "
                "for each sentence: cut them with truncate, or write jsonl",
                nbest.origin,
            )
        if len(nbest) and np.any(np.diff(nbest.sentence_ids) != 1):
            raise DataError(
                "plain text has no ids, and those of the lists are not in order: write jsonl",
                nbest.origin,
            )
        broken = next((text for text in nbest.strings if "\n" in text or "\r" in text), None)
        if broken is not None:
            raise DataError(f"a text has a line break: {broken!r}", nbest.origin)
        file.writelines(f"{nbest.strings[i]}\n" for i in nbest.string_index.tolist())

    def _files(self) -> list[str]:
        return [self.scores] if isinstance(self.scores, str) else list(self.scores)

    def _rows(
        self,
        texts: list[str],
        index: npt.NDArray[np.int32],
        lines: npt.NDArray[np.int64],
        parts: list[npt.NDArray[np.float64]],
        names: tuple[str, ...],
        options: ReadOptions,
    ) -> Rows:
        values = np.concatenate([np.zeros((len(index), 0)), *parts], axis=1)
        kept = np.all(np.abs(values) < TOO_LARGE, axis=1)
        ids = options.first_id + (lines - 1) // self.nbest
        if not kept.all() and options.bad != "drop":
            row = int(np.argmin(kept))
            column = int(np.argmin(np.abs(values[row]) < TOO_LARGE))
            raise DataError(
                f"{names[column]} of this line is {values[row, column]}, not a finite 32-bit "
                "number: correct it, or leave such hypotheses out with bad='drop'",
                options.origin,
                int(lines[row]),
            )
        if kept.all():
            return Rows(names, ids, lines, values.astype(np.float32), None, texts, index)
        features = values[kept].astype(np.float32)
        dropped = tuple(ids[~kept].tolist())
        return Rows(names, ids[kept], lines[kept], features, None, texts, index[kept], dropped)

    def _check_end(self, lines: int, scores: Sequence[_Scores], options: ReadOptions) -> None:
        if lines % self.nbest:
            raise DataError(
                f"{lines} lines are no whole lists of {self.nbest}: check the number of "
                "hypotheses, and that no line is missing",
                options.origin,
            )
        for file in scores:
            if file.more():
                raise DataError(
                    f"more scores than the {lines} lines of {options.origin}: give those of the "
                    "same lists",
                    file.path,
                )


class _Scores(NamedTuple):
    """A file of scores that is being read.

    Attributes:
        path: the file.
        names: of its columns; empty where it names none.
        width: how many columns it has.
        take: returns the next rows, at most as many as asked for.
    """

    path: str
    names: tuple[str, ...]
    width: int
    take: Callable[[int, ReadOptions], npt.NDArray[np.float64]]

    def read(self, first: int, count: int, options: ReadOptions) -> npt.NDArray[np.float64]:
        """Return the scores of some lines, (lines, columns).

        Raises:
            DataError: if there are fewer.
        """
        values = self.take(count, options)
        if len(values) < count:
            raise DataError(
                f"only {first + len(values) - 1} scores, and {options.origin} has more lines: give "
                "those of the same lists",
                self.path,
            )
        return values

    def more(self) -> bool:
        """Say whether scores are left over."""
        return len(self.take(1, ReadOptions(self.path, "drop"))) > 0


def _texts(
    block: bytes, first: int, options: ReadOptions
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the distinct texts of a block, and the index of each line into them.

    Raises:
        DataError: if a line, counted from the first, is not UTF-8.
    """
    try:
        return pieces(block.replace(b"\r\n", b"\n") if b"\r" in block else block, b"\n")
    except UnicodeDecodeError:
        decoded(block, options.origin, first)  # says which line it is
        raise


def _opened(path: str) -> _Scores:
    return _opened_array(path) if path.endswith(_NPY) else _opened_text(path)


def _opened_array(path: str) -> _Scores:
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError("no such file: check the path", path) from error
    except Exception as error:  # the header is parsed as Python, with all errors of Python's parser
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"no array of NumPy ({reason}): make it again", path) from error
    if (
        not isinstance(array, np.ndarray)
        or array.ndim not in (1, 2)
        or array.dtype.kind not in "fiu"
    ):
        raise DataError("not an array of numbers of shape (lines,) or (lines, columns)", path)
    table = array[:, np.newaxis] if array.ndim == 1 else array
    start = 0

    def take(count: int, options: ReadOptions) -> npt.NDArray[np.float64]:
        nonlocal start
        part = np.array(table[start : start + count], dtype=np.float64)
        start += len(part)
        return part

    return _Scores(path, (), table.shape[1], take)


def _opened_text(path: str) -> _Scores:
    blocks = read_blocks(path)
    block = next(blocks, b"")
    if not block:
        raise DataError("empty: give a score for each hypothesis", path)
    first, _, rest = block.partition(b"\n")
    tokens = decoded(first, path, 1).split()
    named = bool(tokens) and not any(map(_is_number, tokens))
    if named and len(set(tokens)) < len(tokens):
        raise DataError("two columns have the same name: rename one", path, 1)
    start = 2 if named else 1
    waiting = _Waiting(chain([rest if named else block], blocks), start, len(tokens), path)
    return _Scores(path, tuple(tokens) if named else (), len(tokens), waiting.take)


class _Waiting:
    """Scores of text that were read and are not asked for yet.

    Args:
        blocks: of whole lines.
        first: the number of the first line.
        width: how many numbers a line has.
        path: the file, for messages.
    """

    def __init__(self, blocks: Iterator[bytes], first: int, width: int, path: str):
        self.blocks, self.line, self.width, self.path = blocks, first, width, path
        self.values = np.zeros((0, width))

    def take(self, count: int, options: ReadOptions) -> npt.NDArray[np.float64]:
        """Return the next rows."""
        parts = [self.values]
        while sum(map(len, parts)) < count and (block := next(self.blocks, None)) is not None:
            parts.append(self._parsed(block, options))
            self.line += len(parts[-1])
        whole = np.concatenate(parts)
        self.values = whole[count:]
        return whole[:count]

    def _parsed(self, block: bytes, options: ReadOptions) -> npt.NDArray[np.float64]:
        regular = _regular_numbers(block, self.width)
        if regular is not None or not block:
            return np.zeros((0, self.width)) if regular is None else regular
        lines = enumerate(block[:-1].split(b"\n"), self.line)
        rows = [_row(line, at, self.width, self.path, options) for at, line in lines]
        return np.array(rows, dtype=np.float64).reshape(-1, self.width)


def _regular_numbers(block: bytes, width: int) -> npt.NDArray[np.float64] | None:
    """Return the numbers of lines with single blanks between them, read by PyArrow."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    if not (width and block) or b'"' in block or b"\r" in block:
        return None
    names = [str(place) for place in range(width)]
    try:
        table = arrow.read_csv(
            arrow_file(block),
            arrow.ReadOptions(column_names=names, block_size=len(block) + 1),
            arrow.ParseOptions(delimiter=" ", ignore_empty_lines=False),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()), null_values=[]),
        )
    except pa.ArrowException:
        return None
    values = np.stack([values_of(table[name]) for name in names], axis=1)
    regular = len(values) == line_count(block) and bool(np.all(np.abs(values) < TOO_LARGE))
    return values if regular else None


def _row(line: bytes, number: int, width: int, path: str, options: ReadOptions) -> Sequence[float]:
    """Return the numbers of a line; nan for all where one is bad and may be dropped."""
    tokens = line.split()
    if len(tokens) != width or not width:
        raise DataError(f"{len(tokens)} numbers, in the first line {width}", path, number)
    try:
        return [finite(token) for token in tokens]
    except ValueError as error:
        if options.bad == "drop":
            return [np.nan] * width
        raise DataError(
            f"{error}: correct it, or leave such hypotheses out with bad='drop'", path, number
        ) from error


def _names(files: Sequence[_Scores]) -> tuple[str, ...]:
    """Return the names of all columns: as the files say, else after the files."""
    stems = [_stem(file.path) for file in files]
    if len(set(stems)) < len(stems):
        stems = [f"score{place}" for place in range(len(files))]
    names = [
        name
        for file, stem in zip(files, stems, strict=True)
        for name in file.names or expand(stem, file.width)
    ]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two files of scores have a column {twice}: rename one", files[-1].path)
    return tuple(names)


def _stem(path: str) -> str:
    """Return the name of a file without its ending, and without that of compression."""
    name = PurePath(path)
    packed = name.suffix in {codec.suffix for codec in CODECS}
    return PurePath(name.stem).stem if packed else name.stem


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _write_scores(path: str, values: npt.NDArray[np.float32], names: Sequence[str]) -> None:
    if path.endswith(_NPY):
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, values[:, 0] if len(names) == 1 else values)
        return
    with atomic_writer(path) as text:
        columns = [printed(values[:, place]) for place in range(len(names))]
        text.write(" ".join(names) + "\n")
        text.writelines(" ".join(cells) + "\n" for cells in zip(*columns, strict=True))
