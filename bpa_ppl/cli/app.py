"""The command `bpa`: its subcommands, standard streams, messages and exit codes."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from bpa_ppl import __version__
from bpa_ppl.cli import adapt, demo, judge, lists, posteriors, serve, texts
from bpa_ppl.cli.options import as_command, outputs_of
from bpa_ppl.errors import BpaError, UsageError, printable, quoted
from bpa_ppl.notes import LOGGER, warn_user
from bpa_ppl.registry import SAMPLERS, TUNERS

#: Exit codes that shells report for a command ended by Ctrl-C and by a closed pipe.
_INTERRUPTED, _CLOSED_PIPE = 130, 141


class Command(TyperCommand):
    """A subcommand whose errors are one line on standard error, and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print an error with the option of its parameter."""
        try:
            ctx.params |= outputs_of(ctx.params, ["posterior"] if self.name == "update" else [])
            return super().invoke(ctx)
        except BpaError as error:
            print(f"error: {self.message(error)}", file=sys.stderr)
            raise SystemExit(error.exit_code) from error

    def message(self, error: BpaError) -> str:
        """Return the message of an error, with the option where it is about one."""
        options = {
            parameter.name: name
            for parameter in self.params
            for name in reversed(parameter.opts)
            if name.startswith("-")
        }
        option = options.get(error.parameter or "")
        if option is None or option in error.message:
            return str(error)
        return str(error).replace(error.message, f"{error.message} ({option})", 1)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; for an unknown one that is a setting, say how to give it."""
        arguments = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Typer and Click have classes of this name: an unknown option is in `option_name`.
            option = getattr(error, "option_name", None)
            if option is not None and type(error).__name__ == "NoSuchOption":
                self._suggest(error, option, arguments)
            raise

    def _suggest(self, error: Any, option: str, arguments: list[str]) -> None:
        """Name the setting of a sampler or tuner in the error of an unknown option."""
        name = option.lstrip("-").replace("-", "_")
        given = {name for parameter in self.params for name in parameter.opts}
        kinds = [kind for registry in (SAMPLERS, TUNERS) for _, kind in registry.loaded()]
        if "--set" not in given or all(name not in kind.__struct_fields__ for kind in kinds):
            return
        value = "VALUE"  # or what follows it: `--draws 200` or `--draws=200`
        for word, following in zip(arguments, [*arguments[1:], value], strict=True):
            if word.startswith(f"{option}="):
                value = word.partition("=")[2]
            elif word == option:
                value = following
        prefix = "SAMPLER." if "--samplers" in given else ""
        error.message = f"No such option: {option}. Use --set {prefix}{name}={value}"
        error.possibilities = None


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


class LanguageModelGroup(TyperGroup):
    """The subcommands of `bpa lm`; without the name of one, the first: `bpa lm TEXT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; options may come first: `bpa lm --order 5 TEXT`."""
        named = not args or args[0] in (*self.commands, "--help")
        return super().parse_args(ctx, args if named else [next(iter(self.commands)), *args])


app = typer.Typer(
    name="bpa",
    help="Adapt the weights of an n-best reranker to a new domain from a few references.",
    epilog="Exit codes: 0 done, 2 bad data or usage, 3 posterior not converged, 130 interrupted, "
    "141 output closed by its reader.",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
lm_app = typer.Typer(
    help="Language models: `bpa lm TEXT` estimates one, `bpa lm mix` mixes several.",
    cls=LanguageModelGroup,
    no_args_is_help=True,
)
_COMMANDS: dict[typer.Typer, tuple[Callable[..., None], ...]] = {
    app: (
        adapt.adapt,
        adapt.update,
        judge.judge,
        posteriors.next_,
        adapt.learn_prior,
        posteriors.check,
        posteriors.report,
        posteriors.rerank,
        posteriors.weights,
        serve.serve,
        lists.lists_,
        lists.oracle,
        lists.features,
        demo.demo,
    ),
    lm_app: (texts.estimate, texts.mix),
}
for group, functions in _COMMANDS.items():
    for function in functions:
        name = function.__name__.strip("_").replace("_", "-")
        group.command(name, cls=Command)(as_command(function))
app.add_typer(lm_app, name="lm")


def _add_commands_of_others() -> None:
    """Add the commands of the satellites and of other packages.

    They are functions like those of this package, in the entry points `bpa_ppl.commands`. The name
    `phrases.mix` is that of `bpa phrases mix`; the help of such a group is the first line of the
    docstring of the module.
    """
    groups = {"": app}
    for point in entry_points(group="bpa_ppl.commands"):
        try:
            function = point.load()
        except Exception as error:  # any error of a third-party module on import
            warn_user(f"left out: the command {point.name}, {point.value}: {error}")
            continue
        name, _, command = point.name.rpartition(".")
        if name not in groups:
            text = (sys.modules[function.__module__].__doc__ or "").partition("\n")[0]
            groups[name] = typer.Typer(help=text, no_args_is_help=True)
            app.add_typer(groups[name], name=name)
        groups[name].command(command, cls=Command)(as_command(function))


_add_commands_of_others()


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
    with shown_messages():
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
    except (MemoryError, ImportError, RuntimeError) as error:
        if not (message := _machine_problem(error)):
            raise
        typer.echo(printable(f"error: {message}"), err=True)
        return BpaError.exit_code
    return 0


def _machine_problem(error: Exception) -> str:
    """Return the message for a lack of memory or a package; an empty text for other errors."""
    # JAX raises a RuntimeError of its own with this code.
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "out of memory: give fewer or smaller lists, fewer draws, or a machine with more"
    if isinstance(error, ImportError):
        return f"a package cannot be loaded: {error}"
    return ""


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
            "one with a name in UTF-8",
            code="bad-encoding",
        ) from error


class _Printer(logging.Handler):
    """Print status messages as they are, and warnings as notes, each of them once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        message = record.getMessage()
        if record.levelno < logging.WARNING:
            print(message, file=sys.stderr)
        elif message not in self._shown:
            self._shown.add(message)
            print(f"note: {printable(message)}", file=sys.stderr)


@contextmanager
def shown_messages() -> Iterator[None]:
    """Print the records of the block, and hide other libraries' warnings unless Python has -W."""
    printer, level = _Printer(), LOGGER.level
    LOGGER.addHandler(printer)
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")
            yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(printer)
