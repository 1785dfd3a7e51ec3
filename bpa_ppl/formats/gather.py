"""Rows of a file gathered into NBest tables, a number of sentences at a time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.rows import Rows
from bpa_ppl.nbest import Int32, Int64, NBest


class References(NamedTuple):
    """The references of a whole text.

    Attributes:
        lines: one tuple of references a sentence.
        source: where they are from, for messages.
    """

    lines: Sequence[tuple[str, ...]]
    source: str


class Gatherer:
    """Makes NBest tables of consecutive rows of one file, and checks the sentence ids.

    Args:
        source: the name of the n-best file, for messages.
        references: of the whole text, or None.
        first_id: the id of the first sentence of the text.
    """

    def __init__(self, source: str, references: References | None, first_id: int):
        self.source = source
        self.references = references
        self.first_id = first_id
        self._lines: dict[int, int] = {}  # sentence id -> the line at which its list begins
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
            begun = len(self._lines)
            starts = _starts(rows.ids, last)
            self._enter(rows, starts)
            done = 0
            for start in starts[(begun + np.arange(len(starts))) % sentences == 0]:
                table.append(rows.part(done, start))
                done = start
                if start or begun:
                    yield self._nbest(table)
                    table = _Table(rows)
            table.append(rows.part(done))
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
            if identifier in self._lines:
                raise DataError(
                    f"a second block of sentence {identifier}, whose list began at line "
                    f"{self._lines[identifier]}: sort the file with `sort -s -n -k1,1`",
                    self.source,
                    line,
                )
            self._check_id(identifier, line)
            self._lines[identifier] = line

    def _check_id(self, identifier: int, line: int) -> None:
        position = identifier - self.first_id
        if position < 0:
            raise DataError(
                f"sentence id {identifier} is below the first id, {self.first_id}: ids are counted "
                f"from {identifier} where that is the first sentence (first_id={identifier})",
                self.source,
                line,
            )
        if self.references is None or position < len(self.references.lines):
            return
        count = len(self.references.lines)
        one_based = position == count and self.first_id not in self._lines
        remedy = (
            f"the ids seem to be counted from {self.first_id + 1} (first_id={self.first_id + 1})"
            if one_based
            else "give the references of the same text"
        )
        raise DataError(
            f"no reference for sentence id {identifier}: {self.references.source} has {count} "
            f"lines, for ids {self.first_id} to {self.first_id + count - 1}; {remedy}",
            self.source,
            line,
        )

    def _finish(self) -> None:
        """Check what only the end of the file shows."""
        lost = [identifier for identifier in self._dropped if identifier not in self._lines]
        if lost:
            raise DataError(
                f"every hypothesis of sentence {lost[0]} has a value that is no finite number: "
                "correct the file",
                self.source,
            )
        if self._dropped:
            message = f"{len(self._dropped)} hypotheses dropped for values that are not finite"
            warnings.warn(f"{self.source}: {message}", BpaWarning, stacklevel=4)
        if self.references is not None and min(self._lines) == self.first_id + 1:
            warnings.warn(
                f"{self.source}: no list for the first reference, id {self.first_id}: if ids are "
                f"counted from {self.first_id + 1}, say first_id={self.first_id + 1}",
                BpaWarning,
                stacklevel=4,
            )

    def _nbest(self, table: _Table) -> NBest:
        """Return the lists of a table with their references."""
        starts = _starts(table.ids.finished(), None)
        ids = table.ids.finished()[starts]
        references = self.references
        return NBest(
            offsets=np.append(starts, table.ids.length).astype(np.int64),
            features=table.features.finished(),
            feature_names=table.names,
            sentence_ids=ids,
            strings=tuple(table.strings),
            string_index=table.string_index.finished(),
            totals=None if table.totals is None else table.totals.finished(),
            references=None
            if references is None
            else tuple(references.lines[i] for i in (ids - self.first_id).tolist()),
            source=self.source,
        )


class _Column:
    """An array that grows in place, so that its content is never there twice.

    Args:
        part: an array of the type and width to be held.
    """

    def __init__(self, part: npt.NDArray):
        self._values = np.empty((0, *part.shape[1:]), part.dtype)
        self.length = 0

    def append(self, part: npt.NDArray) -> None:
        end = self.length + len(part)
        if end > len(self._values):
            self._resize(end + end // 8)
        self._values[self.length : end] = part
        self.length = end

    def finished(self) -> npt.NDArray:
        self._resize(self.length)
        return self._values

    def _resize(self, length: int) -> None:
        # No view of the array is handed out before it is finished.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)


class _Table:
    """The columns of a table that is being gathered; it begins with the columns of some rows."""

    def __init__(self, rows: Rows):
        self.names = rows.names
        self.ids = _Column(rows.ids)
        self.features = _Column(rows.features)
        self.totals = None if rows.totals is None else _Column(rows.totals)
        self.string_index = _Column(rows.string_index)
        self.strings: dict[str, int] = {}

    def append(self, rows: Rows) -> None:
        self.ids.append(rows.ids)
        self.features.append(rows.features)
        if self.totals is not None and rows.totals is not None:
            self.totals.append(rows.totals)
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
