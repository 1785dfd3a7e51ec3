"""Is a sampler right? Its marginal distributions and its joint one against a long reference run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from bpa_ppl.diagnostics.estimates import (
    Estimate,
    as_independent,
    independent,
    mean_of,
    share_of,
)
from bpa_ppl.diagnostics.significance import holm
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, quantiles

QUANTILES = (0.05, 0.5, 0.95)
#: Of the null distribution; the smallest p-value is 1 / (splits + 1).
SPLITS = 499
_DIRECTIONS = 100
_MOST = 2000
_FEWEST = 20


@dataclass(frozen=True)
class Discrepancy:
    """One property of one weight's marginal distribution, sampler against reference.

    Attributes:
        weight: the feature.
        quantity: `mean`, `sd`, or a quantile such as `q5`.
        value: the estimate, in units of the weight.
        reference: the estimate of the reference, in the same units.
        bias: their difference in posterior standard deviations of the reference.
        z: the difference in Monte-Carlo standard errors, both runs' together.
        p_value: of z by Student's t, adjusted by Holm over all weights and quantities.
    """

    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: float
    p_value: float


class _Z(NamedTuple):
    value: float
    ess: float


class _Gap(NamedTuple):
    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: _Z


def discrepancies(draws: Draws, reference: Draws) -> tuple[Discrepancy, ...]:
    """Compare means, standard deviations and quantiles of each weight with a reference.

    Each is tested as the mean of a function that the reference fixes, whose Monte-Carlo error is
    known: of λ, of (λ − its reference mean)², and of whether λ is below a reference quantile.

    Args:
        draws: of some sampler, with the features of the reference in the same order.
        reference: of a long run.
    """
    gaps = [gap for k in range(len(reference.features)) for gap in _gaps(draws, reference, k)]
    # An error that is estimated with a window of 5 autocorrelation times has a relative variance
    # of 20/ESS (Sokal 1997, §3), and so has a χ² of ESS/10 degrees of freedom.
    freedom = [max(gap.z.ess / 10, 1.0) for gap in gaps]
    p_values = holm(2 * student.sf(np.abs([gap.z.value for gap in gaps]), freedom))
    return tuple(
        Discrepancy(*gap[:-1], gap.z.value, float(p)) for gap, p in zip(gaps, p_values, strict=True)
    )


def _gaps(draws: Draws, reference: Draws, k: int) -> Iterator[_Gap]:
    name, ours, theirs = reference.features[k], draws.weights[..., k], reference.weights[..., k]
    centre, sd = _mean_and_sd(reference, theirs)
    own_centre, own_sd = _mean_and_sd(draws, ours)
    z = _z(mean_of(draws, ours), mean_of(reference, theirs))
    yield _Gap(name, "mean", own_centre, centre, (own_centre - centre) / sd, z)
    z = _z(mean_of(draws, (ours - centre) ** 2), mean_of(reference, (theirs - centre) ** 2))
    yield _Gap(name, "sd", own_sd, sd, (own_sd - sd) / sd, z)
    wanted, found = _quantiles(reference, theirs), _quantiles(draws, ours)
    for p, cut, value in zip(QUANTILES, wanted, found, strict=True):
        z = _z(share_of(draws, ours <= cut, p), share_of(reference, theirs <= cut, p))
        yield _Gap(name, f"q{100 * p:g}", float(value), float(cut), (value - cut) / sd, z)


def _z(own: Estimate, other: Estimate) -> _Z:
    """Return the difference of two estimates in its standard errors, and the smaller ESS."""
    value = (own.mean - other.mean) / np.hypot(own.error, other.error)
    return _Z(float(value), min(own.ess, other.ess))


def _mean_and_sd(draws: Draws, values: Float64) -> tuple[float, float]:
    mean = mean_of(draws, values).mean
    return mean, float(np.sqrt(mean_of(draws, (values - mean) ** 2).mean))


def _quantiles(draws: Draws, values: Float64) -> Float64:
    if not draws.weighted:
        return np.quantile(values, QUANTILES)
    return quantiles(values.reshape(-1, 1), QUANTILES, draws.importance)[:, 0]


@dataclass(frozen=True)
class Distance:
    """A sliced Wasserstein distance in units of the posterior standard deviation.

    Attributes:
        value: between the sampler and one half of the reference.
        null: the same for random parts of the reference's other half, sorted.
        p_value: how many of those are at least as far.
        draws: as good as independent ones that were compared; few cannot tell much.
    """

    value: float
    null: tuple[float, ...]
    p_value: float
    draws: int


def sliced_wasserstein(draws: Draws, reference: Draws, seed: int = 0) -> Distance:
    """Return the distance of the joint distributions, with its null distribution.

    The mean over random directions of the 1-Wasserstein distance of what the draws are along them
    (Bonneel et al. 2015), after the reference's covariance has been made the identity. The draws
    are thinned to half their ESS, so that they are as good as independent.

    Raises:
        DataError: if the reference has too few effective draws to be split.
    """
    rng = np.random.default_rng(seed)
    theirs = independent(reference, as_independent(reference), rng)
    if len(theirs) < 4 * _FEWEST:
        raise DataError(
            f"the reference has {len(theirs)} draws as good as independent, and {4 * _FEWEST} are "
            "needed: make the reference run longer"
        )
    count = max(1, min(as_independent(draws), len(theirs) // 4, _MOST))
    along = _whitening(theirs) @ _directions(theirs.shape[1], rng)
    half, rest = np.array_split(theirs @ along, 2)
    marks = np.quantile(half, (np.arange(count) + 0.5) / count, axis=0)
    null = [_far(rng.choice(rest, count, replace=False), marks) for _ in range(SPLITS)]
    value = _far(independent(draws, count, rng) @ along, marks)
    p_value = (1 + np.sum(np.array(null) >= value)) / (SPLITS + 1)
    return Distance(value, tuple(sorted(null)), float(p_value), count)


def _far(projected: Float64, marks: Float64) -> float:
    return float(np.abs(np.sort(projected, axis=0) - marks).mean())


def _whitening(draws: Float64) -> Float64:
    """Return the matrix that makes the covariance of draws the identity."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(draws.T)))
    result: Float64 = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    return result


def _directions(features: int, rng: np.random.Generator) -> Float64:
    """Return random unit vectors, (features, directions)."""
    vectors = rng.normal(size=(features, _DIRECTIONS))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))
