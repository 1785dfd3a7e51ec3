"""The cache folder: sentence scores and JAX's compiled programs, kept between runs.

`BPA_PPL_CACHE` names the folder, and `BPA_PPL_CACHE_LIMIT` the limit of the scores in MiB: the
least recently used are deleted first, and 0 keeps none. The folder can be deleted at any time.
JAX runs the programs that it finds there, so nobody else may be able to write into it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user

_LIMIT = 1024  # MiB
_MIN_COMPILE_SECONDS = 0.1  # by default JAX caches only programs that took a second to compile
_jax_process: int | None = None  # in which JAX was used first
_STALE = 3600  # seconds, after which a partial file must be from a killed process


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


def own_folder() -> Path | None:
    """Return the cache folder, created if it is missing, or None, with a warning.

    Only the user can access a new one. It is not used if it belongs to another user, if others can
    write into it, or if it cannot be created.
    """
    folder = cache_folder()
    if folder is None:
        _warn_once("", "this user has no home folder")
        return None
    problem = _problem_of(folder)
    if problem:
        _warn_once(f" in {folder}", problem)
    return None if problem else folder


@cache
def _warn_once(place: str, problem: str) -> None:
    advice = "name another folder of yours in BPA_PPL_CACHE"
    warn_user(f"nothing is cached{place}, because {problem}: {advice}")


def _problem_of(folder: Path) -> str:
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
    if not jax_is_usable():
        raise UsageError(
            "JAX was used before this process was forked, and cannot run here: start processes "
            'with multiprocessing.get_context("spawn"), or fork before the first adaptation',
            code="forked",
        )
    _jax_process = os.getpid()
    if jax.config.values["jax_compilation_cache_dir"] is None and (folder := own_folder()):
        jax.config.update("jax_compilation_cache_dir", str(folder / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS)


def jax_is_usable() -> bool:
    """Return whether JAX can run: not in a process forked from one in which it was used."""
    return _jax_process in (None, os.getpid())


def key_of(content: object) -> str:
    """Return the hash of content made of lists, tuples, texts and numbers.

    >>> key_of([["a", "b"]]) == key_of([["a"], ["b"]])
    False
    """
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def content_hash(nbest: NBest) -> str:
    """Return a hash of the ids and texts of lists.

    >>> content_hash(NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"]))
    '5730911cdc265d21'
    """
    content = hashlib.sha256(json.dumps([list(map(str, nbest.ids)), nbest.sizes.tolist()]).encode())
    content.update(json.dumps(nbest.strings).encode())
    content.update(np.ascontiguousarray(nbest.string_index, np.int64).tobytes())
    return content.hexdigest()[:16]


def key_of_code(modules: Iterable[str]) -> str | None:
    """Return the hash of the source of some modules; None if one has no source file.

    Results that are cached under it become invalid when the code that computes them changes.

    >>> key_of_code(["bpa_ppl.caching"]) == key_of_code(["bpa_ppl.caching", "bpa_ppl.errors"])
    False
    >>> key_of_code(["builtins"]) is None
    True
    """
    sources = [_source(name) for name in sorted(set(modules))]
    return None if None in sources else key_of(sources)


@cache
def _source(module: str) -> str | None:
    """Return the hash of a module's source, read once: later edits do not affect this process."""
    loaded = sys.modules.get(module)
    path = getattr(loaded, "__file__", None)
    if loaded is None:
        spec = find_spec(module)
        path = None if spec is None else spec.origin
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    except OSError:
        return None


def read_array(key: str, size: int) -> Float64 | None:
    """Return the numbers cached under a key; None if missing or damaged.

    Args:
        key: from `key_of`.
        size: how many numbers are expected; other sizes and NaN count as damage.

    >>> read_array("no such key", 1) is None
    True
    """
    folder = cache_folder()
    folder = own_folder() if folder and folder.exists() else None
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        with path.open("rb") as file, np.load(file) as archive:  # tests the checksum
            values = archive["values"]
        os.utime(path)  # the least recently used files are deleted first
    except Exception:  # whatever a damaged file leads to, the scores are computed again
        return None
    valid = values.shape == (size,) and values.dtype == np.float64 and not np.isnan(values).any()
    return values if valid else None


def write_array(key: str, values: Float64) -> None:
    """Cache numbers under a key, within the limit, atomically.

    Warns if the folder cannot be written.

    Raises:
        UsageError: if the limit is not a number of MiB.
    """
    text = os.environ.get("BPA_PPL_CACHE_LIMIT", str(_LIMIT))
    if not text.isdecimal():
        problem = f"BPA_PPL_CACHE_LIMIT must be an integer ≥ 0 (MiB), got {text!r}"
        raise UsageError(problem, parameter="BPA_PPL_CACHE_LIMIT")
    limit = int(text) << 20
    folder = own_folder() if limit else None
    if folder is None:
        return
    path = _path(folder, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(".part", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                np.savez_compressed(file, values=values)  # with a CRC-32 of the numbers
            if os.path.getsize(part) <= limit:
                os.replace(part, path)
                _evict(path.parent, limit)
        finally:
            Path(part).unlink(missing_ok=True)
    except OSError as error:
        warn_user(f"sentence scores are not cached ({error}): name a writable BPA_PPL_CACHE folder")


def _path(folder: Path, key: str) -> Path:
    return folder / "arrays" / f"{key}.npz"


def _evict(folder: Path, limit: int) -> None:
    """Delete the least recently used files until the others are within the limit, in bytes."""
    files = []
    for path in folder.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:  # another process was faster
            continue
        if path.suffix == ".part" and time.time() - status.st_mtime > _STALE:
            path.unlink(missing_ok=True)
            continue
        files.append((status.st_mtime_ns, status.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > limit:
            path.unlink(missing_ok=True)
