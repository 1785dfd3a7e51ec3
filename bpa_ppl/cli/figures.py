"""`bpa figures`: the page, the figures and the numbers of a finished study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    results: Annotated[Path, typer.Argument(help="Folder that `bpa experiment` wrote.")],
    kind: Annotated[str, typer.Option(help="Of the files of figures: png, pdf or none.")] = "png",
    quiet: options.Quiet = False,
) -> None:
    """Draw learning curves: figures, tables, and one self-contained HTML page."""
    from bpa_ppl.experiments import write_figures

    written = write_figures(results, kind=kind)
    options.say(f"wrote {written[0]} and {len(written) - 1} files beside it", quiet)
