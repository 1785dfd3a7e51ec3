"""`bpa learn-prior`: from posteriors of other domains to a prior for the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    posteriors: Annotated[
        list[Path], typer.Argument(help="NetCDF files written by `bpa adapt`, one a domain.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The prior (JSON).")],
    shrinkage: Annotated[
        float | None,
        typer.Option(
            help="What the covariance between domains is shrunk to, as a share of the variance of "
            "the posteriors' own priors: 0.05 unless given, and 1 where no feature has a "
            "canonical weight."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="How many domains that counts as: 10 unless given, and 100 where no feature has "
            "a canonical weight."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature that the lists of the new domain lack, or the label of several; repeat "
            "for more. Their weights are taken as 0."
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(help="Page (HTML): which weights all domains share, which are one's own."),
    ] = None,
    unchecked: options.Unchecked = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn from the posteriors of one or more domains a prior for another one."""
    from bpa_ppl.decoding import refuse_unconverged
    from bpa_ppl.diagnostics.learned_prior import as_table, learned_prior_page
    from bpa_ppl.diagnostics.pages.page import write_page
    from bpa_ppl.sampling.learning import labelled, learn_hierarchy, record

    draws = labelled(posteriors)
    for one in draws.values():
        if not unchecked:
            refuse_unconverged(one)
    found = learn_hierarchy(draws, shrinkage=shrinkage, strength=strength, without=without or ())
    found.prior().write(output, record(found, draws))
    if report is not None:
        write_page(learned_prior_page(found, draws), report)
    options.say(as_table(found), quiet)
