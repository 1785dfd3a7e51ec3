"""`bpa demo`: the main job on the data that comes along."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "demo-output"
    ),
    seed: Annotated[int, typer.Option(help="Of the split and the sampler.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Adapt on 50 sentences of a package leaflet, check, rerank the rest."""
    from bpa_ppl.demo import run_demo

    print(run_demo(output, seed=seed, progress=not quiet))
