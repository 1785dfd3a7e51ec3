"""Targets with known answers: their moments by other quadratures, of the full density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp
from scipy.stats import norm
from support import targets
from support.known_targets import KnownTarget, target
from support.reference_model import Array


def log_density(known: KnownTarget, weights: Array) -> Array:
    """Return the log posterior of (points, Q) weights by multinomial logistic regression."""
    canonical = np.array(list(known.weights.values()))
    deviation = np.sqrt(known.options["prior"].variance)
    total = norm.logpdf(weights, canonical, deviation).sum(axis=1)
    for s in range(len(known.lists)):
        scores = weights @ known.lists.features[known.lists.rows(s)].T.astype(np.float64)
        total += scores[:, 0] - np.logaddexp.reduce(scores, axis=1)
    return np.asarray(total)


@pytest.mark.parametrize(
    ("name", "width", "points", "tolerance"),
    [
        ("skewed", 16.0, 601, 1e-8),
        ("two-candidates", 9.0, 201, 1e-8),
        ("separable", 80.0, 501, 1e-3),
        ("lists", 2.5, 31, 1e-6),
    ],
)
def test_moments_on_another_grid(name: str, width: float, points: int, tolerance: float) -> None:
    known = target(name)
    grid, p = targets.integrated(lambda x: log_density(known, x), known.mean, width, points)
    np.testing.assert_allclose(known.mean, p @ grid, atol=tolerance)
    deviation = grid - known.mean
    covariance = deviation.T @ (deviation * p[:, None])
    np.testing.assert_allclose(known.covariance, covariance, atol=tolerance)


@pytest.mark.parametrize("name", ["correlated", "50-features"])
def test_rotated_targets_are_products_of_densities_along_their_principal_axes(name: str) -> None:
    """So that the density along an axis through the mean is the marginal one of that direction."""
    known = target(name)
    variances, axes = np.linalg.eigh(known.covariance)
    log_marginals = []
    for variance, axis in zip(variances, axes.T, strict=True):
        t = np.linspace(-12, 12, 121) * np.sqrt(variance)
        log_p = log_density(known, known.mean + t[:, None] * axis)
        p = np.exp(log_p - logsumexp(log_p))
        assert p @ t == pytest.approx(0.0, abs=1e-4 * np.sqrt(variance))
        assert p @ t**2 == pytest.approx(variance, rel=1e-4)
        log_marginals.append(CubicSpline(t, log_p - log_p[60]))
    u = np.random.default_rng(0).normal(0, 2 * np.sqrt(variances), size=(5, len(variances)))
    expected = sum(of_axis(x) for x, of_axis in zip(u.T, log_marginals, strict=True))
    centre = log_density(known, known.mean[None])
    np.testing.assert_allclose(
        log_density(known, known.mean + u @ axes.T) - centre, expected, atol=1e-2
    )
