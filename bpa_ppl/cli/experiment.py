"""`bpa experiment`: learning curves from a study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    study: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the results; resumed if begun.")
    ],
    jobs: Annotated[int, typer.Option(help="Processes at the same time; -1 takes every core.")] = 1,
    backend: Annotated[str, typer.Option(help="local, or dask for an existing cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of the Dask scheduler: tcp://host:8786.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare methods over numbers of adaptation sentences; killed, it resumes where it was."""
    from bpa_ppl.experiments import read_study, run_study

    written = run_study(
        read_study(study),
        output,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        progress=not quiet,
    )
    options.say(f"wrote {written}: draw it with `bpa figures {output}`", quiet)
