"""Agreement of a sampler with a long reference run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from bpa_ppl.diagnostics.estimates import (
    Estimate,
    holm,
    independent,
    independent_count,
    mean_of,
    share_of,
)
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, quantiles

QUANTILES = (0.05, 0.5, 0.95)
#: Of the null distribution; the smallest p-value is 1 / (splits + 1).
SPLITS = 499
_DIRECTIONS = 100
_MAX_DRAWS = 2000
_MIN_DRAWS = 20


@dataclass(frozen=True)
class Discrepancy:
    """The difference of one property of one weight between a sampler and the reference.

    Attributes:
        weight: the feature.
        quantity: `mean`, `sd`, or a quantile such as `q5`.
        value: the estimate of the sampler, in units of the weight.
        reference: the estimate of the reference.
        bias: their difference in posterior standard deviations of the reference.
        z: the difference in Monte-Carlo standard errors of both runs.
        p_value: of z by Student's t, adjusted by Holm over all weights and quantities.
    """

    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: float
    p_value: float


def discrepancies(draws: Draws, reference: Draws) -> tuple[Discrepancy, ...]:
    """Compare means, standard deviations and quantiles of each weight with a reference.

    Each is tested as the mean of a function that the reference determines, whose Monte-Carlo
    error is known: λ, (λ − its reference mean)², and whether λ is below a reference quantile.

    Args:
        draws: of a sampler, with the features of the reference in the same order.
        reference: draws of a long run.
    """
    features = range(len(reference.features))
    results = [d for k in features for d in _unadjusted(draws, reference, k)]
    # An error estimated with a window of 5 autocorrelation times has a relative variance of 20/ESS
    # (Sokal 1997, §3), like a χ² distribution with ESS/10 degrees of freedom.
    freedom = [max(size / 10, 1.0) for _, size in results]
    p_values = holm(2 * student.sf(np.abs([d.z for d, _ in results]), freedom))
    return tuple(replace(d, p_value=float(p)) for (d, _), p in zip(results, p_values, strict=True))


def _unadjusted(draws: Draws, reference: Draws, k: int) -> Iterator[tuple[Discrepancy, float]]:
    """Yield the discrepancies of one weight, with NaN as p-value, each with its smaller ESS."""
    name, x, y = (reference.features[k], draws.weights[..., k], reference.weights[..., k])
    centre, sd = _mean_and_sd(reference, y)
    own_centre, own_sd = _mean_and_sd(draws, x)

    def compared(
        quantity: str, values: tuple[float, float], estimates: tuple[Estimate, Estimate]
    ) -> tuple[Discrepancy, float]:
        (value, target), (a, b) = values, estimates
        z = float((a.mean - b.mean) / np.hypot(a.error, b.error))
        bias = (value - target) / sd
        result = Discrepancy(name, quantity, float(value), float(target), float(bias), z, np.nan)
        return result, min(a.ess, b.ess)

    means = mean_of(draws, x), mean_of(reference, y)
    yield compared("mean", (own_centre, centre), means)
    squares = (mean_of(draws, (x - centre) ** 2), mean_of(reference, (y - centre) ** 2))
    yield compared("sd", (own_sd, sd), squares)
    cuts, own_cuts = _quantiles(reference, y), _quantiles(draws, x)
    for p, cut, own_cut in zip(QUANTILES, cuts, own_cuts, strict=True):
        shares = share_of(draws, x <= cut, p), share_of(reference, y <= cut, p)
        yield compared(f"q{100 * p:g}", (own_cut, cut), shares)


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
        null: between random parts of the other half of the reference and the first half, sorted.
        p_value: the share of those that are at least as large.
        draws: the number of nearly independent draws that were compared.
    """

    value: float
    null: tuple[float, ...]
    p_value: float
    draws: int


def sliced_wasserstein(draws: Draws, reference: Draws, seed: int = 0) -> Distance:
    """Return the distance of the joint distributions, with its null distribution.

    It is the mean over random directions of the 1-Wasserstein distance of the projected draws
    (Bonneel et al. 2015), in coordinates in which the covariance of the reference is the identity.
    The draws are thinned to half their ESS, so that they are nearly independent.

    Raises:
        DataError: if the reference has too few effective draws to be split.
    """
    rng = np.random.default_rng(seed)
    reference_draws = independent(reference, independent_count(reference), rng)
    if len(reference_draws) < 4 * _MIN_DRAWS:
        count = len(reference_draws)
        message = f"{count} nearly independent draws of the reference are too few: draw more"
        raise DataError(message, code="wrong-length")
    count = max(1, min(independent_count(draws), len(reference_draws) // 4, _MAX_DRAWS))
    # The matrix that makes the covariance of the reference the identity, and random directions.
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(reference_draws.T)))
    whitening = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    directions = rng.normal(size=(reference_draws.shape[1], _DIRECTIONS))
    projection = whitening @ (directions / np.linalg.norm(directions, axis=0))
    half, rest = np.array_split(reference_draws @ projection, 2)
    marks = np.quantile(half, (np.arange(count) + 0.5) / count, axis=0)
    parts = (rng.choice(len(rest), count, replace=False) for _ in range(SPLITS))
    null = [_far(rest[part], marks) for part in parts]
    value = _far(independent(draws, count, rng) @ projection, marks)
    p_value = (1 + np.sum(np.array(null) >= value)) / (SPLITS + 1)
    return Distance(value, tuple(sorted(null)), float(p_value), count)


def _far(projected: Float64, marks: Float64) -> float:
    return float(np.abs(np.sort(projected, axis=0) - marks).mean())
