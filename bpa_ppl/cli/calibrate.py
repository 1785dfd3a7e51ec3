"""`bpa calibrate`: simulation-based calibration of samplers on given lists."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import VERSIONS, command_line, names_of, settings_of
from bpa_ppl.errors import NotConverged
from bpa_ppl.registry import LIKELIHOODS


def run(
    nbest: options.NBestPath,
    weights: options.Weights,
    reading: options.Reading,
    references: options.References = None,
    samplers: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "imh,laplace,nuts,rwm",
    likelihood: Annotated[
        str,
        typer.Option(
            help="The likelihood that observations are simulated from, with its settings: oracle, "
            "preference for lists that carry preferences, or a registered one that is a "
            "distribution."
        ),
    ] = "oracle",
    metric: options.Metric = "ter",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page (HTML); with .json, the numbers.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Simulated data sets of each sampler.")] = 200,
    prior_variance: Annotated[float, typer.Option(help="σ_T, a variance.")] = 0.1,
    setting: options.SamplerSettings = None,
    jobs: Annotated[int, typer.Option(help="Threads side by side.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same ranks.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Test whether samplers find back weights that oracles were simulated from; exit 3 if not."""
    from bpa_ppl.diagnostics.calibration import calibration_page
    from bpa_ppl.experiments.calibration import calibrate_sampler
    from bpa_ppl.formats.streams import atomic_writer

    settings = settings_of(names_of(samplers), setting)
    likely, goal = (
        options.component(LIKELIHOODS, likelihood, "--likelihood"),
        options.metric(metric),
    )
    lists = reading.read(nbest, references)
    if likely.observes == "gains":
        lists = options.with_needs(lists, goal, f"calibrate --likelihood {likelihood}")
    canonical = options.canonical(weights)
    found = []
    for name, own in settings.items():
        found.append(
            calibrate_sampler(
                lists,
                canonical,
                name,
                replications=replications,
                prior_variance=prior_variance,
                likelihood=likely,
                metric=goal,
                seed=seed,
                jobs=jobs,
                progress=not quiet,
                **own,
            )
        )
        print(found[-1])
    if output is not None:
        made = {
            "lists": nbest,
            "weights": str(weights),
            "likelihood": likelihood,
            "prior variance σ_T": f"{prior_variance:g}",
            "seed": str(seed),
            "settings": json.dumps(settings),
            **{f"version of {name}": version(name) for name in VERSIONS},
        }
        numbers = json.dumps([one.as_dict() for one in found], indent=1)
        page = calibration_page(found, made=made, command=command_line())
        with atomic_writer(output) as file:
            file.write(numbers if output.suffix == ".json" else page)
    if not all(found):
        raise typer.Exit(NotConverged.exit_code)
