"""Blocks of Moses n-best lists parsed by compiled code.

It reads lines that are printed exactly as Moses prints them, with the labels of the first line,
and gives up a whole block at anything else: `moses_lines` then reads that block, and says what is
wrong with it. Both give the same rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.formats.block_fields import (
    SEPARATOR,
    decoded_texts,
    empty_slots,
    identifier_at,
    interned,
    number_at,
    past,
    text_at,
)
from bpa_ppl.formats.moses_lines import ALIGNMENT, SEGMENTATION, Layout, split
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows

UInt8 = npt.NDArray[np.uint8]

_NEWLINE, _SPACE, _MINUS = 10, 32, 45
_ZERO, _NINE, _EQUALS, _BAR = 48, 57, 61, 124
_KINDS = {SEGMENTATION: 1, ALIGNMENT: 2}
_SEGMENTED = _KINDS[SEGMENTATION]
_GIVEN_UP = -1


class BlockParser:
    """Parses blocks of lines that all have the same labels.

    Args:
        layout: the columns of the file.
    """

    def __init__(self, layout: Layout):
        self._names = layout.names
        self._total = layout.total == "after"
        self._kept = layout.kept
        self._regular = layout.total != "before" and all((*layout.between, *layout.after))
        texts = _texts_before_values(layout)
        self._before = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self._ends = np.cumsum([len(text) for text in texts])
        # What kind of positions stand in each field between text and features, and after them.
        self._between = np.array([_KINDS.get(name, 0) for name in layout.between], np.uint8)
        self._after = np.array([_KINDS.get(name, 0) for name in layout.after], np.uint8)

    def rows(self, block: bytes, first: int) -> Rows | None:
        """Return the rows of a block of whole lines, or None where it must be read line by line.

        Args:
            block: lines, each ended by a newline.
            first: the number of its first line in the file.
        """
        if not self._regular:
            return None
        count = line_count(block)
        ids, values = np.empty(count, np.int64), np.empty((count, len(self._ends)), np.float32)
        texts = np.empty((3, count), np.int32)
        spans = np.empty((len(self._kept), 2, count), np.int32)
        data = np.frombuffer(block, dtype=np.uint8)
        fields = (self._before, self._ends, self._between, self._after)
        distinct = _parse(data, *fields, ids, values, spans, *texts)
        strings = None if distinct < 0 else decoded_texts(block, texts[1:, :distinct])
        if strings is None:
            return None
        lines = np.arange(first, first + count)
        columns = split(values, self._total)
        extras = dict(zip(self._kept, _fields(block, spans), strict=True))
        return Rows(self._names, ids, lines, *columns, strings, texts[0], extras=extras)


def _texts_before_values(layout: Layout) -> list[bytes]:
    """Return what stands before each value of a line, from the end of the one before."""
    texts = []
    for (label, count), glued in zip(layout.shape, layout.glued, strict=True):
        name = f"{label}=".encode() + (b"" if glued else b" ")
        texts += [b" " + name] + [b" "] * (count - 1)
    texts[0] = SEPARATOR + texts[0][1:]
    return [*texts, SEPARATOR] if layout.total == "after" else texts


def _fields(block: bytes, spans: Int32) -> list[list[str]]:
    """Return the text of each field of positions, which are digits and signs, of each row."""
    text = block.decode("latin-1") if len(spans) else ""  # one character a byte
    return [[text[start:end] for start, end in bounds.T.tolist()] for bounds in spans]


@compiled
def _parse(
    data: UInt8,
    before: UInt8,
    before_ends: Int64,
    between: UInt8,
    after: UInt8,
    ids: Int64,
    values: Float32,
    spans: Int32,
    string_index: Int32,
    starts: Int32,
    ends: Int32,
) -> int:
    """Fill the columns; return the number of distinct texts, or −1 to give up.

    No index is checked: the last byte is a newline, and nothing here reads on beyond one.
    """
    slots = empty_slots(len(ids))
    # No literal: what one is given to would be compiled once for it, and once for other numbers.
    distinct = at = none = 0 * len(ids)
    for row in range(len(ids)):
        ids[row], at = identifier_at(data, at)
        # The last space may begin the next separator.
        at = past(data, at, before, none, none + 5) - 1
        start, end, at = text_at(data, at)
        if at < 0:
            return _GIVEN_UP
        known = interned(data, start, end, slots, starts, ends, distinct)
        distinct = max(distinct, known + 1)
        string_index[row] = known
        at = _positions(data, at, between, spans[: len(between)], row)
        at = _scores(data, at, before, before_ends, values, row)
        at = _positions(data, at, after, spans[len(between) :], row)
        if at < 0 or data[at] != _NEWLINE:
            return _GIVEN_UP
        at += 1
    return distinct


@inner
def _positions(data: UInt8, at: int, kinds: UInt8, spans: Int32, row: int) -> int:
    """Fill the bounds of fields of positions; return the position after them, or −1 to give up."""
    for column in range(len(kinds)):
        start, end, at = _field(data, at, kinds[column])
        if at < 0:
            return _GIVEN_UP
        spans[column, 0, row] = start
        spans[column, 1, row] = end
    return at


@inner
def _field(data: UInt8, at: int, kind: int) -> tuple[int, int, int]:
    """Return the bounds of one field after its separator, and where the next one begins."""
    for byte in (_SPACE, _BAR, _BAR, _BAR):
        if at < 0 or data[at] != byte:
            return 0, 0, _GIVEN_UP
        at += 1
    if data[at] != _SPACE and data[at] != _NEWLINE:
        return 0, 0, _GIVEN_UP
    at = _spaces(data, at)
    start = at
    end = at
    while data[at] != _NEWLINE and data[at] != _BAR:
        end = _token(data, at, kind)
        if end < 0 or (data[end] != _SPACE and data[end] != _NEWLINE):
            return 0, 0, _GIVEN_UP
        at = _spaces(data, end)
    return start, end, at if data[at] == _NEWLINE else at - 1


@inner
def _token(data: UInt8, at: int, kind: int) -> int:
    """Return the position after `0-2=0-2` of a segmentation or `0-0` of an alignment, or −1."""
    if kind != _SEGMENTED:
        return _whole(data, _past_byte(data, _whole(data, at), _MINUS))
    at = _past_byte(data, _span(data, at), _EQUALS)
    return _span(data, at)


@inner
def _span(data: UInt8, at: int) -> int:
    at = _whole(data, at)
    return _whole(data, at + 1) if at >= 0 and data[at] == _MINUS else at


@inner
def _whole(data: UInt8, at: int) -> int:
    """Return the position after some digits, or −1 where none are."""
    start = at
    while at >= 0 and _ZERO <= data[at] <= _NINE:
        at += 1
    return at if at > start else _GIVEN_UP


@inner
def _past_byte(data: UInt8, at: int, byte: int) -> int:
    return at + 1 if at >= 0 and data[at] == byte else _GIVEN_UP


@inner
def _spaces(data: UInt8, at: int) -> int:
    while data[at] == _SPACE:
        at += 1
    return at


@inner
def _scores(
    data: UInt8, at: int, before: UInt8, before_ends: Int64, values: Float32, row: int
) -> int:
    """Fill one row of values; return the position after the last of them, or −1 to give up."""
    done = 0 * row
    for column in range(len(before_ends)):
        at = past(data, at, before, done, before_ends[column])
        value, at = number_at(data, at)
        if at < 0:
            return _GIVEN_UP
        values[row, column] = value
        done = before_ends[column]
    return at
