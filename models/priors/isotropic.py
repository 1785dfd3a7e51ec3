"""The published prior: independent Gaussians around the canonical weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import force_setattr, replace

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.names import find_positions
from bpa_ppl.components import Positive
from bpa_ppl.errors import DataError, UsageError, list_names, suggest_name, wrong_type
from bpa_ppl.lists.labels import matches, with_labels
from bpa_ppl.models.priors.prior import Prior, PriorFamily
from bpa_ppl.models.priors.scale import LogNormalScale
from bpa_ppl.weights import Match

#: The variance of the published prior.
_VARIANCE = 0.1
#: The expected τ gives the score of K uncorrelated features this variance, K τ².
_SCORE_VARIANCE = 0.5
#: The prior mean of a weight without a starting value, in units of τ: docs/results/choices.md.
_MEAN = 0.5
#: The standard deviation of log τ of answers, and the median of τ in units of τ₀ if all lists have
#: two candidates: `docs/results/pairs.md`, "How the prior was chosen".
LOG_DEVIATION, PAIRS_FACTOR = 1.25, 1.25
#: The median in other data sets of answers: `docs/results/judging.md`, "Intervals of weights".
ANSWERS_FACTOR = 0.4
#: The median where the weights start at values that the user has given: "From a trusted metric".
FROM_START_FACTOR = 0.2


class Isotropic(PriorFamily, frozen=True):
    """p(λ | T) = N(λ; λ_T, σ_T I).

    The unit of a feature without a canonical weight is arbitrary, so the variance of its weight is
    (τ / s)², with s the standard deviation of the feature within the lists. A priori λ·h then
    varies within a list by τ nats in any unit. Typical τ are 0.1 for neural candidates that differ
    little, and 2 for 500-best lists of a phrase-based decoder.

    Most features agree on which candidates are better. So the prior mean of a weight without a
    starting value is m τ / s times the correlation of its feature with what these features have in
    common (`bpa_ppl.features.matching.measure_agreement`), or for answers of judges times 1, or -1
    for features for which lower is better. With m = 0.5, the weight is positive with a probability
    of up to 0.69. Where features disagree, the adaptation lists decide on the sign of m; see
    `bpa_ppl.adapting.prior`.

    Args:
        variance: σ_T, a variance: one number, in standardised units (τ² = σ_T) for features without
            a canonical weight; one for each free feature, not scaled; or {name: variance} of single
            features, not scaled. None is 0.1 where there is a canonical weight.
        single: variances of single features, or of the features of one label, not scaled.
        scale: τ, for features without a canonical weight. None, with `variance` None, learns it
            from the adaptation sentences, see `bpa_ppl.adapting.prior`.
        mean: m, for weights without a starting value. None is 0.5 or -0.5, the more probable one
            given the lists, or 0 for answers of judges and with indicators. Without observations,
            0.5 is multiplied by how much the features agree.

    >>> match = Match(("LM0", "comet"), np.array([0.5, 0.0]), np.array([True, True]),
    ...               spread=np.array([np.nan, 0.1]))
    >>> Isotropic(scale=0.2).build(match).variance.round(3).tolist()
    [0.1, 4.0]
    >>> Isotropic(variance={"comet": 2.0}).build(match).variance.tolist()
    [0.1, 2.0]
    >>> Isotropic(variance=0.25).build(match).variance.tolist()
    [0.25, 25.0]
    """

    variance: Any = None
    single: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    scale: Positive | None = None
    mean: float | None = None

    def build(self, match: Match) -> Prior:
        names = match.free_names
        mean = dict(zip(names, match.free_values.tolist(), strict=True))
        base, spread = _to_numbers(self.canonical_variance), self.scaled(match)
        if not (spread or self.single):
            return Prior.isotropic(mean, base)
        scale = expected_scale(len(spread)) if self.scale is None else self.scale
        values, factor = np.array(np.broadcast_to(base, len(names))), self.mean_factor
        for k, name in enumerate(names):
            if name in spread:
                values[k] = (scale / spread[name]) ** 2
                mean[name] += factor * match.agreement.get(name, 0.0) * scale / spread[name]
        for label, variance in self.single.items():
            selected = [matches(name, [label]) for name in names]
            if not any(selected):
                message = (
                    f"no free feature {label}{suggest_name(label, names)}: choose from "
                    f"{list_names(names) or 'none'}"
                )
                raise DataError(message, parameter="variance", code="missing-feature")
            values[selected] = variance
        return Prior.isotropic(mean, values)

    def scaled(self, match: Match) -> dict[str, float]:
        """Return the spread within the lists of the features whose variance it scales.

        >>> match = Match(("LM0", "comet"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 0.1]))
        >>> Isotropic().scaled(match)
        {'comet': 0.1}
        """
        if _to_numbers(self.variance).ndim:
            return {}
        spread = match.free_spread.items()
        # A feature that never varies within a list has no spread to scale by.
        return {n: s for n, s in spread if s > 0 and not matches(n, self.single)}

    @property
    def canonical_variance(self) -> Any:
        """σ_T of weights with a canonical value: one number, or one for each free feature."""
        return _VARIANCE if self.variance is None else self.variance

    @property
    def mean_factor(self) -> float:
        """The number m for judged lists without indicators."""
        return _MEAN if self.mean is None else self.mean

    def settings(self) -> dict[str, Any]:
        """Return the settings, without a scale that follows from the variance.

        >>> Isotropic(variance=0.25).settings()
        {'variance': 0.25, 'single': {}, 'mean': None}
        """
        values = super().settings()
        one = self.variance is not None and not _to_numbers(self.variance).ndim
        if one and self.scale == float(np.sqrt(self.variance)):
            del values["scale"]
        return values

    def __post_init__(self) -> None:
        if isinstance(self.variance, Mapping):
            values = _to_numbers(list(self.variance.values())).tolist()
            variances = dict(zip(map(str, self.variance), values, strict=True))
            force_setattr(self, "single", {**self.single, **variances})
            force_setattr(self, "variance", None)
        if self.variance is not None:
            values = _to_numbers(self.variance)
            Prior.isotropic(dict.fromkeys(map(str, range(values.size)), 0.0), values)
            if self.scale is None and not values.ndim:
                force_setattr(self, "scale", float(np.sqrt(values)))
        super().__post_init__()
        Prior.isotropic(dict.fromkeys(self.single, 0.0), list(self.single.values()))


def with_variances(family: PriorFamily | Prior, variances: Mapping[str, float]) -> Any:
    """Return an isotropic prior with fixed variances for some weights.

    A variance or a scale that the user has chosen has precedence, and other priors stay as they
    are.

    >>> with_variances(Isotropic(single={"a": 2.0}), {"a": 1.0, "b": 3.0}).single
    {'b': 3.0, 'a': 2.0}
    >>> with_variances(Isotropic(scale=0.1), {"a": 1.0}).single
    {}
    """
    if (
        not isinstance(family, Isotropic)
        or family.scale is not None
        or _to_numbers(family.variance).ndim
    ):
        return family
    rest = {n: v for n, v in variances.items() if not matches(n, family.single)}
    return replace(family, single={**rest, **family.single})


def restrict(family: PriorFamily | Prior, names: Collection[str]) -> Isotropic | None:
    """Return an isotropic prior of some of its features; None if it depends on all features.

    >>> restrict(Isotropic(single={"a": 2.0, "b": 3.0}), ["b", "c"]).single
    {'b': 3.0}
    """
    if not isinstance(family, Isotropic) or _to_numbers(family.variance).ndim:
        return None
    labelled = with_labels(names)
    single = {k: v for k, v in family.single.items() if k in labelled}
    return replace(family, single=single)


def expected_scale(features: int) -> float:
    """Return τ₀ = 1 / √(2 K), which gives scores of K features the variance ½ within a list.

    >>> expected_scale(2)
    0.5
    """
    return float(np.sqrt(_SCORE_VARIANCE / max(features, 1)))


def with_shared_scale(prior: Prior, names: Sequence[str], correlation: Float64) -> Prior:
    """Return the prior of answers: weights have an unknown common scale, and are correlated.

    The scale is log-normal. The correlation of two weights is half of that of their features within
    the lists, so that features that agree have similar weights.

    Args:
        prior: Gaussian, with independent weights for these features.
        names: the features whose weights have the common scale (n of them).
        correlation: (n, n) of these features.

    >>> prior = Prior.isotropic({"a": 0.0, "b": 0.0, "c": 1.0}, [1.0, 4.0, 0.1])
    >>> scaled = with_shared_scale(prior, "ab", np.array([[1.0, 0.8], [0.8, 1.0]]))
    >>> scaled.covariance.round(3).tolist()
    [[1.0, 0.8, 0.0], [0.8, 4.0, 0.0], [0.0, 0.0, 0.1]]
    >>> scaled.scale.of_weights
    array([1.25, 1.25, 0.  ])
    """
    covariance, places = prior.full_covariance, find_positions(names, prior.names)
    variance = np.diag(covariance)[places]
    shared = correlation / 2 * np.sqrt(np.outer(variance, variance))
    np.fill_diagonal(shared, variance)
    covariance[np.ix_(places, places)] = shared
    return Prior(
        prior.mean,
        covariance=covariance,
        names=tuple(prior.names),
        scale=LogNormalScale(LOG_DEVIATION, np.isin(np.arange(len(prior.names)), places)),
    )


def complete_prior(
    prior: Prior, match: Match, scale: float | None = None
) -> tuple[Prior, list[str]]:
    """Return a prior over all free features: isotropic for those it lacks, which is logged.

    Weights of the prior that are fixed have their fixed values; features that the lists lack have
    the weight 0 (`Prior.matched`).

    Args:
        prior: of some features.
        match: the canonical weights of all features.
        scale: τ of the isotropic prior.

    Returns:
        the prior, and the features that it lacked.

    Raises:
        DataError: if it has no free feature at all, so that it is a prior of something else.
        UsageError: if it is not Gaussian and not of the free features.
    """
    complete = build_prior(prior, match, scale)
    covered = set(prior.names or ())
    missing = [name for name in match.free_names if name not in covered]
    if missing:
        deviations = np.sqrt(np.diag(complete.full_covariance))
        entries = zip(match.free_names, complete.mean, deviations, strict=True)
        added = [
            f"{name} ({mean:.3g} ± {sd:.3g})" for name, mean, sd in entries if name not in covered
        ]
        warn_user(
            f"the prior does not cover {list_names(added)}: an independent isotropic prior is used"
        )
    return complete, missing


def learns_scale(family: PriorFamily | Prior, match: Match) -> list[str]:
    """Return the free features whose prior has a learned scale, in their order.

    >>> match = Match(("a", "b"), np.array([0.5, 0.0]), np.ones(2, bool), np.array([np.nan, 6.0]))
    >>> learns_scale(Isotropic(), match), learns_scale(Isotropic(scale=0.1), match)
    (['b'], [])
    """
    if isinstance(family, Isotropic):
        return list(family.scaled(match)) if family.scale is None else []
    if not isinstance(family, Prior):
        return []
    return [name for name in Isotropic().scaled(match) if name not in (family.names or ())]


def build_prior(family: PriorFamily | Prior, match: Match, scale: float | None = None) -> Prior:
    """Return the prior of the free features, without logging which features it lacks.

    Args:
        family: a prior, or a family of priors.
        match: the canonical weights of the features.
        scale: τ of the features of `learns_scale`.

    Raises:
        DataError: if it does not fit the features.
        UsageError: if it is the Gaussian of a posterior with too few draws.

    >>> match = Match(("a", "b"), np.array([0.5, 0.0]), np.ones(2, bool), np.array([np.nan, 6.0]))
    >>> build_prior(Isotropic(variance=0.2), match, scale=3.0).variance.tolist()
    [0.2, 0.25]
    """
    if isinstance(family, Prior):
        posterior, covariance = family.posterior, family.covariance
        is_gaussian = posterior is not None and covariance is not None
        if is_gaussian and np.linalg.eigvalsh(covariance).min() <= 0:
            raise UsageError(
                "the posterior that is the prior has too few draws of weight for a covariance: use "
                f"its own sampler, {posterior.record.sampler.name}, or adapt to all lists together",
                parameter="prior",
            )
        fixed = dict(zip(match.fixed_names, match.fixed_values, strict=True))
        return family.conditioned(fixed).completed(Isotropic(scale=scale).build(match))
    if scale is not None and isinstance(family, Isotropic):
        family = replace(family, scale=scale)
    return family.build(match).matched(match.free_names)


def _to_numbers(variance: Any) -> Float64:
    try:
        return np.asarray(variance, np.float64)
    except (TypeError, ValueError) as error:
        rule = "the prior variance is one number, one for each free feature, or {name: number}"
        raise wrong_type(rule, variance, "variance") from error
