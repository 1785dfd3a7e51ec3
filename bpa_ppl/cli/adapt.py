"""`bpa adapt`, `bpa update` and `bpa learn-prior`: posteriors and priors from n-best lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError
from bpa_ppl.notes import LOGGER
from bpa_ppl.options import AdaptOptions

if TYPE_CHECKING:
    from bpa_ppl.nbest import NBest


def adapt(
    nbest: shared.SeveralNBest,
    weights: shared.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="Posterior file (NetCDF).")],
    reading: shared.Reading,
    extra: shared.Extra,
    options: AdaptOptions,
    references: shared.References = None,
    sources: shared.Sources = None,
    fit_temperature: Annotated[
        bool,
        typer.Option(
            "--fit-temperature",
            help="Fit a calibration temperature by leave-one-out; `bpa rerank` then reports "
            "calibrated probabilities.",
        ),
    ] = False,
    quiet: shared.Quiet = False,
) -> None:
    """Adapt the weights to a few sentences with references or judgements."""
    import bpa_ppl
    from bpa_ppl.diagnostics.baselines.comparing import recorded_comparison
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.sampling import adapt_draws

    if options.prior_only and references:
        raise UsageError("--no-sentences takes no --references: there is no adaptation")
    options = replace(options, extra=extra.read(reading), progress=not quiet)
    require_writable(output)  # before the sampling, which takes a while
    lists = reading.read_together(nbest, references, sources)
    posterior = adapt_draws(lists, shared.canonical(weights), options)
    if fit_temperature:
        from bpa_ppl.diagnostics import temperature

        fitted = temperature(posterior, lists)
        shared.echo_status(fitted, quiet)
        posterior = posterior.with_attrs(temperature=fitted.value)
    posterior = posterior.with_attrs(command=shared.command_line())
    bpa_ppl.write_posterior(posterior, output)
    # Not in the file, which is the same whenever it is written.
    LOGGER.debug("%s written on %s", output, datetime.now().ctime())
    if (comparison := recorded_comparison(posterior)) is not None:
        shared.echo_status(comparison, quiet)
    shared.echo_status(bpa_ppl.check(posterior), quiet)


@dataclass(frozen=True)
class AdaptationLists:
    """The sentences that the posterior was adapted to."""

    adaptation_lists: Annotated[
        Path | None,
        typer.Option(
            help="The lists that `bpa adapt` was given, so that fresh draws, where they are "
            "needed, are exact. Without them a Gaussian stands for those sentences."
        ),
    ] = None
    adaptation_references: Annotated[
        list[Path] | None,
        typer.Option(help="References of the --adaptation-lists; repeat for several."),
    ] = None
    adaptation_sources: Annotated[
        Path | None, typer.Option(help="Source sentences of the --adaptation-lists.")
    ] = None

    def read(self, reading: shared.Reading) -> NBest | None:
        """Return the lists, or None if no file is given.

        Raises:
            UsageError: if texts are given without lists.
        """
        if self.adaptation_lists is None:
            if self.adaptation_references or self.adaptation_sources:
                raise UsageError(
                    "--adaptation-references and --adaptation-sources go with --adaptation-lists"
                )
            return None
        return reading.read(
            self.adaptation_lists, self.adaptation_references, self.adaptation_sources
        )


def update(
    posterior: shared.PosteriorPath,
    nbest: shared.NBestPath,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Posterior file (NetCDF); may be the input file."),
    ],
    reading: shared.Reading,
    adaptation: AdaptationLists,
    references: shared.References = None,
    sources: shared.Sources = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "--gain",
            help="Metric of `bpa adapt`, if it had settings (default: the recorded one).",
        ),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="Sampler of fresh draws, where needed: imh, laplace or nuts.")
    ] = "imh",
    moved_files: shared.MovedFile = None,
    seed: Annotated[int, typer.Option(help="Seed of fresh draws.")] = 0,
    jobs: shared.Jobs = 1,
    cache: shared.Cache = True,
    unchecked: shared.Unchecked = False,
    quiet: shared.Quiet = False,
) -> None:
    """Update a posterior with new sentences.

    Its draws are reweighted. Where the weights cannot be trusted (Pareto k̂ above 0.7, or few
    effective draws), fresh draws are made.
    """
    import bpa_ppl
    from bpa_ppl.decoding import refuse_unconverged
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.posterior import read_draws
    from bpa_ppl.sampling import Sequential

    goal = None if metric is None else shared.metric(metric)
    lists = adaptation.read(reading)
    draws = read_draws(posterior)
    require_writable(output)
    if not unchecked and draws.kind != "point":
        refuse_unconverged(draws)
    growing = Sequential(
        draws,
        adaptation_lists=lists,
        metric=goal,
        moved_files=shared.moved_files(moved_files),
        sampler=sampler,
        seed=seed,
        jobs=jobs,
        cache=cache,
    )
    growing.add(reading.read(nbest, references, sources), progress=not quiet)
    updated = growing.draws().with_attrs(update_command=shared.command_line())
    bpa_ppl.write_posterior(updated, output)
    shared.echo_status(growing.steps[-1], quiet)
    shared.echo_status(bpa_ppl.check(updated), quiet)


def learn_prior(
    posteriors: Annotated[
        list[Path],
        typer.Argument(help="Posteriors (NetCDF) written by `bpa adapt`, one for each domain."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Prior file (JSON).")],
    shrinkage: Annotated[
        float | None,
        typer.Option(
            help="Target of the shrinkage of the covariance between domains, as a share of the "
            "prior variance of the posteriors (default: 0.05, or 1 if no feature has a canonical "
            "weight)."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="Strength of the shrinkage, in domains (default: 10, or 100 if no feature has a "
            "canonical weight)."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature, or the label of several, that the lists of the new domain lack; "
            "repeat for several. Their weights are set to 0."
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(help="Also write a page (HTML) on what domains share and where they differ."),
    ] = None,
    unchecked: shared.Unchecked = False,
    quiet: shared.Quiet = False,
) -> None:
    """Learn a prior for a new domain from the posteriors of other domains."""
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
    shared.echo_status(as_table(found), quiet)
