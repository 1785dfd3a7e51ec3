"""A test of uniform values, and bands of their distribution function."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64

_POINTS = 100  # at which an empirical distribution function (ECDF) is evaluated


def _ecdf_grid(count: int) -> Float64:
    """Return the points in (0, 1) at which the ECDF of `count` values is evaluated."""
    points = min(count, _POINTS)
    return np.arange(1, points) / points


def uniformity_test(values: npt.ArrayLike) -> float:
    """Return the p-value of the hypothesis that values in [0, 1] are independent and uniform.

    It is the probability that the ECDF of a uniform sample leaves the narrowest simultaneous bands
    that contain the ECDF of these values (Säilynoja, Bürkner & Vehtari 2022), computed exactly.

    Args:
        values: (N,).

    >>> u = np.random.default_rng(0).uniform(size=200)
    >>> uniformity_test(u) > 0.05 > 1e-6 > uniformity_test(u**2)
    True
    """
    from scipy.stats import binom

    u = np.sort(np.asarray(values, np.float64))
    z = _ecdf_grid(len(u))
    below = np.searchsorted(u, z, side="right")
    tail = np.minimum(binom.cdf(below, len(u), z), binom.sf(below - 1, len(u), z))
    return float(min(1.0, max(0.0, 1.0 - _stays_inside(len(u), 2 * tail.min() * (1 - 1e-9)))))


def uniform_bands(count: int, probability: float = 0.95) -> tuple[Float64, Float64, Float64]:
    """Return simultaneous bands of the empirical distribution function of uniform values.

    Args:
        count: the number N of values.
        probability: that the whole function lies within the bands.

    Returns:
        points, lower and upper bounds at them, all (points,).

    >>> points, lower, upper = uniform_bands(100)
    >>> bool((lower < points).all() and (points < upper).all())
    True
    """
    lower, upper = _compute_limits(count, _find_level(count, probability))
    return _ecdf_grid(count), lower / count, upper / count


@lru_cache(maxsize=32)
def _find_level(count: int, probability: float) -> float:
    """Return the pointwise level γ of bands with a given simultaneous probability."""
    from scipy.optimize import brentq

    return float(brentq(lambda g: _stays_inside(count, g) - probability, 1e-12, 1.0, xtol=1e-7))


def _compute_limits(count: int, level: float) -> tuple[Int64, Int64]:
    """Return bounds of the number of values below each point, at a pointwise level."""
    from scipy.stats import binom

    z = _ecdf_grid(count)
    lower, upper = binom.ppf(level / 2, count, z), binom.isf(level / 2, count, z)
    return lower.astype(np.int64), upper.astype(np.int64)


def _stays_inside(count: int, level: float) -> float:
    """Return the probability that N uniform values stay within the pointwise bands everywhere.

    The counts below successive points are a Markov chain with binomial increments. Paths that
    leave the bands are dropped.
    """
    from scipy.stats import binom

    lower, upper = _compute_limits(count, level)
    z = np.concatenate([[0.0], _ecdf_grid(count)])
    reached, probability = np.zeros(1, np.int64), np.ones(1)
    for step, (low, high) in enumerate(zip(lower, upper, strict=True)):
        following = np.arange(low, high + 1)
        share = (z[step + 1] - z[step]) / (1 - z[step])
        moves = binom.pmf(following[None, :] - reached[:, None], count - reached[:, None], share)
        reached, probability = following, probability @ moves
    return float(probability.sum())
