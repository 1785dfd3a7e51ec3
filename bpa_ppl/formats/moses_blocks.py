"""Blocks of lines of fields separated by ` ||| `, parsed by compiled code.

It reads lines with the labels of the first line, and features in which spaces and glued values do
not matter, and returns None for a block with any other line: `moses_lines` then reads that block,
and says what is wrong with it. Both give the same rows.

No index is checked: the last byte of a block is a newline, and nothing here reads beyond one.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.formats.moses_lines import ALIGNMENT, SEGMENTATION, Layout
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows

UInt8 = npt.NDArray[np.uint8]

_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT = 10, 32, 43, 45, 46
_ZERO, _NINE, _EQUALS, _UPPER_E, _LOWER_E, _BAR = 48, 57, 61, 69, 101, 124
_FAILED = -1
_DIGITS = 18  # fit 64 bits
# Integers up to 2^53 and powers of ten up to 10^22 are exact as 64-bit floats, so that one
# multiplication or division of the two is rounded once, as `float` rounds (Clinger 1990). Others
# are off by a few units of the last place.
_EXACT = 1 << 53
_EXACT_POWER = 22
_POWERS = np.array([float(f"1e{power}") for power in range(64)])
_MARGIN = 2.0**-49
_TOTALS = {"none": 0, "before": -1, "after": 1}

# An automaton for tokens of a segmentation, `1=3` or `1-2=3-4`, and of an alignment, `1-2`: the
# state that follows each state at some bytes. At any other byte it is 0 from there on; after the
# last token it is again the state in which the field began.
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
    """Parses blocks of lines that all have the same columns.

    Args:
        layout: the columns of the file.
    """

    def __init__(self, layout: Layout):
        self._layout = layout
        self._regular = all((*layout.between, *layout.after)) and not layout.word_scores
        labels = [
            text
            for label, count in layout.shape
            for text in (f"{label}=".encode(), *[b""] * (count - 1))
        ]
        self._labels = np.frombuffer(b"".join(labels), dtype=np.uint8)
        self._bounds = np.array(list(accumulate(map(len, labels), initial=0)))
        # Of each field of positions, between text and features and then after them.
        self._starts = np.array([_STARTS[name] for name in layout.kept], np.uint8)

    def rows(self, block: bytes, first: int) -> Rows | None:
        """Return the rows of a block of whole lines, or None where it must be read line by line.

        Args:
            block: lines, each ended by a newline.
            first: the number of its first line in the file.
        """
        if not self._regular:
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        layout = self._layout
        count, width = line_count(block), len(self._bounds) - 1
        ids, values = np.empty(count, np.int64), np.zeros((count, width + 1), np.float32)
        # A hash table, at most half full when every text is new.
        texts, slots = (
            np.empty((3, count), np.int32),
            np.full(2 << count.bit_length(), -1, np.int32),
        )
        spans = np.empty((len(layout.kept), 2, count), np.int32)
        distinct = _parse(
            np.frombuffer(block, dtype=np.uint8),
            self._labels,
            self._bounds,
            layout.sparse,
            _TOTALS[layout.total],
            self._starts,
            len(layout.between),
            ids,
            values,
            spans,
            texts,
            slots,
            np.full(width, -1),
            _STEPS,
        )
        if distinct < 0:
            return None
        bounds = texts[1:, :distinct].T.tolist()
        try:
            strings = [block[start:end].decode() for start, end in bounds]
        except UnicodeDecodeError:
            return None
        lines = np.arange(first, first + count)
        totals = None if layout.total == "none" else values[:, -1]
        latin = block.decode("latin-1") if len(spans) else ""  # one character per byte
        fields = [[latin[start:end] for start, end in span.T.tolist()] for span in spans]
        extras = dict(zip(layout.kept, fields, strict=True))
        return Rows(
            layout.names, ids, lines, values[:, :-1], totals, strings, texts[0], extras=extras
        )


@njit(nogil=True, cache=True)
def _parse(
    data: UInt8,
    labels: UInt8,
    bounds: Int64,
    sparse: bool,
    total: int,
    states: UInt8,
    between: int,
    ids: Int64,
    values: Float32,
    spans: Int32,
    texts: Int32,
    slots: Int32,
    seen: Int64,
    steps: UInt8,
) -> int:
    """Fill the columns; return the number of distinct texts, or −1 to give up.

    `seen` has the row in which each feature was seen last.
    """
    # Not literals, for which Numba would compile another version of the functions they go to.
    none = distinct = at = 0 * len(ids)
    last = len(bounds) - 1
    for row in range(len(ids)):
        ids[row], at = _digits(data, at)
        start, end, at = _field(data, at)
        if at < 0:
            return _FAILED
        known = _interned(data, start, end, slots, texts, distinct)
        if known == distinct:
            distinct += 1
        texts[0, row] = known
        at = _positions(data, at, states, none, between, steps, spans, row)
        if total < 0:
            values[row, last], at = _number(data, _past_separator(data, at))
        at = _past_separator(data, at)
        if at < 0:
            return _FAILED
        column = found = none
        while data[at] != _NEWLINE and not (data[at] == _BAR and _separates(data, at - 1)):
            column = _column(data, at, labels, bounds, column, sparse)
            if column < 0 or seen[column] == row:
                return _FAILED
            seen[column] = row
            at = _past_spaces(data, at + bounds[column + 1] - bounds[column])
            value, at = _number(data, at)
            if at < 0 or (data[at] != _SPACE and data[at] != _NEWLINE):
                return _FAILED
            values[row, column] = value
            column += 1
            found += 1
            at = _past_spaces(data, at)
        if found < last and not sparse:
            return _FAILED
        if data[at] == _BAR:
            at -= 1
        if total > 0:
            values[row, last], at = _number(data, _past_separator(data, at))
        if len(states) > between:
            at = _positions(data, at, states, between, len(states), steps, spans, row)
        elif at >= 0:
            at = _past_spaces(data, at)
        if at < 0 or data[at] != _NEWLINE:
            return _FAILED
        at += 1
    return distinct


@njit
def _past_spaces(data: UInt8, at: int) -> int:
    while data[at] == _SPACE:
        at += 1
    return at


@njit
def _past_separator(data: UInt8, at: int) -> int:
    """Return the position after a separator and spaces around it, or −1 where there is none."""
    if at < 0 or not _separates(data, at):
        return _FAILED
    return _past_spaces(data, at + 4)


@njit
def _column(data: UInt8, at: int, labels: UInt8, bounds: Int64, expected: int, sparse: bool) -> int:
    """Return the feature whose label is at a position, or −1; the expected one is tried first."""
    count = len(bounds) - 1
    column = expected
    for _ in range(count if sparse else 1):
        if column == count:
            if not sparse:
                return _FAILED
            column = 0
        i, end = bounds[column], bounds[column + 1]
        here = at
        while i < end and data[here] == labels[i]:
            i += 1
            here += 1
        if i == end:
            return column
        column += 1
    return _FAILED


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
        start, end, at = _field(data, at)
        if at < 0:
            return _FAILED
        state = states[column]
        for i in range(start, end + 1):  # with the space or newline after the last token
            state = steps[state, data[i]]
        if state != states[column]:
            return _FAILED
        spans[column, 0, row] = start
        spans[column, 1, row] = end
    return at


@njit
def _digits(data: UInt8, at: int) -> tuple[np.int64, int]:
    """Return the integer at a position, and the position after it, or −1 to give up."""
    start = at
    value = np.int64(0)
    while _ZERO <= data[at] <= _NINE:
        value = 10 * value + data[at] - _ZERO
        at += 1
    return value, at if 0 < at - start <= _DIGITS else _FAILED


@njit
def _number(data: UInt8, at: int) -> tuple[float, int]:
    """Return the number at a position, exact to 32 bits, and the one after it; −1 to give up."""
    if at < 0:
        return 0.0, _FAILED
    sign = 1.0
    if data[at] == _MINUS or data[at] == _PLUS:
        sign = -1.0 if data[at] == _MINUS else 1.0
        at += 1
    start = at
    point = at - 1  # before the number, if it has none
    mantissa = np.int64(0)
    while True:
        if _ZERO <= data[at] <= _NINE:
            mantissa = 10 * mantissa + data[at] - _ZERO
        elif data[at] == _DOT and point < start:
            point = at
        else:
            break
        at += 1
    digits = at - start
    exponent = np.int64(0)
    if point >= start:
        digits -= 1
        exponent -= at - point - 1
    if data[at] == _LOWER_E or data[at] == _UPPER_E:
        at += 1
        negative = data[at] == _MINUS
        if negative or data[at] == _PLUS:
            at += 1
        power, at = _digits(data, at)
        exponent += -power if negative else power
    if not 0 < digits <= _DIGITS or abs(exponent) >= len(_POWERS) or at < 0:
        return 0.0, _FAILED
    power_of_ten = _POWERS[abs(exponent)]
    value = sign * (mantissa / power_of_ten if exponent < 0 else mantissa * power_of_ten)
    inexact = mantissa > _EXACT or abs(exponent) > _EXACT_POWER
    # Sure only if all numbers that near are rounded to the same 32 bits.
    if inexact and np.float32(value * (1 - _MARGIN)) != np.float32(value * (1 + _MARGIN)):
        return 0.0, _FAILED
    if not abs(value) < 3.4e38:
        return 0.0, _FAILED
    return value, at


@njit
def _separates(data: UInt8, at: int) -> bool:
    """Return whether ` |||` is at a position, with a space or the end of the line after it."""
    return bool(
        data[at] == _SPACE
        and data[at + 1] == _BAR
        and data[at + 2] == _BAR
        and data[at + 3] == _BAR
        and (data[at + 4] == _SPACE or data[at + 4] == _NEWLINE)
    )


@njit
def _field(data: UInt8, at: int) -> tuple[int, int, int]:
    """Return the bounds of a field without spaces around it, and where it ends; −1 to give up.

    Its separator must be at the position. It ends where the next one begins, or with the line.
    """
    if at < 0 or not _separates(data, at):
        return 0, 0, _FAILED
    start = at + 4  # the space here may begin the next separator
    at = start
    while data[at] != _NEWLINE and (data[at + 1] != _BAR or not _separates(data, at)):
        at += 1
    end = at
    while end > start and data[end - 1] == _SPACE:
        end -= 1
    while start < end and data[start] == _SPACE:
        start += 1
    return start, end, at


@njit
def _interned(data: UInt8, start: int, end: int, slots: Int32, texts: Int32, distinct: int) -> int:
    """Return the index of a text among the distinct ones; add it if it is new.

    Args:
        data: the block.
        start: where the text begins.
        end: where it ends.
        slots: a hash table of indices, −1 where it is empty.
        texts: (3, rows), of which the last two are the bounds of the distinct texts.
        distinct: their number.
    """
    value = np.uint64(14695981039346656037)  # the FNV-1a hash (Fowler, Noll & Vo)
    for i in range(start, end):
        value = (value ^ np.uint64(data[i])) * np.uint64(1099511628211)
    mask = len(slots) - 1
    slot = np.int64(value ^ (value >> np.uint64(32))) & mask
    while slots[slot] >= 0:
        known = slots[slot]
        shift = texts[1, known] - start
        i = start if texts[2, known] - shift == end else end + 1
        while i < end and data[i] == data[i + shift]:
            i += 1
        if i == end:
            return int(known)
        slot = (slot + 1) & mask
    slots[slot] = distinct
    texts[1, distinct] = start
    texts[2, distinct] = end
    return distinct
