"""How far is a sampler's joint distribution from the reference's, and how far is far?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl.diagnostics.comparison.runs import Runs
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64

#: Of the null distribution; the smallest p-value is 1 / (splits + 1).
SPLITS = 499
_DIRECTIONS = 100
_MOST = 2000
_FEWEST = 20


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


def sliced_wasserstein(sample: Runs, reference: Runs, seed: int = 0) -> Distance:
    """Return the distance of the joint distributions, with its null distribution.

    The mean over random directions of the 1-Wasserstein distance of what the draws are along them
    (Bonneel et al. 2015), after the reference's covariance has been made the identity. The draws
    are thinned to half their ESS, so that they are as good as independent.

    Raises:
        DataError: if the reference has too few effective draws to be split.
    """
    rng = np.random.default_rng(seed)
    pool = reference.independent(reference.worth(), rng)
    if len(pool) < 4 * _FEWEST:
        raise DataError(
            f"the reference has {len(pool)} draws as good as independent, and {4 * _FEWEST} are "
            "needed: make the reference run longer"
        )
    count = max(1, min(sample.worth(), len(pool) // 4, _MOST))
    along = _whitening(pool) @ _directions(pool.shape[1], rng)
    half, rest = np.array_split(pool @ along, 2)
    quantiles = np.quantile(half, (np.arange(count) + 0.5) / count, axis=0)
    null = [_far(rng.choice(rest, count, replace=False), quantiles) for _ in range(SPLITS)]
    value = _far(sample.independent(count, rng) @ along, quantiles)
    p_value = (1 + np.sum(np.array(null) >= value)) / (SPLITS + 1)
    return Distance(value, tuple(sorted(null)), float(p_value), count)


def _far(projected: Float64, quantiles: Float64) -> float:
    return float(np.abs(np.sort(projected, axis=0) - quantiles).mean())


def _whitening(draws: Float64) -> Float64:
    """Return the matrix that makes the covariance of draws the identity."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(draws.T)))
    return vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))


def _directions(features: int, rng: np.random.Generator) -> Float64:
    """Return random unit vectors, (features, directions)."""
    vectors = rng.normal(size=(features, _DIRECTIONS))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))
