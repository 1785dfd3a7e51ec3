"""The command `bpa`: subcommands on files, without logic of their own."""

from bpa_ppl.cli.app import main

__all__ = ["main"]
