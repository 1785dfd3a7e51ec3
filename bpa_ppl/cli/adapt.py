"""`bpa adapt`: n-best lists, references and canonical weights in, posterior out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.sampler_settings import command_line
from bpa_ppl.errors import UsageError
from bpa_ppl.notes import LOGGER
from bpa_ppl.registry import PRIORS, SAMPLERS

if TYPE_CHECKING:
    from bpa_ppl.models import Likelihood, Prior, PriorFamily
    from bpa_ppl.nbest import NBest
    from bpa_ppl.posterior import Draws
    from bpa_ppl.quality import Metric


@dataclass(frozen=True)
class Before:
    """What is known of the weights before any sentence is seen."""

    prior: Annotated[
        str,
        typer.Option(help=f"{options.names_in(PRIORS)}, or a file that holds a Gaussian (JSON)."),
    ] = "isotropic"
    prior_variance: Annotated[
        list[str] | None,
        typer.Option(
            help="σ_T of the prior, a variance: 0.1 unless given, and learned for features without "
            "a canonical weight. NAME=VALUE for a single feature; repeat for several."
        ),
    ] = None
    no_sentences: Annotated[
        bool,
        typer.Option(
            "--no-sentences",
            help="Skip adaptation: the posterior equals the prior, for lists like these. Needs no "
            "references; goes with a --prior learned from other domains, or --weights equal.",
        ),
    ] = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `bpa_ppl.adapt` that say which prior."""
        return _priors(self.prior, self.prior_variance)

    def lists(self, lists: NBest, goal: str | Metric, likelihood: Likelihood | None) -> NBest:
        """Return the lists, which have what the criterion needs unless nothing is adapted to."""
        from bpa_ppl.quality import has_preferences

        preferences = likelihood.observes == "preferences" if likelihood else has_preferences(lists)
        if self.no_sentences or preferences:
            return lists
        return options.with_needs(lists, goal, "adapt")


@dataclass(frozen=True)
class Temperature:
    """Whether a calibration temperature is fitted."""

    fit_temperature: Annotated[
        bool,
        typer.Option(
            "--fit-temperature",
            help="Fit a calibration temperature by leave-one-out; rerank then reports calibrated "
            "probabilities.",
        ),
    ] = False

    def recorded(self, posterior: Draws, lists: NBest, quiet: bool) -> Draws:
        """Return the posterior, with the fitted temperature recorded if one is asked for."""
        if not self.fit_temperature:
            return posterior
        from bpa_ppl.diagnostics import temperature

        found = temperature(posterior, lists)
        options.say(found, quiet)
        return posterior.with_attrs(temperature=found.value)


def run(
    nbest: options.Pools,
    weights: options.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="Posterior (NetCDF).")],
    reading: options.Reading,
    matching: options.Matching,
    development: options.Development,
    before: Before,
    temperature: Temperature,
    references: options.References = None,
    sources: options.Sources = None,
    preset: Annotated[
        str | None,
        typer.Option(help="published: the sampler and the likelihood of the paper, unless named."),
    ] = None,
    sampler: options.Sampler = None,
    likelihood: options.Likelihood = None,
    metric: options.Metric = "ter",
    features: Annotated[
        list[str] | None,
        typer.Option(help="Use only these columns of the lists as features; repeat for several."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Do not use these columns as features; repeat for several."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of texts, such as system, whose values become features; repeat for "
            "several."
        ),
    ] = None,
    add: options.Add = None,
    ties: options.Ties = None,
    lower_is_better: Annotated[
        list[str] | None,
        typer.Option(
            help="With --weights equal: a feature of which less is better; repeat for several."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the sampler: draws, warmup, chains, delta, …"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    jobs: options.Jobs = 1,
    cache: options.Cache = True,
    quiet: options.Quiet = False,
) -> None:
    """Adapt the weights to a few sentences and their references, or their own scores."""
    import bpa_ppl
    from bpa_ppl.diagnostics.baselines.comparing import recorded_comparison
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.sampling.presets import with_preset

    # A mistake in the options is found before any file is read.
    settings: dict[str, Any] = dict(options.assignments(setting, "--set"))
    SAMPLERS.resolve(with_preset(preset, sampler, None)[0], settings)
    likely = options.likelihood(likelihood)
    matched = matching.arguments()
    goal = options.metric(metric)
    added = [options.feature_source(text) for text in add or ()]
    prior = before.arguments()
    if before.no_sentences and references:
        raise UsageError("--no-sentences takes no --references: nothing is adapted to")
    if (extra := development.read(reading)) is not None:
        settings["development"] = extra
    # Before all work: a path that cannot be written shall not cost the user the sampling.
    require_writable(output)
    lists = before.lists(reading.read_together(nbest, references, sources), goal, likely)
    posterior: Draws = bpa_ppl.adapt(
        lists,
        options.canonical(weights),
        preset=preset,
        sampler=sampler,
        likelihood=likely,
        seed=seed,
        metric=goal,
        features=features,
        exclude=exclude,
        categorical=categorical,
        add=added,
        ties=ties,
        lower_is_better=lower_is_better,
        jobs=jobs,
        cache=cache,
        prior_only=before.no_sentences,
        progress=not quiet,
        arviz=False,
        **prior,
        **matched,
        **settings,
    )
    posterior = temperature.recorded(posterior, lists, quiet).with_attrs(command=command_line())
    bpa_ppl.write_posterior(posterior, output)
    # Not in the file, which is the same whenever it is made.
    LOGGER.debug("%s written on %s", output, datetime.now().ctime())
    if (comparison := recorded_comparison(posterior)) is not None:
        options.say(comparison, quiet)
    options.say(bpa_ppl.check(posterior), quiet)


def _priors(text: str, given: list[str] | None) -> dict[str, Any]:
    """Return the arguments of `adapt` that say which prior."""
    from bpa_ppl.models import Isotropic
    from bpa_ppl.models.priors.isotropic import variances

    variance, single = options.variances(given)
    if not given:
        return {"prior": _prior(text)}
    if text != "isotropic":
        raise UsageError("--prior-variance is for the isotropic prior alone: leave it out")
    base = {} if variance is None else variances(variance)
    return {"prior": Isotropic(**base, single=single)}


def _prior(text: str) -> str | Prior | PriorFamily:
    """Return a prior from a file, or a family of priors by name with its settings."""
    from bpa_ppl.models import Prior

    if text.partition(":")[0] in PRIORS:
        return text if text in PRIORS else options.component(PRIORS, text, "--prior")
    if Path(text).suffix == ".json":
        return Prior.read(text)
    return options.component(PRIORS, text, "--prior")
