"""Blocks of lists with sparse features parsed by compiled code: see `travatar`.

It reads lines that are printed as usual, and gives up a whole block at anything else; `travatar`
then reads that block line by line, and says what is wrong with it. Both give the same rows.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.formats.block_fields import (
    SEPARATOR,
    UInt8,
    decoded_texts,
    empty_slots,
    identifier_at,
    interned,
    number_at,
    past,
    text_at,
)
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows

_NEWLINE, _SPACE, _EQUALS, _BAR = 10, 32, 61, 124
_GIVEN_UP = -1
_SEPARATOR = np.frombuffer(SEPARATOR, dtype=np.uint8)


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
        texts = np.empty((3, count), np.int32)
        data = np.frombuffer(block, dtype=np.uint8)
        known = (_SEPARATOR, self._labels, self._bounds, self._score_first)
        distinct = _parse(data, *known, ids, values, *texts)
        strings = None if distinct < 0 else decoded_texts(block, texts[1:, :distinct])
        if strings is None:
            return None
        lines = np.arange(first, first + count)
        return Rows(self._names, ids, lines, values[:, 1:], values[:, 0], strings, texts[0])


@compiled
def _parse(
    data: UInt8,
    separator: UInt8,
    labels: UInt8,
    bounds: Int64,
    score_first: bool,
    ids: Int64,
    values: Float32,
    string_index: Int32,
    starts: Int32,
    ends: Int32,
) -> int:
    """Fill the columns; return the number of distinct texts, or −1 to give up."""
    slots = empty_slots(len(ids))
    seen = np.full(len(bounds) - 1, -1, np.int64)  # the row that a feature was last seen in
    distinct = 0
    at = 0
    for row in range(len(ids)):
        ids[row], at = identifier_at(data, at)
        at = past(data, at, separator, 0, 5) - 1  # the last space may begin the next separator
        start, end, at = text_at(data, at)
        if at < 0:
            return _GIVEN_UP
        known = interned(data, start, end, slots, starts, ends, distinct)
        distinct = max(distinct, known + 1)
        string_index[row] = known
        at = past(data, at, separator, 0, 5)
        if score_first:
            values[row, 0], at = number_at(data, at)
            at = past(data, at, separator, 0, 5)
        at = _features(data, at, labels, bounds, values, seen, row)
        if not score_first:
            at = past(data, at, separator, 0, 5)
            values[row, 0], at = number_at(data, at)
        if at < 0 or data[at] != _NEWLINE:
            return _GIVEN_UP
        at += 1
    return distinct


@inner
def _features(
    data: UInt8, at: int, labels: UInt8, bounds: Int64, values: Float32, seen: Int64, row: int
) -> int:
    """Fill the features of a row; return the position after the last of them, or −1 to give up."""
    column = -1
    while at >= 0:
        column = _column(data, at, labels, bounds, column + 1)
        if column < 0 or seen[column] == row:
            return _GIVEN_UP
        seen[column] = row
        value, at = number_at(data, at + bounds[column + 1] - bounds[column] + 1)
        if at < 0:
            return _GIVEN_UP
        values[row, 1 + column] = value
        if data[at] != _SPACE or data[at + 1] == _BAR:
            return at
        at += 1
    return at


@inner
def _column(data: UInt8, at: int, labels: UInt8, bounds: Int64, expected: int) -> int:
    """Return which feature stands at a position, looking from the expected one on, or −1."""
    count = len(bounds) - 1
    for step in range(count):
        column = (expected + step) % count
        start, length = bounds[column], bounds[column + 1] - bounds[column]
        i = 0
        while i < length and data[at + i] == labels[start + i]:
            i += 1
        if i == length and data[at + i] == _EQUALS:
            return column
    return _GIVEN_UP
