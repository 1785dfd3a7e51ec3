"""Blocks of lines of fields separated by ` ||| `, read by compiled code.

It reads lines with the labels of the first line, and features in which spaces and glued values do
not matter. `moses_lines` reads all other lines, and says what is wrong with them.

No index is checked: the last byte of a block is a newline, and nothing here reads beyond one.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.arrays import Float32, Int32, Int64
from bpa_ppl.compiling import compiled
from bpa_ppl.formats.moses_lines import WORD_SCORES, Block, LineParser, pattern_of
from bpa_ppl.formats.streams import line_count
from bpa_ppl.rows.readers import values_of

UInt8 = npt.NDArray[np.uint8]

_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT = 10, 32, 43, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E, _BAR = 48, 57, 69, 101, 124
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


class _Columns(NamedTuple):
    """The columns of a file, for compiled code.

    Attributes:
        labels: the bytes before the values of all features.
        bounds: where those of each feature begin.
        between: the number of fields between text and features.
        after: the number of fields after features and total.
        total: −1 if the total is before the features, 1 after them, 0 for none.
        sparse: whether a line may lack features, or have them in another order.
    """

    labels: UInt8
    bounds: Int64
    between: int
    after: int
    total: int
    sparse: bool


class _Table(NamedTuple):
    """What compiled code fills.

    Attributes:
        regular: (rows,) whether a line has been read.
        ids: (rows,).
        values: (features + 1, rows), the last one is the total.
        spans: (fields, 2, rows) the bounds of the fields other than text, features and total.
        texts: (3, rows) the index of each text, and then the bounds of the distinct ones.
        slots: a hash table of indices of texts, −1 where it is empty.
        seen: (features,) the row in which each was seen last.
    """

    regular: npt.NDArray[np.bool_]
    ids: Int64
    values: Float32
    spans: Int32
    texts: Int32
    slots: Int32
    seen: Int64


class BlockParser:
    """Reads the lines of blocks that have exactly the columns of the first line.

    Args:
        lines: knows the columns.
    """

    def __init__(self, lines: LineParser):
        self._layout = layout = lines.layout
        labels = [
            text
            for label, count in layout.shape
            for text in (f"{label}=".encode(), *[b""] * (count - 1))
        ]
        between = [(name, lines.soft, f"{WORD_SCORES.decode()}.*") for name in layout.between]
        # The first field after the scores is not a total where the first line has none.
        rest = r"[^\s=]*(?:\s.*)?|[\d=|].*" if layout.total != "none" else r"[^=.\d]*"
        after = [(name, False, rest) for name in layout.after]
        #: Name and pattern of each field; those without a name are left out.
        self._fields = [
            (name, pattern_of(name, soft) if name else other)
            for name, soft, other in (*between, *after)
        ]
        self._columns = _Columns(
            np.frombuffer(b"".join(labels), np.uint8),
            np.array(list(accumulate(map(len, labels), initial=0))),
            len(layout.between),
            len(layout.after),
            _TOTALS[layout.total],
            layout.sparse,
        )

    def read(self, block: bytes) -> Block:
        """Read the regular lines of a block."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        count, width = line_count(block), len(self._columns.bounds) - 1
        table = _Table(
            np.zeros(count, bool),
            np.zeros(count, np.int64),
            np.zeros((width + 1, count), np.float32),
            np.zeros((len(self._fields), 2, count), np.int32),
            np.zeros((3, count), np.int32),
            np.full(2 << count.bit_length(), -1, np.int32),  # at most half full
            np.full(width, -1),
        )
        distinct = _parse(np.frombuffer(block, np.uint8), self._columns, table)
        try:
            strings = [block[a:b].decode() for a, b in table.texts[1:, :distinct].T.tolist()]
        except UnicodeDecodeError:
            strings = []
            table.regular[:] = False  # reading these lines names the one that is not UTF-8
        extras = self._extras(block, table) if self._fields else {}
        values = table.values if self._columns.total else table.values[:-1]
        return Block(table.regular, table.ids, values, strings, table.texts[0], extras)

    def _extras(self, block: bytes, table: _Table) -> dict[str, list[str]]:
        """Return the other fields by name; a line is not regular where one does not fit."""
        import pyarrow as pa
        import pyarrow.compute as pc

        extras, latin = {}, block.decode("latin-1")  # one character per byte
        for (name, pattern), span in zip(self._fields, table.spans, strict=True):
            fields = [latin[start:end] for start, end in span.T.tolist()]
            fit = pc.match_substring_regex(pa.array(fields, pa.string()), f"^(?:{pattern})$")
            table.regular[:] &= values_of(fit.cast(pa.uint8())).astype(bool)
            if name:
                extras[name] = fields
        return extras


@compiled
def _parse(data: UInt8, columns: _Columns, table: _Table) -> int:
    """Fill the rows of the lines that are as the first one; return the number of distinct texts."""
    distinct = at = 0 * len(table.ids)  # not a literal, which has another type
    for row in range(len(table.ids)):
        start, end, stop = _line(data, at, row, columns, table)
        if stop >= 0:
            table.regular[row] = True
            known = _interned(data, start, end, table, distinct)
            table.texts[0, row] = known
            if known == distinct:
                distinct += 1
            at = stop
        while data[at] != _NEWLINE:
            at += 1
        at += 1
    return distinct


@njit
def _line(data: UInt8, at: int, row: int, columns: _Columns, table: _Table) -> tuple[int, int, int]:
    """Fill a row; return the bounds of its text and where the line ends, −1 to give up."""
    bounds = columns.bounds
    last = len(bounds) - 1
    table.ids[row], at = _digits(data, at)
    start, end, at = _field(data, at)
    for field in range(columns.between):
        table.spans[field, 0, row], table.spans[field, 1, row], at = _field(data, at)
    if columns.total < 0:
        table.values[last, row], at = _number(data, _past_separator(data, at))
    at = _past_separator(data, at)
    if at < 0:
        return start, end, _FAILED
    column = found = 0 * row
    while data[at] != _NEWLINE and not (data[at] == _BAR and _separates(data, at - 1)):
        column = _column(data, at, columns, column)
        if column < 0 or table.seen[column] == row:
            return start, end, _FAILED
        table.seen[column] = row
        at = _past_spaces(data, at + bounds[column + 1] - bounds[column])
        value, at = _number(data, at)
        if at < 0 or (data[at] != _SPACE and data[at] != _NEWLINE):
            return start, end, _FAILED
        table.values[column, row] = value
        column += 1
        found += 1
        at = _past_spaces(data, at)
    if found < last and not columns.sparse:
        return start, end, _FAILED
    if data[at] == _BAR:
        at -= 1
    if columns.total > 0:
        table.values[last, row], at = _number(data, _past_separator(data, at))
    for field in range(columns.between, columns.between + columns.after):
        table.spans[field, 0, row], table.spans[field, 1, row], at = _field(data, at)
    if at >= 0:
        at = _past_spaces(data, at)
        if data[at] != _NEWLINE:
            at = _FAILED
    return start, end, at


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
def _column(data: UInt8, at: int, columns: _Columns, expected: int) -> int:
    """Return the feature whose label is at a position, or −1; the expected one is tried first."""
    bounds = columns.bounds
    count = len(bounds) - 1
    column = expected
    for _ in range(count if columns.sparse else 1):
        if column == count:
            if not columns.sparse:
                return _FAILED
            column = 0
        i, end = bounds[column], bounds[column + 1]
        here = at
        while i < end and data[here] == columns.labels[i]:
            i += 1
            here += 1
        if i == end:
            return column
        column += 1
    return _FAILED


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
def _interned(data: UInt8, start: int, end: int, table: _Table, distinct: int) -> int:
    """Return the index of a text among the distinct ones; add it if it is new.

    Args:
        data: the block.
        start: where the text begins.
        end: where it ends.
        table: with the texts so far.
        distinct: their number.
    """
    slots, texts = table.slots, table.texts
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
