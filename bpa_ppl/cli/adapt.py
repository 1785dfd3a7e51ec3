"""`bpa adapt`: n-best lists, references and canonical weights in, posterior out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import command_line
from bpa_ppl.errors import UsageError


def run(
    nbest: options.NBestPath,
    weights: Annotated[
        Path, typer.Option("--weights", "-w", help="moses.ini, dense weights or JSON.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Posterior (NetCDF).")],
    references: options.References = None,
    sampler: options.Sampler = "auto",
    prior_variance: Annotated[float, typer.Option(help="σ_T, a variance.")] = 0.1,
    metric: options.Metric = "ter",
    ties: options.Ties = "canonical",
    fixed: options.Fixed = None,
    default: options.Default = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the sampler: draws, warmup, chains, delta, …"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    first_id: options.FirstId = 0,
    bad: options.Bad = "error",
    jobs: options.Jobs = 1,
    cache: options.Cache = True,
    quiet: options.Quiet = False,
) -> None:
    """Adapt the weights to a few sentences and their references."""
    import bpa_ppl
    from bpa_ppl.formats import atomic_path
    from bpa_ppl.sampling.registry import configure

    settings: dict[str, Any] = dict(options.assignments(setting, "--set"))
    configure(sampler, settings)
    if not references:
        raise UsageError("adapt needs --references: the reference translations of the lists")
    # Opened first: a path that cannot be written shall not cost the user the sampling.
    with atomic_path(output) as beside:
        posterior = bpa_ppl.adapt(
            bpa_ppl.read_nbest(nbest, references=references, first_id=first_id, bad=bad),
            bpa_ppl.read_weights(weights),
            sampler=sampler,
            prior_variance=prior_variance,
            seed=seed,
            metric=metric,
            ties=ties,
            jobs=jobs,
            cache=cache,
            fixed=[] if fixed == ["none"] else fixed,
            defaults=options.numbers(default, "--default"),
            progress=not quiet,
            **settings,
        )
        posterior.attrs["command"] = command_line()
        bpa_ppl.write_posterior(posterior, beside)
    options.say(bpa_ppl.check(posterior), quiet)
