"""Numba, with compiled code on disk where it can be written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

from numba import njit

from bpa_ppl.notes import warn_user

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Return a function that Numba compiles at its first call, without the interpreter's lock.

    Numba keeps the code in `NUMBA_CACHE_DIR`, in `__pycache__` next to the module, or in the user's
    cache folder.

    >>> from bpa_ppl.quality.tercom import lower_bounds
    >>> lower_bounds.py_func.__name__  # the function as it is written
    'lower_bounds'
    """
    numba: Any = partial(njit, nogil=True)
    try:
        result: F = numba(cache=True)(function)
    except RuntimeError:  # none of these can be written
        _warn_once()
        result = numba()(function)
    return result


@cache
def _warn_once() -> None:
    problem = "code is compiled again in each process, because no cache folder can be written"
    warn_user(f"{problem}: name a folder of yours in NUMBA_CACHE_DIR")
