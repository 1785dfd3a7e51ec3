"""The preparation of `adapt`: names, patterns and settings become objects, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpa_ppl._runtime.arguments import require, require_one_of
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl.adapting.published import PublishedSampler
from bpa_ppl.adapting.settings import ResolvedSettings, Settings, resolve_settings
from bpa_ppl.adapting.weights_target import Model
from bpa_ppl.errors import DataError, wrong_type
from bpa_ppl.features.matching import MatchedLists, match_lists
from bpa_ppl.features.recipe import recipe_for
from bpa_ppl.gains.gains import default_gain, no_references, resolve
from bpa_ppl.gains.judged import Judged, find_judged, select_judged
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.gains.preferences import has_preferences
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood, NoLikelihood, OfOracles
from bpa_ppl.models.likelihoods.oracle import Margin, Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.log_linear import hierarchical, log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.prior import Prior, PriorFamily
from bpa_ppl.posterior.record import IndicatorsRecord
from bpa_ppl.posterior.weight_draws import DOMAIN
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.weights import CANONICAL, AnyStart, Match, StartingWeights, has_canonical

if TYPE_CHECKING:
    from typing import Unpack

    from bpa_ppl.gains.gains import AnyGain
    from bpa_ppl.gains.metric import Metric

#: The models that have names.
_MODELS: Mapping[str, Model] = {"log_linear": log_linear, "hierarchical": hierarchical}
#: The message if the posterior has no observation.
_EQUALS_PRIOR = "the posterior equals its prior: no sentence was judged"
#: Of lists with preferences, where another likelihood learns.
_UNUSED = "the preferences are not used: only the likelihood preference observes them"
#: Metrics with a margin: it is the best of the likelihoods on held-out sentences of translations,
#: and was not compared with others by WER and CER.
_WITH_MARGIN = ("ter", "bleu", "chrf", "ter+bleu", "wer", "cer")
#: Of exponents of 0.06 to 0.5 and powers of 0 to 1.5, on held-out lists of 24 collections, with the
#: names of systems and without them: docs/results/choices.md.
_OF_JUDGEMENTS = Pairs(exponent=0.25, power=0.75)


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """Lists with their features, matched with the weights, and all settings as objects.

    Attributes:
        matched: all lists with their features, the recipe of these, and where the weights start.
        judged: the lists that are observed, with their gains if these are a column; none if the
            likelihood is `none`.
        answers: whether answers of judges are observed, who chose one of a few candidates.
        gain: how good a candidate is.
        likelihood: of what is observed, with the settings that were given.
        prior: a prior, or the family of priors.
        model: the NumPyro program.
        sampler: what draws from the posterior.
        ties: how ties between oracles are broken.
        oracles: that were found before, or None.
        defaults: weights without a canonical value that the user has given.
        indicators: whether indicators explain the order of candidates; None if it is not known.
        settings: of `adapt`; those above are chosen by them.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> prepared = prepare(lists, sampler="map")
    >>> prepared.sampler, prepared.model_name, len(prepared.judged.lists)
    (PosteriorMode(), 'log_linear', 1)
    """

    matched: MatchedLists
    judged: Judged
    answers: bool
    gain: Metric
    likelihood: Likelihood
    prior: PriorFamily | Prior
    model: Model
    sampler: Sampler
    ties: str
    oracles: Oracles | None = None
    defaults: Mapping[str, float] | None = None
    indicators: IndicatorsRecord | None = None
    settings: ResolvedSettings

    @property
    def lists(self) -> NBest:
        """All lists, with their features."""
        return self.matched.lists

    @property
    def match(self) -> Match:
        """The weights, matched to the columns of the lists."""
        return self.matched.match

    @property
    def model_name(self) -> str:
        """The name of the NumPyro program."""
        return str(getattr(self.model, "__name__", self.model))


def prepare(
    lists: NBest,
    weights: AnyStart = None,
    *,
    resolved: ResolvedSettings | None = None,
    **settings: Unpack[Settings],
) -> Prepared:
    """Resolve what `adapt` is asked for: the first of its steps.

    Gain, likelihood, prior, model and sampler are chosen, features are computed, weights are
    matched to them, and the lists with a judgement are selected.

    Args:
        lists: as for `adapt`.
        weights: as for `adapt`.
        resolved: the settings, from `resolve_settings`; None takes them from the others.
        settings: the keyword arguments of `adapt`.

    Raises:
        DataError: if the lists, references and weights do not fit together, or no feature differs
            between the candidates of a judged list.
        TypeError: if there is no such setting.
        UsageError: if a sampler, gain or setting does not exist or makes no sense.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> prepared = prepare(lists, {"LM0": 0.5}, add="length")
    >>> prepared.gain.key, prepared.likelihood, prepared.lists.feature_names
    ('ter', Margin(gamma=None, ties=None), ('LM0', 'LengthWords'))
    """
    require(lists, NBest, "adapt takes n-best lists (NBest): read a file with read_nbest", "lists")
    resolved = resolve_settings(**settings) if resolved is None else resolved
    start, sampler, chosen = StartingWeights.of(weights), resolved.sampler, resolved.likelihood
    sampler.require_packages()
    observes_nothing = isinstance(chosen, NoLikelihood)
    chosen = None if observes_nothing else chosen
    oracles = resolved.gain if isinstance(resolved.gain, Oracles) else None
    gain = choose_gain(lists, start, resolved.gain, observes_nothing=observes_nothing)
    judged = find_judged(lists, gain)
    likelihood = chosen or _default_likelihood(gain, lists, sampler, of_two=judged.of_two)
    if not (observes_nothing or oracles):
        _require_references(lists, gain, likelihood)  # before features are computed
    answers = likelihood.observes_answers(of_two=judged.of_two)
    matched = _match(lists, start, gain, resolved, of_judges=answers)
    prior = _choose_prior(resolved.prior, matched)
    model = _choose_model(resolved.model, prior, matched.match, lists)
    judged = _select_judged(
        matched.lists, gain, judged, likelihood, oracles, observes_nothing=observes_nothing
    )
    if len(judged.lists) and not judged.lists.spread[matched.match.free].any():
        raise DataError(
            "no feature differs between the candidates of any judged list, so that nothing can be "
            "learned from their choice: name or add features that do (--features, --add; in "
            "Python features=, add=)",
            lists.origin,
            parameter="lists",
            code="no-data",
        )
    return Prepared(
        matched=matched,
        judged=judged,
        answers=answers,
        gain=gain,
        likelihood=likelihood,
        prior=prior,
        model=model,
        sampler=sampler,
        ties=_choose_tie_breaking(likelihood, matched, answers=answers),
        oracles=oracles,
        defaults=start.defaults,
        settings=resolved,
    )


def choose_gain(
    lists: NBest,
    weights: AnyStart = None,
    gain: AnyGain | Oracles | None = None,
    *,
    observes_nothing: bool = False,
) -> Metric:
    """Return the gain that is chosen, else that of the oracles, or the default of the lists.

    A default that is not that of canonical weights is logged, with its reason.

    Args:
        lists: the adaptation lists.
        weights: as for `adapt`.
        gain: as for `adapt`.
        observes_nothing: whether the likelihood is `none`, so that the gain does not matter.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["lm"], references=["a"])
    >>> choose_gain(lists).key
    'chrf'
    """
    if isinstance(gain, Oracles):
        name, present = gain.gain, (*lists.feature_names, *lists.extras)
        gain = name if name in GAINS or name.removeprefix("-") in present else None
    if gain is None:
        canonical = has_canonical(StartingWeights.of(weights).weights)
        gain = default_gain(lists, canonical=canonical)
        if lists.references is not None and not (canonical or observes_nothing):
            reasons = {
                "chrf": "chrF, because there are neither canonical weights nor totals of a "
                "decoder; choose ter for TER",
                "ter": "TER, because the lists have totals of a decoder; choose chrf for chrF",
            }
            log_info(f"the gain is {reasons[gain]}")
    return resolve(gain, lists)


def choose_likelihood(gain: Metric, lists: NBest, *, of_two: bool) -> Likelihood:
    """Return the likelihood with the best results for this kind of gain on held-out sentences.

    `margin` for metrics of texts, `oracle` if the gain says which of two candidates was chosen, and
    `pairs` weighted by differences for any other gain. If gains are unknown because the lists have
    no references: `preference` for lists that carry preferences, else `oracle`.
    """
    if "references" in gain.needs and lists.references is None and len(lists):
        return Preference() if has_preferences(lists) else Oracle()
    if gain.key in _WITH_MARGIN:
        return Margin()
    if of_two:
        return Oracle()
    return _OF_JUDGEMENTS


def _default_likelihood(
    gain: Metric, lists: NBest, sampler: Sampler, *, of_two: bool
) -> Likelihood:
    """Return the likelihood of a published sampler, else that of the gain."""
    default = choose_likelihood(gain, lists, of_two=of_two)
    if not isinstance(sampler, PublishedSampler) or default.observes != "gains":
        return default
    log_info(
        f"{SAMPLERS.name_of(sampler)} takes the likelihood that it was published with, "
        f"{sampler.likelihood}; name a likelihood, such as {LIKELIHOODS.name_of(default)}, for "
        "another one"
    )
    return LIKELIHOODS.resolve(sampler.likelihood)


def _require_references(lists: NBest, gain: Metric, likelihood: Likelihood) -> None:
    """Refuse lists without the references that a gain needs."""
    needs = "references" in gain.needs and likelihood.observes != "preferences"
    if needs and len(lists) and lists.references is None:
        raise no_references(lists, gain)


def _match(
    lists: NBest,
    start: StartingWeights,
    gain: Metric,
    settings: ResolvedSettings,
    *,
    of_judges: bool,
) -> MatchedLists:
    """Return the lists with all features."""
    recipe = recipe_for(
        lists, gain, settings.categorical, settings.add, settings.features, settings.exclude
    )
    return match_lists(lists, start, recipe, of_judges=of_judges, progress=settings.progress)


def _choose_prior(prior: PriorFamily | Prior, matched: MatchedLists) -> PriorFamily | Prior:
    """Return the prior with its settings.

    Raises:
        DataError: if it does not fit the features.
    """
    prior = isotropic.with_variances(prior, matched.pretrained)
    isotropic.build_prior(prior, matched.match)  # raises before anything is scored
    return prior


def _choose_model(
    chosen: str | Model | None, prior: PriorFamily | Prior, match: Match, lists: NBest
) -> Model:
    """Return the model: the one that is chosen, or that of the family of priors."""
    model = chosen or log_linear
    if isinstance(model, str):
        model = _MODELS[require_one_of(model, _MODELS, "model")]
    if not callable(model):
        raise wrong_type("a model is a function of (lists, prior, likelihood)", model, "model")
    if model is log_linear and isinstance(prior, PriorFamily):
        model = prior.model(match) or model
    if model is hierarchical and DOMAIN not in lists.sentence_extras:
        raise DataError(
            f"no column {DOMAIN}, which the model needs: name the customer, language or slice of "
            "each list in it",
            lists.origin,
            parameter=DOMAIN,
            code="missing-column",
        )
    return model


def _select_judged(
    lists: NBest,
    gain: Metric,
    judged: Judged,
    likelihood: Likelihood,
    oracles: Oracles | None,
    *,
    observes_nothing: bool,
) -> Judged:
    """Return the lists that are observed; log how many are left out."""
    if observes_nothing:
        log_info(_EQUALS_PRIOR)
        return Judged.by_gains(lists[:0])
    if likelihood.observes != "preferences" and oracles is None and len(lists):
        if has_preferences(lists):
            log_info(_UNUSED)
        judged = select_judged(lists, gain, judged)
        if skipped := len(lists) - len(judged.lists):
            reason = "fewer than two candidates are judged" if gain.columns else "no reference"
            log_info(f"{format_count(skipped, 'list')} left out: {reason}")
    else:
        judged = Judged.by_gains(lists)
    if not len(judged.lists):
        warn_user(f"{_EQUALS_PRIOR}; give lists with judgements, references or preferences")
    return judged


def _choose_tie_breaking(likelihood: Likelihood, matched: MatchedLists, *, answers: bool) -> str:
    """Return how ties are broken: as the likelihood says, or by scores if there are some."""
    if isinstance(likelihood, OfOracles) and likelihood.ties is not None:
        return likelihood.ties
    # Neither of two candidates was chosen in a tie.
    has_scores = matched.match.origin == CANONICAL or matched.lists.totals is not None
    return "shared" if answers or not has_scores else "canonical"
