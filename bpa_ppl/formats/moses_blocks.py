"""Blocks of lines of fields separated by ` ||| `, parsed by compiled code.

It reads lines with the labels of the first line, and features in which spaces and glued values do
not matter. `moses_lines` reads all other lines, and says what is wrong with them. Both give the
same rows.

No index is checked: the last byte of a block is a newline, and nothing here reads beyond one.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.columns import take
from bpa_ppl.compiling import compiled
from bpa_ppl.formats.moses_lines import (
    ALIGNMENT,
    SEGMENTATION,
    WORD_SCORES,
    LineParser,
    split_lines,
)
from bpa_ppl.formats.streams import line_count
from bpa_ppl.nbest import Float32, Int32, Int64
from bpa_ppl.rows import Rows
from bpa_ppl.rows.gathering import joined

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
_WORD_SCORES = np.frombuffer(WORD_SCORES, np.uint8)

# An automaton for fields other than text, features and total: the state that follows each state at
# some bytes, of which the last that names a byte holds. At any other byte the field fails, which is
# state 0. The last byte of a field is a space or a newline.
_ANY, _DIGIT, _DECIMAL, _END = bytes(range(256)), b"0123456789", b"0123456789.eE+-", b" \n"
_FOLLOWING: list[dict[bytes, int]] = [
    {},
    # A segmentation: `1=3` or `1-2=3-4`.
    {_DIGIT: 2, _END: 1},
    {_DIGIT: 2, b"-": 3, b"=": 5},
    {_DIGIT: 4},
    {_DIGIT: 4, b"=": 5},
    {_DIGIT: 6},
    {_DIGIT: 6, b"-": 7, _END: 1},
    {_DIGIT: 8},
    {_DIGIT: 8, _END: 1},
    # An alignment: `1-2`.
    {_DIGIT: 10, _END: 9},
    {_DIGIT: 10, b"-": 11},
    {_DIGIT: 12},
    {_DIGIT: 12, _END: 9},
    # A soft alignment: `0.9,0.1`; also a hard one.
    {_DECIMAL: 14, _END: 13},
    {_DECIMAL: 14, b",": 15, _END: 13},
    {_DECIMAL: 14},
    # A field after the scores that does not look like features: no `=` after a label.
    {_ANY: 17, b"0123456789=|\t\r\v\f": 18, _END: 16},
    {_ANY: 17, b" \n\t\r\v\f": 18, b"=": 0},
    {_ANY: 18},
    # `WordScores=` and anything.
    {b"W": 20, _END: 19},
    *({_WORD_SCORES[i : i + 1].tobytes(): 20 + i} for i in range(1, len(_WORD_SCORES) - 1)),
    {b"=": 18},
]
_SOFT, _LEFT_OUT_AFTER, _LEFT_OUT_BETWEEN = 13, 16, 19
_STARTS = {SEGMENTATION: 1, ALIGNMENT: 9, "": _LEFT_OUT_AFTER}


# The automaton as a table, (states, bytes) uint8.
_STEPS = np.zeros((len(_FOLLOWING), 256), np.uint8)
for _state, _following in enumerate(_FOLLOWING):
    for _marks, _next in _following.items():
        _STEPS[_state, list(_marks)] = _next


class _Columns(NamedTuple):
    """The columns of a file, for compiled code.

    Attributes:
        labels: the bytes before the values of all features.
        bounds: where those of each feature begin.
        states: the state of the automaton in which each field of the line begins other than text,
            features and total.
        between: the number of these fields that precede the features.
        total: −1 if the total is before the features, 1 after them, 0 for none.
        word_scores: whether WordScores are among the features.
        sparse: whether a line may lack features, or have them in another order.
        steps: (states, bytes) the automaton.
    """

    labels: UInt8
    bounds: Int64
    states: UInt8
    between: int
    total: int
    word_scores: bool
    sparse: bool
    steps: UInt8


class _Table(NamedTuple):
    """What compiled code fills.

    Attributes:
        regular: (rows,) whether a line has been read.
        ids: (rows,).
        values: (rows, features + 1), the last one is the total.
        spans: (fields, 2, rows) the bounds of the fields of `_Columns.states`.
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
    """Parses blocks of lines that have the columns of the first line.

    Args:
        lines: knows the columns, and reads the lines that compiled code does not.
    """

    def __init__(self, lines: LineParser):
        self._lines = lines
        layout = lines.layout
        labels = [
            text
            for label, count in layout.shape
            for text in (f"{label}=".encode(), *[b""] * (count - 1))
        ]
        states = [_STARTS[name] for name in (*layout.between, *layout.after)]
        for place, name in enumerate(layout.between):
            if not name:
                states[place] = _LEFT_OUT_BETWEEN
            elif lines.soft and name == ALIGNMENT:
                states[place] = _SOFT
        self._columns = _Columns(
            np.frombuffer(b"".join(labels), np.uint8),
            np.array(list(accumulate(map(len, labels), initial=0))),
            np.array(states, np.uint8),
            len(layout.between),
            _TOTALS[layout.total],
            layout.word_scores,
            layout.sparse,
            _STEPS,
        )

    def rows(self, block: bytes, first: int) -> Rows:
        """Return the rows of a block of whole lines.

        Args:
            block: lines, each ended by a newline.
            first: the number of its first line in the file.

        Raises:
            DataError: as `LineParser.rows`.
        """
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        layout = self._lines.layout
        count, width = line_count(block), len(self._columns.bounds) - 1
        table = _Table(
            np.zeros(count, bool),
            np.empty(count, np.int64),
            np.zeros((count, width + 1), np.float32),
            np.zeros((len(self._columns.states), 2, count), np.int32),
            np.empty((3, count), np.int32),
            np.full(2 << count.bit_length(), -1, np.int32),  # at most half full
            np.full(width, -1),
        )
        distinct = _parse(np.frombuffer(block, np.uint8), self._columns, table)
        bounds = table.texts[1:, :distinct].T.tolist()
        try:
            strings = [block[start:end].decode() for start, end in bounds]
        except UnicodeDecodeError:
            return self._lines.block_rows(block, first)  # which names the line
        latin = block.decode("latin-1") if layout.kept else ""  # one character per byte
        names = (*layout.between, *layout.after)
        rows = Rows(
            layout.names,
            table.ids,
            np.arange(first, first + count),
            table.values[:, :-1],
            None if layout.total == "none" else table.values[:, -1],
            strings,
            table.texts[0],
            extras={
                name: [latin[start:end] for start, end in span.T.tolist()]
                for name, span in zip(names, table.spans, strict=True)
                if name
            },
        )
        return rows if table.regular.all() else self._completed(rows, table.regular, block)

    def _completed(self, rows: Rows, regular: npt.NDArray[np.bool_], block: bytes) -> Rows:
        """Return rows with those of the lines that compiled code has not read."""
        lines = split_lines(block)
        places = np.flatnonzero(~regular)
        others = self._lines.rows([lines[place] for place in places], rows.lines[places])
        both = joined([_selected(rows, np.flatnonzero(regular)), others])
        both = _selected(both, np.argsort(both.lines))
        strings = [both.strings[i] for i in both.string_index.tolist()]
        index = np.arange(len(strings), dtype=np.int32)
        extras = {name: list(values) for name, values in both.extras.items()}
        return both._replace(strings=strings, string_index=index, extras=extras)


def _selected(rows: Rows, which: Int64) -> Rows:
    names = ("ids", "lines", "features", "totals", "string_index", "extras")
    return rows._replace(**{name: take(getattr(rows, name), which) for name in names})


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
        at = _other(data, at, row, field, columns, table)
    if columns.total < 0:
        table.values[row, last], at = _number(data, _past_separator(data, at))
    at = _past_separator(data, at)
    if at < 0:
        return start, end, _FAILED
    column = found = 0 * row
    while data[at] != _NEWLINE and not (data[at] == _BAR and _separates(data, at - 1)):
        column = _column(data, at, columns, column)
        if column < 0 and columns.word_scores:
            at = _past_word_scores(data, at)
            if at < 0:
                return start, end, _FAILED
            column = found
            continue
        if column < 0 or table.seen[column] == row:
            return start, end, _FAILED
        table.seen[column] = row
        at = _past_spaces(data, at + bounds[column + 1] - bounds[column])
        value, at = _number(data, at)
        if at < 0 or (data[at] != _SPACE and data[at] != _NEWLINE):
            return start, end, _FAILED
        table.values[row, column] = value
        column += 1
        found += 1
        at = _past_spaces(data, at)
    if found < last and not columns.sparse:
        return start, end, _FAILED
    if data[at] == _BAR:
        at -= 1
    if columns.total > 0:
        table.values[row, last], at = _number(data, _past_separator(data, at))
    for field in range(columns.between, len(columns.states)):
        at = _other(data, at, row, field, columns, table)
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
def _past_word_scores(data: UInt8, at: int) -> int:
    """Return the position of what follows WordScores and their values, or −1 to give up."""
    for byte in _WORD_SCORES:
        if data[at] != byte:
            return _FAILED
        at += 1
    begin = token = at
    while data[at] != _NEWLINE:
        if data[at] == _SPACE:
            if _separates(data, at):
                return at + 1
            token = at + 1
        if data[at] == _EQUALS:
            return token if token > begin else _FAILED
        at += 1
    return at


@njit
def _other(data: UInt8, at: int, row: int, field: int, columns: _Columns, table: _Table) -> int:
    """Fill the bounds of a field that the automaton knows; return where it ends, −1 to give up."""
    start, end, at = _field(data, at)
    if at >= 0:
        state = columns.states[field]
        for i in range(start, end + 1):  # with the space or newline after the last token
            state = columns.steps[state, data[i]]
        if state == 0:
            return _FAILED
        table.spans[field, 0, row] = start
        table.spans[field, 1, row] = end
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
