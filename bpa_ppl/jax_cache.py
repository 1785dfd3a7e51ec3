"""JAX's persistent compilation cache: what one run compiles, the next one loads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from bpa_ppl.caching import cache_folder

_SHORTEST = 0.1  # seconds; JAX by itself keeps only what took a second


def keep_compiled() -> None:
    """Keep compiled programs in our cache folder, unless the user has chosen another one.

    Each has a checksum there: one that was damaged is dropped and compiled again.
    """
    if jax.config.values["jax_compilation_cache_dir"] is None:
        folder = str(cache_folder() / "jax")
        _seal(folder)
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST)


class Sealed:
    """A cache of JAX's whose entries end with their SHA-256, which JAX itself does without.

    Args:
        base: a cache with `get` and `put`.
        folder: where its files lie.
    """

    def __init__(self, base: Any, folder: str):
        self._base, self._path = base, folder

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key; None if it is damaged, which makes room for it."""
        found = self._base.get(key)
        if found is None:
            return None
        if found[-32:] == hashlib.sha256(found[:-32]).digest():
            return bytes(found[:-32])
        for path in Path(self._path).glob(f"{key}-*"):
            path.unlink(missing_ok=True)
        return None

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key."""
        self._base.put(key, value + hashlib.sha256(value).digest())


def _seal(folder: str) -> None:
    """Have JAX seal the entries of a folder, where its version makes caches in the known way."""
    from jax._src import compilation_cache

    make: Callable[[str], Any] | None = getattr(compilation_cache, "get_file_cache", None)
    if make is None or hasattr(make, "sealed"):
        return

    def sealed(path: str) -> Any:
        made = make(path)
        if made is None or path != folder:
            return made
        return Sealed(made[0], folder), *made[1:]

    sealed.sealed = True  # type: ignore[attr-defined]
    compilation_cache.get_file_cache = sealed
