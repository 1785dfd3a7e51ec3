"""Compilation of number-crunching functions by Numba.

Only modules of compiled code import this one, and they are imported where they are needed:
loading Numba takes a while.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from bpa_ppl.lazily import uncollected
from bpa_ppl.notes import tell

with uncollected("numba"):
    import numba
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.registry import CPUDispatcher, cpu_target

    # As much again is imported where the first function is compiled, or found on disk.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()

F = TypeVar("F", bound=Callable[..., Any])
_NO_WRAPPERS: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Inner(CPUDispatcher):
    """A function without what Python needs to call it; Numba by itself would crash."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} can be called by compiled functions alone")


def inner(function: F, *, once: bool = False) -> F:
    """Compile a function that compiled ones call, and they alone.

    Args:
        function: to be compiled.
        once: whether it is called in one place; its code is put there, which is less to compile.
    """
    dispatcher: Any = numba.njit(function, inline="always" if once else "never", **_NO_WRAPPERS)
    dispatcher.__class__ = _Inner
    return cast("F", dispatcher)


def compiled(function: F) -> F:
    """Compile, and keep the machine code on disk where there is a folder to write to.

    What is kept has a checksum: damaged code is not run, but compiled again.

    >>> compiled(lambda x: x + 1)(1)
    2
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    # Nothing is kept where neither __pycache__ nor the user's cache folder can be written.
    with suppress(RuntimeError):
        dispatcher._cache = _SealedCache(function)  # in place of what cache=True puts there
    return cast("F", dispatcher)


class _SealedFile(IndexDataCacheFile):
    """Numba's files of one function, each with its SHA-256 at the end; pickle does not look there.

    Numba by itself runs what it finds: a flipped bit ends in a traceback of pickle's, or worse.
    """

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}  # type: ignore[no-untyped-call]

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):  # type: ignore[no-untyped-call]
            raise OSError  # by which Numba knows that there is nothing
        return super()._load_data(name)  # type: ignore[no-untyped-call]


class _SealedCache(FunctionCache):
    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _SealedFile(self._cache_path, self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code; a disk that is full stops no work."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            tell(
                f"compiled code is not kept ({error.strerror or error}): make room for it, or name "
                "another folder in NUMBA_CACHE_DIR, else each run compiles it again"
            )


def _is_whole(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return False
    return content[-32:] == hashlib.sha256(content[:-32]).digest()
