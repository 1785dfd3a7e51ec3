"""What a user should know though the work goes on: records of the logger `bpa_ppl`.

Warnings have the level WARNING, what commands say of their work INFO, and the time at which they
wrote a file DEBUG. Who has set up logging gets them there, at the logger `bpa_ppl` or above it.
Where nobody listens, warnings come as Python's, of the class `BpaWarning`, so that they are seen
without any setting up, once a place, and Python's filters hold:

    warnings.simplefilter("ignore", bpa_ppl.BpaWarning)

`logging.getLogger("bpa_ppl").addHandler(WarningsHandler())` asks for Python's warnings beside the
records, as in tests under pytest, whose own handlers listen to everything.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import NamedTuple

from bpa_ppl.errors import BpaWarning

#: Every warning and note of the package is a record of it.
LOGGER = logging.getLogger("bpa_ppl")
#: Between the package and the line of the user that has called it these may stand.
_PASSED = {"bpa_ppl", "contextlib", "functools", "logging"}
_SITE = 3  # frames from the logger to the one who tells


class Note(NamedTuple):
    """Something told.

    Attributes:
        level: of `logging`.
        message: one sentence.
    """

    level: int
    message: str


_kept: ContextVar[list[Note] | None] = ContextVar("bpa_ppl_notes", default=None)


def tell(message: str) -> None:
    """Tell of something that a user should know, and that does not stop the work: a warning."""
    _tell(Note(logging.WARNING, message))


def note(message: str) -> None:
    """Say something of the work that went as it should."""
    _tell(Note(logging.INFO, message))


def tell_again(notes: list[Note]) -> None:
    """Tell what was held back, or what a worker has told."""
    for one in notes:
        _tell(one)


def _tell(one: Note) -> None:
    kept = _kept.get()
    if kept is not None:
        kept.append(one)
    else:
        LOGGER.log(one.level, one.message, stacklevel=_SITE)


@contextmanager
def held() -> Iterator[list[Note]]:
    """Hold back what the block tells, in its thread.

    >>> with held() as notes:
    ...     tell("the list is short")
    >>> [one.message for one in notes]
    ['the list is short']
    """
    notes: list[Note] = []
    before = _kept.set(notes)
    try:
        yield notes
    finally:
        _kept.reset(before)


class WarningsHandler(logging.Handler):
    """Gives records of level WARNING and above as Python's warnings, of the class `BpaWarning`.

    They name the line of the user that has called the package.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Warn; where Python's filters make errors of warnings, raise."""
        frame = _users(inspect.currentframe())
        warnings.warn_explicit(
            record.getMessage(),
            BpaWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            frame.f_globals.get("__name__"),
            frame.f_globals.setdefault("__warningregistry__", {}),
        )


def _users(frame: FrameType | None) -> FrameType:
    """Return the innermost frame outside the package, or the outermost one of all."""
    assert frame is not None  # CPython always has one
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _PASSED:
            break
        frame = frame.f_back
    return frame


class _Unheard(WarningsHandler):
    """Warns where no other handler gets the record."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: logging.Logger | None = LOGGER
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        super().emit(record)


LOGGER.addHandler(_Unheard())
