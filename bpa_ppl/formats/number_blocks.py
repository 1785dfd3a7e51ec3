"""Printed numbers parsed by compiled code: the usual ones, to the bit as Python reads them.

Whatever is unusual, or is no number, is given up, for `formats.numbers` to say what it is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.nbest import Float64

UInt8 = npt.NDArray[np.uint8]

# 10^0 … 10^22 are exact as 64-bit floats, and so are integers up to 2^53: one multiplication or
# division of the two is then rounded once, as `float` rounds (Clinger 1990).
_POWERS = 10.0 ** np.arange(23)
_EXACT = 1 << 53
_DIGITS = 18  # fit 64 bits

_NEWLINE, _SPACE, _PLUS, _MINUS, _DOT = 10, 32, 43, 45, 46
_ZERO, _NINE, _UPPER_E, _LOWER_E = 48, 57, 69, 101
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
