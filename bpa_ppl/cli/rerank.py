"""`bpa rerank`: choose translations from new n-best lists with a posterior."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.registry import RULES


def run(
    nbest: options.NBestPath,
    posterior: Annotated[Path, typer.Option("--posterior", "-p", help="From `bpa adapt`.")],
    reading: options.Reading,
    output: Annotated[str, typer.Option("--output", "-o", help="Translations; - is stdout.")] = "-",
    details: Annotated[
        Path | None, typer.Option(help="Also write choices and probabilities, tab-separated.")
    ] = None,
    references: options.References = None,
    rule: Annotated[str, typer.Option(help=f"{options.names_in(RULES)}.")] = "predictive",
    derivations: Annotated[
        str, typer.Option(help="Equal strings: scored separate, as published, or summed.")
    ] = "separate",
    unchecked: options.Unchecked = False,
    quiet: options.Quiet = False,
) -> None:
    """Rerank n-best lists by the predictive distribution."""
    import bpa_ppl
    from bpa_ppl.decoding import scoreboard, write_details, write_texts

    result = bpa_ppl.rerank(
        reading.stream(nbest, references),
        bpa_ppl.read_posterior(posterior),
        rule=rule,
        derivations=derivations,
        unchecked=unchecked,
        progress=not quiet,
    )
    write_texts(result, output)
    if details is not None:
        write_details(result, details)
    if references:
        print(scoreboard(result), file=sys.stderr if output == "-" else sys.stdout)
    else:
        changed = int(result.changed.sum())
        options.say(f"{changed} of {len(result.texts)} translations changed", quiet)
