"""Posteriors with known moments, to test samplers with.

The moments are exact, by quadrature: in up to three dimensions directly. In more dimensions the
posterior is a product of one-dimensional densities in rotated coordinates: each list varies along
one of these directions only, and the isotropic prior is the same in any rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

from bpa_ppl._runtime.arguments import check_seed, require_one_of
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.priors.isotropic import Isotropic

#: Points of the grid in each dimension, by the number of dimensions, and its half width in standard
#: deviations of the Laplace approximation.
_POINTS = {1: 801, 2: 241, 3: 31}
_WIDTH = 12.0


@dataclass(frozen=True, eq=False)
class KnownTarget:
    """An adaptation problem and the exact moments of its posterior.

    `adapt(target.lists, target.weights, **target.options)` samples it.

    Attributes:
        lists: the adaptation sentences; the first candidate of each list is its oracle.
        weights: the canonical weights.
        options: keyword arguments of `adapt`: `gain`, `likelihood`, `prior`.
        mean: (Q,) posterior mean of each weight.
        covariance: (Q, Q) posterior covariance.

    >>> known = target("skewed")
    >>> known.lists.feature_names, known.mean.round(3), known.sd.round(3)
    (('LM0',), array([-2.448]), array([1.065]))
    """

    lists: NBest
    weights: dict[str, float]
    options: dict[str, Any]
    mean: np.ndarray
    covariance: np.ndarray

    @property
    def sd(self) -> np.ndarray:
        """The posterior standard deviation of each weight, (Q,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


@cache
def target(name: str, seed: int = 0) -> KnownTarget:
    """Return a target with known moments.

    Args:
        name: one of `TARGETS`.
        seed: of its features; the exact moments are those of this seed.

    Raises:
        UsageError: if there is no such target, or the seed is invalid.

    >>> known = target("50-features")
    >>> known.mean.shape
    (50,)
    """
    build = TARGETS[require_one_of(name, TARGETS, "target")]
    return build(check_seed(seed))


def _two_candidates(seed: int) -> KnownTarget:
    """Lists of two candidates, which are logistic regression: two correlated weights."""
    rng = np.random.default_rng(seed + 3)
    rows = rng.normal(size=(12, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + [1.2, 0.0]
    return _integrate_target([row[None] for row in rows], {"LM0": 0.3, "WP0": -0.2}, variance=2.0)


def _lists(seed: int) -> KnownTarget:
    """Lists of ten candidates, which are multinomial logistic regression: three weights."""
    rows = np.random.default_rng(seed).normal(0.4, 1.0, size=(15, 9, 3))
    return _integrate_target(list(rows), {"LM0": 0.3, "TM0": 0.1, "WP0": -0.2}, variance=1.0)


def _skewed(seed: int) -> KnownTarget:
    """An asymmetric posterior of one weight: the skewness is about −0.8."""
    rows = np.random.default_rng(seed + 2).uniform(1, 4, (12, 1, 1))
    return _integrate_target(list(rows), {"LM0": 0.3}, variance=4.0)


def _separable(seed: int) -> KnownTarget:
    """Some weights predict every oracle, so only the wide prior bounds the posterior."""
    rows = np.random.default_rng(seed).normal(size=(8, 1, 2))
    rows[..., 0] = 0.5 + np.abs(rows[..., 0])
    return _integrate_target(list(rows), {"LM0": 0.0, "WP0": 0.0}, variance=100.0)


def _correlated(seed: int) -> KnownTarget:
    """Ten strongly correlated weights: the condition number of their covariance is above 10⁴."""
    # Along direction k, the posterior standard deviation is about 2 / (√8 scale).
    scales = np.append(0.0, np.geomspace(1.5, 120.0, 9))
    return _rotate_targets(scales, np.random.default_rng(seed), sentences=8)


def _many(seed: int) -> KnownTarget:
    """Many weights: 50, of which the data determine some well and others poorly."""
    return _rotate_targets(np.geomspace(0.1, 10.0, 50), np.random.default_rng(seed), sentences=4)


#: Name -> the function that makes the target from a seed.
TARGETS: Final[Mapping[str, Callable[[int], KnownTarget]]] = MappingProxyType(
    {
        "two-candidates": _two_candidates,
        "lists": _lists,
        "skewed": _skewed,
        "separable": _separable,
        "correlated": _correlated,
        "50-features": _many,
    }
)


def _integrate_target(
    differences: Sequence[np.ndarray], weights: dict[str, float], variance: float
) -> KnownTarget:
    """Return a target of at most three weights, integrated on a grid."""
    lists = _build_lists(differences, tuple(weights))
    stored = [lists.features[lists.rows(s)][1:].astype(np.float64) for s in range(len(lists))]
    moments = _integrate_moments(stored, np.array(list(weights.values())), variance)
    return KnownTarget(lists, weights, _adapt_options(lists, variance), *moments)


def _rotate_targets(scales: npt.ArrayLike, rng: np.random.Generator, sentences: int) -> KnownTarget:
    """Return a target of many weights: a product of one-dimensional ones in a random rotation.

    Args:
        scales: (Q,) of the features along each direction.
        rng: for features and directions.
        sentences: for each direction; the oracle is better in every second one.
    """
    sizes = np.asarray(scales, np.float64)
    names = tuple(f"F{k}" for k in range(len(sizes)))
    canonical = rng.normal(0, 0.3, size=len(sizes))
    directions = np.linalg.qr(rng.normal(size=(len(sizes), len(sizes))))[0]
    signs = np.where(np.arange(sentences) % 2, -1.0, 1.0)
    rows = sizes[:, None] * signs * np.abs(rng.normal(1, 0.3, size=(len(sizes), sentences)))
    mean, variances = np.empty(len(sizes)), np.empty(len(sizes))
    for k, start in enumerate(canonical @ directions):
        one = _integrate_moments([x.reshape(1, 1) for x in rows[k]], np.array([start]), 1.0)
        mean[k], variances[k] = one[0][0], one[1][0, 0]
    differences = (rows[:, :, None] * directions.T[:, None, :]).reshape(-1, 1, len(sizes))
    lists = _build_lists(list(differences), names)
    weights = dict(zip(names, canonical.tolist(), strict=True))
    covariance = directions @ (variances[:, None] * directions.T)
    options = _adapt_options(lists, 1.0)
    return KnownTarget(lists, weights, options, directions @ mean, covariance)


def _build_lists(differences: Sequence[np.ndarray], names: tuple[str, ...]) -> NBest:
    """Return lists whose first candidate has only zeros, and the others these features."""
    tables = [np.vstack([np.zeros((1, len(names))), rows]) for rows in differences]
    texts = [["oracle", *(f"other {k}" for k in range(1, len(rows)))] for rows in tables]
    return from_lists(texts, tables, names)


def _adapt_options(lists: NBest, variance: float) -> dict[str, Any]:
    """Return the options of `adapt`: the first candidate of each list is the oracle."""
    first = np.zeros(len(lists), np.int64)
    oracle = Oracles(first, np.zeros(len(lists)), first + 1, "canonical", "ter", "first candidate")
    return {"gain": oracle, "likelihood": "oracle", "prior": Isotropic(variance=variance)}


def _integrate_moments(
    differences: Sequence[np.ndarray], centre: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the posterior, by the trapezoidal rule.

    The grid is in coordinates close to those of the Laplace approximation. For densities that
    vanish at its ends, the error of the rule falls faster than any power of the step.

    Args:
        differences: for each list, features of the other candidates minus those of the oracle,
            (others, Q).
        centre: (Q,) mean of the prior.
        variance: of the prior.
    """

    def log_density(weights: np.ndarray) -> np.ndarray:
        """Return the log posterior of (points, Q) weights, up to a constant."""
        value = -0.5 * np.sum((weights - centre) ** 2, axis=1) / variance
        for one in differences:
            scores = np.pad(weights @ one.T, ((0, 0), (1, 0)))
            value = value - np.logaddexp.reduce(scores, axis=1)
        return np.asarray(value)

    optimum = minimize(lambda x: -log_density(x[None])[0], centre, method="BFGS")
    factor = np.linalg.cholesky(optimum.hess_inv)
    size = len(centre)
    axis = np.linspace(-_WIDTH, _WIDTH, _POINTS[size])
    standard = np.stack(np.meshgrid(*[axis] * size, indexing="ij"), axis=-1).reshape(-1, size)
    p = softmax(log_density(optimum.x + standard @ factor.T))
    mean = p @ standard
    deviations = standard - mean
    covariance = deviations.T @ (p[:, None] * deviations)
    return optimum.x + factor @ mean, factor @ covariance @ factor.T
