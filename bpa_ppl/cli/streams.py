"""Standard input and output as shells give them: closed, cut short, or not of UTF-8."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from typer.core import TyperGroup

from bpa_ppl.errors import UsageError, quoted

#: What shells report for a command whose output nobody reads any more, as of `bpa … | head`.
CLOSED_PIPE = 141


class Group(TyperGroup):
    """Subcommands that end without a word when the reader of their output has enough."""

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand, and write what it has printed."""
        try:
            done = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise SystemExit(CLOSED_PIPE) from None
        return done


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


def forget_output() -> None:
    """Let what is left of the output go nowhere, or Python would complain of it at its end."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # no file of the system
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


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
