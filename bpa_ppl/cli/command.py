"""Command: a subcommand that prints errors with the option that they are about."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand

from bpa_ppl.errors import BpaError
from bpa_ppl.registry import SAMPLERS, TUNERS


class Command(TyperCommand):
    """A subcommand whose errors are one line on standard error, and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print an error with the option of its parameter."""
        try:
            return super().invoke(ctx)
        except BpaError as error:
            print(f"error: {self.message(error)}", file=sys.stderr)
            raise SystemExit(error.exit_code) from error

    def message(self, error: BpaError) -> str:
        """Return the message of an error, with the option where it is about one."""
        options = {
            parameter.name: next(name for name in parameter.opts if name.startswith("--"))
            for parameter in self.params
            if any(name.startswith("--") for name in parameter.opts)
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
        takes_settings = any("--set" in parameter.opts for parameter in self.params)
        kinds = [kind for registry in (SAMPLERS, TUNERS) for _, kind in registry.loaded()]
        if not takes_settings or all(name not in kind.__struct_fields__ for kind in kinds):
            return
        value = "VALUE"  # or what follows it: `--draws 200` or `--draws=200`
        for position, word in enumerate(arguments):
            if word.startswith(f"{option}="):
                value = word.partition("=")[2]
            elif word == option and position + 1 < len(arguments):
                value = arguments[position + 1]
        several = any("--samplers" in parameter.opts for parameter in self.params)
        prefix = "SAMPLER." if several else ""
        error.message = f"No such option: {option}. Use --set {prefix}{name}={value}"
        error.possibilities = None
