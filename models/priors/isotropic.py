"""The published prior: independent Gaussians around the canonical weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl.component import Positive
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.labels import matches
from bpa_ppl.models.priors.base import Prior, PriorFamily
from bpa_ppl.nbest import Float64
from bpa_ppl.notes import capture_notes, warn_user
from bpa_ppl.weights import Match

_NAMED = 5  # features, where there are many
#: The variance of the published prior.
_VARIANCE = 0.1
#: τ is expected where the score of K uncorrelated features varies by this much, K τ².
_SCORE_VARIANCE = 0.5


class Isotropic(PriorFamily, frozen=True):
    """p(λ | T) = N(λ; λ_T, σ_T I).

    A feature without a canonical weight has a unit of its own, which may be anything: the variance
    of its weight is (τ / s)², with s the standard deviation of the feature within the lists. So a
    priori λ·h varies within a list by τ nats, whatever the unit is. The scale τ is 0.1 for neural
    candidates that differ little, and 2 for 500-best lists of a phrase-based decoder.

    Args:
        variance: σ_T, the variance of weights with a canonical value: one number, or one a free
            feature, which are then taken as they are.
        single: variances of single features, or of the features of one label, taken as they are.
        scale: τ, for features without a canonical weight. None is learned from the adaptation
            sentences, see `bpa_ppl.sampling.prior_scale`.

    >>> match = Match(("LM0", "comet"), np.array([0.5, 0.0]), np.array([True, True]),
    ...               spread=np.array([np.nan, 0.1]))
    >>> Isotropic(scale=0.2).build(match).variance.round(3).tolist()
    [0.1, 4.0]
    >>> Isotropic(single={"comet": 2.0}).build(match).variance.tolist()
    [0.1, 2.0]
    """

    variance: Any = _VARIANCE
    single: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    scale: Positive | None = None

    def build(self, match: Match) -> Prior:
        """Return the prior around the canonical weights of the free features.

        Raises:
            DataError: if a single variance is of no free feature.
            UsageError: if a variance is not positive and finite, or there are too few or many.
        """
        mean = dict(zip(match.free_names, match.free_values.tolist(), strict=True))
        return Prior.isotropic(mean, self._variances(match))

    def scaled(self, match: Match) -> dict[str, float]:
        """Return the spread within the lists of the features whose variance is scaled by it.

        >>> match = Match(("LM0", "comet"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 0.1]))
        >>> Isotropic().scaled(match)
        {'comet': 0.1}
        """
        if _numbers(self.variance).ndim:
            return {}
        spread = match.free_spread.items()
        # What never varies within a list has no unit to go by.
        return {n: s for n, s in spread if s > 0 and not matches(n, self.single)}

    def _variances(self, match: Match) -> Any:
        """Return σ_T, or one variance a free feature where they differ."""
        base, spread = _numbers(self.variance), self.scaled(match)
        if not (spread or self.single):
            return base
        names = match.free_names
        scale = expected_scale(len(spread)) if self.scale is None else self.scale
        values = np.array(np.broadcast_to(base, len(names)))
        for at, name in enumerate(names):
            if name in spread:
                values[at] = (scale / spread[name]) ** 2
        for chosen, variance in self.single.items():
            meant = [matches(name, [chosen]) for name in names]
            if not any(meant):
                raise DataError(
                    f"a prior variance of {chosen}, which is no feature whose weight is adapted: "
                    f"those are {', '.join(names)}"
                )
            values[meant] = variance
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        Prior.isotropic(dict.fromkeys(self.single, 0.0), list(self.single.values()))


def expected_scale(features: int) -> float:
    """Return the scale τ that is expected of some features without a canonical weight.

    >>> round(expected_scale(2), 2), round(expected_scale(50), 2)
    (0.5, 0.1)
    """
    return float(np.sqrt(_SCORE_VARIANCE / max(features, 1)))


def completed(chosen: Prior, match: Match, scale: float | None = None) -> tuple[Prior, list[str]]:
    """Return a prior over all free features: isotropic where it has none, which is logged.

    Weights of the prior that are fixed have their fixed values; features that the lists lack have
    the weight 0 (`Prior.matched`).

    Args:
        chosen: the prior of some features.
        match: the canonical weights of all.
        scale: τ of the isotropic prior.

    Returns:
        the prior, and the features that it did not have.

    Raises:
        DataError: if it has no free feature at all: then it is of something else.
        UsageError: if it is no Gaussian and not of the free features.
    """
    names = match.free_names
    chosen = chosen.conditioned(dict(zip(match.fixed_names, match.fixed_values, strict=True)))
    missing = [name for name in names if name not in (chosen.names or ())]
    if not missing:
        return chosen.matched(names), []
    others = Isotropic(scale=scale).build(match)._replace(names=names)
    before = chosen.completed(others)
    each = zip(names, before.mean, np.sqrt(np.diag(before.full_covariance)), strict=True)
    told = [f"{name} ({mean:.3g} ± {sd:.3g})" for name, mean, sd in each if name in missing]
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    warn_user(
        f"the prior says nothing of {', '.join(told[:_NAMED])}{more}: there it is isotropic, and "
        "independent of the rest"
    )
    return before, missing


def learns_scale(family: PriorFamily | Prior, match: Match) -> list[str]:
    """Return the free features whose prior has a scale that is learned, in their order.

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
        family: a prior, or what makes one.
        match: the canonical weights of the features.
        scale: τ of features for which `learns_scale` asks.

    Raises:
        DataError: if it does not fit the features.

    >>> match = Match(("a", "b"), np.array([0.5, 0.0]), np.ones(2, bool), np.array([np.nan, 6.0]))
    >>> build_prior(Isotropic(variance=0.2), match, scale=3.0).variance.tolist()
    [0.2, 0.25]
    """
    if isinstance(family, Prior):
        with capture_notes():
            return completed(family, match, scale)[0]
    if scale is not None and isinstance(family, Isotropic):
        family = Isotropic(family.variance, family.single, scale)
    return family.build(match).matched(match.free_names)


def variances(given: Any) -> dict[str, Any]:
    """Return the settings of the isotropic prior that a number, several, or a mapping stand for.

    One number is the variance of every weight, in standardised units where it has no canonical
    value.

    >>> variances(0.25), variances([0.1, 2.0]), variances({"LM0": 2.0})
    ({'variance': 0.25, 'scale': 0.5}, {'variance': [0.1, 2.0]}, {'single': {'LM0': 2.0}})
    """
    if not isinstance(given, Mapping):
        values = _numbers(given)
        one = values.ndim == 0 and 0 < values < np.inf
        return {"variance": given, **({"scale": float(np.sqrt(values))} if one else {})}
    try:
        return {"single": {str(name): float(value) for name, value in given.items()}}
    except (TypeError, ValueError) as error:
        raise _no_numbers(given) from error


def _numbers(given: Any) -> Float64:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise _no_numbers(given) from error


def _no_numbers(given: Any) -> UsageError:
    return UsageError(
        f"the prior variance is one number, one for each free feature, or {{name: number}}, not "
        f"{given!r}"
    )
