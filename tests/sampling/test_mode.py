"""The mode against SciPy's optimiser, the Laplace covariance against a numeric Hessian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from support import reference_model
from support.raising import raises

from bpa_ppl import (
    DataError,
    Draws,
    Isotropic,
    NBest,
    Weights,
    adapt,
    check,
    from_lists,
    log_density,
    point_weights,
)
from bpa_ppl.posterior.arviz_functions import InferenceData
from bpa_ppl.sampling.mode import find_mode

NAMES = ("LM0", "TM0", "WP0")
CANONICAL = Weights(dict(zip(NAMES, (0.5, 0.3, -0.2), strict=True)))
SIZES = (9, 1, 4, 6, 7, 2, 12, 3)
ORACLE = (3, 0, 2, 5, 0, 1, 7, 1)
VARIANCE = 2.0


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(21)
    texts = [[str(i) for i in range(n)] for n in SIZES]
    return from_lists(texts, [rng.normal(0, 2, size=(n, 3)) for n in SIZES], NAMES)


@pytest.fixture(scope="module")
def mode(lists: NBest) -> InferenceData:
    oracle = reference_model.given(*ORACLE)
    return adapt(lists, CANONICAL, sampler="map", prior=Isotropic(variance=VARIANCE), gain=oracle)


def potential_energy(lists: NBest, weights: reference_model.Array) -> float:
    log_likelihood = reference_model.log_likelihood(lists, ORACLE, weights).sum()
    return -log_likelihood - reference_model.log_prior(weights, CANONICAL.values_array, VARIANCE)


def gradient(lists: NBest, weights: reference_model.Array) -> reference_model.Array:
    """By hand: Σ_a (E[h] − h*) + (λ − λ_T) / σ_T."""
    total = (weights - CANONICAL.values_array) / VARIANCE
    for sentence, best in enumerate(ORACLE):
        features = lists.features[lists.rows(sentence)].astype(np.float64)
        p = np.exp(reference_model.log_choice(features, weights))
        total = total + p @ features - features[best]
    return total


def test_the_mode_is_that_of_scipy(lists: NBest, mode: InferenceData) -> None:
    found = minimize(
        lambda w: potential_energy(lists, w),
        CANONICAL.values_array,
        jac=lambda w: gradient(lists, w),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    ours = point_weights(mode, "mode")
    np.testing.assert_allclose(ours.values_array, found.x, atol=1e-3)
    assert potential_energy(lists, ours.values_array) <= found.fun + 1e-6
    assert point_weights(mode, "mean") == ours
    assert check(mode)


def test_the_laplace_covariance_is_the_inverse_of_a_numeric_hessian(lists: NBest) -> None:
    options = {"likelihood": "oracle", "prior": Isotropic(variance=VARIANCE)}
    target = log_density(lists, CANONICAL, gain=reference_model.given(*ORACLE), **options)
    found = find_mode(target)
    hessian = approx_fprime(np.asarray(found.position), lambda w: gradient(lists, w), 1e-6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(hessian), rtol=1e-4, atol=1e-5)
    assert bool(found.converged)


def test_a_mode_that_was_not_searched_is_refused() -> None:
    with raises(DataError, parameter="point"):
        point_weights(Draws({"weights": np.zeros((1, 9, 3))}, NAMES), "mode")
