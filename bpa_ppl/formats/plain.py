"""Candidates as plain text, a fixed number of lines per sentence, with scores in other files.

The file has n lines for each sentence, as for `qaware-decode` and other rerankers. A line has no
tab, behind which other programs write scores. A file of scores has one or several numbers for each
line: NumPy's `.npy`, of shape (lines,) or (lines, columns), or text, with numbers separated by
blanks and optionally their names in the first line. Numbers without names are called after the
file. Scores are read as a whole, texts block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TextIO, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import (
    AnyPath,
    InputFile,
    access_error,
    atomic_writer,
    decode,
    read_chunks,
    strip_compression,
)
from bpa_ppl._runtime.values import RECIPE_PAGE, format_numbers, looks_numeric, read_number_lines
from bpa_ppl.components import CountOrNone
from bpa_ppl.errors import DataError, UsageError, locate, quote
from bpa_ppl.formats.block import ID, TEXT, Block
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import require_plain_texts, warn_about_ids
from bpa_ppl.lists.labels import expand
from bpa_ppl.lists.nbest import NBest

_NPY = ".npy"


class Plain(NBestFormat, frozen=True):
    """Lines of candidates, and scores; not detected automatically.

    Attributes:
        list_size: the number of candidates of each sentence.
        scores: files of scores, which become features; `.npy` or text.
    """

    list_size: CountOrNone = 0
    scores: str | tuple[str, ...] = ()

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: if a line has a tab, the number of lines is not a multiple of the size of
                lists, or a file of scores has another number of lines.
            UsageError: if the size of lists is not set.

        >>> file = InputFile(b"a cat\nthe cat\nhello\nhi")
        >>> columns = next(Plain(list_size=2).blocks(file, Schema("dev")))
        >>> columns.sentences["id"].tolist(), columns.candidates["text"]
        ([0, 0, 1, 1], ['a cat', 'the cat', 'hello', 'hi'])
        """
        if not self.list_size:
            raise UsageError(
                "the format plain needs the number of candidates of each sentence: give list_size",
                parameter="list_size",
                code="missing-setting",
            )
        scores = _read_columns(self._files(), schema)
        count = 0
        for block in file.chunks():
            if (tab := block.find(b"\t")) >= 0:
                number = count + block.count(b"\n", 0, tab) + 1
                problem = (
                    "a tab, which plain texts do not have: write texts and scores to two files, as "
                    f"{RECIPE_PAGE} shows"
                )
                raise schema.error(problem, number, parameter="scores")
            text = decode(block, schema.origin, count + 1).replace("\r\n", "\n")
            texts = text.removesuffix("\n").split("\n")
            lines = np.arange(count, count + len(texts))
            _check_lengths(scores, count + len(texts), schema.origin, " or more")
            columns: dict[str, Any] = {TEXT: texts}
            for name, (_, column) in scores.items():
                values = column[lines].astype(np.float64)
                # In a list NaN is a bad number.
                columns[name] = values if np.isfinite(values).all() else values.tolist()
            ids = schema.first_id + lines // self.list_size
            yield Block(columns, {ID: ids}, None, lines + 1)
            count += len(texts)
        if count % self.list_size:
            problem = f"{count} lines is not a multiple of the list size {self.list_size}"
            raise schema.error(problem, None, "wrong-length", "list_size")
        _check_lengths(scores, count, schema.origin)

    def write_file(self, lists: NBest, path: AnyPath) -> None:
        """Write the texts, and the features to the file of scores, as text.

        Raises:
            DataError: if a file cannot be written, the lists are not all of one size or their ids
                not in order, or a text has a tab or a line break.
            UsageError: if there are features and no single file of scores, or only the latter.
        """
        files, names = self._files(), lists.feature_names
        if len(files) != bool(names) or any(file.endswith(_NPY) for file in files):
            problem = (
                f"{format_count(len(names), 'feature')}, which need one file of scores as text"
            )
            if not names:
                problem = "no features, so there is no file of scores"
            advice = "name one as the scores in the format" if names else "leave out scores"
            raise UsageError(f"{problem}: {advice}", parameter="scores", code="wrong-length")
        if unusable := [name for name in names if looks_numeric(name) or len(name.split()) != 1]:
            problem = f"the feature {quote(unusable[0])} is a number or has a space: rename it"
            raise DataError(problem, lists.origin, code="bad-name")
        super().write_file(lists, path)
        if files:
            with atomic_writer(files[0]) as text:
                text.write(" ".join(names) + "\n")
                columns = map(format_numbers, lists.features.T)
                text.writelines(" ".join(cells) + "\n" for cells in zip(*columns, strict=True))

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the texts alone.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat", "the cat"]], [[[], []]], [])
        >>> Plain(list_size=2).write(lists, sys.stdout)
        a cat
        the cat
        """
        sizes, problem, remedy = set(lists.sizes.tolist()), None, "write jsonl"
        if len(sizes.union([self.list_size] if self.list_size else [])) > 1:
            problem = (
                f"lists of {min(sizes)} to {max(sizes)} candidates, but plain text needs the same "
                "number for each sentence"
            )
            remedy = "shorten them with truncate, or write jsonl"
        elif np.any(np.diff(lists.sentence_ids) != 1):
            problem = "plain text has no ids, and those of the lists are not in order"
        elif len(lists) and lists.text(0).startswith("\ufeff"):
            problem = "the first text begins with a byte-order mark, which is not read"
        if problem:
            raise DataError(f"{problem}: {remedy}", lists.origin, code="not-supported")
        require_plain_texts(lists, tabs=False)
        warn_about_ids(lists)
        if len(lists) and (first := int(lists.sentence_ids[0])):
            note = f"plain text has no ids: read the file with the setting first_id={first}"
            warn_user(locate(lists.origin) + note)
        file.writelines(f"{lists.strings[i]}\n" for i in lists.string_index.tolist())

    def _files(self) -> list[str]:
        return [self.scores] if isinstance(self.scores, str) else list(self.scores)


#: Columns of scores by name: the file of each, and (lines,) numbers.
_Columns: TypeAlias = dict[str, tuple[str, npt.NDArray[Any]]]


def _read_columns(paths: list[str], schema: Schema) -> _Columns:
    """Return the columns of files of scores, named as they say, else after the file."""
    stems = [strip_compression(path).stem for path in paths]
    if find_repeated(stems):
        stems = [f"score{place}" for place in range(len(paths))]
    columns: _Columns = {}
    for path, stem in zip(paths, stems, strict=True):
        names, table = _read_scores(replace(schema, origin=path))
        for name, values in zip(names or expand(stem, table.shape[1]), table.T, strict=True):
            if name in columns:
                raise DataError(f"two columns of scores {name}: rename one", path, code="duplicate")
            columns[name] = path, values
    return columns


def _read_scores(schema: Schema) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Return the names of the columns of a file, if it has any, and (lines, columns) numbers."""
    path = schema.origin
    if path.endswith(_NPY):
        return (), _read_array(path)
    data = b"".join(read_chunks(path))
    if not data:
        raise schema.error("empty: give a score for each candidate", code="no-data")
    first, _, rest = data.partition(b"\n")
    names = tuple(decode(first, path, 1).split())
    if any(map(looks_numeric, names)) or not names:
        return (), _parse(data, len(names), 1, schema)
    if find_repeated(names):
        raise schema.error("two columns have the same name: rename one", 1, "duplicate")
    return names, _parse(rest, len(names), 2, schema)


def _read_array(path: str) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise access_error(path, error, "read") from error
    except Exception as error:  # the header is parsed as Python, with all errors of Python's parser
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        message = f"not a NumPy array ({reason}): create it again"
        raise DataError(message, path, code="damaged") from error
    numeric = isinstance(array, np.ndarray) and array.dtype.kind in "fiu"
    if not numeric or array.ndim not in (1, 2):
        message = "not an array of numbers of shape (lines,) or (lines, columns): create it again"
        raise DataError(message, path, code="bad-number")
    return array[:, np.newaxis] if array.ndim == 1 else array


def _parse(data: bytes, width: int, first: int, schema: Schema) -> Float64:
    """Return (lines, columns) the numbers of a text; infinity for those to be dropped.

    Args:
        data: whole lines.
        width: the number of columns.
        first: the number of the first line.
        schema: of the file of scores.
    """
    values = read_number_lines(data, width) if data and width else None
    if values is not None:
        return values
    rows = []
    for number, line in enumerate(data[:-1].split(b"\n") if data else [], first):
        tokens = line.split()
        if len(tokens) != width or not width:
            problem = f"{len(tokens)} numbers, but the first line has {width}"
            raise schema.error(problem, number, "wrong-length")
        rows.append([schema.number(token, number) for token in tokens])
    return np.array(rows, np.float64).reshape(-1, width)


def _check_lengths(scores: _Columns, count: int, origin: str, more: str = "") -> None:
    """Raise unless there are as many scores as lines, or if there may be more lines, at least."""
    for path, values in scores.values():
        if len(values) < count or (len(values) > count and not more):
            raise DataError(
                f"{len(values)} scores, but {origin} has {count} lines{more}: give those of the "
                "same lists",
                path,
                code="wrong-length",
            )
