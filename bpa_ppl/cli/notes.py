"""What a command tells: records of the logger `bpa_ppl`, shown on standard error."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bpa_ppl.cli.wording import in_options
from bpa_ppl.errors import BpaWarning, printable
from bpa_ppl.notes import LOGGER


class _Shell(logging.Handler):
    """Prints what commands say as it is, and warnings as notes, each of them once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        if record.levelno < logging.WARNING:
            print(record.getMessage(), file=sys.stderr)
        else:
            self.warn(record.getMessage())

    def warn(self, message: str) -> None:
        """Print a warning that has not been printed yet."""
        if message not in self._shown:
            self._shown.add(message)
            print(f"note: {in_options(printable(message))}", file=sys.stderr)


@contextmanager
def shown() -> Iterator[None]:
    """Show what the block tells; warnings of libraries are not for the user of a command."""
    shell, level, showing = _Shell(), LOGGER.level, warnings.showwarning

    def ours(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, BpaWarning):
            shell.warn(str(message))

    LOGGER.addHandler(shell)
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    warnings.showwarning = ours
    try:
        yield
    finally:
        warnings.showwarning = showing
        LOGGER.setLevel(level)
        LOGGER.removeHandler(shell)
