"""Numbers as text files print them: what is one, and what is not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import quoted
from bpa_ppl.rows.base import TOO_LARGE


def finite(token: str | bytes) -> float:
    """Return the number that a token prints.

    Raises:
        ValueError: if it is no number, not finite or too large for a 32-bit float; the text says
            which, to be built into a message that names the file and line.

    >>> finite("-3.98253"), finite(b"1e-05")
    (-3.98253, 1e-05)
    >>> finite("1_000")
    Traceback (most recent call last):
    ValueError: '1_000' is not a number
    """
    printed = token.encode() if isinstance(token, str) else token
    try:
        value = float(printed)
    except ValueError:
        value = None
    if value is not None and abs(value) < TOO_LARGE and b"_" not in printed:
        return value
    wrong = "a number" if value is None or b"_" in printed else "a finite 32-bit number"
    raise ValueError(f"{quoted(printed)} is not {wrong}")


def several(text: bytes, count: int, compiled: bool) -> npt.NDArray[np.float64] | None:
    """Return numbers that are printed with single spaces between them.

    None where that is not so, or where `finite` refuses one of them.

    Args:
        text: the numbers.
        count: how many of them there are.
        compiled: whether to load compiled code for them, which takes a while.

    >>> several(b"-1.5 2", 2, compiled=False), several(b"1_0", 1, compiled=False)
    (array([-1.5,  2. ]), None)
    """
    if compiled:
        from bpa_ppl.formats.block_fields import numbers

        values = numbers(text, count)
        if values is not None and np.all(np.abs(values) < TOO_LARGE):
            return values
    tokens = text.split(b" ") if count else []
    try:
        values = np.array(list(map(float, tokens)), dtype=np.float64)
    except ValueError:
        return None
    sound = len(tokens) == count and b"_" not in text and np.all(np.abs(values) < TOO_LARGE)
    return values if sound else None


def shortest(value: float | np.float32) -> str:
    """Return the shortest decimal that reads back as the same number of the same width.

    >>> shortest(np.float32(0.1)), shortest(0.1), shortest(-6.0)
    ('0.1', '0.1', '-6')
    """
    return str(value).removesuffix(".0")


def printed(values: npt.ArrayLike, missing: str = "nan") -> list[str]:
    """Return the shortest decimals that read back as the same 32-bit floats, in JSON too.

    Args:
        values: (n,) numbers, rounded to 32 bits.
        missing: what stands for NaN.

    >>> printed(np.array([0.1, -6, 0.0, -0.0, np.nan]), missing="null")
    ['0.1', '-6', '0.0', '-0.0', 'null']
    """
    # As integers, so that −0 keeps its sign.
    single = np.ascontiguousarray(values, np.float32)
    distinct, index = np.unique(single.view(np.int32), return_inverse=True)
    # JSON takes `-0` for a whole number, which has no sign.
    texts = [
        missing if np.isnan(value) else shortest(value) if value else str(value)
        for value in distinct.view(np.float32)
    ]
    return [texts[i] for i in index.tolist()]
