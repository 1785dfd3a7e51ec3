"""`bpa compare`: samplers side by side on the same data, as a page with tables."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import VERSIONS, command_line, names_of, settings_of
from bpa_ppl.errors import one_of
from bpa_ppl.registry import SAMPLERS


def run(
    nbest: options.NBestPath,
    weights: options.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of page and tables.")],
    reading: options.Reading,
    references: options.References = None,
    samplers: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "heuristic,rwm,imh,nuts,laplace",
    runs: Annotated[int, typer.Option(help="Of each sampler, from as many seeds.")] = 4,
    reference_sampler: Annotated[
        str, typer.Option(help="Sampler of the long run that the others are held against.")
    ] = "nuts",
    reference_draws: Annotated[int, typer.Option(help="Of each of its four chains.")] = 5000,
    posterior: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FILE: a posterior of the same data, to be compared too."),
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="Lists to rerank with each; else those adapted to.")
    ] = None,
    test_references: Annotated[
        list[Path] | None, typer.Option(help="Their references; repeat for several.")
    ] = None,
    figures: Annotated[str, typer.Option(help="Also as files: png, pdf or none.")] = "none",
    prior_variance: Annotated[float, typer.Option(help="σ_T, a variance.")] = 0.1,
    likelihood: options.Likelihood = None,
    metric: options.Metric = "ter",
    setting: options.SamplerSettings = None,
    seed: Annotated[int, typer.Option(help="Of the first run.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Compare samplers: their cost, their errors against a long run, their translations."""
    from bpa_ppl.diagnostics.comparison.page import write_comparison
    from bpa_ppl.diagnostics.pages.figures import FIGURE_KINDS
    from bpa_ppl.experiments.samplers import compare_samplers
    from bpa_ppl.formats.parts import make_folder
    from bpa_ppl.posterior import read_draws

    one_of(figures, FIGURE_KINDS, "kind of figures")
    goal, likely = options.metric(metric), options.likelihood(likelihood)
    names = names_of(samplers)
    settings = settings_of(names, setting)
    for name in (*names, reference_sampler):
        SAMPLERS.resolve(name, settings.get(name))
    others = {
        name: [read_draws(str(path))]
        for name, path in options.assignments(posterior, "--posterior").items()
    }
    make_folder(output)
    comparison = compare_samplers(
        options.with_needs(reading.read(nbest, references), goal, "compare"),
        options.canonical(weights),
        names,
        runs=runs,
        seed=seed,
        reference=reference_sampler,
        reference_draws=reference_draws,
        settings=settings,
        others=others,
        test=None if test is None else reading.read(test, test_references),
        metric=goal,
        likelihood=likely,
        prior_variance=prior_variance,
        progress=not quiet,
    )
    made = {
        "adaptation lists": nbest,
        "weights": str(weights),
        "likelihood": likelihood or "as adapt chooses it for the metric",
        "prior variance σ_T": f"{prior_variance:g}",
        "oracle metric": metric,
        "seed of the first run": str(seed),
        "settings": json.dumps(settings),
        **{f"version of {name}": version(name) for name in VERSIONS},
    }
    written = write_comparison(comparison, output, kind=figures, made=made, command=command_line())
    print(comparison)
    options.say(f"wrote {written[0]} and {len(written) - 1} files beside it", quiet)
