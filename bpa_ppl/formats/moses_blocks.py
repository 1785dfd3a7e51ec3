"""Blocks of Moses n-best lists parsed by compiled code.

It reads lines that are printed exactly as Moses prints them, with the labels of the first line,
and gives up a whole block at anything else: `moses_lines` then reads that block, and says what is
wrong with it. Both give the same rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.formats.block_fields import (
    decoded_texts,
    digits_at,
    empty_slots,
    field_at,
    interned,
    number_at,
)
from bpa_ppl.formats.moses_lines import ALIGNMENT, SEGMENTATION, Layout, split
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows

UInt8 = npt.NDArray[np.uint8]

_NEWLINE = 10
_SEPARATOR = b" ||| "
_GIVEN_UP = -1

# An automaton for tokens of a segmentation, `1=3` or `1-2=3-4`, and of an alignment, `1-2`: which
# state follows each state at which bytes. At any other byte it is 0, for good; after the last
# token it is again the one in which the field began.
_STARTS = {SEGMENTATION: 1, ALIGNMENT: 9}
_DIGIT, _END = b"0123456789", b" \n"
_FOLLOWING: list[dict[bytes, int]] = [
    {},
    {_DIGIT: 2, _END: 1},
    {_DIGIT: 2, b"-": 3, b"=": 5},
    {_DIGIT: 4},
    {_DIGIT: 4, b"=": 5},
    {_DIGIT: 6},
    {_DIGIT: 6, b"-": 7, _END: 1},
    {_DIGIT: 8},
    {_DIGIT: 8, _END: 1},
    {_DIGIT: 10, _END: 9},
    {_DIGIT: 10, b"-": 11},
    {_DIGIT: 12},
    {_DIGIT: 12, _END: 9},
]


def _steps() -> UInt8:
    """Return the automaton as a table, (states, bytes) uint8."""
    table = np.zeros((len(_FOLLOWING), 256), np.uint8)
    for row, following in zip(table, _FOLLOWING, strict=True):
        for marks, state in following.items():
            row[list(marks)] = state
    return table


_STEPS = _steps()


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
        # Of each field of positions, between text and features and then after them.
        self._starts = np.array([_STARTS[name] for name in self._kept], np.uint8)
        self._between = len(layout.between)

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
        texts, slots = np.empty((3, count), np.int32), empty_slots(count)
        spans = np.empty((len(self._kept), 2, count), np.int32)
        data = np.frombuffer(block, dtype=np.uint8)
        layout = (self._before, self._ends, self._starts, self._between)
        distinct = _parse(data, *layout, ids, values, spans, texts, slots, _STEPS)
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
    texts[0] = _SEPARATOR + texts[0][1:]
    return [*texts, _SEPARATOR] if layout.total == "after" else texts


def _fields(block: bytes, spans: Int32) -> list[list[str]]:
    """Return the text of each field of positions, which are digits and signs, of each row."""
    text = block.decode("latin-1") if len(spans) else ""  # one character a byte
    return [[text[start:end] for start, end in bounds.T.tolist()] for bounds in spans]


@njit(nogil=True, cache=True)
def _parse(
    data: UInt8,
    before: UInt8,
    before_ends: Int64,
    states: UInt8,
    between: int,
    ids: Int64,
    values: Float32,
    spans: Int32,
    texts: Int32,
    slots: Int32,
    steps: UInt8,
) -> int:
    """Fill the columns; return the number of distinct texts, or −1 to give up.

    No index is checked: the last byte is a newline, and nothing here reads on beyond one.
    """
    # No literal: what one is given to would be compiled once for it, and once for other numbers.
    none = distinct = at = 0 * len(ids)
    for row in range(len(ids)):
        ids[row], at = digits_at(data, at)
        start, end, at = field_at(data, at)
        if at < 0:
            return _GIVEN_UP
        known = interned(data, start, end, slots, texts, distinct)
        if known == distinct:
            distinct += 1
        texts[0, row] = known
        at = _positions(data, at, states, none, between, steps, spans, row)
        done = none
        for column in range(len(before_ends)):
            while at >= 0 and done < before_ends[column]:
                at = at + 1 if data[at] == before[done] else _GIVEN_UP
                done += 1
            values[row, column], at = number_at(data, at)
        at = _positions(data, at, states, between, len(states), steps, spans, row)
        if at < 0 or data[at] != _NEWLINE:
            return _GIVEN_UP
        at += 1
    return distinct


@njit
def _positions(
    data: UInt8,
    at: int,
    states: UInt8,
    first: int,
    last: int,
    steps: UInt8,
    spans: Int32,
    row: int,
) -> int:
    """Fill the bounds of fields of positions; return the position after them, or −1 to give up."""
    for column in range(first, last):
        start, end, at = field_at(data, at)
        if at < 0:
            return _GIVEN_UP
        state = states[column]
        for i in range(start, end + 1):  # with the space or newline after the last token
            state = steps[state, data[i]]
        if state != states[column]:
            return _GIVEN_UP
        spans[column, 0, row] = start
        spans[column, 1, row] = end
    return at
