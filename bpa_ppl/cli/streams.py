"""Standard input and output as shells give them: closed, cut short, or not of UTF-8."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

from typer.core import TyperGroup

from bpa_ppl.errors import UsageError, quoted

#: Exit codes that shells report for a command ended by Ctrl-C and by a closed pipe.
_INTERRUPTED, _CLOSED_PIPE = 130, 141


class Group(TyperGroup):
    """Subcommands that exit with 130 on Ctrl-C, and with 141 when their output is closed."""

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand and flush its output."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise SystemExit(_INTERRUPTED) from None
        except BrokenPipeError:
            # Python flushes standard output again at exit, which must not fail a second time:
            # https://docs.python.org/3/library/signal.html#note-on-sigpipe
            with suppress(OSError, ValueError):  # standard output is not a file
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(_CLOSED_PIPE) from None
        return result


def prepare_streams() -> None:
    """Print escaped what a terminal cannot show, and open what the shell has closed on nothing.

    Else the next file to be opened would become the standard output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_encoding(argument: str) -> None:
    r"""Raise a UsageError unless an argument of the command line is text in the user's encoding.

    Names of files are kept in posteriors and reports, which are UTF-8.

    >>> check_encoding("caf\xe9.nbest")
    """
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{quoted(argument)} is not text in the encoding of this system: rename the file to "
            "one with a name in UTF-8"
        ) from error
