"""Numbers, ids and texts in blocks of lines, parsed by compiled code.

Only what is printed as usual, and numbers to the bit as Python reads them: whatever is unusual, or
wrong, is given up, for code that reads line by line to say what it is. No index is checked: the
last byte of a block is a newline, and nothing here reads on beyond one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.nbest import Float64, Int32

UInt8 = npt.NDArray[np.uint8]

# 10^0 … 10^22 are exact as 64-bit floats, and so are integers up to 2^53: one multiplication or
# division of the two is then rounded once, as `float` rounds (Clinger 1990).
_POWERS = 10.0 ** np.arange(23)
_EXACT = 1 << 53
_DIGITS = 18  # fit 64 bits

_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT = 10, 32, 43, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E, _BAR = 48, 57, 69, 101, 124
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


@njit(nogil=True, cache=True)
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


@njit
def digits_at(data: UInt8, at: int) -> tuple[np.int64, int]:
    """Return the whole number at a position, and the position after it, or −1 to give up."""
    start = at
    value = np.int64(0)
    while _ZERO <= data[at] <= _NINE:
        value = 10 * value + data[at] - _ZERO
        at += 1
    return value, at if 0 < at - start <= _DIGITS else _GIVEN_UP


@njit
def number_at(data: UInt8, at: int) -> tuple[float, int]:
    """Return the number printed at a position and the position after it; −1 to give up."""
    if at < 0:
        return 0.0, _GIVEN_UP
    sign = 1.0
    if data[at] == _MINUS:
        sign = -1.0
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
        power, at = digits_at(data, at)
        exponent += -power if negative else power
    if not 0 < digits <= _DIGITS or mantissa > _EXACT or abs(exponent) >= len(_POWERS):
        return 0.0, _GIVEN_UP
    if exponent < 0:
        return sign * (mantissa / _POWERS[-exponent]), at
    return sign * (mantissa * _POWERS[exponent]), at


@njit
def separates(data: UInt8, at: int) -> bool:
    """Say whether ` |||` stands at a position, with a space or the end of the line after it."""
    result: bool = (
        data[at] == _SPACE
        and data[at + 1] == _BAR
        and data[at + 2] == _BAR
        and data[at + 3] == _BAR
        and (data[at + 4] == _SPACE or data[at + 4] == _NEWLINE)
    )
    return result


@njit
def field_at(data: UInt8, at: int) -> tuple[int, int, int]:
    """Return the bounds of a field without spaces around it, and where it ends; −1 to give up.

    Its separator must stand at the position. It ends where the next one begins, or with the line.
    """
    if at < 0 or not separates(data, at):
        return 0, 0, _GIVEN_UP
    start = at + 4  # the space that stands here may begin the next separator
    at = start
    while data[at] != _NEWLINE and (data[at + 1] != _BAR or not separates(data, at)):
        at += 1
    end = at
    while end > start and data[end - 1] == _SPACE:
        end -= 1
    while start < end and data[start] == _SPACE:
        start += 1
    return start, end, at


def empty_slots(rows: int) -> Int32:
    """Return an empty hash table for `interned`, at most half full when every text is new.

    >>> empty_slots(3)
    array([-1, -1, -1, -1, -1, -1, -1, -1], dtype=int32)
    """
    return np.full(2 << rows.bit_length(), -1, np.int32)


@njit
def interned(data: UInt8, start: int, end: int, slots: Int32, texts: Int32, distinct: int) -> int:
    """Return the index of a text among the distinct ones, where a new one is entered.

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
        known: int = slots[slot]
        shift = texts[1, known] - start
        i = start if texts[2, known] - shift == end else end + 1
        while i < end and data[i] == data[i + shift]:
            i += 1
        if i == end:
            return known
        slot = (slot + 1) & mask
    slots[slot] = distinct
    texts[1, distinct] = start
    texts[2, distinct] = end
    return distinct
