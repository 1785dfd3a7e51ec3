"""Logging and warnings: everything the package reports is a record of the logger `bpa_ppl`.

Warnings have the level WARNING, status messages of commands INFO, and the times at which files
were written DEBUG. A program that has configured logging receives these records. Otherwise
warnings are issued as Python warnings of the class `BpaWarning`, once per location, and Python's
warning filters apply:

    warnings.simplefilter("ignore", bpa_ppl.BpaWarning)

`logging.getLogger("bpa_ppl").addHandler(WarningsHandler())` issues Python warnings in addition to
the records; tests under pytest need it, because pytest's own handlers receive every record.

The functions at the end print tables of text.
"""

from __future__ import annotations

import inspect
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import NamedTuple

from bpa_ppl.errors import BpaWarning, cut_message

#: The logger of all warnings and status messages of the package.
LOGGER = logging.getLogger("bpa_ppl")
#: Packages whose frames are skipped when looking for the user's line.
_SKIPPED = {"bpa_ppl", "contextlib", "functools", "logging"}
#: Decimals, and the size of numbers, from which on they are in scientific notation, and its digits.
_MOST_DECIMALS, _LARGEST_DECIMAL, _DIGITS = 9, 1e15, 6
#: Prints a hyphen as a minus sign.
MINUS = str.maketrans("-", "−")
_STACK_LEVEL = 3  # frames from the logger to the caller of `warn_user`


class Note(NamedTuple):
    """A captured message.

    Attributes:
        level: of `logging`.
        message: one sentence.
    """

    level: int
    message: str


_captured: ContextVar[list[Note] | None] = ContextVar("bpa_ppl_notes", default=None)
#: Called before a message is logged: it removes a line of progress, which is drawn again later.
REMOVE_LINE: ContextVar[Callable[[], None] | None] = ContextVar("bpa_ppl_line", default=None)


def warn_user(message: str) -> None:
    """Log a warning about a problem that does not stop the program.

    >>> with capture_notes() as notes:
    ...     warn_user("two lists are empty")
    >>> [note.message for note in notes]
    ['two lists are empty']
    """
    _log(Note(logging.WARNING, cut_message(message)))


def log_info(message: str) -> None:
    """Log a status message."""
    _log(Note(logging.INFO, message))


def replay(notes: list[Note]) -> None:
    """Log captured messages, of this thread or of a worker."""
    for note in notes:
        _log(note)


def _log(note: Note) -> None:
    captured = _captured.get()
    if captured is not None:
        captured.append(note)
    else:
        if remove := REMOVE_LINE.get():
            remove()
        LOGGER.log(note.level, note.message, stacklevel=_STACK_LEVEL)


@contextmanager
def capture_notes() -> Iterator[list[Note]]:
    """Collect the messages of a block, in its thread, instead of logging them.

    >>> with capture_notes() as notes:
    ...     warn_user("the list is short")
    >>> [note.message for note in notes]
    ['the list is short']
    """
    notes: list[Note] = []
    token = _captured.set(notes)
    try:
        yield notes
    finally:
        _captured.reset(token)


class WarningsHandler(logging.Handler):
    """Issue records of level WARNING and above as Python warnings of the class `BpaWarning`.

    Their location is the line outside the package that called it.

    >>> WarningsHandler().level == logging.WARNING
    True
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Issue the warning; raise it where Python's filters turn warnings into errors."""
        frame = _user_frame(inspect.currentframe())
        warnings.warn_explicit(
            record.getMessage(),
            BpaWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            frame.f_globals.get("__name__"),
            frame.f_globals.setdefault("__warningregistry__", {}),
        )


def _user_frame(frame: FrameType | None) -> FrameType:
    """Return the innermost frame outside the package, or the outermost frame of all."""
    assert frame is not None  # CPython always has one
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _SKIPPED:
            break
        frame = frame.f_back
    return frame


class _FallbackHandler(WarningsHandler):
    """Issue a Python warning if no other handler receives the record."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: logging.Logger | None = LOGGER
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        super().emit(record)


LOGGER.addHandler(_FallbackHandler())


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "sentence"), format_count(250_000, "candidate")
    ('1 sentence', '250,000 candidates')
    """
    plural = noun.removesuffix("is") + "es" if noun.endswith("is") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def as_sentence(message: str) -> str:
    """Return a message with a capital letter and a full stop.

    >>> as_sentence("two lists are empty")
    'Two lists are empty.'
    """
    return f"{message[:1].upper()}{message[1:]}."


def format_table(
    rows: Iterable[Sequence[str]],
    headers: Sequence[str] = (),
    *,
    align: str = "",
    least: int = 0,
) -> str:
    """Return rows of text in columns two spaces apart, without trailing spaces.

    Numbers must already be formatted.

    Args:
        rows: of cells, of equal lengths.
        headers: the names of the columns; empty prints no header.
        align: `l` or `r` for each column, such as `lrr`; the default is left.
        least: the minimum width of a column, in characters.

    >>> print(format_table([("LM0", "0.02"), ("length", "12.50")], ("weight", "mean"), align="lr"))
    weight   mean
    LM0      0.02
    length  12.50
    """
    lines = [list(row) for row in (headers, *rows) if row]
    if not lines:
        return ""
    columns = []
    for side, column in zip(align.ljust(len(lines[0]), "l"), zip(*lines, strict=True), strict=True):
        width = max(least, *map(len, column))
        columns.append([c.rjust(width) if side == "r" else c.ljust(width) for c in column])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def choose_decimals(spread: float, least: int = 0) -> int:
    """Return how many decimals show two significant digits of a spread, or `least` if it is more.

    >>> [choose_decimals(spread) for spread in (12.3, 0.43, 0.0012)]
    [0, 2, 4]
    """
    if not math.isfinite(spread) or spread <= 0:
        return least
    return max(least, 1 - math.floor(math.log10(spread)))


def has_width(spread: float, value: float) -> bool:
    """Return whether a spread is more than the rounding errors of equal numbers.

    >>> has_width(0.1, 50.0), has_width(7e-15, 50.0), has_width(math.nan, 50.0)
    (True, False, False)
    """
    return spread > 1e-9 * abs(value)


def format_fixed(value: float, decimals: int, sign: str = "") -> str:
    """Return a number with some decimals; in scientific notation if it would have very many digits.

    Args:
        value: a number of any scale.
        decimals: that are printed.
        sign: `+` also prints the sign of positive numbers.

    >>> format_fixed(0.25, 3, "+"), format_fixed(7.8e-31, 32), format_fixed(1e60, 2)
    ('+0.250', '7.8e-31', '1.000000e+60')
    """
    if not math.isfinite(value) or (decimals <= _MOST_DECIMALS and abs(value) < _LARGEST_DECIMAL):
        return f"{value:{sign}.{decimals}f}"
    if not value:
        return f"{value:{sign}.0f}"
    digits = math.floor(math.log10(abs(value))) + decimals
    return f"{value:{sign}.{min(max(digits, 0), _DIGITS)}e}"


def format_signed(value: float, decimals: int) -> str:
    """Return a number with its sign, as `format_fixed` writes it.

    >>> format_signed(-0.254, 2), format_signed(3.0, 1), format_signed(-1.5e200, 2)
    ('−0.25', '+3.0', '−1.500000e+200')
    """
    return format_fixed(value, decimals, "+").translate(MINUS)
