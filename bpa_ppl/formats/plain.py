"""Hypotheses as plain text, a fixed number of lines per sentence, with scores in other files.

The file has n lines for each sentence, as for `qaware-decode` and other rerankers. A file of scores
has one or several numbers for each line: NumPy's `.npy`, of shape (lines,) or (lines, columns), or
text, with numbers separated by blanks and optionally their names in the first line. Numbers without
names are called after the file. Scores are read as a whole, texts block by block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from bpa_ppl.component import CountOrNone
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.codecs import CODECS
from bpa_ppl.formats.numbers import finite, lines_of_numbers, printed
from bpa_ppl.formats.streams import (
    AnyPath,
    atomic_path,
    atomic_writer,
    decoded,
    read_blocks,
)
from bpa_ppl.labels import expand, repeated
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.rows import Rows, SchemaReader
from bpa_ppl.rows.base import ID, TEXT
from bpa_ppl.rows.schema import Fields, looks_numeric

_NPY = ".npy"


class Plain(NBestFormat, frozen=True):
    """Lines of hypotheses, and scores; not detected automatically.

    Attributes:
        list_size: the number of hypotheses of each sentence.
        scores: files of scores, which become features; `.npy` or text.
    """

    list_size: CountOrNone = 0
    scores: str | tuple[str, ...] = ()

    def detect(self, first_line: bytes) -> bool:
        """Return False: any text might be such a file."""
        return False

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: if the number of lines is not a multiple of the size of lists, or a file of
                scores has another number of lines.
            UsageError: if the size of lists is not set.

        >>> blocks = [b"a cat\nthe cat\nhello\nhi\n"]
        >>> rows = next(Plain(list_size=2).parse(blocks, ReadOptions("dev")))
        >>> rows.ids.tolist(), rows.strings
        ([0, 0, 1, 1], ['a cat', 'the cat', 'hello', 'hi'])
        """
        if not self.list_size:
            raise UsageError(
                "the format plain needs the number of hypotheses of each sentence: "
                "plain:list_size=50",
                parameter="list_size",
            )
        schema = SchemaReader(options.origin, options.bad, options.first_id, nan_is_missing=False)
        files = [(path, *_read_scores(path, options.bad)) for path in self._files()]
        scores = _named_columns(files)
        count = 0
        for block in blocks:
            text = decoded(block, options.origin, count + 1).replace("\r\n", "\n")
            texts = text.removesuffix("\n").split("\n")
            rows = slice(count, count + len(texts))
            lines = np.arange(rows.start, rows.stop)
            for path, _, table in files:
                if len(table) < rows.stop:
                    raise DataError(
                        f"only {len(table)} scores, but {options.origin} has more lines: give "
                        "those of the same lists",
                        path,
                    )
            columns = {name: _checkable(values[rows]) for name, values in scores.items()}
            ids = (options.first_id + lines // self.list_size).tolist()
            fields = Fields({TEXT: texts, **columns}, {ID: ids}, np.arange(len(texts)), lines + 1)
            yield schema.rows(fields)
            count = rows.stop
        if count % self.list_size:
            raise DataError(
                f"{count} lines is not a multiple of {self.list_size}: check that no line is "
                "missing, or correct the list size",
                options.origin,
                parameter="list_size",
            )
        for path, _, table in files:
            if len(table) > count:
                raise DataError(
                    f"more scores than the {count} lines of {options.origin}: give those of the "
                    "same lists",
                    path,
                )

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
                f"{count} features need one file of scores, or {count}, not {len(files)}: "
                "plain:list_size=50,scores=scores.txt"
            )
        parts = [slice(None)] if len(files) == 1 else [slice(k, k + 1) for k in range(count)]
        words = not any(
            looks_numeric(name) or len(name.split()) != 1 for name in nbest.feature_names
        )
        if not words and not all(file.endswith(_NPY) for file in files):
            raise DataError(
                "the name of a feature is a number or has a space: rename it", nbest.origin
            )
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
        >>> Plain(list_size=2).write(lists, sys.stdout)
        a cat
        the cat
        """
        sizes = set(nbest.sizes.tolist())
        expected = {self.list_size} if self.list_size else sizes
        if sizes != expected or len(sizes) > 1:
            raise DataError(
                f"lists of {min(sizes)} to {max(sizes)} hypotheses, but plain text needs the same "
                "number for each sentence: shorten them with truncate, or write jsonl",
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


def _read_scores(path: str, bad: str) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Return the names of the columns, if the file has any, and (lines, columns) the scores."""
    if path.endswith(_NPY):
        return (), _read_array(path)
    data = b"".join(read_blocks(path))
    if not data:
        raise DataError("empty: give a score for each hypothesis", path)
    first = data[: data.index(b"\n")]
    names = tuple(decoded(first, path, 1).split())
    if any(map(looks_numeric, names)) or not names:
        return (), _parsed(data, len(names), path, 1, bad)
    if repeated(names):
        raise DataError("two columns have the same name: rename one", path, 1)
    return names, _parsed(data[len(first) + 1 :], len(names), path, 2, bad)


def _read_array(path: str) -> npt.NDArray[Any]:
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError("no such file: check the path", path) from error
    except Exception as error:  # the header is parsed as Python, with all errors of Python's parser
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not an array of NumPy ({reason}): create it again", path) from error
    if (
        not isinstance(array, np.ndarray)
        or array.ndim not in (1, 2)
        or array.dtype.kind not in "fiu"
    ):
        raise DataError("not an array of numbers of shape (lines,) or (lines, columns)", path)
    return array[:, np.newaxis] if array.ndim == 1 else array


def _parsed(data: bytes, width: int, path: str, first: int, bad: str) -> Float64:
    """Return (lines, columns) the numbers of a text; NaN in lines to be dropped.

    Args:
        data: whole lines.
        width: the number of columns.
        path: the file, for messages.
        first: the number of the first line.
        bad: "error" or "drop".
    """
    values = lines_of_numbers(data, width) if data and width else None
    if values is not None:
        return values
    lines = enumerate(data[:-1].split(b"\n") if data else [], first)
    rows = [_row(line, number, width, path, bad) for number, line in lines]
    return np.array(rows, np.float64).reshape(-1, width)


def _row(line: bytes, number: int, width: int, path: str, bad: str) -> Sequence[float]:
    tokens = line.split()
    if len(tokens) != width or not width:
        raise DataError(f"{len(tokens)} numbers, but the first line has {width}", path, number)
    try:
        return [finite(token) for token in tokens]
    except ValueError as error:
        if bad == "drop":
            return [np.nan] * width
        raise DataError(
            f"{error}: correct it, or drop such hypotheses (bad: drop)",
            path,
            number,
            parameter="bad",
        ) from error


def _named_columns(
    files: Sequence[tuple[str, tuple[str, ...], npt.NDArray[Any]]],
) -> dict[str, npt.NDArray[Any]]:
    """Return the scores by name: as the file says, else after the file."""
    stems = [_stem(path) for path, _, _ in files]
    if len(set(stems)) < len(stems):
        stems = [f"score{place}" for place in range(len(files))]
    columns: dict[str, npt.NDArray[Any]] = {}
    for (path, names, table), stem in zip(files, stems, strict=True):
        for place, name in enumerate(names or expand(stem, table.shape[1])):
            if name in columns:
                raise DataError(f"two files of scores have a column {name}: rename one", path)
            columns[name] = table[:, place]
    return columns


def _checkable(values: npt.NDArray[Any]) -> Any:
    """Return finite numbers as an array, and others as a list, in which NaN is a bad number."""
    numbers = values.astype(np.float64)
    return numbers if np.isfinite(numbers).all() else numbers.tolist()


def _stem(path: str) -> str:
    """Return the name of a file without its ending, and without that of compression."""
    name = PurePath(path)
    compressed = name.suffix in {codec.suffix for codec in CODECS}
    return PurePath(name.stem).stem if compressed else name.stem


def _write_scores(path: str, values: npt.NDArray[np.float32], names: Sequence[str]) -> None:
    if path.endswith(_NPY):
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, values[:, 0] if len(names) == 1 else values)
        return
    with atomic_writer(path) as text:
        columns = [printed(values[:, place]) for place in range(len(names))]
        text.write(" ".join(names) + "\n")
        text.writelines(" ".join(cells) + "\n" for cells in zip(*columns, strict=True))
