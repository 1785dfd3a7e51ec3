"""The exceptions and warnings of bpa_ppl, and the exit code of each."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any


class BpaError(Exception):
    """Base of every error that bpa_ppl raises on purpose; the text is fit for a user."""

    exit_code = 2


class DataError(BpaError, ValueError):
    """The content of a file, or of an object built from one, cannot be used.

    Args:
        message: one sentence that says what is wrong and what to do about it.
        path: the file, where there is one.
        line: its 1-based line, where one is to blame.
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None):
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line


class UsageError(BpaError, ValueError):
    """An argument or an option has a value that makes no sense here."""


class NoSuchSentence(UsageError, IndexError):
    """There is no list at the position asked for; an `IndexError`, as of any sequence."""


class NotConverged(BpaError):
    """A posterior failed its diagnostics and was about to be used all the same."""

    exit_code = 3


class BpaWarning(UserWarning):
    """Something a user should know that does not stop the work."""


def one_of(value: str, allowed: dict | tuple | list, what: str) -> str:
    """Return `value` when it is allowed, else raise a UsageError that lists what is.

    >>> one_of("ter", ("ter", "bleu"), "metric")
    'ter'
    """
    if value not in allowed:
        raise UsageError(f"unknown {what} {value!r}: choose one of {', '.join(allowed)}")
    return value


def require(value: Any, kind: type | tuple[type, ...], what: str) -> None:
    """Raise a UsageError unless a value is of some type.

    Args:
        value: what was given.
        kind: the type that it should have, or several.
        what: what is wanted, in words, and how to get one.

    >>> require("dev.nbest", int, "a seed is a whole number")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is a whole number, not 'dev.nbest'
    """
    if not isinstance(value, kind):
        raise UsageError(f"{what}, not {reprlib.repr(value)}")
