"""The options of commands: those of Python, their defaults, help, and completion."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from command_line import run
from cyclopts import App
from cyclopts.argument import Argument

from bpa_ppl.cli.app import app
from bpa_ppl.decoding.options import RerankOptions
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.experiments.tuning.base import TUNERS
from bpa_ppl.formats.base import NBEST_FORMATS
from bpa_ppl.quality.base import METRICS
from bpa_ppl.sampling.base import SAMPLERS
from bpa_ppl.sampling.options import AdaptOptions

#: Parameters that are groups of options.
GROUPS = {"reading", "options", "extra"}


def commands_of(group: App) -> list[App]:
    """Return the subcommands of a group of commands, and of the groups in it."""
    commands = [group[name] for name in group if not name.startswith("-")]
    return [*commands, *(one for command in commands for one in commands_of(command))]


def options_of(command: str) -> dict[str, Argument]:
    """Return the options of a command by the names of their parameters."""
    options = app[command].assemble_argument_collection(parse_docstring=True)
    return {option.field_info.name: option for option in options if option.parse}


def test_every_option_has_a_help_text() -> None:
    commands = commands_of(app)
    assert len(commands) > 20
    for command in commands:
        assert command.help, command.name
        if command.default_command is not None:
            options = command.assemble_argument_collection(parse_docstring=True)
            shown = [one for one in options if one.parse and one.field_info.name not in GROUPS]
            missing = [option.name for option in shown if not option.parameter.help]
            assert not missing, (command.name, missing)


@pytest.mark.parametrize(
    ("words", "mention"),
    [
        ("adapt x --metrc ter", "Did you mean --metric?"),
        ("adapt x -w none -o x.nc --seed 1.5", "expected an integer, not '1.5' (--seed)"),
        ("adapt x -w none -o x.nc --set drws=5", "no setting drws: did you mean draws?"),
        ("adapt x -o x.nc", "--weights"),
        ("adapted x", '"adapt"'),
    ],
)
def test_the_nearest_option_is_named(words: str, mention: str) -> None:
    done = run(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert mention in done.err


def test_help_names_every_choice() -> None:
    """Names are compared as words: `rwm` is a part of `rwm-isotropic`."""
    registries = {"sampler": SAMPLERS, "metric": METRICS, "format": NBEST_FORMATS, "rule": RULES}
    shown = {**options_of("tune"), **options_of("rerank"), **options_of("adapt")}
    for option, registry in {**registries, "tuner": TUNERS}.items():
        words = set(re.findall(r"[\w+-]+", shown[option].parameter.help or ""))
        assert set(registry) - words == set(), option


@pytest.mark.parametrize(("command", "kind"), [("adapt", AdaptOptions), ("rerank", RerankOptions)])
def test_the_options_of_a_command_are_those_of_python(command: str, kind: type) -> None:
    shown, library = options_of(command), {field.name: field for field in fields(kind)}
    assert set(library) - {"oracle", "extra", "model", "progress"} <= set(shown)
    assert {"model", "progress", "oracle"}.isdisjoint(shown)
    for name in set(library) & set(shown) - {"settings", "extra"}:
        assert shown[name].field_info.default == library[name].default, name
