"""The exceptions and warnings of bpa_ppl.

    BpaError                       what is raised on purpose; exit code 2 of a command
    ├── DataError                  also a ValueError: the content of a file or of an object
    ├── UsageError                 also a ValueError: an argument or an option
    │   └── NoSuchSentence         also an IndexError: a position in n-best lists
    └── NotConverged               exit code 3: a posterior that failed its check
    BpaWarning                     a UserWarning: a problem that does not stop the program

Each error has a message for users and a code for programs, one of `CODES`. The functions at the end
write the messages of the usual problems, so that a problem reads the same everywhere.
"""

from __future__ import annotations

import re
import reprlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

#: The codes of errors and what they mean. A code stays the same when a message changes.
CODES = {
    "bad-data": "the content cannot be used, for a reason without a code of its own",
    "bad-encoding": "a file is not UTF-8",
    "bad-line": "a line, a record or an entry does not have the form of its format",
    "bad-name": "a name is empty, or is not allowed here",
    "bad-number": "a value is not a finite number, or is out of range",
    "bad-usage": "the value of an argument is not allowed",
    "cannot-read": "the operating system does not let a file be read",
    "cannot-write": "the operating system does not let a file be written",
    "conflict": "two arguments exclude each other",
    "damaged": "a file is incomplete or was changed, or a component or process failed",
    "duplicate": "a name, an id or a line occurs twice",
    "error": "an error of another class",
    "forked": "a process was forked after JAX had started",
    "invalid-setting": "the value of a setting is not allowed, or its text has another form",
    "mismatch": "two inputs do not belong together, such as lists and a posterior",
    "missing-argument": "an argument is needed",
    "missing-column": "the lists or the file have no such column",
    "missing-feature": "the lists lack a feature",
    "missing-file": "there is no such file",
    "missing-package": "an optional package is not installed",
    "missing-references": "references are needed",
    "missing-setting": "a component needs a setting",
    "missing-sources": "source sentences are needed",
    "missing-weight": "a feature has no weight",
    "no-data": "there is nothing to work with: no lists, no judgements, no differences",
    "no-such-sentence": "there is no list at this position",
    "not-converged": "the posterior failed its check",
    "not-supported": "this format, model or component cannot do it",
    "unknown-format": "the format of a file was not recognised",
    "unknown-name": "there is no component or choice of this name",
    "unknown-setting": "a component has no setting of this name",
    "wrong-length": "two inputs should have the same number of lines or values",
    "wrong-type": "a value has another type",
}
_QUOTED = 80  # characters of a user's value that a message repeats
_LONGEST_MESSAGE = 2000  # characters
_LISTED, _LISTED_CHOICES = 5, 40  # names in a message, and names to choose from
_UNKNOWN = {"setting": "unknown-setting", "ending": "unknown-format"}  # codes of names
#: The origin of data that are not from a file.
MEMORY = "<memory>"
_RUN = re.compile(rf"\S{{{2 * _QUOTED},}}")  # a word too long to repeat
_WORDS = re.compile(r"[\W_]+")  # between the words of a name
# Control characters, line separators, and surrogates, which cannot be printed.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escape_controls(text: str) -> str:
    r"""Return a text as one line that a terminal shows: control characters are escaped.

    >>> escape_controls("a name\n\x1b[2J")
    'a name\\n\\x1b[2J'
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def abbreviate(text: str, limit: int = _QUOTED) -> str:
    r"""Return a text as one line: of a long one the beginning and the end.

    >>> abbreviate("a cat\nsat"), abbreviate("the cat sat", 7)
    ('a cat\\nsat', 'the…sat')
    """
    half = (limit - 1) // 2
    return escape_controls(f"{text[:half]}…{text[-half:]}" if len(text) > limit else text)


def quote(value: object, limit: int = _QUOTED) -> str:
    """Return a user's value for a message: the beginning and the end of a long text, in quotes.

    >>> quote("much"), quote(b"12" * 400, 9), quote(10**5000)
    ("'much'", "'1212…1212'", 'a number of 16610 bits')
    """
    if isinstance(value, int) and abs(value) >= 10**limit:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print it
    if not isinstance(value, str | bytes):
        return reprlib.repr(float(value) if isinstance(value, float) else value)
    half = (limit - 1) // 2
    parts = [value[:half], value[-half:]] if len(value) > limit else [value]
    texts = [part.decode(errors="replace") if isinstance(part, bytes) else part for part in parts]
    return repr("…".join(texts))


def _quote_name(name: str) -> str:
    """Return a name as options of several names read it: in double quotes if it has a comma.

    >>> _quote_name("lm"), _quote_name("loss, log")
    ('lm', '"loss, log"')
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if "," in name or name.startswith('"') else name


def write_option(
    option: str, value: str | Iterable[str], *, number: str = "", parameter: str = ""
) -> str:
    """Return how an option is given, on the command line and in Python.

    Args:
        option: its name on the command line, without hyphens.
        value: a text, or several, which are names if there is a number.
        number: what stands for the number of each name.
        parameter: the name of the option in Python, if it is not that with underscores.

    >>> write_option("gain", "ter"), write_option("exclude", ["my lm"])
    ("--gain ter; in Python gain='ter'", "--exclude 'my lm'; in Python exclude=['my lm']")
    >>> write_option("default", ["lm"], number="WEIGHT", parameter="defaults")
    "--default lm=WEIGHT; in Python defaults={'lm': WEIGHT}"
    """
    texts, equals = [value] if isinstance(value, str) else list(value), f"={number}" * bool(number)
    written = texts if isinstance(value, str) else map(_quote_name, texts)
    words = " ".join(f"--{option} {shlex.quote(text)}{equals}" for text in written)
    shown = repr(value if isinstance(value, str) else texts)
    if number:
        shown = f"{{{', '.join(f'{text!r}: {number}' for text in texts)}}}"
    return f"{words}; in Python {parameter or option.replace('-', '_')}={shown}"


def list_names(names: Iterable[str], most: int = _LISTED) -> str:
    """Return names for a message: the first ones, `most` of them, and how many more there are.

    >>> list_names(["lm", "tm"]), list_names(f"c{k}" for k in range(3000))
    ('lm, tm', 'c0, c1, c2, c3, c4 and 2,995 more')
    """
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return what follows an unknown name in a message: the one that was probably meant.

    It is the only one that has the name as a word, or that begins with it, else the most similar
    one. Nothing is suggested where several have it as a word or begin with it.

    >>> suggest_name("metrc", ["sampler", "metric"]), suggest_name("other", ["sampler"])
    (' (did you mean metric?)', '')
    >>> suggest_name("human", ["lm", "human_rating"]), suggest_name("human", ["human_a", "human_b"])
    (' (did you mean human_rating?)', '')
    """
    names, typed = list(dict.fromkeys(names)), name.casefold()
    words = [one for one in names if typed in _WORDS.split(one.casefold())]
    matches = words or [one for one in names if typed and one.casefold().startswith(typed)]
    matches = matches or get_close_matches(name, names, n=1)
    return f" (did you mean {matches[0]}?)" if len(matches) == 1 else ""


def describe_missing_package(what: str, error: ImportError) -> str:
    """Return the message that something needs a package, by the error of its import.

    >>> error = ModuleNotFoundError("No module named 'jax'", name="jax")
    >>> describe_missing_package("adapt", error)
    'adapt needs the full installation, with the package jax: pip install bpa_ppl'
    """
    package = (error.name or str(error)).partition(".")[0]
    return f"{what} needs the full installation, with the package {package}: pip install bpa_ppl"


def locate(path: str | Path | None, line: int | None = None) -> str:
    """Return the beginning of a message that says where the data are from.

    Data in memory have no name: a line is the number of the record.

    >>> locate("dev.nbest", 7), locate(MEMORY, 7), locate(MEMORY)
    ('dev.nbest:7: ', 'record 7: ', '')
    """
    if path is None or path == MEMORY:
        return "" if path is None or line is None else f"record {line}: "
    return f"{path}: " if line is None else f"{path}:{line}: "


def name_lists(origin: str) -> str:
    """Return what lists are called within a message: by their file, if they are from one.

    >>> name_lists("dev.nbest"), name_lists(MEMORY)
    ('dev.nbest', 'the lists')
    """
    return "the lists" if origin == MEMORY else origin


def cut_message(message: str) -> str:
    """Return a message without its middle if it is very long.

    >>> len(cut_message("a name, " * 5000))
    2003
    """
    half = _LONGEST_MESSAGE // 2
    return message if len(message) <= 2 * half else f"{message[:half]} … {message[-half:]}"


def _advise(problem: str, remedy: str) -> str:
    """Return a sentence about a problem, with its remedy if there is one."""
    return f"{problem}: {remedy}" if remedy else problem


def _fit(message: str) -> str:
    """Return a message as one line of limited length."""
    half = _QUOTED // 2
    message = _RUN.sub(lambda match: f"{match[0][:half]}…{match[0][-half:]}", message)
    return escape_controls(cut_message(message))


class BpaError(Exception):
    """Base class of every error that bpa_ppl raises on purpose; the text is fit for a user.

    Attributes:
        message: one line that says what is wrong and how to correct it.
        parameter: the name of the parameter that the error is about, as in Python, or None. The
            command line prints the option of that name after the message.
        code: a short name of the kind of error, one of `CODES`. It stays the same when the message
            changes.

    Args:
        message: one sentence that says what is wrong and how to correct it. Control characters are
            escaped, and a very long message is shortened.
        parameter: the parameter that the error is about, where there is one.
        code: a stable name of the kind of error.
        location: what precedes the message, in full.

    >>> error = BpaError("unknown metric 'wer'", parameter="metric", code="unknown-name")
    >>> print(error, error.parameter, error.code, error.exit_code)
    unknown metric 'wer' metric unknown-name 2
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
        self.message = escape_controls(location) + _fit(message)
        super().__init__(self.message)
        self.parameter = parameter
        self.code = code or self.code


#: In a line to type, stand for the name of a column, and for a number, which the user chooses.
COLUMN, VALUE = "COLUMN", "VALUE"


class Remedy(NamedTuple):
    """Arguments of a reader that may help: `formats.advice` tries them, and writes those that do.

    Attributes:
        words: what they do: "drop such candidates". Of remedies with the same words, the first one
            that helps is written.
        arguments: of `read_nbest` that change.
        settings: of the format that change; None takes one away.
        columns: names of which some stand in place of the values COLUMN, which the user chooses.
    """

    words: str
    arguments: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    columns: Sequence[str] = ()


class DataError(BpaError, ValueError):
    """The content of a file, or of an object built from one, cannot be used.

    Args:
        message: one sentence that says what is wrong and how to correct it. Control characters are
            escaped, and a very long message is shortened.
        path: the file, where there is one.
        line: the 1-based line of the file.
        parameter: the parameter that the error is about, where there is one.
        code: a stable name of the kind of error.
        remedies: how to correct it, if the message says only what is wrong: texts, and arguments of
            the reader, which are no part of the message until they were tried.

    >>> error = DataError("LM0 is not a number: correct the line", "dev.nbest", 7)
    >>> print(error)
    dev.nbest:7: LM0 is not a number: correct the line
    >>> error.path, error.line, error.code, error.exit_code
    ('dev.nbest', 7, 'bad-data', 2)
    >>> print(DataError("LM0 is 'a'", remedies=["write numbers", Remedy("drop", {"bad": "drop"})]))
    LM0 is 'a': write numbers
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
        remedies: Sequence[str | Remedy] = (),
    ) -> None:
        texts = [remedy for remedy in remedies if isinstance(remedy, str)]
        whole = f"{message}: {', or '.join(texts)}" if texts else message
        super().__init__(whole, parameter=parameter, code=code, location=locate(path, line))
        self.path = path
        self.line = line
        self.problem, self.remedies = message, tuple(remedies)


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
        self.details = "".join(
            f"\n{escape_controls(line)}" for line in details.split("\n") if details
        )

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


def find_interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interruption that an error is, or was raised from.

    A compiled function in which Ctrl-C comes ends with a SystemError, whose cause is the
    interruption. Libraries convert it to other errors.

    >>> try:
    ...     raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    ... except SystemError as error:
    ...     find_interruption(error)
    KeyboardInterrupt()
    >>> find_interruption(ValueError("a number")) is None
    True
    """
    seen: list[BaseException] = []  # an error may be raised from one that it caused
    while error is not None and error not in seen and not isinstance(error, KeyboardInterrupt):
        seen.append(error)
        error = error.__cause__ or error.__context__
    return error if isinstance(error, KeyboardInterrupt) else None


def wrong_value(
    rule: str,
    value: object,
    parameter: str | None = None,
    *,
    remedy: str = "",
    code: str = "bad-usage",
) -> UsageError:
    """Return the error of an argument whose value is not allowed, with the rule that it breaks.

    >>> print(wrong_value("draws must be at least 1", 0, "draws"))
    draws must be at least 1, not 0
    """
    problem = _advise(f"{rule}, not {quote(value)}", remedy)
    return UsageError(problem, parameter=parameter, code=code)


def wrong_type(
    rule: str, value: object, parameter: str | None = None, *, remedy: str = ""
) -> UsageError:
    """Return the error of an argument of another type, with the rule that it breaks.

    >>> print(wrong_type("texts must be a sequence", 1, "texts"))
    texts must be a sequence, not 1
    """
    return wrong_value(rule, value, parameter, remedy=remedy, code="wrong-type")


def unknown_name(
    what: str,
    name: object,
    names: Iterable[str],
    parameter: str | None = None,
    *,
    owner: str | Path = "",
    code: str | None = None,
) -> UsageError:
    """Return the error of a name that does not exist, with those that do.

    >>> print(unknown_name("metric", "tre", ["ter", "bleu"], "metric"))
    unknown metric 'tre' (did you mean ter?): choose one of ter, bleu
    >>> print(unknown_name("setting", "step", ["draws"], owner="the sampler nuts"))
    unknown setting 'step' of the sampler nuts: choose one of draws
    """
    names = list(names)
    problem = f"unknown {what} {quote(name)}{f' of {owner}' * bool(owner)}"
    problem += f"{suggest_name(str(name), names)}: choose one of "
    problem += list_names(names, _LISTED_CHOICES) or "none"
    code = code or _UNKNOWN.get(what, "unknown-name")
    return UsageError(problem, parameter=parameter, code=code)


def bad_value(
    where: str,
    value: object,
    expected: object,
    origin: str | Path | None = None,
    line: int | None = None,
    *,
    remedy: str = "",
    parameter: str | None = None,
    code: str = "bad-number",
) -> DataError:
    """Return the error of data with a value of another kind, shape or size.

    >>> print(bad_value("lm of candidate 1", float("nan"), "a finite number", "dev.csv", 7))
    dev.csv:7: lm of candidate 1 is nan, not a finite number
    """
    shown = f"{value:g}" if isinstance(value, float) else quote(value)
    problem = _advise(f"{where} is {shown}, not {expected}", remedy)
    return DataError(problem, origin, line, parameter=parameter, code=code)


def wrong_shape(
    name: str,
    shape: object,
    expected: object,
    origin: str | Path | None = None,
    *,
    parameter: str | None = None,
    code: str = "wrong-length",
) -> DataError:
    """Return the error of an array of another shape.

    >>> print(wrong_shape("features", (2, 4), (2, 3)))
    features must have the shape (2, 3), not (2, 4)
    """
    problem = f"{name} must have the shape {expected}, not {shape}"
    return DataError(problem, origin, parameter=parameter, code=code)
