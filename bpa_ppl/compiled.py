"""Compilation of number-crunching functions by Numba.

Only modules of compiled code import this one, and they are imported where they are needed:
loading Numba takes a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

#: For functions that are called by compiled ones only.
inner = numba.njit(nogil=True)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, and keep the machine code on disk where there is a folder to write to.

    >>> compiled(lambda x: x + 1)(1)
    2
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither __pycache__ nor the user's cache folder can be written
        return numba.njit(nogil=True)(function)
