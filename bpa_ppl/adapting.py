"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arguments import require, require_one_of
from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.diagnostics.baseline_comparison import describe_left_out
from bpa_ppl.diagnostics.check import check_and_record
from bpa_ppl.errors import DataError, UsageError, locate
from bpa_ppl.features.indicators import Indicators, has_indicators
from bpa_ppl.features.prepared import Prepared, prepare_lists
from bpa_ppl.features.recipe import recipe_for
from bpa_ppl.metrics.column import describe_outliers
from bpa_ppl.metrics.gains import AnyGain, default_gain, resolve
from bpa_ppl.metrics.metric import METRICS, Metric
from bpa_ppl.metrics.oracles import Oracles
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import hierarchical, log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.prior import PRIORS, Prior, PriorFamily
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import DOMAIN, Draws
from bpa_ppl.posterior.record import (
    ComponentRecord,
    IndicatorsRecord,
    PriorRecord,
    Record,
)
from bpa_ppl.problem import Problem, list_versions
from bpa_ppl.sampling.arguments import Arguments, record_arguments
from bpa_ppl.sampling.coordinates import standardise
from bpa_ppl.sampling.mode import build_target, mode_of
from bpa_ppl.sampling.observations import (
    Compared,
    Scored,
    choose_likelihood,
    observe,
    require_references,
)
from bpa_ppl.sampling.prior_choice import Scale, build_and_record, choose_scale
from bpa_ppl.sampling.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.target import (
    NUMPYRO_LOCK,
    Model,
    Target,
    inspect_model,
)
from bpa_ppl.weights import (
    CANONICAL,
    AnyStart,
    Match,
    check_totals,
    has_canonical,
)

if TYPE_CHECKING:
    from bpa_ppl.features.source import AnySource
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: The likelihood of the order of the candidates by which indicators are left out. With this
#: exponent its intervals are about as wide as they should be: see `Pairs`.
_OF_ORDER = Pairs(exponent=1.5)
#: Indicators are left out if their log Bayes factor is below: docs/results/judged-lists.md.
LEFT_OUT_BELOW = -3.0
#: The models that have names.
_MODELS: Mapping[str, Model] = {"log_linear": log_linear, "hierarchical": hierarchical}
#: The message if the posterior has no observation.
_EQUALS_PRIOR = "the posterior equals its prior: no sentence was judged"


def adapt(
    lists: NBest,
    weights: AnyStart = None,
    *,
    gain: AnyGain | Oracles | None = None,
    likelihood: str | Likelihood | None = None,
    prior: str | PriorFamily | Prior | None = None,
    model: str | Model | None = None,
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
            metric, a function, or a column of the lists, which is then not a feature; or
            `Oracles` that were found before, which need no references. None is `ter` where there
            are canonical weights or totals, else `chrf`.
        likelihood: `oracle`, as published, `margin`, `risk`, `pairs`, `preference`, or `none`, with
            which the posterior equals the prior: only the features and their spread are taken
            from the lists. Settings left open are derived from the gain, and recorded. None
            is `oracle` for a published sampler, `margin` where the gain is TER, BLEU, chrF,
            `ter+bleu`, WER or CER, `risk` for any other gain, or `pairs` if there are indicators
            such as those of systems, and `preference` for lists without references that carry
            preferences: see `choose_likelihood`.
        prior: `isotropic`, as published, also with its variance, `isotropic:variance=0.5`;
            `horseshoe`; a `Prior`, such as that of other lists; or a family of priors. None is
            `isotropic` with the variance 0.1, and for features without a canonical weight with a
            scale that is learned from these sentences: see `Isotropic`.
        model: a NumPyro program of (lists, prior, likelihood) with a site `weights`; or
            `hierarchical`, with weights for each `domain` of the lists. None is `log_linear`.
        sampler: `auto`, `imh`, `nuts`, `rwm`, `laplace`, `map`; as published `heuristic`,
            `rwm-isotropic` and `weight-trace`, whose default likelihood is `oracle`; any kernel of
            NumPyro, `numpyro:HMC`; or a `Sampler`. None is `auto`. The published 100 samples of
            `heuristic` with delta=8 cannot pass `check`, which needs 100 effective ones:
            draws=1000 with `heuristic:delta=50` pass.
        draws: of each chain. None is the number of the sampler, which may not name another one.
        chains: how many; None as for `draws`.
        features: the columns of the lists that are features: names, labels and patterns such as
            `judge_*`; `*` is every column of numbers without another role. The others become
            extras, here and in `rerank`. None takes the features of the lists.
        exclude: columns that are not features: names, labels and patterns.
        categorical: columns of texts, integers, or true and false, such as `system`, whose values
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
        return to_arviz(check_and_record(posterior)[0])


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
    problem = _build(lists, chosen)
    draws = problem.sample(
        chosen.resolve_sampler(), seed=chosen.seed, extra=chosen.extra, progress=chosen.progress
    )
    draws = problem.compare_indicators(draws)
    return replace(draws, record=structs.replace(draws.record, options=record_arguments(chosen)))


def build_problem(lists: NBest, weights: AnyStart = None, **options: Any) -> Problem:
    """Return the problem that `adapt` samples: observe, choose the prior and build the density.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        options: the keyword arguments of `adapt`; and `oracle`, oracles that have another gain than
            theirs.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if an argument makes no sense.
    """
    return _build(lists, Arguments(weights=weights, **options))


def _build(nbest: NBest, options: Arguments) -> Problem:
    """Return the problem that `adapt` samples with some arguments."""
    require(nbest, NBest, "adapt takes n-best lists (NBest): read a file with read_nbest", "nbest")
    engine = options.resolve_sampler()
    setup, alternative, indicators = _set_up(nbest, options, engine)
    prepared, observed = setup.prepared, setup.observed
    represented = _find_represented(setup, engine)
    prior, prior_record = build_and_record(setup.family, prepared.match, setup.scale)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        target = setup.target(prior, seed=int(options.seed))
        unused = inspect_model(target).unused
    if unused and not options.prior_only:
        remedy = "call likelihood.observe(lists, weights)"
        warn_user(f"the model {_name(setup.model)} observes {unused}: {remedy}")
    return Problem(
        target,
        observed,
        prepared.lists,
        _record(setup, target, prior_record, indicators, options, engine),
        {**observed.constants(), **prepared.recipe.constants()},
        without_indicators=None if alternative is None else alternative.target,
        represented=represented,
    )


def _record(
    setup: _SetUp,
    target: Target,
    prior: PriorRecord,
    indicators: IndicatorsRecord | None,
    options: Arguments,
    engine: Sampler,
) -> Record:
    """Return the record of the posterior, without that of a sampler."""
    prepared, observed, likelihood = setup.prepared, setup.observed, setup.likelihood
    # `observed` has the policy for ties.
    settings = {n: v for n, v in likelihood.settings().items() if n != "ties"}
    return Record(
        likelihood=ComponentRecord(LIKELIHOODS.name_of(likelihood), settings),
        prior=prior if target.uses_prior else None,
        start=prepared.match.origin,
        pretrained=tuple(prepared.pretrained),
        indicators=indicators,
        seed=int(options.seed),
        model=_name(setup.model),
        observed=observed.record(),
        lists=observed.lists.origin,
        data=observed.hashes(),
        versions=list_versions(engine),
        machine=f"{platform.system()} {platform.machine()}, {jax.default_backend()}",
        recipe=prepared.recipe.record(prepared.columns),
    )


class _SetUp(NamedTuple):
    """What a posterior depends on."""

    prepared: Prepared
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
        return build_target(self.table, prior, match, likelihood or self.likelihood, model, seed)

    def log_evidence_of_order(self) -> float:
        """Return the log evidence of the order of the candidates."""
        with NUMPYRO_LOCK, jax.enable_x64(True):
            target = standardise(self.target(likelihood=_OF_ORDER)).target
            return mode_of(target).log_evidence


def _set_up(
    nbest: NBest, options: Arguments, engine: Sampler
) -> tuple[_SetUp, _SetUp | None, IndicatorsRecord | None]:
    """Prepare features, observe the lists and choose the scale of the prior.

    Returns:
        what the posterior depends on; the same without indicators, to compare; and the record of
        indicators that are left out.
    """
    engine.require_packages()
    gain, likelihood = _choose_gain_and_likelihood(options, engine, nbest)
    prepared = _prepare(nbest, gain, options)
    match = prepared.match
    family = isotropic.with_variances(_choose_prior_family(options, engine), prepared.pretrained)
    isotropic.build_prior(family, match)  # raises before anything is scored
    model = _choose_model(options, family, match)
    if model is hierarchical and DOMAIN not in nbest.sentence_extras:
        problem = f"the lists have no extra {DOMAIN}, which the model hierarchical needs"
        remedy = "name the customer, language or slice of each list in it"
        raise DataError(
            f"{problem}: {remedy}", nbest.origin, parameter=DOMAIN, code="missing-column"
        )
    # Nothing is asked yet where only the prior of answers is wanted.
    prior_of_answers = options.prior_only and likelihood.observes == "preferences"
    observing = Oracle() if prior_of_answers else likelihood
    observed = _observe(prepared, gain, observing, options)
    table = observed.table(match, domains=model is not log_linear)
    scale = choose_scale(
        observed,
        table,
        match,
        family,
        likelihood,
        prepared.lists,
        model=model,
        defaults=options.start.defaults,
        progress=options.progress,
    )
    resolved = observing.defaults(observed)
    setup = _SetUp(prepared, observed, table, family, scale, resolved, model)
    if observed.gains is None or not len(observed.lists) or model is not log_linear:
        return setup, None, None
    is_chosen = options.resolve_likelihood() is not None or engine.likelihood is not None
    return _compare_indicators(setup, likelihood if is_chosen else choose_likelihood(gain, nbest))


def _prepare(nbest: NBest, gain: Metric, options: Arguments) -> Prepared:
    """Return the lists with all features; warn if canonical weights do not give their totals."""
    recipe = recipe_for(
        nbest, gain, options.categorical, options.add, options.features, options.exclude
    )
    prepared = prepare_lists(nbest, options.start, recipe, progress=options.progress)
    if prepared.match.origin == CANONICAL:
        check_totals(prepared.lists, prepared.match.values)
    features = prepared.lists
    outliers = [describe_outliers(features, name) for name in features.feature_names]
    outliers += [describe_outliers(nbest, name) for name in gain.columns]
    for note in filter(None, outliers):
        warn_user(f"{locate(nbest.origin)}{note}")
    return prepared


def _observe(
    prepared: Prepared, gain: Metric, likelihood: Likelihood, options: Arguments
) -> Scored | Compared:
    """Return what the likelihood observes, or no observation; log what is missing."""
    lists = prepared.lists
    # Without observations the policy for ties is that of all lists.
    of_two = options.prior_only and likelihood.observes_answers(gain, lists)
    observed = observe(
        lists[:0] if options.prior_only else lists,
        gain,
        prepared.match,
        likelihood=likelihood,
        best=options.oracle,
        ties="shared" if of_two else None,
        jobs=options.jobs,
        progress=options.progress,
    )
    prepare_jax()
    observed.require_differences()
    if options.prior_only:
        log_info(_EQUALS_PRIOR)
    elif not len(observed.lists):
        warn_user(f"{_EQUALS_PRIOR}; give lists with judgements, references or preferences")
    return observed


def _choose_model(options: Arguments, family: PriorFamily | Prior, match: Match) -> Model:
    """Return the model: the one that is chosen, or that of the family of priors."""
    model = options.model or log_linear
    if isinstance(model, str):
        model = _MODELS[require_one_of(model, _MODELS, "model")]
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
    others = _fix_at_zero(setup, names, likelihood)
    if others is None or not set(names) & {*isotropic.learns_scale(setup.family, prepared.match)}:
        return setup, others, None
    difference = setup.log_evidence_of_order() - others.log_evidence_of_order()
    if difference >= LEFT_OUT_BELOW:
        return setup, others, IndicatorsRecord(difference)
    columns = tuple(s.column for s in prepared.recipe.sources if isinstance(s, Indicators))
    left_out = IndicatorsRecord(difference, columns)
    warn_user(describe_left_out(left_out))
    observed = setup.observed.without_features(names)
    rest = prepared.without_indicators()
    kept = others._replace(prepared=rest, observed=observed, table=observed.table(rest.match))
    return kept, None, left_out


def _fix_at_zero(setup: _SetUp, names: Sequence[str], likelihood: Likelihood) -> _SetUp | None:
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
    family = isotropic.restrict(setup.family, match.free_names)
    if not fixed.any() or not match.free.any() or family is None:
        return None
    table = observed.table(match)
    scale = choose_scale(observed, table, match, family, likelihood, prepared.lists)
    prepared = prepared._replace(match=match)
    return _SetUp(
        prepared, observed, table, family, scale, likelihood.defaults(observed), log_linear
    )


def _find_represented(setup: _SetUp, engine: Sampler) -> Draws | None:
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
        if engine.keeps(posterior):
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
    problem = _build(lists, options)
    return replace(problem.target, recorder=problem)


def resolve_gain(lists: NBest, weights: AnyStart = None, gain: AnyGain | None = None) -> Metric:
    """Return the gain that is chosen, or the default of the lists.

    A default other than TER is logged.

    Args:
        lists: the adaptation sentences.
        weights: as for `adapt`.
        gain: as for `adapt`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["lm"], references=["a"])
    >>> resolve_gain(lists).key
    'chrf'
    """
    return _choose_gain(Arguments(weights=weights, gain=gain), lists)


def _choose_gain(options: Arguments, nbest: NBest) -> Metric:
    """Return the gain that is chosen, else that of the oracles, or the default of the lists."""
    if options.chosen_gain is not None:
        return resolve(options.chosen_gain, nbest)
    known = "" if options.oracle is None else options.oracle.gain
    if known in METRICS or known.removeprefix("-") in (*nbest.feature_names, *nbest.extras):
        return resolve(known, nbest)
    gain = resolve(default_gain(nbest, canonical=has_canonical(options.start.weights)))
    if gain.key != "ter" and nbest.references is not None and not options.prior_only:
        log_info("the gain is chrF, because there are no canonical weights; choose ter for TER")
    return gain


def _choose_gain_and_likelihood(
    options: Arguments, engine: Sampler, nbest: NBest
) -> tuple[Metric, Likelihood]:
    """Return gain and likelihood, after a check that the lists have the references they need."""
    gain = _choose_gain(options, nbest)
    likelihood = _choose_likelihood(options, engine, gain, nbest)
    if not (options.prior_only or options.oracle):
        require_references(nbest, gain, likelihood)  # before features are computed
    return gain, likelihood


def _choose_likelihood(
    options: Arguments, engine: Sampler, gain: Metric, nbest: NBest
) -> Likelihood:
    """Return the likelihood that is chosen, else that of a published sampler or of the gain."""
    chosen = options.resolve_likelihood()
    if chosen is not None:
        return chosen
    indicators = has_indicators(options.categorical, options.add)
    default = choose_likelihood(gain, nbest, indicators=indicators)
    if engine.likelihood is None or default.observes != "gains":
        return default
    log_info(
        f"{SAMPLERS.name_of(engine)} takes the likelihood that it was published with, "
        f"{engine.likelihood}; name a likelihood, such as {LIKELIHOODS.name_of(default)}, for "
        "another one"
    )
    return LIKELIHOODS.resolve(engine.likelihood)


def _choose_prior_family(options: Arguments, engine: Sampler) -> PriorFamily | Prior:
    """Return the prior, or the family of priors, with its settings.

    If the sampler keeps the draws of a posterior, the prior is that of the posterior.
    """
    prior = options.resolve_prior()
    if isinstance(prior, Prior):
        if engine.keeps(prior.posterior):
            recorded = Prior.recorded(prior.posterior, unchecked=True)  # `Prior.of` has checked it
            return recorded._replace(posterior=prior.posterior)
        return prior
    return PRIORS.resolve(prior)
