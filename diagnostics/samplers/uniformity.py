"""A test of uniform values, and bands of their distribution function."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64

_ECDF_POINTS = 100  # at which an empirical distribution function (ECDF) is evaluated
#: Nodes of integrals over the truth, and the largest shift that is looked for.
_NODES, _MAX_SHIFT = 1000, 5.0


def _ecdf_grid(count: int) -> Float64:
    """Return the points in (0, 1) at which the ECDF of `count` values is evaluated."""
    points = min(count, _ECDF_POINTS)
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
    """Return points, and simultaneous lower and upper bounds of the ECDF of N uniform values.

    >>> points, lower, upper = uniform_bands(100)
    >>> bool((lower < points).all() and (points < upper).all())
    True
    """
    lower, upper = _compute_limits(count, _find_level(count, probability))
    return _ecdf_grid(count), lower / count, upper / count


@lru_cache(maxsize=32)
def find_detected_shift(
    replications: int, ranked: int, level: float, probability: float = 0.95
) -> float:
    """Return the shift of all draws, in sd, that the test of their ranks finds with a probability.

    Draws and truth have normal distributions of the same width; infinite if it is above 5.

    >>> round(find_detected_shift(100, 19, 0.05), 2)
    0.44
    """
    from scipy.optimize import brentq

    def miss(shift: float) -> float:
        return probability - compute_power(replications, ranked, level, shift)

    return np.inf if miss(_MAX_SHIFT) > 0 else float(brentq(miss, 0.0, _MAX_SHIFT, xtol=1e-3))


def compute_power(replications: int, ranked: int, level: float, shift: float) -> float:
    """Return the probability that a test of ranks finds a shift, as `find_detected_shift`.

    >>> round(compute_power(100, 19, 0.05, 0.25), 2)
    0.52
    """
    from scipy.special import ndtr, ndtri
    from scipy.stats import binom

    truth = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    below = binom.cdf(np.arange(-1, ranked + 1)[:, None], ranked, ndtr(truth - shift)).mean(axis=1)
    ends = np.arange(ranked + 2) / (ranked + 1)
    cumulative = np.interp(_ecdf_grid(replications), ends, below)
    pointwise = _find_level(replications, 1 - level)
    return 1 - _stays_inside(replications, pointwise, cumulative)


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


def _stays_inside(count: int, level: float, cumulative: Float64 | None = None) -> float:
    """Return the probability that the ECDF of N values stays within the bands of uniform ones.

    The counts below successive points are a Markov chain with binomial increments. Paths that
    leave the bands are dropped.

    Args:
        count: N.
        level: of the bands, pointwise.
        cumulative: the distribution function of the values at the points of the bands; None if they
            are uniform.
    """
    from scipy.stats import binom

    lower, upper = _compute_limits(count, level)
    z = np.concatenate([[0.0], _ecdf_grid(count) if cumulative is None else cumulative])
    reached, probability = np.zeros(1, np.int64), np.ones(1)
    for step, (low, high) in enumerate(zip(lower, upper, strict=True)):
        following = np.arange(low, high + 1)
        left = 1 - z[step]  # 0 if all values are below
        share = min(1.0, (z[step + 1] - z[step]) / left) if left > 0 else 1.0
        moves = binom.pmf(following[None, :] - reached[:, None], count - reached[:, None], share)
        reached, probability = following, probability @ moves
    return float(probability.sum())
