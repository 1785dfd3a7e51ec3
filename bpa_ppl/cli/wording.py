"""Errors in the words of the command line: options instead of arguments, settings by `--set`."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

from bpa_ppl.registry import SAMPLERS, TUNERS

#: How the library names something -> how the command line does.
_OPTIONS = {
    "(default weights)": "(--default NAME=VALUE)",
    "leave the default out": "leave --default out",
    "(`unchecked` overrides)": "(--unchecked overrides)",
    "(fixed)": "(--fixed)",
    "instead (gaps)": "instead (--gaps source or empty)",
    "begins (first_id)": "begins (--first-id)",
    "with bad='drop'": "with --bad drop",
    "need the sources: give them": "need --sources: the source sentences",
    "allow more (iterations)": "allow more (--iterations)",
    "iterations (folder)": "iterations (--rounds)",
    "(extra)": "(--extra)",
    "(known)": "(--with)",
    "(metric)": "(--metric)",
    "or name the format": "or name the format (--format)",
    "name the format if": "name the format (--format) if",
    "read them with references": "give --references",
    "need sources, which the lists do not have: add them": "need --sources: the source sentences",
    "need references, which the lists do not have: add them": "need --references",
    "a prior variance is a setting": "--prior-variance is a setting",
}
#: Lines of a report that say what to do, and the sampler and the settings that they name.
_ADVICE = re.compile(r"^- .*$", re.MULTILINE)
_SAMPLER = re.compile(r"\bsampler=(?=\w)")
_SETTING = re.compile(r"(?<![\w-])(\w+=[\d.]+\b)")
_WHERE = re.compile(r"where=\{'(.+?)': (.+?)\}")
_RUNS_SEVERAL = ("calibrate", "compare")


def in_options(message: str) -> str:
    """Return a message of the library as the command line says it.

    >>> in_options("no weight for LM0: give it a value (default weights)")
    'no weight for LM0: give it a value (--default NAME=VALUE)'
    >>> in_options("- draw more (draws=4000), or use sampler=nuts")
    '- draw more (--set draws=4000), or use --sampler nuts'
    """
    message = _ADVICE.sub(_advice_in_options, message)
    for ours, theirs in _OPTIONS.items():
        message = message.replace(ours, theirs)
    return _WHERE.sub(r"--where \1=\2", message)


def _advice_in_options(advice: re.Match[str]) -> str:
    return _SAMPLER.sub("--sampler ", _SETTING.sub(r"--set \1", advice[0]))


class Command(TyperCommand):
    """A subcommand that tells settings of samplers and tuners from unknown options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; for an unknown one that is a setting, say how to give it."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Whichever package the parser is from: an error of an unknown option has its name.
            option = getattr(error, "option_name", None)
            if option is not None and type(error).__name__ == "NoSuchOption":
                self._suggest(error, option, given)
            raise

    def _suggest(self, error: Any, option: str, given: list[str]) -> None:
        name = option.lstrip("-").replace("-", "_")
        takes_settings = any("--set" in parameter.opts for parameter in self.params)
        if not takes_settings or name not in _settings():
            return
        who = "SAMPLER." if self.name in _RUNS_SEVERAL else ""
        error.message = f"No such option: {option}. Say --set {who}{name}={_value(option, given)}"
        error.possibilities = None


def _settings() -> set[str]:
    """Return the settings of all samplers and tuners."""
    every = [*SAMPLERS.loaded(), *TUNERS.loaded()]
    return {name for _, kind in every for name in kind.__struct_fields__}


def _value(option: str, given: list[str]) -> str:
    """Return what was given with an option: `--draws 200` or `--draws=200`."""
    for position, word in enumerate(given):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and position + 1 < len(given):
            return given[position + 1]
    return "VALUE"
