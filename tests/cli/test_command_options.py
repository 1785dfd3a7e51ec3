"""The options of commands: those of Python, their defaults, help, and completion."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
import typer
from command_line import PROGRAM

import bpa_ppl as bpa
from bpa_ppl.cli import options
from bpa_ppl.cli.app import app
from bpa_ppl.options import AdaptOptions, RerankOptions
from bpa_ppl.registry import METRICS, NBEST_FORMATS, RULES, SAMPLERS, TUNERS, Registry


def options_of(command: str) -> dict[str, Any]:
    """Return the options of a command by the names of their parameters."""
    group: Any = typer.main.get_command(app)
    return {option.name: option for option in group.commands[command].params}


def test_every_option_has_a_help_text() -> None:
    group: Any = typer.main.get_command(app)
    commands = dict(group.commands)
    for name in ("phrases", "lm"):
        commands |= {f"{name} {key}": c for key, c in group.commands[name].commands.items()}
    for name, command in commands.items():
        assert command.help, name
        assert "Args:" not in command.help
        missing = [option.name for option in command.params if not option.help]
        assert set(missing) <= {"help"}, (name, missing)


@pytest.mark.parametrize(
    ("command", "option", "registry"),
    [
        ("adapt", "sampler", SAMPLERS),
        ("adapt", "metric", METRICS),
        ("rerank", "format", NBEST_FORMATS),
        ("rerank", "rule", RULES),
        ("tune", "tuner", TUNERS),
    ],
)
def test_help_names_every_choice(command: str, option: str, registry: Registry) -> None:
    """Names are compared as words: `rwm` is a part of `rwm-isotropic`."""
    assert set(registry) <= set(re.findall(r"[\w+-]+", options_of(command)[option].help))


@pytest.mark.parametrize(("command", "kind"), [("adapt", AdaptOptions), ("rerank", RerankOptions)])
def test_the_options_of_a_command_are_those_of_python(command: str, kind: type) -> None:
    shown, library = options_of(command), {field.name: field for field in fields(kind)}
    assert set(library) - {"oracle", "extra", "model", "confidence", "progress"} <= set(shown)
    assert {"model", "progress", "oracle", "confidence"}.isdisjoint(shown)
    for name in set(library) & set(shown) - {"settings", "extra"}:
        assert shown[name].default == library[name].default, name


@pytest.mark.parametrize("kind", [AdaptOptions, RerankOptions])
def test_defaults_are_those_of_the_library(kind: type) -> None:
    def command(options: kind) -> None:  # type: ignore[valid-type]
        assert options == kind()

    command.__annotations__["options"] = kind
    wrapped = options.as_command(command)
    wrapped(**{n: p.default for n, p in inspect.signature(wrapped).parameters.items()})


@pytest.mark.parametrize("function", ["read_nbest", "iter_nbest"])
def test_reading_options_are_arguments_of_the_library(function: str) -> None:
    theirs = inspect.signature(getattr(bpa, function)).parameters
    ours = options.Reading().arguments()
    assert ours == {name: theirs[name].default for name in ours}


@pytest.mark.parametrize("command", ["adapt", "calibrate", "compare", "oracle", "rerank", "tune"])
def test_all_commands_have_the_same_reading_options(command: str) -> None:
    shown = options_of(command)
    names = {"first_id": "--first-id", "bad": "--bad", "format": "--format"}
    assert {name: shown[name].opts for name in names} == {n: [o] for n, o in names.items()}


def test_values_of_settings() -> None:
    given = ["draws=200", "delta=2.5", "start=mode", "name=a=b"]
    expected = {"draws": 200, "delta": 2.5, "start": "mode", "name": "a=b"}
    assert options.assignments(given) == expected


@pytest.mark.parametrize(
    ("words", "position", "completions"),
    [
        ("bpa re", 1, ["report", "rerank"]),
        ("bpa adapt x --sampler rw", 4, ["rwm", "rwm-isotropic"]),
    ],
)
def test_the_shell_completes_commands_and_names(
    words: str, position: int, completions: list[str]
) -> None:
    asked = {"_BPA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == completions
