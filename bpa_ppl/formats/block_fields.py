"""Numbers, ids and texts in blocks of lines, parsed by compiled code.

Only what is printed as usual, and numbers to the bit as Python reads them: whatever is unusual, or
wrong, is given up, for code that reads line by line to say what it is. No index is checked: the
last byte of a block is a newline, and nothing here reads on beyond one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.nbest import Float64, Int32

UInt8 = npt.NDArray[np.uint8]

# 10^0 … 10^22 are exact as 64-bit floats, and so are integers up to 2^53: one multiplication or
# division of the two is then rounded once, as `float` rounds (Clinger 1990).
_POWERS = 10.0 ** np.arange(23)
_EXACT = 1 << 53
_DIGITS = 18  # fit 64 bits

_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT = 10, 32, 43, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E, _BAR = 48, 57, 69, 101, 124
SEPARATOR = b" ||| "
_GIVEN_UP = -1


def numbers(text: bytes, count: int) -> Float64 | None:
    """Return numbers that have single spaces between them; None where they must be read one by one.

    Args:
        text: the numbers.
        count: how many of them there are.

    >>> numbers(b"-1.5 2 1e-05", 3), numbers(b"nan", 1), numbers(b"1  2", 2)
    (array([-1.5e+00,  2.0e+00,  1.0e-05]), None, None)
    """
    values = np.empty(count, np.float64)
    data = np.frombuffer(text + b"\n", dtype=np.uint8)
    return values if not count or _parse(data, values) else None


def decoded_texts(block: bytes, bounds: Int32) -> list[str] | None:
    """Return the texts of a block between (2, texts) bounds; None if one is not UTF-8."""
    try:
        return [block[start:end].decode() for start, end in bounds.T.tolist()]
    except UnicodeDecodeError:
        return None


@compiled
def _parse(data: UInt8, values: Float64) -> bool:
    """Fill in the values; the last byte is a newline, and nothing here reads on beyond it."""
    at = 0
    for i in range(len(values)):
        value, at = number_at(data, at)
        if at < 0 or data[at] != (_SPACE if i + 1 < len(values) else _NEWLINE):
            return False
        values[i] = value
        at += 1
    return at == len(data)


@inner
def number_at(data: UInt8, at: int) -> tuple[float, int]:
    """Return the number printed at a position and the position after it; −1 to give up."""
    if at < 0:
        return 0.0, _GIVEN_UP
    sign = 1.0
    if data[at] == _MINUS:
        sign = -1.0
        at += 1
    start = at
    mantissa = np.int64(0)
    while _ZERO <= data[at] <= _NINE:
        mantissa = 10 * mantissa + np.int64(data[at]) - _ZERO
        at += 1
    digits = at - start
    decimals = 0
    if data[at] == _DOT:
        at += 1
        start = at
        while _ZERO <= data[at] <= _NINE:
            mantissa = 10 * mantissa + np.int64(data[at]) - _ZERO
            at += 1
        decimals = at - start
    digits += decimals
    if digits > _DIGITS:
        return 0.0, _GIVEN_UP
    exponent = np.int64(0)
    if data[at] > _NINE:
        exponent, at = _exponent_at(data, at)
    exponent -= decimals
    if at < 0 or not digits or mantissa > _EXACT or abs(exponent) >= len(_POWERS):
        return 0.0, _GIVEN_UP
    if exponent < 0:
        return sign * (mantissa / _POWERS[-exponent]), at
    return sign * (mantissa * _POWERS[exponent]), at


@inner
def _exponent_at(data: UInt8, at: int) -> tuple[np.int64, int]:
    """Return the exponent that must stand at a position, and the position after it."""
    if data[at] != _LOWER_E and data[at] != _UPPER_E:
        return np.int64(0), _GIVEN_UP
    at += 1
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    value = np.int64(0)
    start = at
    while _ZERO <= data[at] <= _NINE and at - start < 3:
        value = 10 * value + np.int64(data[at]) - _ZERO
        at += 1
    return -value if negative else value, at if at > start else _GIVEN_UP


@inner
def empty_slots(rows: int) -> Int32:
    """Return an empty hash table, at most half full when every text is new."""
    size = 2
    while size < 2 * rows:
        size *= 2
    slots = np.empty(size, np.int32)
    for i in range(size):
        slots[i] = -1
    return slots


@inner
def past(data: UInt8, at: int, expected: UInt8, start: int, stop: int) -> int:
    """Return the position after the expected bytes, or −1 where others stand."""
    i = start
    while at >= 0 and i < stop:
        at = at + 1 if data[at] == expected[i] else _GIVEN_UP
        i += 1
    return at


@inner
def identifier_at(data: UInt8, at: int) -> tuple[np.int64, int]:
    """Return the digits of a sentence id as a number, and the position after them, or −1."""
    value = np.int64(0)
    start = at
    while _ZERO <= data[at] <= _NINE:
        value = 10 * value + np.int64(data[at]) - _ZERO
        at += 1
        if at - start > _DIGITS:
            return value, _GIVEN_UP
    return value, at if at > start else _GIVEN_UP


@inner
def text_at(data: UInt8, at: int) -> tuple[int, int, int]:
    """Return the bounds of a text without spaces around it, and where its separator begins."""
    if at < 0:
        return 0, 0, _GIVEN_UP
    start = at
    while not _at_separator(data, at):
        if data[at] == _NEWLINE:
            return 0, 0, _GIVEN_UP
        at += 1
    at -= 1
    end = at
    while end > start and data[end - 1] == _SPACE:
        end -= 1
    while start < end and data[start] == _SPACE:
        start += 1
    return start, end, at


@inner
def _at_separator(data: UInt8, at: int) -> bool:
    return (
        data[at] == _BAR
        and data[at + 1] == _BAR
        and data[at + 2] == _BAR
        and data[at + 3] == _SPACE
        and data[at - 1] == _SPACE
    )


@inner
def interned(
    data: UInt8, start: int, end: int, slots: Int32, starts: Int32, ends: Int32, distinct: int
) -> int:
    """Return the index of a text among the distinct ones, where a new one is entered."""
    mask = len(slots) - 1
    slot = _hash(data, start, end) & mask
    while slots[slot] >= 0:
        known = slots[slot]
        if _equal(data, start, end, starts[known], ends[known]):
            return known
        slot = (slot + 1) & mask
    slots[slot] = distinct
    starts[distinct] = start
    ends[distinct] = end
    return distinct


@inner
def _hash(data: UInt8, start: int, end: int) -> np.int64:
    """Return the FNV-1a hash (Fowler, Noll & Vo) of some bytes, folded to be non-negative."""
    value = np.uint64(14695981039346656037)
    for i in range(start, end):
        value = (value ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return np.int64((value ^ (value >> np.uint64(32))) & np.uint64(0x7FFFFFFF))


@inner
def _equal(data: UInt8, start: int, end: int, other: int, other_end: int) -> bool:
    if end - start != other_end - other:
        return False
    while start < end and data[start] == data[other]:
        start += 1
        other += 1
    return start == end
