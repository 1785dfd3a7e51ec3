"""`bpa weights`: one vector of weights from a posterior, for the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.registry import WEIGHT_FORMATS


def run(
    posterior: options.PosteriorPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The weights; - is stdout.")],
    template: Annotated[
        Path | None, typer.Option(help="moses.ini to copy, with the adapted weights put in.")
    ] = None,
    point: Annotated[str, typer.Option(help="mean, mode or draw.")] = "mean",
    draw: Annotated[int, typer.Option(help="Which draw, for --point draw.")] = 0,
    normalise: Annotated[
        bool, typer.Option(help="Divide the adapted weights by their sum of absolute values.")
    ] = True,
    format: Annotated[
        str, typer.Option(help=f"{options.names_in(WEIGHT_FORMATS, 'auto')}; auto is by suffix.")
    ] = "auto",
    unchecked: options.Unchecked = False,
) -> None:
    """Write the posterior mean (or mode, or a draw) as weights for the decoder."""
    import bpa_ppl
    from bpa_ppl.decoding import refuse_unconverged
    from bpa_ppl.posterior import read_draws

    loaded = read_draws(posterior)
    if not unchecked:
        refuse_unconverged(loaded)
    weights = bpa_ppl.point_weights(loaded, point, draw)
    if normalise:
        weights = weights.normalised(loaded.features)
    bpa_ppl.write_weights(weights, output, template=template, format=format)
