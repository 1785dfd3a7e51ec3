"""`bpa check`, `bpa report`, `bpa compare`, `bpa calibrate`: whether a posterior can be trusted."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import DataError, NotConverged, UsageError, one_of
from bpa_ppl.registry import LIKELIHOODS, SAMPLERS

PriorVariance = Annotated[float, typer.Option(help="Variance σ_T of the prior.")]


def check(
    posterior: shared.PosteriorPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the diagnostics of a posterior; exit with 3 if it has not converged."""
    import bpa_ppl
    from bpa_ppl.posterior import read_draws

    report = bpa_ppl.check(read_draws(posterior))
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    if not report:
        raise typer.Exit(NotConverged.exit_code)


def report(
    posterior: Annotated[
        Path,
        typer.Argument(help="Posterior of `bpa adapt`, or subdomains of `bpa subdomains`."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Page (HTML); - for stdout.")],
    reading: shared.Reading,
    nbest: Annotated[
        str | None,
        typer.Option(
            "--nbest",
            "--lists",
            help="New n-best lists, with --references: evaluate the adaptation and the added "
            "features on them. For subdomains: lists with segmentations, to show their phrases.",
        ),
    ] = None,
    references: shared.References = None,
    sources: shared.Sources = None,
    adaptation_lists: Annotated[
        str | None,
        typer.Option(
            help="The lists that `bpa adapt` was given, to show the texts of their sentences."
        ),
    ] = None,
    moved_files: shared.MovedFile = None,
    phrases: Annotated[
        str | None, typer.Option(help="For subdomains: a phrase table, to show its phrases.")
    ] = None,
    min_count: Annotated[
        int, typer.Option(help="For subdomains: show phrases that occur at least so often.")
    ] = 50,
    top: Annotated[
        int,
        typer.Option(
            help="Draw the chains of so many weights, those that mix worst. For subdomains: the "
            "number of words, phrases and pairs to show."
        ),
    ] = 8,
    quiet: shared.Quiet = False,
) -> None:
    """Write a self-contained HTML page about a posterior, or about latent subdomains."""
    from bpa_ppl.decoding.report import report_page
    from bpa_ppl.diagnostics.pages.page import write_page
    from bpa_ppl.diagnostics.subdomains import subdomains_page
    from bpa_ppl.features.segmentations import phrase_pairs
    from bpa_ppl.phrases import Subdomains
    from bpa_ppl.phrases.table_files import read_pairs
    from bpa_ppl.posterior import read_draws

    new = None if nbest is None else reading.read(nbest, references, sources)
    if _holds_subdomains(posterior):
        if references or moved_files or adaptation_lists:
            raise UsageError(
                "--references, --moved-file and --adaptation-lists are for posteriors, not for "
                "subdomains"
            )
        if new is not None and phrases is not None:
            raise UsageError("--nbest and --phrases both give the phrases to show: give one")
        pairs = None if new is None else phrase_pairs(new)
        if phrases is not None:
            table = read_pairs(phrases)
            pairs = table.texts("source").to_pylist(), table.texts("target").to_pylist()
        html = subdomains_page(
            Subdomains.load(posterior),
            title=f"Subdomains {posterior.name}",
            pairs=pairs,
            min_count=min_count,
            top=top,
        )
    else:
        if phrases is not None:
            raise UsageError(f"--phrases is for subdomains, and {posterior} holds none")
        if new is None and references:
            raise UsageError("--references goes with --nbest: give the lists, too")
        html = report_page(
            read_draws(posterior),
            new,
            adaptation_lists=None if adaptation_lists is None else reading.read(adaptation_lists),
            moved_files=shared.moved_files(moved_files),
            title=f"Posterior {posterior.name}",
            top=top,
        )
    write_page(html, output)
    shared.echo_status(f"wrote {output}", quiet or output == "-")


def _holds_subdomains(path: Path) -> bool:
    """Say whether a file may hold subdomains; its reader reports what is wrong with it."""
    from bpa_ppl.formats.streams import InputFile
    from bpa_ppl.phrases.table_files import is_parquet

    with suppress(DataError):
        return is_parquet(InputFile(path))
    return False


def compare(
    nbest: shared.NBestPath,
    weights: shared.Weights,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the page and the tables.")
    ],
    reading: shared.Reading,
    references: shared.References = None,
    samplers: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "heuristic,rwm,imh,nuts,laplace",
    runs: Annotated[int, typer.Option(help="Runs of each sampler, with different seeds.")] = 4,
    reference_sampler: Annotated[
        str, typer.Option(help="Sampler of the long reference run.")
    ] = "nuts",
    reference_draws: Annotated[
        int, typer.Option(help="Draws of each of the four chains of the reference run.")
    ] = 5000,
    posterior: Annotated[
        list[str] | None,
        typer.Option(help="Also compare a posterior of the same data, as NAME=FILE."),
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="Lists to rerank (default: the adaptation lists).")
    ] = None,
    test_references: Annotated[
        list[Path] | None, typer.Option(help="References of the --test lists; repeat for several.")
    ] = None,
    figures: Annotated[str, typer.Option(help="Also write figures: png, pdf or none.")] = "none",
    prior_variance: PriorVariance = 0.1,
    likelihood: shared.Likelihood = None,
    metric: shared.Metric = "ter",
    setting: shared.SamplerSettings = None,
    seed: Annotated[int, typer.Option(help="Seed of the first run.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Compare samplers: cost, error against a long run, and translations."""
    from bpa_ppl.diagnostics.comparison.page import write_comparison
    from bpa_ppl.diagnostics.pages.figures import FIGURE_KINDS
    from bpa_ppl.experiments.samplers import compare_samplers
    from bpa_ppl.formats.parts import make_folder
    from bpa_ppl.posterior import read_draws

    one_of(figures, FIGURE_KINDS, "kind of figures", "figures")
    goal, chosen = shared.metric(metric), None
    if likelihood is not None:
        chosen = shared.component(LIKELIHOODS, likelihood, "--likelihood")
    names = shared.names_of(samplers)
    settings = shared.settings_of(names, setting)
    for name in (*names, reference_sampler):
        SAMPLERS.resolve(name, settings.get(name))
    others = {
        name: [read_draws(str(path))]
        for name, path in shared.assignments(posterior, "--posterior").items()
    }
    make_folder(output)
    comparison = compare_samplers(
        reading.read(nbest, references),
        shared.canonical(weights),
        names,
        runs=runs,
        seed=seed,
        reference=reference_sampler,
        reference_draws=reference_draws,
        settings=settings,
        others=others,
        test=None if test is None else reading.read(test, test_references),
        metric=goal,
        likelihood=chosen,
        prior_variance=prior_variance,
        progress=not quiet,
    )
    made = {
        "adaptation lists": nbest,
        "weights": str(weights),
        "likelihood": likelihood or "the default for the metric",
        "prior variance σ_T": f"{prior_variance:g}",
        "oracle metric": metric,
        "seed of the first run": str(seed),
        "settings": json.dumps(settings),
        **{f"version of {name}": version(name) for name in shared.VERSIONS},
    }
    written = write_comparison(
        comparison, output, kind=figures, made=made, command=shared.command_line()
    )
    print(comparison)
    shared.echo_status(f"wrote {written[0]} and {len(written) - 1} more files", quiet)


def calibrate(
    nbest: shared.NBestPath,
    weights: shared.Weights,
    reading: shared.Reading,
    references: shared.References = None,
    samplers: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "imh,laplace,nuts,rwm",
    likelihood: Annotated[
        str,
        typer.Option(
            help="Likelihood that observations are simulated from, with its settings: oracle, "
            "preference for lists with preferences, or a registered one that is a distribution."
        ),
    ] = "oracle",
    metric: shared.Metric = "ter",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page (HTML), or the numbers if it ends in .json."),
    ] = None,
    replications: Annotated[
        int, typer.Option(help="Number of simulated data sets for each sampler.")
    ] = 200,
    prior_variance: PriorVariance = 0.1,
    setting: shared.SamplerSettings = None,
    jobs: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same ranks.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Simulation-based calibration of samplers; exit with 3 if one is not calibrated."""
    from bpa_ppl.diagnostics.calibration import calibration_page
    from bpa_ppl.experiments.samplers import calibrate_sampler
    from bpa_ppl.formats.streams import atomic_writer

    settings = shared.settings_of(shared.names_of(samplers), setting)
    simulated = shared.component(LIKELIHOODS, likelihood, "--likelihood")
    goal = shared.metric(metric)
    lists = reading.read(nbest, references)
    canonical = shared.canonical(weights)
    results = []
    for name, own in settings.items():
        results.append(
            calibrate_sampler(
                lists,
                canonical,
                name,
                replications=replications,
                prior_variance=prior_variance,
                likelihood=simulated,
                metric=goal,
                seed=seed,
                jobs=jobs,
                progress=not quiet,
                **own,
            )
        )
        print(results[-1])
    if output is not None:
        made = {
            "lists": nbest,
            "weights": str(weights),
            "likelihood": likelihood,
            "prior variance σ_T": f"{prior_variance:g}",
            "seed": str(seed),
            "settings": json.dumps(settings),
            **{f"version of {name}": version(name) for name in shared.VERSIONS},
        }
        numbers = json.dumps([one.as_dict() for one in results], indent=1)
        page = calibration_page(results, made=made, command=shared.command_line())
        with atomic_writer(output) as file:
            file.write(numbers if output.suffix == ".json" else page)
    if not all(results):
        raise typer.Exit(NotConverged.exit_code)
