"""adapt: from n-best lists and canonical weights to a posterior over weights."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from bpa_ppl.caching import prepare_jax
from bpa_ppl.diagnostics.baselines.comparing import (
    left_out_note,
    recorded_comparison,
    with_baselines,
    with_indicators_compared,
)
from bpa_ppl.diagnostics.baselines.table import system_column
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.drift import record_scales
from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.pretrained import pretrained_weights
from bpa_ppl.features.recipes import stored
from bpa_ppl.labels import matches
from bpa_ppl.models.likelihoods.base import LIKELIHOODS, Likelihood
from bpa_ppl.models.likelihoods.default import default_likelihood, is_choice_of_two
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import RATER
from bpa_ppl.models.lists import Lists, tabulate
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.preparing import Preparation, preparation
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.base import PRIORS, Prior, PriorFamily
from bpa_ppl.nbest import NBest, correlation_within
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.options import with_options, with_options_and_settings
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import SAMPLING_TIME, WEIGHTS, Draws
from bpa_ppl.progress import inherited_progress, reporter
from bpa_ppl.quality.base import METRICS, Metric, default_metric, resolve
from bpa_ppl.quality.column import judgement_note, numeric_columns
from bpa_ppl.quality.preferences import has_preferences
from bpa_ppl.quality.scoring import no_references
from bpa_ppl.sampling import density
from bpa_ppl.sampling.base import SAMPLERS, Sampler
from bpa_ppl.sampling.mode import find_mode, mode_of
from bpa_ppl.sampling.options import AdaptOptions
from bpa_ppl.sampling.prior_scale import OF_LISTS, OF_PAIRS, learn_scale
from bpa_ppl.sampling.repeating import OPTIONS, record_of
from bpa_ppl.sampling.sentences import Sentences, domain_numbers, observe_sentences
from bpa_ppl.sampling.target import Model, Sampled, Target
from bpa_ppl.sampling.tracing import tracing
from bpa_ppl.sampling.updating import SHIFT, gaussian_shift, report_shift
from bpa_ppl.weights import (
    EQUAL,
    AnyWeights,
    Match,
    Weights,
    check_totals,
    equal_weights,
    has_canonical,
    initial_weights,
    match,
)

if TYPE_CHECKING:
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
#: The fields of `AdaptOptions` that a density does not depend on.
_OF_SAMPLERS = ("sampler", "extra", "settings")
_PACKAGES = ("bpa_ppl", "numpyro", "jax", "jaxlib", "numpy", "sacrebleu", "arviz", "arviz-stats")


@with_options_and_settings(AdaptOptions)
def adapt(nbest: NBest, weights: AnyWeights, options: AdaptOptions) -> InferenceData:
    """Condition the weights on the oracles of a few sentences (Eq. 7), or on preferences.

    Args:
        nbest: n-best lists of the adaptation sentences, with references if the metric needs them;
            with no sentence at all the posterior equals the prior, which is warned about unless
            `prior_only` is chosen. An extra `domain` of the sentences numbers their domains.
        weights: the canonical weights λ_T, by feature name, or one for each column in their order.
            None starts at 0 for all features but those named as log-probabilities (see
            `initial_weights`); `"equal"` starts at the mean of the standardised features (see
            `equal_weights`). Both scale the prior to the spread of each feature within the lists.
        options: the fields of `bpa_ppl.sampling.options.AdaptOptions`, as keyword arguments; any
            other keyword is a setting of the sampler, such as `draws` or `chains`.

    Returns:
        InferenceData with the groups named in `bpa_ppl.posterior.adapter`. Its attribute
        `sampling_time` has the seconds that the sampler took, with the search for the mode, the
        warm-up and, the first time, compilation; files leave it out unless `write_posterior` is
        asked for it.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if a sampler, metric or setting does not exist or makes no sense.

    >>> from bpa_ppl import point_weights, rerank
    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat"], ["the dog", "dog"]],
    ...     [[[1.0], [0.0]], [[0.0], [2.0]]],
    ...     ["Errors"],
    ...     references=["the cat", "the dog"],
    ... )
    >>> posterior = adapt(lists, {"Errors": 0.5}, prior_variance=1.0, sampler="map")
    >>> bool(point_weights(posterior)["Errors"] < 0), rerank(lists, posterior).texts
    (True, ['the cat', 'the dog'])
    """
    draws = adapt_draws(nbest, weights, options)
    with tracing():  # SciPy fails in a thread while xarray imports Dask in another
        return to_arviz(checked(draws)[0])


@dataclass(frozen=True, eq=False)
class Problem:
    """One adaptation, matched, scored and tabulated once, which any number of samplers can sample.

    Attributes:
        target: the posterior, without a report of progress.
        sentences: the adaptation sentences, with their oracles.
        lists: all adaptation lists, with the features of the posterior.
        attrs: the record of the posterior.
        constants: arrays that the posterior keeps.
        without_indicators: returns the target where the weights of indicators, such as those of
            systems, are 0; None if there are none, or no other feature.
        represented: the posterior that a Gaussian prior represents, or None.
    """

    target: Target
    sentences: Sentences
    lists: NBest
    attrs: dict[str, Any]
    constants: dict[str, Any]
    without_indicators: Callable[[], Target] | None = None
    represented: Draws | None = None

    def sample(
        self, options: AdaptOptions, *, clock: Callable[[], float] = time.perf_counter
    ) -> Draws:
        """Return draws of the sampler of some options, with everything that `adapt` records.

        Args:
            options: sampler, settings, seed, lists of the out-of-domain set, and progress; the
                others are those that the problem was made with.
            clock: returns the time in seconds, for the attribute `sampling_time`.

        Raises:
            UsageError: if a package of the sampler is missing, or it does not fit the options.
        """
        engine, seed, match = options.resolved_sampler(), int(options.seed), self.target.match
        engine.require_packages()
        if (extra := options.extra) is not None:
            canonical = Weights(zip(match.names, match.values.tolist(), strict=True))
            known = set(extra.feature_names)
            fixed = [name for name in match.fixed_names if name in known]
            engine = engine.fitted(extra, canonical, fixed=fixed, seed=seed)
        name, target = SAMPLERS.name_of(engine), replace(self.target, seed=seed)
        if _keeps(engine, self.represented):
            target = replace(target, earlier=self.represented)
        with tracing(), jax.enable_x64(True), reporter(options.progress, f"adapt {name}") as report:
            start = clock()
            sampled = engine.sample(replace(target, progress=report))
            seconds = clock() - start
        attrs = {**self.attrs, "seed": seed, "versions": _versions(engine)}
        record = {"sampler": name, "settings": engine.settings(), SAMPLING_TIME: seconds}
        return replace(self, target=target, attrs=attrs).draws(sampled, record)

    def draws(self, sampled: Sampled, sampler: Mapping[str, Any]) -> Draws:
        """Return the result of a sampler with everything that `adapt` records.

        Args:
            sampled: the result.
            sampler: the record of the sampler: `sampler`, its name, and `settings`.

        Raises:
            UsageError: if the sampler did not return draws of the sites of the target.
        """
        draws, sentences = self.plain_draws(sampled, sampler), self.sentences
        if self.represented is not None and draws.kind != "point":
            record: dict[str, Any] = {}
            if self.target.earlier is None:
                with tracing(), jax.enable_x64(True):
                    record = gaussian_shift(self.target, self.represented, draws)
            report_shift(record, self.represented, draws)
            draws = draws.with_attrs(**({SHIFT: record} if record else {}))
        _warn_single_system(draws, sentences)
        mean = draws.aligned(self.lists, draws.mean[None])[0]
        draws = draws.with_attrs(feature_scales=record_scales(self.lists, mean))
        lists = sentences.nbest if sentences.choices is None else self.lists
        return with_baselines(draws, lists, sentences.metric, sentences.gains)

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
        with tracing(), jax.enable_x64(True):
            target = self.without_indicators()
            if not mode_of(target).converged:
                return draws
            sampled = SAMPLERS.resolve("laplace").sample(target)
        sentences = self.sentences
        without = replace(self, target=target).plain_draws(sampled, {})
        return with_indicators_compared(
            draws, without, sentences.nbest, sentences.metric, sentences.gains
        )

    def plain_draws(self, sampled: Sampled, sampler: Mapping[str, Any]) -> Draws:
        """Return the result of a sampler with everything that `adapt` records but comparisons.

        The prior is recorded only if the density depends on it: a custom model may have another
        one.

        Args:
            sampled: as for `draws`.
            sampler: as for `draws`.
        """
        require(sampled, Sampled, "the method `sample` of a sampler returns Sampled", "sampled")
        target, sentences, match = self.target, self.sentences, self.target.match
        density.require_sites(sampled.z, target.start)
        with tracing(), jax.enable_x64(True):
            info, likelihood = density.model_info(target), sampled.log_likelihood
            if likelihood is None:
                likelihood = density.evaluate(target, sampled.z)[1]
            fields = info.prior_fields - {"other"}
            prior = {n: value for n, value in target.prior._asdict().items() if n in fields}
            constants = {
                "canonical": match.values[match.free],
                **{f"prior_{name}": value for name, value in prior.items()},
                **sampled.constants,
            }
            if sampled.mode is not None:
                mode = density.unflatten(sampled.mode, target.start)
                constants["mode"] = density.constrained(target, mode)[WEIGHTS]
            from_prior = density.prior_draws(target, _PRIOR_DRAWS, target.seed)
            values, warmup, from_prior, constants = jax.device_get(
                (
                    density.constrained_draws(target, sampled.z),
                    density.constrained_draws(target, sampled.warmup),
                    {name: draws[None] for name, draws in from_prior.items()},
                    constants,
                )
            )
            log_prior = density.log_priors(target, values)
        dims = {site: names for site, names in target.likelihood.dims.items() if site in values}
        choices = sentences.choices
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
            coords={RATER: choices.raters} if dims and choices is not None else {},
            observed={"oracle": sentences.oracles.index},
            constants={**constants, **self.constants},
            fixed=Weights(zip(match.fixed_names, match.fixed_values.tolist(), strict=True)),
            sentence_ids=sentences.nbest.sentence_ids,
            attrs={**sampler, **self.attrs, **sampled.attrs},
        )


def adapt_draws(nbest: NBest, weights: AnyWeights, options: AdaptOptions) -> Draws:
    """Adapt as `adapt` does, and return plain draws, without loading ArviZ.

    Args:
        nbest: as for `adapt`.
        weights: as for `adapt`.
        options: as for `adapt`.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat"]], [[[1.0], [0.0]]], ["Errors"], references=["the cat"]
    ... )
    >>> adapt_draws(lists, {"Errors": 0.5}, AdaptOptions(sampler="map")).kind
    'point'
    """
    problem = problem_of(nbest, weights, options)
    draws = problem.compare_indicators(problem.sample(options))
    return draws.with_attrs(**{OPTIONS: record_of(options, weights)})


def problem_of(nbest: NBest, weights: AnyWeights, options: AdaptOptions) -> Problem:
    """Return the problem that `adapt` samples: match, score, tabulate and build the prior.

    Args:
        nbest: as for `adapt`.
        weights: as for `adapt`.
        options: as for `adapt`.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if an option does not exist or makes no sense.
    """
    require(nbest, NBest, "adapt takes n-best lists (NBest): read a file with read_nbest", "nbest")
    engine, equal = options.resolved_sampler(), isinstance(weights, str) and weights == EQUAL
    started = EQUAL if equal else "none" if weights is None else ""
    goal = gain_of(options, nbest, weights)
    engine.require_packages()
    likelihood = _likelihood(options, engine, goal, nbest)
    scored = len(nbest) and not (options.prior_only or options.oracle)
    lacking = "references" in goal.needs and nbest.references is None
    if scored and lacking and likelihood.observes != "preferences":
        raise no_references(nbest.origin)
    family, defaults, lower = _family(options, engine), options.defaults, options.lower_is_better
    if lower and not equal:
        problem = "features of which less is better are for equal weights alone"
        raise UsageError(problem, parameter="lower_is_better", code="conflict")
    prepared = preparation(
        nbest, goal, options.categorical, options.add, options.features, options.exclude
    )
    nbest = prepared.without_criterion(nbest)
    if started:
        names = [lower] if isinstance(lower, str) else lower
        initial = equal_weights(nbest, names or ()) if equal else initial_weights(nbest)
        weights, defaults = None, {**initial, **(defaults or {})}
    positional = isinstance(weights, Weights) and weights.positional
    if weights is not None and (positional or not isinstance(weights, Mapping)):
        # Weights without names are of the columns of the original lists.
        named = match(weights, nbest, fixed=())
        weights = dict(zip(named.names, named.values.tolist(), strict=True))
    with inherited_progress(options.progress):
        nbest, columns = prepared.for_training(nbest)
    defaults = {**{name: 0.0 for names in columns for name in names}, **(defaults or {})}
    matched = match(weights, nbest, fixed=options.fixed, defaults=defaults)
    learned: tuple[str, ...] = ()
    if started and options.pretrained:
        mean, variance = pretrained_weights(prepared.sources, columns, matched.free_spread)
        learned = tuple(name for name in mean if name not in (options.defaults or {}))
        if learned:
            defaults |= {name: mean[name] for name in learned}
            matched = match(weights, nbest, fixed=options.fixed, defaults=defaults)
            family = isotropic.with_variances(family, {n: variance[n] for n in learned})
            log_info(
                f"the weights of {', '.join(learned)} start at values learned from public judged "
                "lists; to start at 0: pretrained=False, --no-pretrained"
            )
    isotropic.build_prior(family, matched)  # raises before anything is scored
    model = options.model or log_linear
    if not callable(model):
        problem = f"a model is a function of (lists, prior, likelihood), not {model!r:.80}"
        raise UsageError(problem, parameter="model", code="wrong-type")
    if model is log_linear and isinstance(family, PriorFamily):
        model = family.model(matched) or model
    if not started:
        check_totals(nbest, matched.values)
    intended, lists, scaled = likelihood, nbest, isotropic.learns_scale(family, matched)
    of_two = isinstance(intended, Oracle) and is_choice_of_two(goal, nbest)
    preferences = intended.observes == "preferences"
    answers = of_two or preferences
    of_pairs = len(nbest) > 0 and int(nbest.sizes.max()) <= 2
    # Other models may use the variance of the prior.
    unknown_scale = answers and model is log_linear and len(nbest) > 0
    unknown_scale &= not of_pairs or (options.prior_only and preferences)
    correlation = correlation_within(nbest, scaled) if scaled and unknown_scale else None
    if options.prior_only:
        nbest = nbest[:0]
        likelihood = Oracle() if preferences else likelihood
    # Neither of two candidates was chosen in a tie.
    shared = of_two or (started and nbest.totals is None)
    sentences = observe_sentences(
        likelihood,
        nbest,
        matched,
        goal,
        options.oracle,
        ties=options.ties or ("shared" if shared else "canonical"),
        canonical=not started,
        jobs=options.jobs,
        progress=options.progress,
    )
    prepare_jax()
    _require_differences(sentences)
    if options.prior_only:
        log_info(EQUALS_PRIOR)
    elif not len(sentences.nbest):
        warn_user(f"{EQUALS_PRIOR}; give lists with judgements, references or preferences")
    likelihood = sentences.resolve_defaults(likelihood)
    table = _table(sentences, matched, model)
    scale, deviation = None, OF_PAIRS if answers and of_pairs else OF_LISTS
    if correlation is not None:
        values = dict(zip(matched.names, matched.values.tolist(), strict=True))
        has_start = equal or any(values[n] for n in options.defaults or () if n in scaled)
        factor = isotropic.FROM_START_FACTOR if has_start else isotropic.ANSWERS_FACTOR
        scale = float(f"{factor * isotropic.expected_scale(len(scaled)):.3g}")
    elif scaled and not len(sentences.nbest):
        scale = isotropic.expected_scale(len(scaled))
    elif scaled:
        of_evidence = _of_evidence(intended, sentences, canonical=not started)
        with reporter(options.progress, "learn the scale of the prior"), tracing():
            scale = learn_scale(
                lambda prior: _target(table, prior, matched, of_evidence),
                lambda scale: isotropic.build_prior(family, matched, scale),
                len(scaled),
                deviation,
            )
    given = _Given(matched, family, likelihood, table, scale)
    others, compared = None, dict[str, Any]()
    names = _names_of_indicators(prepared, columns)
    if sentences.gains is not None and len(sentences.nbest) and model is log_linear:
        chosen = options.chosen()[1] is not None or engine.likelihood is not None
        plain = intended if chosen else default_likelihood(goal, nbest)
        others = _without(given, names, plain, sentences, deviation, canonical=not started)
    if others is not None and set(names) & set(scaled):
        difference = given.log_evidence() - others.log_evidence()
        compared = {"log_bayes_factor": difference, "left_out": []}
        if difference < LEFT_OUT_BELOW:
            compared["left_out"] = [s.column for s in prepared.sources if isinstance(s, Indicators)]
            warn_user(left_out_note(compared["left_out"], difference))
            _, family, likelihood, _, scale = others
            others, matched = None, matched.without(names)
            prepared, columns = prepared.without_indicators(columns)
            lists = lists.without(*names)
            sentences = sentences._replace(nbest=sentences.nbest.without(*names))
            table = _table(sentences, matched, model)
    represented = _represented(family, matched)
    if represented is None and isinstance(family, Prior) and _keeps(engine, family.posterior):
        names = sorted(set(family.names) ^ set(matched.free_names))
        raise DataError(
            f"{', '.join(names)} is not in both the lists and the posterior that is the prior: "
            "adapt to all lists together",
            nbest.origin,
            parameter="prior",
            code="mismatch",
        )
    recorded, prior = _prior(family, matched, scale, correlation)
    with tracing(), jax.enable_x64(True):
        target = _target(table, prior, matched, likelihood, model, int(options.seed))
        info = density.model_info(target)
    if not info.observes:
        name = getattr(model, "__name__", str(model))
        warn_user(
            f"the model {name} observes nothing, so its posterior equals its prior: call "
            "likelihood.observe(lists, weights)"
        )
    # A custom model may ignore likelihood or prior; settings folded into the lists have an effect
    # anyway.
    uses_likelihood = info.uses_likelihood or target.likelihood != likelihood
    settings = {"name": LIKELIHOODS.name_of(likelihood), **likelihood.settings()}
    attrs = {
        **({"likelihood": settings} if uses_likelihood else {}),
        **({"prior": recorded} if info.prior_fields - {"mean"} else {}),
        **({"canonical_weights": started, "rule": "mean"} if started else {}),
        **({"pretrained": learned} if learned else {}),
        **({"indicators": compared} if compared else {}),
        **({} if options.extra is None else {"extra": options.extra.origin}),
        "seed": int(options.seed),
        "model": getattr(model, "__name__", str(model)),
        **sentences.record(),
        "lists": sentences.nbest.origin,
        "data": sentences.hashes(),
        "versions": _versions(engine),
        "machine": f"{platform.system()} {platform.machine()}, {jax.default_backend()}",
        **prepared.record(columns),
    }
    constants = {**sentences.constants(), **stored(prepared.sources)}
    return Problem(
        target,
        sentences,
        lists,
        attrs,
        constants,
        without_indicators=None if others is None else others.target,
        represented=represented,
    )


def _keeps(engine: Sampler, posterior: Draws | None) -> bool:
    """Return whether a sampler weights the draws of a posterior again, which are its own."""
    if posterior is None or not engine.keeps_draws:
        return False
    return posterior.attrs.get("sampler") == SAMPLERS.name_of(engine)


def _represented(family: PriorFamily | Prior, matched: Match) -> Draws | None:
    """Return the posterior whose Gaussian is the prior, with the free features in their order.

    None if there is no such posterior, or if it has other features.
    """
    posterior: Draws | None = family.posterior if isinstance(family, Prior) else None
    if posterior is None or set(posterior.features) != set(matched.free_names):
        return None
    kept = {name: getattr(posterior, name) for name in ("attrs", "log_density", "sentence_ids")}
    return replace(posterior.reordered(matched.free_names), **kept)


@with_options(AdaptOptions, without=_OF_SAMPLERS)
def log_density(nbest: NBest, weights: AnyWeights, options: AdaptOptions) -> Target:
    """Return the log density of the posterior that `adapt` samples, for any algorithm.

    Args:
        nbest: n-best lists of the adaptation sentences, as for `adapt`.
        weights: the canonical weights λ_T, as for `adapt`.
        options: the fields of `bpa_ppl.sampling.options.AdaptOptions`, as keyword arguments, except
            those of the sampler.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if an option does not exist or makes no sense.

    Newton's method on it, without this package:

    >>> import jax.numpy as jnp
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> with jax.enable_x64(True):
    ...     density = log_density(lists, {"LM0": 0.5}, likelihood="oracle", prior_variance=1.0)
    ...     z = density.initial_position
    ...     for _ in range(5):
    ...         z = z - jnp.linalg.solve(jax.hessian(density)(z), jax.grad(density)(z))
    ...     print(density.constrain(z)["weights"].round(4))
    [0.8083]
    """
    problem = problem_of(nbest, weights, options)
    return replace(problem.target, problem=problem)


def gain_of(options: AdaptOptions, nbest: NBest, weights: AnyWeights) -> Metric:
    """Return the gain that is chosen, else that of the oracles, or the default of the lists.

    A default other than TER is logged, and a column that may be the gain is warned about.

    Args:
        options: of `adapt`.
        nbest: the adaptation sentences.
        weights: as for `adapt`.

    >>> lists = NBest.from_lists([["a", "b"]], [[[0.5], [0.7]]], ["lm"], references=["a"])
    >>> gain_of(AdaptOptions(), lists, None).key
    'chrf'
    """
    if options.metric is not None:
        return resolve(options.metric, nbest)
    if options.oracle is not None and options.oracle.metric in METRICS:
        return resolve(options.oracle.metric)
    metric = resolve(default_metric(nbest, canonical=has_canonical(weights)))
    if not options.prior_only:
        _warn_judgements(options, nbest)
    if metric.key != "ter" and nbest.references is not None and not options.prior_only:
        log_info("the gain is chrF, because there are no canonical weights; choose ter for TER")
    return metric


def _warn_judgements(options: AdaptOptions, nbest: NBest) -> None:
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


def _likelihood(options: AdaptOptions, engine: Sampler, goal: Metric, nbest: NBest) -> Likelihood:
    """Return the likelihood that is chosen, else that of a published sampler or of the gain."""
    chosen = options.chosen()[1]
    if chosen is not None:
        return LIKELIHOODS.resolve(chosen)
    default = default_likelihood(goal, nbest, options.categorical, options.add)
    if engine.likelihood is None or default.observes != "gains":
        return default
    log_info(
        f"{SAMPLERS.name_of(engine)} takes the likelihood that it was published with, "
        f"{engine.likelihood}; name a likelihood, such as {LIKELIHOODS.name_of(default)}, for "
        "another one"
    )
    return LIKELIHOODS.resolve(engine.likelihood)


def _require_differences(sentences: Sentences) -> None:
    """Refuse sentences without any information; log how many have tied best candidates.

    Raises:
        DataError: if all candidates of each list are equally good.
    """
    oracles, sizes = sentences.oracles, sentences.nbest.sizes
    tied, metric = oracles.tied, oracles.metric
    if (sizes > 1).any() and (tied == sizes).all():
        raise DataError(
            f"all candidates have the same {metric} in each of {len(sizes)} lists, so nothing can "
            "be learned from them: give lists whose candidates differ, or choose another metric",
            sentences.nbest.origin,
            code="no-data",
        )
    if oracles.share is not None:
        shared = np.add.reduceat(oracles.share > 0, sentences.nbest.offsets[:-1])
        log_info(
            f"{int((shared > 1).sum())} of {len(sizes)} lists have several best candidates by "
            f"{metric}, {shared.mean():.1f} of {sizes.mean():.1f} on average: they share the "
            "observation"
        )


def _of_evidence(likelihood: Likelihood, sentences: Sentences, *, canonical: bool) -> Likelihood:
    """Return the likelihood whose evidence learns the scale of the prior.

    See `bpa_ppl.sampling.prior_scale`; it depends on whether there are canonical weights.
    """
    if sentences.gains is None and likelihood.observes != "preferences":
        return Oracle()
    by_margin = canonical and isinstance(likelihood, Margin)
    return Pairs() if likelihood.observes == "gains" and not by_margin else likelihood


def _table(sentences: Sentences, matched: Match, model: Model) -> Lists:
    """Return the table of some sentences.

    `log_linear` reads no domains, and some lists may lack theirs.

    Raises:
        DataError: if observations do not fit the lists.
    """
    choices = sentences.choices
    return tabulate(
        sentences.nbest,
        matched,
        sentences.oracles.index,
        gains=sentences.gains,
        share=sentences.oracles.share,
        domain=None if model is log_linear else domain_numbers(sentences.nbest),
        weight=None if choices is None else choices.weight,
        rater=None if choices is None else choices.rater,
    )


def _target(
    lists: Lists,
    prior: Prior,
    matched: Match,
    likelihood: Likelihood,
    model: Model = log_linear,
    seed: int = 0,
) -> Target:
    """Return the posterior to sample; to be called with x64 enabled."""

    def build(likelihood: Likelihood) -> Target:
        prepared, observing = likelihood.prepare(lists)
        arrays = prior._replace(names=None, posterior=None)
        on_device, arrays = jax.device_put((prepared, arrays))
        return Target(model, observing, on_device, arrays, {}, matched, seed)

    target = build(likelihood)
    density.require_weights(target)
    start, log_concave = density.starting_point(target), likelihood.log_concave_start()
    if log_concave is not None:
        simple = build(log_concave)
        common = {name: start[name] for name in density.model_info(simple).latent}
        mode = find_mode(replace(simple, start=common))
        if mode.converged:
            start = {**start, **density.unflatten(mode.position, common)}
    return replace(target, start=start)


class _Given(NamedTuple):
    """What a posterior of the adaptation sentences depends on."""

    match: Match
    family: PriorFamily | Prior
    likelihood: Likelihood
    table: Lists
    scale: float | None

    def target(self, likelihood: Likelihood | None = None) -> Target:
        """Return the posterior; to be called with x64 enabled."""
        prior = isotropic.build_prior(self.family, self.match, self.scale)
        return _target(self.table, prior, self.match, likelihood or self.likelihood)

    def log_evidence(self) -> float:
        """Return the log evidence of the order of the candidates."""
        with tracing(), jax.enable_x64(True):
            return mode_of(self.target(_OF_ORDER)).log_evidence


def _names_of_indicators(prepared: Preparation, columns: Sequence[Sequence[str]]) -> list[str]:
    """Return the features that are indicators of a category, such as a system."""
    sources = zip(prepared.sources, columns, strict=True)
    return [n for source, names in sources if isinstance(source, Indicators) for n in names]


def _without(
    given: _Given,
    names: Sequence[str],
    likelihood: Likelihood,
    sentences: Sentences,
    deviation: float,
    *,
    canonical: bool,
) -> _Given | None:
    """Return the same with the weights of some features fixed at 0, and a scale of its own.

    None if there are no such features or no others, or if the prior is not isotropic.

    Args:
        given: with all features.
        names: the features.
        likelihood: that of the other features alone.
        sentences: the adaptation sentences.
        deviation: the standard deviation of log τ a priori.
        canonical: whether there are canonical weights.
    """
    match = given.match
    fixed = np.isin(match.names, list(names))
    match = match._replace(values=np.where(fixed, 0.0, match.values), free=match.free & ~fixed)
    family = isotropic.restricted(given.family, match.free_names)
    if not fixed.any() or not match.free.any() or family is None:
        return None
    table = _table(sentences, match, log_linear)
    others = _Given(match, family, sentences.resolve_defaults(likelihood), table, None)
    if not (scaled := isotropic.learns_scale(family, match)):
        return others
    of_evidence = _of_evidence(likelihood, sentences, canonical=canonical)
    with tracing():
        scale = learn_scale(
            lambda prior: _target(table, prior, match, of_evidence),
            lambda scale: isotropic.build_prior(family, match, scale),
            len(scaled),
            deviation,
        )
    return others._replace(scale=scale)


def _family(options: AdaptOptions, engine: Sampler) -> PriorFamily | Prior:
    """Return the prior, or the family of priors, with its settings.

    If the sampler keeps the draws of a posterior, the prior is that of the posterior.
    """
    prior, variance = options.prior, options.chosen_prior_variance()
    if variance is not None and not (isinstance(prior, str) and prior == "isotropic"):
        problem = "a prior variance is a setting of the isotropic prior: leave it out"
        raise UsageError(problem, parameter="prior_variance", code="conflict")
    if isinstance(variance, PriorFamily):
        return variance
    if isinstance(prior, Prior):
        if _keeps(engine, prior.posterior):
            return Prior.recorded(prior.posterior)._replace(posterior=prior.posterior)
        if prior.posterior is not None and np.linalg.eigvalsh(prior.covariance).min() <= 0:
            problem = "the posterior that is the prior has too few draws of weight for a covariance"
            remedy = f"use its own sampler, {prior.posterior.attrs.get('sampler')}, or adapt to all"
            raise UsageError(f"{problem}: {remedy} lists together", parameter="prior")
        return prior
    return PRIORS.resolve(prior, {} if variance is None else isotropic.variances(variance))


def _prior(
    family: PriorFamily | Prior,
    matched: Match,
    learned: float | None,
    correlation: Mapping[tuple[str, str], float] | None,
) -> tuple[dict[str, Any], Prior]:
    """Return the record of the prior, and the prior of the free features.

    Variances other than σ_T are logged.

    Args:
        family: the prior, or a family of priors.
        matched: the canonical weights.
        learned: τ, if it was not chosen.
        correlation: of features with an unknown common scale, of which τ is the typical one.
    """

    def with_scale(prior: Prior) -> Prior:
        return isotropic.with_shared_scale(prior, correlation) if correlation else prior

    degrees = {"degrees_of_freedom": isotropic.DEGREES} if correlation else {}
    if isinstance(family, Prior):
        prior, missing = isotropic.complete_prior(family, matched, learned)
        kind = "NumPyro distribution" if family.other is not None else "Gaussian"
        kind = kind if family.degrees is None else "Student t"
        lacked = {"isotropic": missing, **degrees} if missing else {}
        return {"name": kind, **lacked}, with_scale(prior)
    record = {name: np.asarray(value).tolist() for name, value in family.settings().items()}
    if isinstance(family, isotropic.Isotropic):
        record = {name: record[name] for name in ("variance", "single") if record[name]}
        if scaled := family.scaled(matched):
            means = dict(zip(matched.free_names, matched.free_values.tolist(), strict=True))
            nonzero = [f"{name} ({means[name]:.3g})" for name in scaled if means[name]]
            scale = family.scale if learned is None else learned
            log_info(
                f"no canonical weight for {', '.join(scaled)}: the prior has "
                + (f"mean 0, except {', '.join(nonzero)}," if nonzero else "mean 0")
                + (" and an unknown scale, typically " if degrees else " and standard deviation ")
                + f"{scale:.3g} / spread, with the spread of each feature within the lists"
            )
            fitted = learned is not None and not degrees
            record |= {"scale": scale, "scale_learned": fitted, "spread": scaled, **degrees}
    prior = isotropic.build_prior(family, matched, learned)
    return {"name": PRIORS.name_of(family), **record}, with_scale(prior)


def _warn_single_system(draws: Draws, sentences: Sentences) -> None:
    """Warn if the mean of the weights chooses candidates of one system from all lists."""
    nbest, sources = sentences.nbest, draws.attrs.get("feature_sources", ())
    categorical = [s["column"] for s in sources if s["source"] == "indicators"]
    # Choices between two are no lists.
    if sentences.choices is not None or len(nbest) < _MIN_LISTS:
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
