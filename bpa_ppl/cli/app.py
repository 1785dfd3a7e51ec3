"""The command `bpa`: its subcommands, and exit codes."""

from __future__ import annotations

import sys
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from bpa_ppl import __version__
from bpa_ppl.cli import adapt, lists, phrases, posteriors, rerank, serve, studies, tune
from bpa_ppl.cli.command import Command
from bpa_ppl.cli.notes import shown
from bpa_ppl.cli.options import expanded
from bpa_ppl.cli.streams import Group, check_encoding, prepare_streams
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
for function in (
    adapt.adapt,
    adapt.update,
    rerank.next_,
    adapt.learn_prior,
    posteriors.check,
    posteriors.report,
    posteriors.compare,
    posteriors.calibrate,
    rerank.rerank,
    rerank.weights,
    serve.serve,
    lists.oracle,
    lists.features,
    tune.tune,
    studies.experiment,
    studies.figures,
    lists.lm,
    phrases.subdomains,
    studies.demo,
):
    name = function.__name__.strip("_").replace("_", "-")
    app.command(name, cls=Command)(expanded(function))
app.add_typer(phrases.app, name="phrases")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"bpa_ppl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options before the subcommand."""


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


def _exit_code() -> int | str | None:
    try:
        for argument in sys.argv[1:]:
            check_encoding(argument)
        _command()(prog_name="bpa")
    except BpaError as error:
        typer.echo(f"error: {error}", err=True)
        return error.exit_code
    except OSError as error:
        message = f"{error.filename or 'output'}: {error.strerror or error}"
        if error.filename is None and isinstance(error, FileNotFoundError):  # temporary files
            message = f"{error.strerror}: free some space, or name a folder in TMPDIR"
        typer.echo(printable(f"error: {message}"), err=True)
        return BpaError.exit_code
    except SystemExit as done:
        return done.code
    return 0
