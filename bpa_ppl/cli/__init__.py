"""The command `bpa`: one module a subcommand, no logic of its own."""

from bpa_ppl.cli.app import main

__all__ = ["main"]
