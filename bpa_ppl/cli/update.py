"""`bpa update`: condition a posterior on one more sentence, or some, without starting over."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import command_line
from bpa_ppl.errors import UsageError

if TYPE_CHECKING:
    from bpa_ppl.nbest import NBest
    from bpa_ppl.posterior import Draws


@dataclass(frozen=True)
class Known:
    """The sentences that the posterior was adapted to."""

    known: Annotated[
        Path | None,
        typer.Option(
            "--with",
            help="The lists that `bpa adapt` was given: fresh draws, where they are needed, are "
            "then exact. Without them a Gaussian stands for those sentences.",
        ),
    ] = None
    known_references: Annotated[
        list[Path] | None,
        typer.Option("--with-references", help="Their references; repeat for several."),
    ] = None
    known_sources: Annotated[
        Path | None, typer.Option("--with-sources", help="Their source sentences.")
    ] = None

    def read(self, reading: options.Reading) -> NBest | None:
        """Return the lists, or None where there are none.

        Raises:
            UsageError: if texts are given without lists.
        """
        if self.known is None:
            if self.known_references or self.known_sources:
                raise UsageError("--with-references and --with-sources go with --with")
            return None
        return reading.read(self.known, self.known_references, self.known_sources)


def run(
    posterior: options.PosteriorPath,
    nbest: options.NBestPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Posterior (NetCDF); may be the same file.")
    ],
    reading: options.Reading,
    before: Known,
    references: options.References = None,
    sources: options.Sources = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "--gain",
            help="That of `bpa adapt`, where it had settings of its own; else it is known.",
        ),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="Of fresh draws, where they are needed: imh, laplace or nuts.")
    ] = "imh",
    where: options.Places = None,
    seed: Annotated[int, typer.Option(help="Of fresh draws.")] = 0,
    jobs: options.Jobs = 1,
    cache: options.Cache = True,
    unchecked: options.Unchecked = False,
    quiet: options.Quiet = False,
) -> None:
    """Condition a posterior on sentences more, without starting over.

    Its draws are reweighted; where the weights cannot be trusted (Pareto k̂ above 0.7, or few
    effective draws), draws are made afresh.
    """
    import bpa_ppl
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.posterior import read_draws
    from bpa_ppl.sampling.updating import Step

    goal = None if metric is None else options.metric(metric)
    known = before.read(reading)
    old = read_draws(posterior)
    require_writable(output)
    made: Draws = bpa_ppl.update(
        old,
        reading.read(nbest, references, sources),
        known=known,
        metric=goal,
        where=options.places(where),
        sampler=sampler,
        seed=seed,
        jobs=jobs,
        cache=cache,
        unchecked=unchecked,
        progress=not quiet,
        arviz=False,
    )
    made = made.with_attrs(update_command=command_line())
    bpa_ppl.write_posterior(made, output)
    options.say(Step.recorded(made.attrs["updates"][-1]), quiet)
    options.say(bpa_ppl.check(made), quiet)
