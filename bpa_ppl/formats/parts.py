"""Temporary files that are renamed when they are complete.

Such a part is locked as long as its process lives. The next process that writes into the folder
removes parts without a lock: their processes were killed.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bpa_ppl.errors import DataError

try:
    import fcntl
except ImportError:  # on Windows nothing is locked, and no part of another process is removed
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\.bpa-[0-9a-f]{8}\.part\..*", re.DOTALL)
_LONGEST = 200  # bytes of the name of the target that are kept; file systems take 255


def make_folder(folder: Path) -> None:
    """Create a folder for results, and its parents, if it does not exist.

    Raises:
        DataError: if it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot create this folder ({error.strerror})"
        raise DataError(problem, folder, code="cannot-write") from error


@contextmanager
def part_of(target: Path) -> Iterator[Path]:
    """Provide a new, empty file in the folder of a target; at the end remove it if it exists.

    Raises:
        OSError: if it cannot be created.
    """
    remove_leftovers(target.parent)
    part, descriptor = _created(target)
    try:
        yield part
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            part.unlink()
        os.close(descriptor)


def is_part(path: str | Path) -> bool:
    """Return whether a path is that of a part.

    >>> is_part("/tmp/.bpa-0123abcd.part.posterior.nc"), is_part("/tmp/posterior.nc")
    (True, False)
    """
    return _NAME.fullmatch(os.path.basename(path)) is not None


def _created(target: Path) -> tuple[Path, int]:
    ending = os.fsencode(target.name)[-_LONGEST:].decode(errors="ignore")
    while True:
        part = target.with_name(f".bpa-{secrets.token_hex(4)}.part.{ending}")
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if fcntl is None:
            return part, descriptor
        with suppress(OSError):  # some network drives have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # another process removed it as a leftover before it was locked


def remove_leftovers(folder: Path) -> None:
    """Remove the parts that killed processes have left in a folder."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in filter(is_part, os.listdir(folder)):
            with suppress(OSError):  # it is locked, or has just been removed
                _remove_if_free(folder / name)


def _remove_if_free(part: Path) -> None:
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(part)):
            part.unlink()
    finally:
        os.close(descriptor)
