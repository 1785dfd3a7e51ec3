"""What a command tells: records of the logger `bpa_ppl`, shown on standard error."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from bpa_ppl.cli.wording import in_options
from bpa_ppl.errors import printable
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
            message = record.getMessage()
            if message not in self._shown:
                self._shown.add(message)
                print(f"note: {in_options(printable(message))}", file=sys.stderr)


@contextmanager
def shown() -> Iterator[None]:
    """Print the records of the block, and hide other libraries' warnings unless Python has -W."""
    shell, level = _Shell(), LOGGER.level
    LOGGER.addHandler(shell)
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")
            yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(shell)
