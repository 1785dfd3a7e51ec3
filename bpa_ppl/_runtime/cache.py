"""Compiled code on disk: the cache folder of JAX's programs, and functions that Numba compiles.

`BPA_PPL_CACHE` names the folder of JAX, which can be deleted at any time. JAX runs what it finds
there as a program, so nobody else may be able to write into it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_MIN_COMPILE_SECONDS = 0.1  # by default JAX caches only programs that took a second to compile
_OTHER_FOLDER = "name another folder of yours in BPA_PPL_CACHE"
_jax_process: int | None = None  # in which JAX was used first


def cache_folder() -> Path | None:
    """Return the folder `BPA_PPL_CACHE`, or else the user's cache folder.

    That is `bpa_ppl` in `XDG_CACHE_HOME`, on Windows in `LOCALAPPDATA`, or in `~/.cache`. It is
    None if the user has no home folder.
    """
    path = os.environ.get("BPA_PPL_CACHE")
    if path:
        return Path(path).absolute()
    parent = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(parent).expanduser().absolute() / "bpa_ppl"
    except RuntimeError:
        return None


def create_cache_folder() -> Path | None:
    """Return the cache folder, created if it is missing, or None, with a warning.

    Only the user can access a new one. It is not used if it belongs to another user, if others can
    write into it, or if it cannot be created.
    """
    folder = cache_folder()
    if folder is None:
        _warn_once(f"nothing is cached, because this user has no home folder: {_OTHER_FOLDER}")
        return None
    problem = _find_problem(folder)
    if problem:
        _warn_once(f"nothing is cached in {folder}, because {problem}: {_OTHER_FOLDER}")
    return None if problem else folder


@cache
def _warn_once(message: str) -> None:
    warn_user(message)


def _find_problem(folder: Path) -> str:
    """Return why a cache folder is not used; it is created if it is missing."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return str(error.strerror or error)
    if not hasattr(os, "geteuid"):  # Windows, where a user's folders are theirs alone
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others can write into it (chmod go-w)" if status.st_mode & 0o022 else ""


def prepare_jax() -> None:
    """Keep JAX's compiled programs in the cache folder, unless JAX has been given another one.

    These are settings of the whole process. They stay, because JAX opens its cache only once.

    Raises:
        UsageError: if this process was forked from one that had used JAX: its threads are missing
            here, so that programs would wait for them forever.
    """
    import jax

    global _jax_process
    if not _jax_is_usable():
        raise UsageError(
            "JAX was used before this process was forked, and cannot run here: start processes "
            'with multiprocessing.get_context("spawn"), or fork before the first adaptation',
            code="forked",
        )
    _jax_process = os.getpid()
    if jax.config.values["jax_compilation_cache_dir"] is None and (folder := create_cache_folder()):
        jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS)


def _jax_is_usable() -> bool:
    """Return whether JAX can run: not in a process forked from one in which it was used."""
    return _jax_process in (None, os.getpid())


def jax_was_used() -> bool:
    """Return whether this process has used JAX, whose threads may run at its end."""
    return _jax_process == os.getpid()


def compiled(function: F) -> F:
    """Return a function that Numba compiles at its first call, without the interpreter's lock.

    Numba keeps the code in `NUMBA_CACHE_DIR`, in `__pycache__` next to the module, or in the user's
    cache folder.

    >>> from bpa_ppl.gains.tercom import lower_bounds
    >>> lower_bounds.py_func.__name__  # the function as it is written
    'lower_bounds'
    """
    from numba import njit

    numba: Any = partial(njit, nogil=True)
    try:
        result: F = numba(cache=True)(function)
    except RuntimeError:  # none of these can be written
        _warn_once(
            "code is compiled again in each process, because no cache folder can be written: name "
            "a folder of yours in NUMBA_CACHE_DIR"
        )
        result = numba()(function)
    return result
