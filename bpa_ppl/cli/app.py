"""The command `bpa`: its subcommands, standard streams, messages and exit codes."""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import entry_points, version
from inspect import isfunction
from pathlib import Path
from typing import Any, get_args

import cyclopts
from cyclopts import (
    App,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    Token,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument

from bpa_ppl._runtime.messages import LOGGER, warn_user
from bpa_ppl.cli import adapt, comparing, language_models, list_commands, posteriors
from bpa_ppl.cli.options import discard, print_message, refuse_empty
from bpa_ppl.cli.outputs import check_outputs
from bpa_ppl.cli.signals import Ended, ending_signals
from bpa_ppl.errors import (
    BpaError,
    UsageError,
    describe_missing_package,
    escape_controls,
    find_interruption,
    list_names,
    quote,
    wrong_value,
)

#: Exit codes that shells report for a command ended by Ctrl-C and by a closed pipe.
_INTERRUPTED, _CLOSED_PIPE = 130, 141
_NO_MEMORY = (
    "error: out of memory: give fewer or smaller lists, fewer draws, or a machine with more"
)
#: In the place of `-`, which Cyclopts takes for an option; no argument of a process contains it.
_STANDARD = "\0"


def convert_words(kind: Any, tokens: Sequence[Token]) -> Any:
    """Return the value of a parameter; whole numbers are not rounded.

    >>> convert_words(int, [Token(value="5")]), convert_words(str, [Token(value=_STANDARD)])
    (5, '-')
    """
    refuse_empty(tokens)
    tokens = [one.evolve(value=one.value.replace(_STANDARD, "-")) for one in tokens]
    if kind in (int, int | None) and not re.fullmatch(r"[+-]?\d+", tokens[0].value):
        raise wrong_value("expected an integer", tokens[0].value)
    return cyclopts.convert(kind, tokens)


def _format_default(value: object) -> str | None:
    """Return a default value as help shows it; None where an option that is not given does nothing.

    >>> _format_default(8), _format_default(False)
    ('8', None)
    """
    return None if value is None or value is False else str(value)


#: What other programs call an option.
_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "gain": ("label", "labels", "metric", "objective", "reward", "score", "target", "criterion"),
    "features": ("columns", "covariates"),
    "exclude": ("drop", "ignore"),
    "references": ("refs", "gold"),
    "sources": ("src", "input"),
    "sampler": ("algorithm", "engine", "method"),
    "samplers": ("algorithms", "engines", "methods"),
    "jobs": ("n-jobs", "processes", "threads", "workers"),
    "seed": ("random-seed", "random-state"),
    "var-names": ("parameters", "params", "variables", "vars"),
    "quiet": ("silent",),
}
#: The boxes of `bpa --help`.
_EVERYDAY, _LISTS, _JUDGES = "Everyday", "Lists and priors", "Judges"
_RESEARCH, _PHRASES = "Research", "Phrases and language models"
_OTHERS, _HELP = "Commands of other packages", "Help"
_BOXES = {
    title: Group(title, sort_key=place)
    for place, title in enumerate((_EVERYDAY, _LISTS, _JUDGES, _RESEARCH, _PHRASES, _OTHERS, _HELP))
}
app = App(
    name="bpa",
    help="Choose the best of several candidates; compare samplers of any model.\n\n"
    "Researchers: compare samplers of a NumPyro model, check and trace any draws.\n\n"
    "Python programmers: import bpa_ppl, and choose by a Reranker.\n\n"
    "MT, speech and LLM engineers: adapt to judged lists, rerank new ones.",
    help_epilogue="Options with ... can be repeated. Several names are separated by spaces or "
    "commas; a name with a comma is in double quotes, as in '\"loss, log\"'. Exit codes: 0 done, 2 "
    "bad data or usage, 3 posterior not converged, 129 hangup, 130 interrupted, 141 output closed "
    "by its reader, 143 terminated.",
    help_format="plaintext",
    version=f"bpa_ppl {version('bpa_ppl')}",
    group_commands=_BOXES[_HELP],
    group_parameters=Group("Options", sort_key=0),
    default_parameter=Parameter(
        converter=convert_words,
        allow_repeating=True,
        negative_bool="",
        negative_iterable="",
        show_default=_format_default,
    ),
)
_lm_app = App(
    name="lm",
    help="Language models: `bpa lm TEXT` estimates one, `bpa lm mix` mixes several.\n\n"
    "Example: `bpa lm domain.txt --order 4 --output domain.arpa --test dev.txt`",
    group=_BOXES[_PHRASES],
    group_commands="Commands",
    help_format="markdown",
)
#: The commands of the core by their boxes, in the order of the help.
_COMMANDS: Mapping[str, tuple[Callable[..., None], ...]] = {
    _EVERYDAY: (
        *(list_commands.lists_, adapt.adapt, posteriors.check, posteriors.trace, comparing.compare),
        *(posteriors.report, posteriors.rerank, posteriors.weights),
    ),
    _LISTS: (list_commands.features, list_commands.oracle, adapt.learn_prior),
    _RESEARCH: (comparing.calibrate,),
}
for title, functions in _COMMANDS.items():
    for place, function in enumerate(functions):
        name = function.__name__.strip("_").replace("_", "-")
        app.command(
            function, name=name, sort_key=place, group=_BOXES[title], help_format="markdown"
        )
app.command(_lm_app)
_lm_app.command(language_models.mix)
_lm_app.default(language_models.estimate)


def _add_commands_of_others() -> None:
    """Add the commands of `bpa_ppl.extras` and of other packages.

    They are functions like those of this package, in the entry points `bpa_ppl.commands`. The name
    `phrases.mix` is that of `bpa phrases mix`; the help of such a command is the first line of the
    docstring of the module. `HELP_BOX` in a module names the box of its commands.
    """
    parents = {"": app}
    for point in entry_points(group="bpa_ppl.commands"):
        try:
            function = point.load()
        except Exception as error:  # any error of a third-party module on import
            warn_user(f"left out: the command {point.name}, {point.value}: {error}")
            continue
        parent, _, name = point.name.rpartition(".")
        module = sys.modules[function.__module__]
        box = _BOXES.get(getattr(module, "HELP_BOX", ""), _BOXES[_OTHERS])
        if parent not in parents:
            text = (module.__doc__ or "").partition("\n")[0]
            parents[parent] = App(name=parent, help=text, group=box, group_commands="Commands")
            app.command(parents[parent])
        place = None if parent else box
        parents[parent].command(function, name=name, group=place, help_format="markdown")


_add_commands_of_others()
app.register_install_completion_command(help="Install completion for the current shell.")


def run_command(words: list[str]) -> None:
    """Run a subcommand.

    Raises:
        BpaError: if a word is not an option, or by the subcommand.
    """
    try:
        tokens = [_STANDARD if word == "-" else word for word in words]
        command, bound, _ = app.parse_args(tokens, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        error.verbose = False
        problem = error.__cause__
        if not isinstance(problem, BpaError):
            raise _explain_words(error, words) from error
        if error.argument is not None:
            problem.parameter = problem.parameter or error.argument.field_info.name
        raise problem from error
    check_outputs(bound)
    command(*bound.args, **bound.kwargs)


def _option_names(words: Sequence[str]) -> dict[str, str]:
    """Return what the parameters of a command are called on the command line."""
    command = app.parse_commands(list(words))[1][-1]
    if not isfunction(command.default_command):  # a method of Cyclopts, which prints help
        return {}
    options = command.assemble_argument_collection()
    return {one.field_info.name: one.name for one in options if one.parse and one.names}


def suggest_option(typed: str, options: Iterable[Argument]) -> str:
    """Return what follows an unknown option in a message: the one that was probably meant.

    Args:
        typed: the unknown option.
        options: of the command.
    """
    typed = typed.lstrip("-").replace("_", "-")
    all_names = [name for one in options if one.parse for name in one.names]
    names = [name.removeprefix("--") for name in all_names if name.startswith("--")]
    begin = [name for name in names if name.startswith(typed)]
    if len(begin) > 1:
        return f" ({list_names(f'--{name}' for name in begin)} begin with it)"
    meant = begin or [name for name in names if typed in _SYNONYMS.get(name, ())]
    meant = meant or get_close_matches(typed, names, n=1)
    return f" (did you mean --{meant[0]}?)" if meant else ""


def _find_greedy(words: Sequence[str]) -> str | None:
    """Return the last option among the words that takes several names."""
    command = app.parse_commands(list(words))[1][-1]
    options = command.assemble_argument_collection()
    names = {name for one in options if one.parameter.consume_multiple for name in one.names}
    return next((word for word in reversed(words) if word in names), None)


def _explain_words(error: CycloptsError, words: Sequence[str]) -> UsageError:
    """Return what is wrong with the words of a command line."""
    command = " ".join(["bpa", *(error.command_chain or ())])
    if isinstance(error, UnusedCliTokensError):
        rest = list_names(map(quote, error.unused_tokens or ())).replace(_STANDARD, "-")
        problem = f"{rest}: nothing is expected there; {command} --help shows the arguments"
        return UsageError(problem, code="conflict")
    if isinstance(error, UnknownOptionError):
        typed = (error.token.keyword or error.token.value).partition("=")[0]
        problem = f"unknown option {quote(typed)}{suggest_option(typed, error.argument_collection)}"
        return UsageError(f"{problem}: {command} --help shows the options", code="unknown-name")
    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return UsageError(str(error))
    missing = error.argument
    problem = f"give {missing.name}"
    if not missing.name.startswith("-") and (greedy := _find_greedy(words)):
        problem += f" before {greedy}, which takes all words that follow it"
    if missing.name.startswith("-"):
        hints = {missing.hint, *get_args(missing.hint)}
        is_file = missing.required or not hints.isdisjoint({Path, list[Path]})
        value = missing.parameter.metavar or ("FILE" if is_file else "VALUE")
        problem += f" {value.removesuffix('...')}" * missing.token_count()[0]
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        similar = get_close_matches(missing.name, options, 1)
        if similar and similar[0] not in missing.names:
            problem += f" instead of {similar[0]}"
    problem += f" ({command} --help describes it)"
    return UsageError(problem, parameter=missing.field_info.name, code="missing-argument")


def _format_error(error: BpaError, words: list[str]) -> str:
    """Return the message of an error, with the option where it is about one."""
    text = str(error)
    if error.parameter is None:
        return text
    option = _option_names(words).get(error.parameter, "")
    if option.startswith("-") and option not in error.message:
        text = text.replace(error.message, f"{error.message} ({option})", 1)
    return text


def main() -> None:
    """Run `bpa` and exit: one line on standard error for what went wrong, no traceback."""
    _prepare_streams()
    with show_messages(), ending_signals():
        code = _exit_code()
    sys.exit(code)


def _exit_code() -> int | str | None:
    words = sys.argv[1:]
    try:
        _check_place(words)
        run_command(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):  # raised by Rich, which prints help
            return _CLOSED_PIPE
        return done.code
    except BrokenPipeError:
        discard(sys.stdout)
        return _CLOSED_PIPE
    except BaseException as error:
        interrupted = find_interruption(error)
        if isinstance(interrupted, Ended):
            message, code = str(interrupted), interrupted.exit_code
        elif interrupted is not None:
            message, code = "interrupted", _INTERRUPTED
        else:
            message, code = _failure(error, words)
    print_message(message)
    return code


def _check_place(words: Sequence[str]) -> None:
    """Refuse arguments that no file can have as a name, and a current folder that was deleted."""
    for word in words:
        if any("\udc80" <= character <= "\udcff" for character in word):
            raise UsageError(f"{quote(word)} is not a name in UTF-8: rename the file")
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(
            f"the current folder cannot be used ({error.strerror}): change to another one with cd"
        ) from error


def _failure(error: BaseException, words: list[str]) -> tuple[str, int]:
    """Return the message and the exit code of an error; raise an error of the program again."""
    match error:
        case BpaError():
            return f"error: {_format_error(error, words)}", error.exit_code
        case OSError():
            message = f"error: {error.filename or 'output'}: {error.strerror or error}"
            # A disk that is full, or a library that finds no folder to write in.
            if error.filename is None and error.errno in (None, errno.ENOENT, errno.ENOSPC):
                message += ": make room, or set TMPDIR and NUMBA_CACHE_DIR to folders with room"
        case ModuleNotFoundError():
            message = f"error: {describe_missing_package(' '.join(['bpa', *words[:1]]), error)}"
        case ImportError():
            message = f"error: a package cannot be loaded: {error}"
        case MemoryError():
            message = _NO_MEMORY
        case RuntimeError() if "RESOURCE_EXHAUSTED" in str(error):  # of JAX
            message = _NO_MEMORY
        case _:
            raise error
    return escape_controls(message), BpaError.exit_code


def _prepare_streams() -> None:
    """Escape characters that the terminal cannot show, and open closed standard streams.

    A closed one is opened on the null device; otherwise the next file that is opened would become
    the standard output.
    """
    spare = 0
    while spare < 3:
        spare = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    os.close(spare)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Printer(logging.Handler):
    """Print status messages as they are, and warnings as notes, each of them once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.levelno < logging.WARNING:
            print_message(message)
        elif message not in self._shown:
            self._shown.add(message)
            print_message(f"note: {escape_controls(message)}")


@contextmanager
def show_messages() -> Iterator[None]:
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
