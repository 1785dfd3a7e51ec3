"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl.arrays import Float64
from bpa_ppl.caching import prepare_jax
from bpa_ppl.columns import to_floats
from bpa_ppl.diagnostics.baselines.comparing import (
    left_out_note,
    recorded_comparison,
    with_baselines,
    with_indicators_compared,
)
from bpa_ppl.diagnostics.baselines.table import system_column
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.drift import feature_scales
from bpa_ppl.errors import DataError, UsageError, checked_seed, require
from bpa_ppl.features.indicators import Indicators, has_indicators
from bpa_ppl.features.pretrained import pretrained_weights
from bpa_ppl.features.recipe import Recipe, recipe_for
from bpa_ppl.labels import matches
from bpa_ppl.models.likelihoods.base import LIKELIHOODS, Likelihood
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.base import PRIORS, Prior, PriorFamily
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import WEIGHTS, Draws
from bpa_ppl.posterior.record import (
    ComponentRecord,
    Figures,
    IndicatorsRecord,
    Record,
    SamplerRecord,
)
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.progress import Reporter, inherited_progress, reporter
from bpa_ppl.quality.base import METRICS, Metric
from bpa_ppl.quality.column import judgement_note, numeric_columns
from bpa_ppl.quality.gains import AnyGain, default_metric, resolve
from bpa_ppl.quality.oracle import Oracles
from bpa_ppl.quality.preferences import has_preferences
from bpa_ppl.sampling.arguments import Arguments
from bpa_ppl.sampling.base import SAMPLERS, Sampler
from bpa_ppl.sampling.mode import mode_of, posterior_target
from bpa_ppl.sampling.observations import (
    Compared,
    Scored,
    default_likelihood,
    observe,
    require_references,
)
from bpa_ppl.sampling.prior_choice import Scale, build_recorded, choose_scale
from bpa_ppl.sampling.repeating import record_of
from bpa_ppl.sampling.target import (
    NUMPYRO_LOCK,
    Model,
    Sampled,
    Target,
    constrained,
    constrained_draws,
    evaluate,
    log_priors,
    model_info,
    prior_draws,
    require_sites,
    unflatten,
)
from bpa_ppl.sampling.updating import gaussian_shift, report_shift
from bpa_ppl.weights import (
    CANONICAL,
    AnyStart,
    Match,
    Weights,
    check_totals,
    has_canonical,
    match,
    start,
)

if TYPE_CHECKING:
    from bpa_ppl.features.base import AnySource
    from bpa_ppl.posterior.arviz_functions import InferenceData

_PRIOR_DRAWS = 1000
#: The likelihood of the order of the candidates by which indicators are left out. With this
#: exponent its intervals are about as wide as they should be: see `Pairs`.
_OF_ORDER = Pairs(exponent=1.5)
#: Indicators are left out if their log Bayes factor is below: docs/results/judged-lists.md.
LEFT_OUT_BELOW = -3.0
#: Fewer lists with several systems say little on a posterior that chooses one system.
_MIN_LISTS = 5
#: The message if the posterior has no observation.
EQUALS_PRIOR = "the posterior equals its prior: no sentence was judged"
_PACKAGES = ("bpa_ppl", "numpyro", "jax", "jaxlib", "numpy", "sacrebleu", "arviz", "arviz-stats")


def adapt(
    lists: NBest,
    weights: AnyStart = None,
    *,
    gain: AnyGain | Oracles | None = None,
    likelihood: str | Likelihood | None = None,
    prior: str | PriorFamily | Prior | None = None,
    model: Model | None = None,
    sampler: str | Sampler | None = None,
    draws: int | None = None,
    chains: int | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    categorical: str | Iterable[str] = (),
    add: AnySource | Iterable[AnySource] = (),
    extra: NBest | None = None,
    preset: str | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: bool | Reporter = False,
) -> InferenceData:
    """Condition the weights on the oracles of a few sentences (Eq. 7), or on preferences.

    Settings belong to the object that they are of, `Margin(gamma=4)`, or are written after its
    name, `"margin:gamma=4"`: this holds for gains, likelihoods, priors, samplers and feature
    sources.

    Args:
        lists: n-best lists of the adaptation sentences, with references if the gain needs them;
            with no sentence at all the posterior equals the prior, which is warned about unless
            the likelihood is `none`. An extra `domain` of the sentences numbers their domains.
        weights: the canonical weights λ_T, by feature name, or one for each column in their order.
            None starts at 0 for all features but those named as log-probabilities; `"equal"` starts
            at the mean of the standardised features. `StartingWeights` of them also says which
            weights are fixed, and where features start that they do not name.
        gain: how good a candidate is, which says what an oracle is: `ter`, `bleu`, `chrf`, `wer`, a
            metric, a function, or a column of the lists, which then is no feature; or `Oracles`
            that were found before, which need no references. None is `ter` where there are
            canonical weights or totals, else `chrf`.
        likelihood: `oracle`, as published, `margin`, `risk`, `pairs`, `preference`, or `none`, with
            which the posterior equals the prior, and the lists give no more than the features and
            their spread. Settings that are left open are derived from the gain, and recorded. None
            is `oracle` for a published sampler, `margin` where the gain is TER, BLEU, chrF,
            `ter+bleu`, WER or CER, `risk` for any other gain, or `pairs` if there are indicators
            such as those of systems, and `preference` for lists without references that carry
            preferences: see `default_likelihood`.
        prior: `isotropic`, as published, also with its variance, `isotropic:variance=0.5`;
            `horseshoe`; a `Prior`, such as that of other lists; or a family of priors. None is
            `isotropic` with the variance 0.1, and for features without a canonical weight with a
            scale that is learned from these sentences: see `Isotropic`.
        model: a NumPyro program of (lists, prior, likelihood) with a site `weights`; None is
            `bpa_ppl.models.log_linear`.
        sampler: `auto`, `imh`, `nuts`, `rwm`, `laplace`, `map`; as published `heuristic`,
            `rwm-isotropic` and `weight-trace`, whose default likelihood is `oracle`; any kernel of
            NumPyro, `numpyro:HMC`; or a `Sampler`. None is `auto`. The published 100 samples of
            `heuristic` with delta=8 cannot pass `check`, which needs 100 effective ones:
            draws=1000 with `heuristic:delta=50` pass.
        draws: of each chain; None is the default of the sampler, as for `chains`.
        chains: how many.
        features: use only these columns of the lists as features, by name or label. The others
            become extras, here and in `rerank`. By default every column of numbers is one.
        exclude: do not use these columns as features, by name or label.
        categorical: columns of texts or numbers, such as `system` or `temperature`, whose values
            become features of 0 and 1 with mean 0, here and in `rerank`. With other features and a
            learned scale of the prior their weights are 0 if they do not explain the order of the
            candidates, which is warned about.
        add: sources of further features with mean 0, by name or with their settings, such as
            `LanguageModel(text="domain.txt")`: the posterior records their recipe, with the hashes
            of their files, and `rerank` computes the same features of new lists.
        extra: lists, with references, of the out-of-domain set that the canonical weights were
            tuned on, for the sampler `weight-trace`.
        preset: the sampler, the likelihood and the prior of a paper: `published` is the random walk
            of 2015, in four chains (`chains=1` is the one of the paper), `published-2010` the
            heuristic sample of COLING 2010 with 100 draws, delta=8 and σ_T = 1, `published-sspr`
            the weight trace of S+SSPR 2010, which needs `extra`. What is named explicitly replaces
            it.
        seed: the same seed gives the same draws, to the bit on the same machine.
        jobs: processes that score candidates; -1 uses every core.
        progress: True draws a bar on standard error.

    Returns:
        InferenceData with the groups named in `bpa_ppl.posterior.adapter`. Its attribute
        `sampling_time` has the seconds that the sampler took, with the search for the mode, the
        warm-up and, the first time, compilation; files leave it out unless `write_posterior` is
        asked for it.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a sampler, gain or setting does not exist or makes no sense.

    >>> from bpa_ppl import Isotropic, from_lists, point_weights, rerank
    >>> lists = from_lists(
    ...     [["a cat", "the cat"], ["the dog", "dog"]],
    ...     [[[1.0], [0.0]], [[0.0], [2.0]]],
    ...     ["Errors"],
    ...     references=["the cat", "the dog"],
    ... )
    >>> posterior = adapt(lists, {"Errors": 0.5}, prior="isotropic:variance=1", sampler="map")
    >>> bool(point_weights(posterior)["Errors"] < 0), rerank(lists, posterior).texts
    (True, ['the cat', 'the dog'])

    The same with settings on objects, and starting at 0:

    >>> posterior = adapt(lists, prior=Isotropic(variance=1), gain="ter", sampler="map")
    """
    posterior = adapt_draws(
        lists,
        weights,
        gain=gain,
        likelihood=likelihood,
        prior=prior,
        model=model,
        sampler=sampler,
        draws=draws,
        chains=chains,
        features=features,
        exclude=exclude,
        categorical=categorical,
        add=add,
        extra=extra,
        preset=preset,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    with NUMPYRO_LOCK:  # SciPy fails in a thread while xarray imports Dask in another
        return to_arviz(checked(posterior)[0])


@dataclass(frozen=True, eq=False)
class Problem:
    """One adaptation, matched, scored and tabulated once, which any number of samplers can sample.

    Attributes:
        target: the posterior, without a report of progress.
        observed: what was observed of the lists.
        lists: all adaptation lists, with the features of the posterior.
        record: of the posterior, without that of a sampler.
        constants: arrays that the posterior keeps.
        without_indicators: returns the target where the weights of indicators, such as those of
            systems, are 0; None if there are none, or no other feature.
        represented: the posterior that a Gaussian prior represents, or None.
    """

    target: Target
    observed: Scored | Compared
    lists: NBest
    record: Record
    constants: dict[str, Any]
    without_indicators: Callable[[], Target] | None = None
    represented: Draws | None = None

    def sample(
        self,
        sampler: str | Sampler = "auto",
        *,
        seed: int = 0,
        extra: NBest | None = None,
        progress: bool | Reporter = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Draws:
        """Return draws of a sampler, with everything that `adapt` records.

        Args:
            sampler: as for `adapt`.
            seed: of the draws.
            extra: lists of the out-of-domain set, as for `adapt`.
            progress: True draws a bar on standard error.
            clock: returns the time in seconds, for the attribute `sampling_time`.

        Raises:
            UsageError: if a package of the sampler is missing, or it does not fit the problem.
        """
        engine, seed, match = SAMPLERS.resolve(sampler), checked_seed(seed), self.target.match
        engine.require_packages()
        if extra is not None:
            canonical = Weights(zip(match.names, match.values.tolist(), strict=True))
            known = set(extra.feature_names)
            fixed = [name for name in match.fixed_names if name in known]
            engine = engine.fitted(extra, canonical, fixed=fixed, seed=seed)
        name, target = SAMPLERS.name_of(engine), replace(self.target, seed=seed)
        if _keeps(engine, self.represented):
            target = replace(target, earlier=self.represented)
        with (
            NUMPYRO_LOCK,
            jax.enable_x64(True),
            reporter(progress, f"adapt {name}") as report,
        ):
            start = clock()
            sampled = engine.sample(replace(target, progress=report))
            seconds = clock() - start
        made = SamplerRecord(
            name=name,
            settings=engine.settings(),
            seconds=seconds,
            extra=None if extra is None else extra.origin,
        )
        record = structs.replace(self.record, seed=seed, versions=_versions(engine))
        return replace(self, target=target, record=record).draws(sampled, made)

    def draws(self, sampled: Sampled, sampler: SamplerRecord) -> Draws:
        """Return the result of a sampler with everything that `adapt` records.

        Args:
            sampled: the result.
            sampler: the record of the sampler.

        Raises:
            UsageError: if the sampler did not return draws of the sites of the target.
        """
        draws, observed, shift = self.plain_draws(sampled, sampler), self.observed, None
        if self.represented is not None and draws.kind != "point":
            if self.target.earlier is None:
                with NUMPYRO_LOCK, jax.enable_x64(True):
                    shift = gaussian_shift(self.target, self.represented, draws)
            report_shift(shift, self.represented, draws)
        _warn_single_system(draws, observed)
        scales = feature_scales(self.lists, draws.aligned(self.lists, draws.mean[None])[0])
        record = structs.replace(draws.record, shift=shift, feature_scales=scales)
        draws = replace(draws, record=record)
        lists = self.lists if isinstance(observed, Compared) else observed.lists
        return with_baselines(draws, lists, observed.gain, observed.gains)

    def compare_indicators(self, draws: Draws) -> Draws:
        """Return draws with a comparison to the weights without indicators, and log the result.

        The posterior without indicators is that of `laplace`, which takes less than a second. There
        is no comparison where choices cannot be evaluated by leave-one-out, or no mode is found.

        Args:
            draws: from `sample`, with the comparison with simple baselines.
        """
        if self.without_indicators is None or draws.kind == "point":
            return draws
        if recorded_comparison(draws) is None:
            return draws
        with NUMPYRO_LOCK, jax.enable_x64(True):
            target = self.without_indicators()
            if not mode_of(target).converged:
                return draws
            sampled = SAMPLERS.resolve("laplace").sample(target)
        observed = self.observed
        without = replace(self, target=target).plain_draws(sampled, SamplerRecord())
        return with_indicators_compared(
            draws, without, observed.lists, observed.gain, observed.gains
        )

    def plain_draws(self, sampled: Sampled, sampler: SamplerRecord) -> Draws:
        """Return the result of a sampler with everything that `adapt` records but comparisons.

        Args:
            sampled: as for `draws`.
            sampler: as for `draws`.
        """
        require(sampled, Sampled, "the method `sample` of a sampler returns Sampled", "sampled")
        target, observed, match = self.target, self.observed, self.target.match
        require_sites(sampled.z, target.start)
        with NUMPYRO_LOCK, jax.enable_x64(True):
            info, likelihood = model_info(target), sampled.log_likelihood
            if likelihood is None:
                likelihood = evaluate(target, sampled.z)[1]
            recorded = target.uses_prior and target.prior.other is None
            prior = target.prior._asdict() if recorded else {}
            constants = {
                "canonical": match.values[match.free],
                **{f"prior_{name}": value for name, value in prior.items() if value is not None},
                **sampled.constants,
            }
            if sampled.mode is not None:
                mode = unflatten(sampled.mode, target.start)
                constants["mode"] = constrained(target, mode)[WEIGHTS]
            from_prior = prior_draws(target, _PRIOR_DRAWS, target.seed)
            values, warmup, from_prior, constants = jax.device_get(
                (
                    constrained_draws(target, sampled.z),
                    constrained_draws(target, sampled.warmup),
                    {name: draws[None] for name, draws in from_prior.items()},
                    constants,
                )
            )
            log_prior = log_priors(target, values)
        dims = {site: names for site, names in target.likelihood.dims.items() if site in values}
        return Draws(
            values,
            match.free_names,
            kind=sampled.kind,
            log_weight=sampled.log_weight,
            log_density=None if sampled.log_density is None else np.asarray(sampled.log_density),
            log_likelihood=likelihood,
            log_prior=log_prior,
            sentence_sites=info.per_sentence,
            statistics=sampled.statistics,
            warmup=warmup,
            prior=from_prior,
            sites=info.latent,
            dims=dims,
            coords=observed.coords if dims else {},
            observed={"oracle": observed.chosen},
            constants={**constants, **self.constants},
            fixed=Weights(zip(match.fixed_names, match.fixed_values.tolist(), strict=True)),
            sentence_ids=observed.lists.sentence_ids,
            record=structs.replace(
                self.record, sampler=sampler, figures=sampled.figures, verdict=sampled.verdict
            ),
        )


def adapt_draws(lists: NBest, weights: AnyStart = None, **options: Any) -> Draws:
    """Adapt as `adapt` does, and return plain draws, without loading ArviZ.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        options: the keyword arguments of `adapt`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat"]], [[[1.0], [0.0]]], ["Errors"], references=["the cat"]
    ... )
    >>> adapt_draws(lists, {"Errors": 0.5}, sampler="map").kind
    'point'
    """
    chosen = Arguments(weights=weights, **options)
    problem = _problem(lists, chosen)
    draws = problem.sample(
        chosen.resolved_sampler(), seed=chosen.seed, extra=chosen.extra, progress=chosen.progress
    )
    draws = problem.compare_indicators(draws)
    return replace(draws, record=structs.replace(draws.record, options=record_of(chosen)))


def problem_of(lists: NBest, weights: AnyStart = None, **options: Any) -> Problem:
    """Return the problem that `adapt` samples: observe, choose the prior and build the density.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        options: the keyword arguments of `adapt`; `oracle`, oracles that have another gain than
            theirs; and `prior_only`, for the prior of a likelihood that observes nothing yet.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if an argument makes no sense.
    """
    return _problem(lists, Arguments(weights=weights, **options))


def _problem(nbest: NBest, options: Arguments) -> Problem:
    """Return the problem that `adapt` samples with some arguments."""
    require(nbest, NBest, "adapt takes n-best lists (NBest): read a file with read_nbest", "nbest")
    engine = options.resolved_sampler()
    setup, alternative, indicators = _set_up(nbest, options, engine)
    prepared, observed, likelihood = setup.prepared, setup.observed, setup.likelihood
    represented = _represented(setup, engine)
    prior, prior_record = build_recorded(setup.family, prepared.match, setup.scale)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        target = setup.target(prior, seed=int(options.seed))
        observes = model_info(target).observes
    if not observes:
        warn_user(
            f"the model {_name(setup.model)} observes nothing, so its posterior equals its prior: "
            "call likelihood.observe(lists, weights)"
        )
    recipe = prepared.recipe
    # `observed` has the policy for ties.
    settings = {n: v for n, v in likelihood.settings().items() if n != "ties"}
    record = Record(
        likelihood=ComponentRecord(LIKELIHOODS.name_of(likelihood), settings),
        prior=prior_record if target.uses_prior else None,
        start=prepared.match.origin,
        pretrained=prepared.pretrained,
        indicators=indicators,
        seed=int(options.seed),
        model=_name(setup.model),
        observed=observed.record(),
        lists=observed.lists.origin,
        data=observed.hashes(),
        versions=_versions(engine),
        machine=f"{platform.system()} {platform.machine()}, {jax.default_backend()}",
        recipe=recipe.record(prepared.columns),
    )
    return Problem(
        target,
        observed,
        prepared.lists,
        record,
        {**observed.constants(), **recipe.constants()},
        without_indicators=None if alternative is None else alternative.target,
        represented=represented,
    )


class _Prepared(NamedTuple):
    """Lists with all features of the posterior.

    Attributes:
        lists: all adaptation lists, those without an observation too.
        recipe: how the features are made.
        columns: the names of the columns of each source of features.
        match: where their weights start.
        pretrained: the features whose weights start at learned values.
    """

    lists: NBest
    recipe: Recipe
    columns: tuple[tuple[str, ...], ...]
    match: Match
    pretrained: tuple[str, ...] = ()

    @property
    def indicators(self) -> list[str]:
        """The features that are indicators of a category, such as a system."""
        sources = zip(self.recipe.sources, self.columns, strict=True)
        return [n for source, names in sources if isinstance(source, Indicators) for n in names]

    def without_indicators(self) -> _Prepared:
        """Return the lists without the indicators."""
        recipe, columns = self.recipe.without_indicators(self.columns)
        names = self.indicators
        return _Prepared(
            self.lists.without(*names), recipe, columns, self.match.without(names), self.pretrained
        )


class _SetUp(NamedTuple):
    """What a posterior depends on."""

    prepared: _Prepared
    observed: Scored | Compared
    table: Lists
    family: PriorFamily | Prior
    scale: Scale
    likelihood: Likelihood
    model: Model

    def target(
        self, prior: Prior | None = None, likelihood: Likelihood | None = None, seed: int = 0
    ) -> Target:
        """Return the posterior; to be called with x64 enabled."""
        match, model = self.prepared.match, self.model
        if prior is None:
            prior = isotropic.build_prior(self.family, match, self.scale.value)
        return posterior_target(
            self.table, prior, match, likelihood or self.likelihood, model, seed
        )

    def log_evidence_of_order(self) -> float:
        """Return the log evidence of the order of the candidates."""
        with NUMPYRO_LOCK, jax.enable_x64(True):
            return mode_of(self.target(likelihood=_OF_ORDER)).log_evidence


def _set_up(
    nbest: NBest, options: Arguments, engine: Sampler
) -> tuple[_SetUp, _SetUp | None, IndicatorsRecord | None]:
    """Prepare features, observe the lists and choose the scale of the prior.

    Returns:
        what the posterior depends on; the same without indicators, to compare; and the record of
        indicators that are left out.
    """
    gain = _gain(options, nbest)
    engine.require_packages()
    likelihood = _likelihood(options, engine, gain, nbest)
    if not (options.prior_only or options.oracle):
        require_references(nbest, gain, likelihood)  # before features are computed
    prepared, family = _prepare(nbest, gain, _family(options, engine), options)
    match, lists = prepared.match, prepared.lists
    isotropic.build_prior(family, match)  # raises before anything is scored
    model = _model(options, family, match)
    if match.origin == CANONICAL:
        check_totals(lists, match.values)
    observed = _observe(prepared, gain, likelihood, options)
    start = dict(zip(match.names, match.values.tolist(), strict=True))
    scaled = isotropic.learns_scale(family, match)
    has_start = any(start[name] for name in options.start.defaults or () if name in scaled)
    table = observed.table(match, domains=model is not log_linear)
    scale = choose_scale(
        observed,
        table,
        match,
        family,
        likelihood,
        lists,
        model=model,
        has_start=has_start,
        progress=options.progress,
    )
    prior_of_answers = options.prior_only and likelihood.observes == "preferences"
    resolved = Oracle() if prior_of_answers else likelihood.defaults(observed)
    setup = _SetUp(prepared, observed, table, family, scale, resolved, model)
    if observed.gains is None or not len(observed.lists) or model is not log_linear:
        return setup, None, None
    is_chosen = options.chosen_likelihood() is not None or engine.likelihood is not None
    return _compare_indicators(setup, likelihood if is_chosen else default_likelihood(gain, nbest))


def _prepare(
    nbest: NBest,
    gain: Metric,
    family: PriorFamily | Prior,
    options: Arguments,
) -> tuple[_Prepared, PriorFamily | Prior]:
    """Return the lists with all features, and the prior with variances of pretrained weights."""
    recipe = recipe_for(
        nbest, gain, options.categorical, options.add, options.features, options.exclude
    )
    nbest = recipe.without_criterion(nbest)
    canonical, initial, origin = start(options.start.weights, nbest, options.start.lower_is_better)
    with inherited_progress(options.progress):
        nbest, columns = recipe.for_training(nbest)
    added = dict.fromkeys(chain.from_iterable(columns), 0.0)
    defaults = {**added, **initial, **(options.start.defaults or {})}
    matched = match(canonical, nbest, fixed=options.start.fixed, defaults=defaults)
    matched = matched._replace(origin=origin)
    prepared = _Prepared(nbest, recipe, columns, matched)
    if origin == CANONICAL or not options.start.pretrained:
        return prepared, family
    mean, variance = pretrained_weights(recipe.sources, columns, matched.free_spread)
    learned = tuple(name for name in mean if name not in (options.start.defaults or {}))
    if not learned:
        return prepared, family
    log_info(
        f"the weights of {', '.join(learned)} start at values learned from public judged lists; to "
        "start at 0: pretrained=False, --no-pretrained"
    )
    values = [
        mean[n] if n in learned else v for n, v in zip(matched.names, matched.values, strict=True)
    ]
    prepared = prepared._replace(
        match=matched._replace(values=np.array(values, np.float64)), pretrained=learned
    )
    return prepared, isotropic.with_variances(family, {n: variance[n] for n in learned})


def _observe(
    prepared: _Prepared, gain: Metric, likelihood: Likelihood, options: Arguments
) -> Scored | Compared:
    """Return what the likelihood observes, or no observation; log what is missing."""
    lists = prepared.lists
    prior_of_answers = options.prior_only and likelihood.observes == "preferences"
    shared = likelihood.observes_answers(gain, lists) and not prior_of_answers
    observed = observe(
        lists[:0] if options.prior_only else lists,
        gain,
        prepared.match,
        likelihood=Oracle() if prior_of_answers else likelihood,
        best=options.oracle,
        ties=options.ties or ("shared" if shared else None),
        jobs=options.jobs,
        progress=options.progress,
    )
    prepare_jax()
    observed.require_differences()
    if options.prior_only:
        log_info(EQUALS_PRIOR)
    elif not len(observed.lists):
        warn_user(f"{EQUALS_PRIOR}; give lists with judgements, references or preferences")
    return observed


def _model(options: Arguments, family: PriorFamily | Prior, match: Match) -> Model:
    """Return the model: the one that is chosen, or that of the family of priors."""
    model = options.model or log_linear
    if not callable(model):
        problem = f"a model is a function of (lists, prior, likelihood), not {model!r:.80}"
        raise UsageError(problem, parameter="model", code="wrong-type")
    if model is log_linear and isinstance(family, PriorFamily):
        return family.model(match) or model
    return model


def _name(model: Model) -> str:
    return str(getattr(model, "__name__", model))


def _compare_indicators(
    setup: _SetUp, likelihood: Likelihood
) -> tuple[_SetUp, _SetUp | None, IndicatorsRecord | None]:
    """Leave out indicators that do not explain the order of the candidates, with a warning.

    Args:
        setup: with all features.
        likelihood: that of the other features alone.

    Returns:
        as `_set_up`.
    """
    prepared, names = setup.prepared, setup.prepared.indicators
    others = _without(setup, names, likelihood)
    if others is None or not set(names) & {*isotropic.learns_scale(setup.family, prepared.match)}:
        return setup, others, None
    difference = setup.log_evidence_of_order() - others.log_evidence_of_order()
    if difference >= LEFT_OUT_BELOW:
        return setup, others, IndicatorsRecord(difference)
    columns = tuple(s.column for s in prepared.recipe.sources if isinstance(s, Indicators))
    left_out = IndicatorsRecord(difference, columns)
    warn_user(left_out_note(left_out))
    observed = setup.observed.without_features(names)
    rest = prepared.without_indicators()
    kept = others._replace(prepared=rest, observed=observed, table=observed.table(rest.match))
    return kept, None, left_out


def _without(setup: _SetUp, names: Sequence[str], likelihood: Likelihood) -> _SetUp | None:
    """Return the same with the weights of some features fixed at 0, and a scale of its own.

    None if there are no such features or no others, or if the prior is not isotropic.

    Args:
        setup: with all features.
        names: the features.
        likelihood: that of the other features alone.
    """
    prepared, observed = setup.prepared, setup.observed
    match = prepared.match
    fixed = np.isin(match.names, list(names))
    match = match._replace(values=np.where(fixed, 0.0, match.values), free=match.free & ~fixed)
    family = isotropic.restricted(setup.family, match.free_names)
    if not fixed.any() or not match.free.any() or family is None:
        return None
    table = observed.table(match)
    scale = choose_scale(observed, table, match, family, likelihood, prepared.lists)
    prepared = prepared._replace(match=match)
    return _SetUp(
        prepared, observed, table, family, scale, likelihood.defaults(observed), log_linear
    )


def _keeps(engine: Sampler, posterior: Draws | None) -> bool:
    """Return whether a sampler weights the draws of a posterior again, which are its own."""
    if posterior is None or not engine.keeps_draws:
        return False
    return posterior.record.sampler.name == SAMPLERS.name_of(engine)


def _represented(setup: _SetUp, engine: Sampler) -> Draws | None:
    """Return the posterior whose Gaussian is the prior, with the free features in their order.

    None if there is no such posterior, or if it has other features.

    Raises:
        DataError: if it has other features, and the sampler weights its draws again.
    """
    family, free = setup.family, setup.prepared.match.free_names
    posterior: Draws | None = family.posterior if isinstance(family, Prior) else None
    if posterior is None:
        return None
    if names := sorted({*posterior.features} ^ {*free}):
        if _keeps(engine, posterior):
            raise DataError(
                f"{', '.join(names)} is not in both the lists and the posterior that is the prior: "
                "adapt to all lists together",
                setup.observed.lists.origin,
                parameter="prior",
                code="mismatch",
            )
        return None
    kept = {name: getattr(posterior, name) for name in ("record", "log_density", "sentence_ids")}
    return replace(posterior.reordered(free), **kept)


def log_density(
    lists: NBest,
    weights: AnyStart = None,
    *,
    gain: AnyGain | Oracles | None = None,
    likelihood: str | Likelihood | None = None,
    prior: str | PriorFamily | Prior | None = None,
    model: Model | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    categorical: str | Iterable[str] = (),
    add: AnySource | Iterable[AnySource] = (),
    preset: str | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: bool | Reporter = False,
) -> Target:
    """Return the log density of the posterior that `adapt` samples, for any algorithm.

    Args:
        lists: n-best lists of the adaptation sentences, as for `adapt`.
        weights: the canonical weights λ_T, as for `adapt`.
        gain: as for `adapt`, and so are all others.
        likelihood: that of the observations.
        prior: that of the weights.
        model: a NumPyro program.
        features: columns that are used.
        exclude: columns that are not used.
        categorical: columns whose values become features.
        add: sources of further features.
        preset: the likelihood and the prior of a paper.
        seed: of the draws from the prior, if there are any.
        jobs: processes that score candidates.
        progress: True draws a bar on standard error.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a gain, likelihood, prior or setting does not exist or makes no sense.

    Newton's method on it, without this package:

    >>> import jax.numpy as jnp
    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> settings = {"likelihood": "oracle", "prior": "isotropic:variance=1"}
    >>> with jax.enable_x64(True):
    ...     density = log_density(lists, {"LM0": 0.5}, **settings)
    ...     z = density.initial_position
    ...     for _ in range(5):
    ...         z = z - jnp.linalg.solve(jax.hessian(density)(z), jax.grad(density)(z))
    ...     print(density.constrain(z)["weights"].round(4))
    [0.8083]
    """
    options = Arguments(
        weights=weights,
        gain=gain,
        likelihood=likelihood,
        prior=prior,
        model=model,
        features=features,
        exclude=exclude,
        categorical=categorical,
        add=add,
        preset=preset,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    problem = _problem(lists, options)
    return replace(problem.target, recorder=problem)


def gain_of(lists: NBest, weights: AnyStart = None, gain: AnyGain | None = None) -> Metric:
    """Return the gain that is chosen, or the default of the lists.

    A default other than TER is logged, and a column that may be the gain is warned about.

    Args:
        lists: the adaptation sentences.
        weights: as for `adapt`.
        gain: as for `adapt`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["lm"], references=["a"])
    >>> gain_of(lists).key
    'chrf'
    """
    return _gain(Arguments(weights=weights, gain=gain), lists)


def _gain(options: Arguments, nbest: NBest) -> Metric:
    """Return the gain that is chosen, else that of the oracles, or the default of the lists."""
    if options.metric is not None:
        return resolve(options.metric, nbest)
    known = "" if options.oracle is None else options.oracle.metric
    if known in METRICS or known.removeprefix("-") in (*nbest.feature_names, *nbest.extras):
        return resolve(known, nbest)
    metric = resolve(default_metric(nbest, canonical=has_canonical(options.start.weights)))
    if not options.prior_only:
        _warn_judgements(options, nbest)
    if metric.key != "ter" and nbest.references is not None and not options.prior_only:
        log_info("the gain is chrF, because there are no canonical weights; choose ter for TER")
    return metric


def _warn_judgements(options: Arguments, nbest: NBest) -> None:
    """Warn of columns that are named like human judgements, unless an option names them.

    Lists with preferences do not need those that are no features.
    """
    categorical = options.categorical or ()
    features = None if options.features is None else set(options.features)
    named = {
        *(options.exclude or ()),
        *([categorical] if isinstance(categorical, str) else categorical),
    }
    columns = nbest.feature_names if has_preferences(nbest) else numeric_columns(nbest)
    for name in columns:
        left_out = features is not None and not matches(name, features)
        note = judgement_note(nbest, name)
        if note and not left_out and not matches(name, named):
            warn_user(note)


def _likelihood(options: Arguments, engine: Sampler, goal: Metric, nbest: NBest) -> Likelihood:
    """Return the likelihood that is chosen, else that of a published sampler or of the gain."""
    chosen = options.chosen_likelihood()
    if chosen is not None:
        return chosen
    indicators = has_indicators(options.categorical, options.add)
    default = default_likelihood(goal, nbest, indicators=indicators)
    if engine.likelihood is None or default.observes != "gains":
        return default
    log_info(
        f"{SAMPLERS.name_of(engine)} takes the likelihood that it was published with, "
        f"{engine.likelihood}; name a likelihood, such as {LIKELIHOODS.name_of(default)}, for "
        "another one"
    )
    return LIKELIHOODS.resolve(engine.likelihood)


def _family(options: Arguments, engine: Sampler) -> PriorFamily | Prior:
    """Return the prior, or the family of priors, with its settings.

    If the sampler keeps the draws of a posterior, the prior is that of the posterior.
    """
    prior = options.chosen_prior()
    if isinstance(prior, Prior):
        if _keeps(engine, prior.posterior):
            return Prior.recorded(prior.posterior)._replace(posterior=prior.posterior)
        if prior.posterior is not None and np.linalg.eigvalsh(prior.covariance).min() <= 0:
            problem = "the posterior that is the prior has too few draws of weight for a covariance"
            remedy = f"use its own sampler, {prior.posterior.record.sampler.name}, or adapt to all"
            raise UsageError(f"{problem}: {remedy} lists together", parameter="prior")
        return prior
    return PRIORS.resolve(prior)


def _warn_single_system(draws: Draws, observed: Scored | Compared) -> None:
    """Warn if the mean of the weights chooses candidates of one system from all lists."""
    nbest, sources = observed.lists, draws.record.recipe.sources
    categorical = [one.settings["column"] for one in sources if one.source == "indicators"]
    # Comparisons are not lists of candidates.
    if isinstance(observed, Compared) or len(nbest) < _MIN_LISTS:
        return
    if not (column := system_column(nbest, categorical)):
        return
    systems, first = np.array(nbest.extras[column], str), nbest.offsets[:-1]
    several = np.logical_or.reduceat(systems != np.repeat(systems[first], nbest.sizes), first)
    best = nbest.best(nbest.scores(draws.aligned(nbest, draws.mean[None])[0]))
    chosen = set(systems[first + best][several].tolist())
    if several.sum() < _MIN_LISTS or len(chosen) > 1:
        return
    remedy = f"leave out categorical {column}" if column in categorical else "add features"
    warn_user(
        f"all choices from {int(several.sum())} adaptation lists with several systems are those of "
        f"{column} {chosen.pop()}: take its candidates alone, or, to let others be chosen, "
        f"{remedy} or judge more lists"
    )


def _versions(engine: Sampler) -> dict[str, str]:
    """Return the versions of Python and of the packages that make a posterior."""
    names = (*_PACKAGES, *engine.packages)
    return {**{n: metadata.version(n) for n in names}, "python": platform.python_version()}


def to_posterior(
    density: Target,
    z: npt.ArrayLike,
    *,
    sampler: str = "unknown sampler",
    warmup: npt.ArrayLike | None = None,
    log_weight: npt.ArrayLike | None = None,
    statistics: Mapping[str, npt.ArrayLike] | None = None,
) -> InferenceData:
    """Return draws of any algorithm as the posterior that `adapt` would return.

    `check`, `report`, `compare` and `rerank` take it.

    Args:
        density: from `log_density`.
        z: (chains, draws, d) unconstrained values.
        sampler: a name that the posterior records.
        warmup: (chains, draws, d) of the warm-up, if they are to be kept.
        log_weight: (chains, draws) log p(z, data) − log q(z) of proposals from q, up to a
            constant. The importance weights are Pareto-smoothed, and k̂ is recorded.
        statistics: (chains, draws) each, under ArviZ's names. `n_steps` is the number of
            evaluations of the density that a draw took; where it is missing it is unknown.

    Raises:
        DataError: if shapes do not fit together, or a value is not finite.
        UsageError: if the density was not made by `log_density`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> density = log_density(lists, {"LM0": 0.5})
    >>> z = np.random.default_rng(0).normal(0.5, 0.3, (4, 100, 1))
    >>> posterior = to_posterior(density, z, sampler="mine")
    >>> posterior["posterior"]["weights"].shape, posterior.attrs["sampler"]
    ((4, 100, 1), 'mine')
    """
    if density.recorder is None:
        problem = "only a density made by log_density has what a posterior records"
        raise UsageError(problem, code="missing-setting")
    values = _draws(density, "z", z)
    shape, weights, k_hat = values.shape[:2], None, None
    if log_weight is not None:
        weights, k_hat = pareto_smoothed(_columns("log_weight", log_weight, shape))
    arrays = {n: _columns(n, v, shape) for n, v in (statistics or {}).items()}
    sites = unflatten(values, density.start)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        log_density, log_likelihood = evaluate(density, sites)
    sampled = Sampled(
        z=sites,
        kind="chains" if weights is None else "weighted",
        log_density=log_density,
        log_weight=weights,
        statistics=arrays,
        warmup=(
            {} if warmup is None else unflatten(_draws(density, "warmup", warmup), density.start)
        ),
        log_likelihood=log_likelihood,
        figures=Figures(pareto_k=k_hat),
    )
    draws = density.recorder.draws(sampled, SamplerRecord(name=str(sampler)))
    return to_arviz(checked(draws)[0])


def _draws(density: Target, name: str, z: npt.ArrayLike) -> Float64:
    """Return draws as finite numbers, (chains, draws, d)."""
    values = to_floats(z, name)
    if values.ndim != 3 or values.shape[2] != density.dimension or not values.size:
        problem = f"must be (chains, draws, {density.dimension})"
        raise DataError(
            f"{name} has the shape {values.shape}: it {problem}",
            parameter=name,
            code="mismatch",
        )
    if not np.isfinite(values).all():
        problem = f"{name} has values that are not finite: leave out the draws that diverged"
        raise DataError(problem, parameter=name, code="bad-number")
    return values


def _columns(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of one value per draw, (chains, draws), in its own type."""
    if to_floats(values, name).shape != shape:
        problem = f"{name} has the shape {np.shape(values)}: it must be {shape}, (chains, draws)"
        raise DataError(problem, parameter=name, code="mismatch")
    return np.asarray(values)
