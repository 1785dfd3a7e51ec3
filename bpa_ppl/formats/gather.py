"""Rows of a file gathered into NBest tables, a number of sentences at a time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.base import Rows
from bpa_ppl.formats.references import SentenceLines
from bpa_ppl.nbest import Int32, Int64, NBest


class Gatherer:
    """Makes NBest tables of consecutive rows of one file, and checks the sentence ids.

    Args:
        origin: the name of the n-best file, for messages.
        lines: by name, what the whole text has one of for each sentence: references, sources.
        first_id: the id of the first sentence of the text.
    """

    def __init__(self, origin: str, lines: Mapping[str, SentenceLines], first_id: int):
        self.origin = origin
        self.lines = lines
        self.first_id = first_id
        self._begins: dict[int, int] = {}  # sentence id -> the line at which its list begins
        self._dropped: list[int] = []

    def tables(self, blocks: Iterable[Rows], sentences: int = sys.maxsize) -> Iterator[NBest]:
        """Yield tables of that many sentences each; the last one has the rest.

        Raises:
            DataError: if an id comes twice or has no reference, or a whole list was dropped.
        """
        table: _Table | None = None
        last: int | None = None
        for rows in blocks:
            table = table or _Table(rows)
            begun = len(self._begins)
            starts = _starts(rows.ids, last)
            self._enter(rows, starts)
            done = 0
            for start in starts[(begun + np.arange(len(starts))) % sentences == 0]:
                table.append(rows.part(done, start), self.origin)
                done = start
                if start or begun:
                    yield self._nbest(table)
                    table = _Table(rows)
            table.append(rows.part(done), self.origin)
            last = int(rows.ids[-1]) if len(rows.ids) else last
        self._finish()
        if table is not None:
            yield self._nbest(table)

    def _enter(self, rows: Rows, starts: Int64) -> None:
        """Note the lists that begin in some rows."""
        self._dropped += rows.dropped
        for identifier, line in zip(
            rows.ids[starts].tolist(), rows.lines[starts].tolist(), strict=True
        ):
            if identifier in self._begins:
                raise DataError(
                    f"a second block of sentence {identifier}, whose list began at line "
                    f"{self._begins[identifier]}: sort the file with `sort -s -n -k1,1`",
                    self.origin,
                    line,
                )
            self._check_id(identifier, line)
            self._begins[identifier] = line

    def _check_id(self, identifier: int, line: int) -> None:
        position = identifier - self.first_id
        if position < 0:
            raise DataError(
                f"sentence id {identifier} is below the first id, {self.first_id}: ids are counted "
                f"from {identifier} where that is the first sentence (first_id={identifier})",
                self.origin,
                line,
            )
        for what, known in self.lines.items():
            count = len(known.lines)
            if position < count:
                continue
            one_based = position == count and self.first_id not in self._begins
            remedy = (
                f"the ids seem to be counted from {self.first_id + 1} "
                f"(first_id={self.first_id + 1})"
                if one_based
                else f"give the {what}s of the same text"
            )
            raise DataError(
                f"no {what} for sentence id {identifier}: {known.origin} has {count} "
                f"lines, for ids {self.first_id} to {self.first_id + count - 1}; {remedy}",
                self.origin,
                line,
            )

    def _finish(self) -> None:
        """Check what only the end of the file shows."""
        lost = [identifier for identifier in self._dropped if identifier not in self._begins]
        if lost:
            raise DataError(
                f"every hypothesis of sentence {lost[0]} has a value that is no finite number: "
                "correct the file",
                self.origin,
            )
        if self._dropped:
            message = f"{len(self._dropped)} hypotheses dropped for values that are not finite"
            warnings.warn(f"{self.origin}: {message}", BpaWarning, stacklevel=4)
        if self.lines and self._begins and min(self._begins) == self.first_id + 1:
            warnings.warn(
                f"{self.origin}: no list for the first {next(iter(self.lines))}, id "
                f"{self.first_id}: if ids are counted from {self.first_id + 1}, say "
                f"first_id={self.first_id + 1}",
                BpaWarning,
                stacklevel=4,
            )

    def _nbest(self, table: _Table) -> NBest:
        """Return the lists of a table with their references and sources."""
        columns = {name: column.finished() for name, column in table.columns.items()}
        ids = columns.pop("ids")
        starts = _starts(ids, None)
        ids = ids[starts]
        lines: dict[str, Any] = {
            f"{what}s": tuple(known.lines[i] for i in (ids - self.first_id).tolist())
            for what, known in self.lines.items()
        }
        return NBest(
            offsets=np.append(starts, len(table.columns["ids"])).astype(np.int64),
            feature_names=table.names,
            sentence_ids=ids,
            strings=tuple(table.strings),
            string_index=table.string_index.finished(),
            extras={name: column.finished() for name, column in table.extras.items()},
            origin=self.origin,
            **columns,
            **lines,
        )


class _Array:
    """An array that grows in place, so that its content is never there twice.

    Args:
        part: an array of the type and width to be held.
    """

    def __init__(self, part: npt.NDArray):
        self._values = np.empty((0, *part.shape[1:]), part.dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, part: npt.NDArray) -> None:
        end = self._length + len(part)
        if end > len(self._values):
            self._resize(end + end // 8)
        self._values[self._length : end] = part
        self._length = end

    def finished(self) -> npt.NDArray:
        self._resize(self._length)
        return self._values

    def _resize(self, length: int) -> None:
        # No view of the array is handed out before it is finished.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)


class _Objects:
    """A column of any objects, which grows as `_Array` does."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._values)

    def append(self, part: Sequence[Any]) -> None:
        self._values.extend(part)

    def finished(self) -> tuple[Any, ...]:
        return tuple(self._values)


def _growing(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return an empty column, to be filled, for each of some parts."""
    return {n: _Array(p) if isinstance(p, np.ndarray) else _Objects() for n, p in parts.items()}


class _Table:
    """The columns of a table that is being gathered; it begins with the columns of some rows."""

    def __init__(self, rows: Rows):
        self.names = rows.names
        self.columns = _growing(rows.columns())
        self.extras = _growing(rows.extras)
        self.string_index = _Array(rows.string_index)
        self.strings: dict[str, int] = {}

    def append(self, rows: Rows, origin: str) -> None:
        for columns, parts in ((self.columns, rows.columns()), (self.extras, rows.extras)):
            if columns.keys() != parts.keys():
                odd = ", ".join(sorted(columns.keys() ^ parts.keys()))
                raise DataError(f"only some of the lines have {odd}: give all of them", origin)
            for name, column in columns.items():
                column.append(parts[name])
        self.string_index.append(self._indices(rows))

    def _indices(self, rows: Rows) -> Int32:
        """Return the rows' indices into the texts known so far, and add those that are new."""
        known = self.strings
        numbers = np.zeros(len(rows.strings), dtype=np.int32)
        used = np.flatnonzero(np.bincount(rows.string_index, minlength=len(numbers)))
        numbers[used] = [known.setdefault(rows.strings[i], len(known)) for i in used.tolist()]
        return numbers[rows.string_index]


def _starts(ids: Int64, last: int | None) -> Int64:
    """Return the rows at which the id differs from the one before; `last` precedes the first."""
    before = np.concatenate([ids[:1] - 1 if last is None else [last], ids[:-1]])
    return np.flatnonzero(ids != before[: len(ids)])
