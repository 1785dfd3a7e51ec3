"""Blocks of lists with sparse features parsed by compiled code: see `travatar`.

It reads lines that are printed as usual, and gives up a whole block at anything else; `travatar`
then reads that block line by line, and says what is wrong with it. Both give the same rows.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numba import njit

from bpa_ppl.formats.block_fields import (
    UInt8,
    decoded_texts,
    digits_at,
    empty_slots,
    field_at,
    interned,
    number_at,
    separates,
)
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows

_NEWLINE, _SPACE, _EQUALS, _BAR = 10, 32, 61, 124
_GIVEN_UP = -1


class SparseParser:
    """Parses blocks of lines that all have the same features, or some of them.

    Args:
        names: of the features.
        score_first: whether the score stands before the features.
    """

    def __init__(self, names: tuple[str, ...], score_first: bool):
        self._names = names
        self._score_first = score_first
        printed = [name.encode() for name in names]
        self._labels = np.frombuffer(b"".join(printed), dtype=np.uint8)
        self._bounds = np.array(list(accumulate(map(len, printed), initial=0)))

    def rows(self, block: bytes, first: int) -> Rows | None:
        """Return the rows of a block of whole lines, or None where it must be read line by line.

        Args:
            block: lines, each ended by a newline.
            first: the number of its first line in the file.
        """
        count = line_count(block)
        ids = np.empty(count, np.int64)
        values = np.zeros((count, 1 + len(self._names)), np.float32)
        texts, slots = np.empty((3, count), np.int32), empty_slots(count)
        seen = np.full(len(self._names), -1)
        data = np.frombuffer(block, dtype=np.uint8)
        known = (self._labels, self._bounds, self._score_first)
        distinct = _parse(data, *known, ids, values, texts, slots, seen)
        strings = None if distinct < 0 else decoded_texts(block, texts[1:, :distinct])
        if strings is None:
            return None
        lines = np.arange(first, first + count)
        return Rows(self._names, ids, lines, values[:, 1:], values[:, 0], strings, texts[0])


@njit(nogil=True, cache=True)
def _parse(
    data: UInt8,
    labels: UInt8,
    bounds: Int64,
    score_first: bool,
    ids: Int64,
    values: Float32,
    texts: Int32,
    slots: Int32,
    seen: Int64,
) -> int:
    """Fill the columns; return the number of distinct texts, or −1 to give up."""
    # No literal: what one is given to would be compiled once for it, and once for other numbers.
    distinct = at = 0 * len(ids)
    for row in range(len(ids)):
        ids[row], at = digits_at(data, at)
        start, end, at = field_at(data, at)
        if at < 0:
            return _GIVEN_UP
        known = interned(data, start, end, slots, texts, distinct)
        if known == distinct:
            distinct += 1
        texts[0, row] = known
        at = _past_separator(data, at)
        if score_first:
            values[row, 0], at = number_at(data, at)
            at = _past_separator(data, at)
        at = _features(data, at, labels, bounds, values, seen, row)
        if not score_first:
            at = _past_separator(data, at)
            values[row, 0], at = number_at(data, at)
        if at < 0 or data[at] != _NEWLINE:
            return _GIVEN_UP
        at += 1
    return distinct


@njit
def _past_separator(data: UInt8, at: int) -> int:
    """Return the position after a separator with its spaces, or −1 where none stands."""
    if at < 0 or not separates(data, at) or data[at + 4] == _NEWLINE:
        return _GIVEN_UP
    return at + 5


@njit
def _features(
    data: UInt8, at: int, labels: UInt8, bounds: Int64, values: Float32, seen: Int64, row: int
) -> int:
    """Fill the features of a row; return the position after the last of them, or −1 to give up.

    `seen` has the row in which each feature was seen last.
    """
    column = 0 * row
    while at >= 0:
        column = _column(data, at, labels, bounds, column)
        if column < 0 or seen[column] == row:
            return _GIVEN_UP
        seen[column] = row
        at += bounds[column + 1] - bounds[column] + 1
        column += 1
        values[row, column], at = number_at(data, at)
        if at < 0 or data[at] != _SPACE or data[at + 1] == _BAR:
            return at
        at += 1
    return at


@njit
def _column(data: UInt8, at: int, labels: UInt8, bounds: Int64, expected: int) -> int:
    """Return which feature stands at a position, looking from the expected one on, or −1."""
    count = len(bounds) - 1
    column = expected
    for _ in range(count):
        if column == count:
            column = 0
        i, end = bounds[column], bounds[column + 1]
        here = at
        while i < end and data[here] == labels[i]:
            i += 1
            here += 1
        if i == end and data[here] == _EQUALS:
            return column
        column += 1
    return _GIVEN_UP
