"""Putting the subcommands together, and turning errors into messages and exit codes."""

from __future__ import annotations

import sys
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from bpa_ppl import __version__
from bpa_ppl.cli import (
    adapt,
    calibrate,
    check,
    compare,
    demo,
    experiment,
    features,
    figures,
    learn_prior,
    lm,
    next,
    oracle,
    phrases,
    report,
    rerank,
    subdomains,
    tune,
    update,
    weights,
)
from bpa_ppl.cli.notes import shown
from bpa_ppl.cli.options import expanded
from bpa_ppl.cli.streams import Group, check_encoding, prepare_streams
from bpa_ppl.cli.wording import Command, in_options
from bpa_ppl.errors import BpaError, printable

app = typer.Typer(
    name="bpa",
    help="Adapt the weights of an n-best reranker to a new domain from a few references.",
    epilog="Exit codes: 0 done, 2 bad data or usage, 3 posterior not converged, 130 interrupted, "
    "141 output closed by its reader.",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (
    adapt,
    update,
    next,
    learn_prior,
    check,
    report,
    compare,
    calibrate,
    rerank,
    weights,
    oracle,
    features,
    tune,
    experiment,
    figures,
    lm,
    subdomains,
    demo,
):
    app.command(module.__name__.rpartition(".")[2].replace("_", "-"), cls=Command)(
        expanded(module.run)
    )
app.add_typer(phrases.app, name="phrases")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bpa_ppl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before the subcommand."""


def main() -> None:
    """Run `bpa` and exit: one line on standard error for what went wrong, no traceback."""
    prepare_streams()
    with shown():
        code = _exit_code()
    sys.exit(code)


@cache
def _command() -> Any:
    """Return all subcommands as one; a program may call `main` many times."""
    return typer.main.get_command(app)


def _told(error: OSError) -> str:
    """Return what the system says, and of which file, as far as it is known."""
    said = str(error.strerror or error)
    if error.filename is None and isinstance(error, FileNotFoundError):
        return f"{said}: make room there, or name a folder in TMPDIR"  # for temporary files
    return f"{error.filename or 'output'}: {said}"


def _exit_code() -> int | str | None:
    try:
        for argument in sys.argv[1:]:
            check_encoding(argument)
        _command()(prog_name="bpa")
    except BpaError as error:
        typer.echo(f"error: {in_options(str(error))}", err=True)
        return error.exit_code
    except OSError as error:
        typer.echo(printable(f"error: {_told(error)}"), err=True)
        return BpaError.exit_code
    except SystemExit as done:
        return done.code
    return 0
