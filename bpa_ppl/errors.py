"""The exceptions and warnings of bpa_ppl, and the exit code of each."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

SEEDS = 2**32  # of so many, the first is 0
QUOTED = 80  # characters of what a user gave that a message repeats
_LONGEST = 2000  # characters of a message; lists of names may be longer
_RUN = re.compile(rf"\S{{{2 * QUOTED},}}")  # what can only be a name or number gone wrong
# Terminals obey the first ones, some end a line, and the last ones cannot be printed.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text as one line that a terminal shows: control characters are escaped.

    >>> printable("a name\n\x1b[2J")
    'a name\\n\\x1b[2J'
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def quoted(value: object, limit: int = QUOTED) -> str:
    """Return what a user gave, for a message: of a long text the beginning and the end, in quotes.

    >>> quoted("much"), quoted(b"12" * 400, 9), quoted(10**5000)
    ("'much'", "'1212…1212'", 'a number of 16610 bits')
    """
    if isinstance(value, int) and abs(value) >= 10**limit:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print it
    if not isinstance(value, str | bytes):
        return reprlib.repr(value)
    half = (limit - 1) // 2
    parts = [value[:half], value[-half:]] if len(value) > limit else [value]
    texts = [part.decode(errors="replace") if isinstance(part, bytes) else part for part in parts]
    return repr("…".join(texts))


def _fit(message: str) -> str:
    """Return a message in one line of bearable length, whatever it repeats."""
    message = _RUN.sub(
        lambda match: f"{match[0][: QUOTED // 2]}…{match[0][-QUOTED // 2 :]}", message
    )
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    return printable(message)


class BpaError(Exception):
    """Base of every error that bpa_ppl raises on purpose; the text is fit for a user.

    >>> try:
    ...     one_of("wer", ("ter", "bleu"), "metric")
    ... except BpaError as error:
    ...     print(error, error.exit_code)
    unknown metric 'wer': choose one of ter, bleu 2
    """

    exit_code = 2


class DataError(BpaError, ValueError):
    """The content of a file, or of an object built from one, cannot be used.

    Args:
        message: one sentence that says what is wrong and what to do about it; it becomes one line
            of bearable length, whatever it repeats.
        path: the file, where there is one.
        line: its 1-based line, where one is to blame.

    >>> error = DataError("a feature is no number: correct the line", "dev.nbest", 7)
    >>> print(error)
    dev.nbest:7: a feature is no number: correct the line
    >>> error.path, error.line, error.exit_code
    ('dev.nbest', 7, 2)
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None):
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(printable(where) + _fit(message))
        self.path = path
        self.line = line


class UsageError(BpaError, ValueError):
    """An argument or an option has a value that makes no sense here.

    >>> raise UsageError("a seed is a whole number, not 'seven'")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is a whole number, not 'seven'
    """

    def __init__(self, message: str):
        super().__init__(_fit(message))


class NoSuchSentence(UsageError, IndexError):
    """There is no list at the position asked for; an `IndexError`, as of any sequence."""


class NotConverged(BpaError):
    """A posterior failed its diagnostics and was about to be used all the same.

    The message ends in the table of the check.

    >>> issubclass(NotConverged, BpaError), NotConverged("R-hat is 1.2").exit_code
    (True, 3)
    """

    exit_code = 3

    def __init__(self, message: str):
        # A table of the check may follow, line by line.
        super().__init__("\n".join(map(printable, message.split("\n"))))


class BpaWarning(UserWarning):
    """Something a user should know that does not stop the work.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", BpaWarning)
    ...     warnings.warn("two lists are empty", BpaWarning)
    Traceback (most recent call last):
    bpa_ppl.errors.BpaWarning: two lists are empty
    """


def one_of(value: str, allowed: Collection[str], what: str) -> str:
    """Return `value` when it is allowed, else raise a UsageError that lists what is.

    >>> one_of("ter", ("ter", "bleu"), "metric")
    'ter'
    """
    if value not in allowed:
        raise UsageError(f"unknown {what} {quoted(value)}: choose one of {', '.join(allowed)}")
    return value


def require(value: Any, kind: type | tuple[type, ...], what: str) -> None:
    """Raise a UsageError unless a value is of some type.

    Args:
        value: what was given.
        kind: the type that it should have, or several.
        what: what is wanted, in words, and how to get one.

    >>> require("dev.nbest", list, "files are given as a list")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: files are given as a list, not 'dev.nbest'
    """
    if not isinstance(value, kind):
        raise UsageError(f"{what}, not {quoted(value)}")


def checked_seed(seed: Any) -> int:
    """Return a seed, if it is one that every random generator in use takes: 0 to 2³² − 1.

    Raises:
        UsageError: if it is not.

    >>> checked_seed(7)
    7
    >>> checked_seed(-1)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is a whole number from 0 to 4294967295, not -1
    """
    # Whatever counts as an index does: NumPy's whole numbers, but no truth values.
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not whole or not 0 <= int(seed) < SEEDS:
        raise UsageError(f"a seed is a whole number from 0 to {SEEDS - 1}, not {quoted(seed)}")
    return int(seed)
