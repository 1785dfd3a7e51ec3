"""`bpa adapt`: n-best lists, references and canonical weights in, posterior out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import command_line


def run(
    nbest: options.NBestPath,
    weights: options.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="Posterior (NetCDF).")],
    reading: options.Reading,
    matching: options.Matching,
    references: options.References = None,
    sampler: options.Sampler = "auto",
    prior_variance: Annotated[
        float | None, typer.Option(help="σ_T of the prior, a variance: 0.1 unless given.")
    ] = None,
    metric: options.Metric = "ter",
    ties: options.Ties = "canonical",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the sampler: draws, warmup, chains, delta, …"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    jobs: options.Jobs = 1,
    cache: options.Cache = True,
    quiet: options.Quiet = False,
) -> None:
    """Adapt the weights to a few sentences and their references."""
    import bpa_ppl
    from bpa_ppl.formats import atomic_path
    from bpa_ppl.registry import SAMPLERS

    # A mistake in the options is found before any file is read.
    chosen = SAMPLERS.resolve(sampler, options.assignments(setting, "--set"))
    matched = matching.arguments()
    references = options.required(references, "adapt")
    # Opened first: a path that cannot be written shall not cost the user the sampling.
    with atomic_path(output) as temporary:
        posterior = bpa_ppl.adapt(
            reading.read(nbest, references),
            bpa_ppl.read_weights(weights),
            sampler=chosen,
            prior_variance=prior_variance,
            seed=seed,
            metric=metric,
            ties=ties,
            jobs=jobs,
            cache=cache,
            progress=not quiet,
            **matched,
        )
        posterior.attrs["command"] = command_line()
        bpa_ppl.write_posterior(posterior, temporary)
    options.say(bpa_ppl.check(posterior), quiet)
