"""The exceptions and warnings of bpa_ppl, and the exit code of each."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SEEDS = 2**32  # seeds are 0 to SEEDS - 1
QUOTED = 80  # characters of a user's value that a message repeats
_LONGEST = 2000  # characters of a message
_LISTED = 5  # names in a message
#: The origin of data that are not from a file.
MEMORY = "<memory>"
_RUN = re.compile(rf"\S{{{2 * QUOTED},}}")  # a word too long to repeat
# Control characters, line separators, and surrogates, which cannot be printed.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text as one line that a terminal shows: control characters are escaped.

    >>> printable("a name\n\x1b[2J")
    'a name\\n\\x1b[2J'
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def quoted(value: object, limit: int = QUOTED) -> str:
    """Return a user's value for a message: the beginning and the end of a long text, in quotes.

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


def listed(names: Iterable[str]) -> str:
    """Return names for a message: the first ones, and how many more there are.

    >>> listed(["lm", "tm"]), listed(f"c{k}" for k in range(3000))
    ('lm, tm', 'c0, c1, c2, c3, c4 and 2,995 more')
    """
    names = list(names)
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def location_of(path: str | Path | None, line: int | None = None) -> str:
    """Return the beginning of a message that says where the data are from.

    Data in memory have no name: a line is the number of the record.

    >>> location_of("dev.nbest", 7), location_of(MEMORY, 7), location_of(MEMORY)
    ('dev.nbest:7: ', 'record 7: ', '')
    """
    if path is None or path == MEMORY:
        return "" if path is None or line is None else f"record {line}: "
    return f"{path}: " if line is None else f"{path}:{line}: "


def called(origin: str) -> str:
    """Return what lists are called within a message: by their file, if they are from one.

    >>> called("dev.nbest"), called(MEMORY)
    ('dev.nbest', 'the lists')
    """
    return "the lists" if origin == MEMORY else origin


def _fit(message: str) -> str:
    """Return a message as one line of limited length."""
    half = QUOTED // 2
    message = _RUN.sub(lambda match: f"{match[0][:half]}…{match[0][-half:]}", message)
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    return printable(message)


class BpaError(Exception):
    """Base class of every error that bpa_ppl raises on purpose; the text is fit for a user.

    Attributes:
        message: one line that says what is wrong and how to correct it.
        parameter: the name of the parameter that the error is about, as in Python, or None. The
            command line prints the option of that name after the message.
        code: a short name of the kind of error that stays the same when the message changes.

    Args:
        message: one sentence that says what is wrong and how to correct it. Control characters are
            escaped, and a very long message is shortened.
        parameter: the parameter that the error is about, where there is one.
        code: a stable name of the kind of error.
        location: what precedes the message, in full.

    >>> try:
    ...     one_of("wer", ("ter", "bleu"), "metric")
    ... except BpaError as error:
    ...     print(error, error.parameter, error.code, error.exit_code)
    unknown metric 'wer': choose one of ter, bleu metric unknown-name 2
    """

    exit_code = 2
    code = "error"

    def __init__(
        self,
        message: str,
        *,
        parameter: str | None = None,
        code: str | None = None,
        location: str = "",
    ) -> None:
        self.message = printable(location) + _fit(message)
        super().__init__(self.message)
        self.parameter = parameter
        self.code = code or self.code


class DataError(BpaError, ValueError):
    """The content of a file, or of an object built from one, cannot be used.

    Args:
        message: one sentence that says what is wrong and how to correct it. Control characters are
            escaped, and a very long message is shortened.
        path: the file, where there is one.
        line: the 1-based line of the file.
        parameter: the parameter that the error is about, where there is one.
        code: a stable name of the kind of error.

    >>> error = DataError("LM0 is not a number: correct the line", "dev.nbest", 7)
    >>> print(error)
    dev.nbest:7: LM0 is not a number: correct the line
    >>> error.path, error.line, error.code, error.exit_code
    ('dev.nbest', 7, 'bad-data', 2)
    """

    code = "bad-data"

    def __init__(
        self,
        message: str,
        path: str | Path | None = None,
        line: int | None = None,
        *,
        parameter: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, parameter=parameter, code=code, location=location_of(path, line))
        self.path = path
        self.line = line


class UsageError(BpaError, ValueError):
    """The value of an argument or option is not allowed here.

    >>> raise UsageError("a seed is an integer, not 'seven'", parameter="seed")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is an integer, not 'seven'
    """

    code = "bad-usage"


class NoSuchSentence(UsageError, IndexError):
    """There is no list at this position; an `IndexError`, as of any sequence."""

    code = "no-such-sentence"


class NotConverged(BpaError):
    """A posterior that failed its convergence check was about to be used.

    Args:
        message: what happened, in one line.
        details: lines that follow it, such as the table of the check.
        parameter: the parameter that skips the check.

    >>> error = NotConverged("the posterior failed its check", "R-hat is 1.2")
    >>> print(error, error.exit_code)
    the posterior failed its check
    R-hat is 1.2 3
    """

    exit_code = 3
    code = "not-converged"

    def __init__(self, message: str, details: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message, parameter=parameter)
        self.details = "".join(f"\n{printable(line)}" for line in details.split("\n") if details)

    def __str__(self) -> str:
        return f"{self.message}{self.details}"


class BpaWarning(UserWarning):
    """A problem that the user should know about and that does not stop the program.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", BpaWarning)
    ...     warnings.warn("two lists are empty", BpaWarning)
    Traceback (most recent call last):
    bpa_ppl.errors.BpaWarning: two lists are empty
    """


def interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interruption that an error is, or was raised from.

    A compiled function in which Ctrl-C comes ends with a SystemError, whose cause is the
    interruption. Libraries convert it to other errors.

    >>> try:
    ...     raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    ... except SystemError as error:
    ...     interruption(error)
    KeyboardInterrupt()
    >>> interruption(ValueError("a number")) is None
    True
    """
    seen: list[BaseException] = []  # an error may be raised from one that it caused
    while error is not None and error not in seen and not isinstance(error, KeyboardInterrupt):
        seen.append(error)
        error = error.__cause__ or error.__context__
    return error if isinstance(error, KeyboardInterrupt) else None


def one_of(value: str, allowed: Collection[str], what: str, parameter: str | None = None) -> str:
    """Return `value` when it is allowed, else raise a UsageError that lists the allowed values.

    Args:
        value: what was given.
        allowed: the names to choose from.
        what: the kind of thing in words, for the message.
        parameter: the parameter; by default `what`, where that is one word.

    >>> one_of("ter", ("ter", "bleu"), "metric")
    'ter'
    """
    if not isinstance(value, str) or value not in allowed:
        problem = f"unknown {what} {quoted(value)}: choose one of {', '.join(allowed)}"
        parameter = parameter or (what if what.isidentifier() else None)
        raise UsageError(problem, parameter=parameter, code="unknown-name")
    return value


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message that a name is unknown: the one that was probably meant.

    >>> nearest("metrc", ["sampler", "metric"]), nearest("other", ["sampler"])
    (': did you mean metric?', '')
    """
    matches = get_close_matches(name, names, n=1)
    return f": did you mean {matches[0]}?" if matches else ""


def require_extra(problem: str, extra: str, *packages: str, parameter: str | None = None) -> None:
    """Raise a UsageError unless the packages of an optional extra are installed; none is imported.

    For an installed package, pip takes the packages of its extras from its metadata. So the command
    in the message is right wherever the package came from: a clone, a wheel or an index.

    Args:
        problem: what needs which package.
        extra: the name of the extra in `pyproject.toml`.
        packages: names to import.
        parameter: the parameter, where there is one.

    >>> require_extra("numbers need NumPy", "numbers", "numpy")
    >>> require_extra("serving needs Starlette", "serve", "no_such_package")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: serving needs Starlette: install the extra serve with pip install ...
    """
    if any(find_spec(package) is None for package in packages):
        remedy = f"install the extra {extra} with pip install 'bpa_ppl[{extra}]'"
        raise UsageError(f"{problem}: {remedy}", parameter=parameter, code="missing-package")


def require(
    value: Any, kind: type | tuple[type, ...], what: str, parameter: str | None = None
) -> None:
    """Raise a UsageError unless a value is of some type.

    Args:
        value: what was given.
        kind: the type that it should have, or several.
        what: what is expected, in words, and how to get one.
        parameter: the parameter, where there is one.

    >>> require("dev.nbest", list, "files are given as a list")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: files are given as a list, not 'dev.nbest'
    """
    if not isinstance(value, kind):
        raise UsageError(f"{what}, not {quoted(value)}", parameter=parameter, code="wrong-type")


def checked_seed(seed: Any) -> int:
    """Return a seed, if it is one that every random generator in use takes: 0 to 2³² − 1.

    Raises:
        UsageError: if it is not.

    >>> checked_seed(7)
    7
    >>> checked_seed(-1)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a seed is an integer from 0 to 4294967295, not -1
    """
    # NumPy's integers count as integers, booleans do not.
    is_integer = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not is_integer or not 0 <= int(seed) < SEEDS:
        problem = f"a seed is an integer from 0 to {SEEDS - 1}, not {quoted(seed)}"
        raise UsageError(problem, parameter="seed")
    return int(seed)
