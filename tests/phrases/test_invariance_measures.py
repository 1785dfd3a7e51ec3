"""Phrase counts in subdomains compared with loops; entropies and distances with SciPy."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import chebyshev as scipy_chebyshev
from scipy.stats import entropy

from bpa_ppl.phrases.subdomains import chebyshev, hellinger, kullback_leibler, renyi_entropy

RNG = np.random.default_rng(5)
SPREAD = np.vstack([RNG.dirichlet(np.full(6, 0.3), 50), np.eye(6)[:2], np.full((1, 6), 1 / 6)])


def test_renyi_entropies_agree_with_formula_and_scipy() -> None:
    for order in (0.5, 2.0, 3.0):
        expected = np.log((SPREAD**order).sum(axis=1)) / (1 - order)
        np.testing.assert_allclose(renyi_entropy(SPREAD, order), expected, atol=1e-12)
    shannon = entropy(SPREAD, axis=1)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1.0), shannon, atol=1e-12)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1 + 2e-6), shannon, atol=1e-4)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1e5), -np.log(SPREAD.max(axis=1)), atol=1e-4)
    for order in (0.5, 1.0, 2.0, 1e5):
        result = renyi_entropy(SPREAD, order)
        np.testing.assert_allclose(result[-3:], [0, 0, np.log(6)], atol=1e-9)
        assert (result >= 0).all()
        assert (result <= np.log(6) + 1e-12).all()


def test_distances_agree_with_scipy() -> None:
    other = RNG.dirichlet(np.ones(6), len(SPREAD))
    expected = [scipy_chebyshev(*pair) for pair in zip(SPREAD, other, strict=True)]
    np.testing.assert_allclose(chebyshev(SPREAD, other), expected)
    positive = RNG.dirichlet(np.ones(6), len(SPREAD))
    np.testing.assert_allclose(
        kullback_leibler(positive, other),
        entropy(positive, other, axis=1) + entropy(other, positive, axis=1),
    )
    # 1 − the Bhattacharyya coefficient is the squared distance.
    coefficient = np.exp(np.log(positive * other) / 2).sum(axis=1)
    np.testing.assert_allclose(hellinger(positive, other) ** 2, 1 - coefficient)
    for distance in (chebyshev, hellinger):
        np.testing.assert_allclose(distance(SPREAD, SPREAD), 0, atol=1e-12)
    np.testing.assert_allclose(kullback_leibler(positive, positive), 0, atol=1e-12)
