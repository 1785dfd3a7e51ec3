"""Newton's method and the mode compared with SciPy, Laplace's approximation with integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import betainc
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm
from support import reference_model
from support.posteriors import InferenceData, name_weights
from support.raising import raises
from support.registries import LIKELIHOODS
from support.targets import integrated

import bpa_ppl as bpa
from bpa_ppl import log_density
from bpa_ppl.densities.mode import find_mode, require_mode
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.newton import (
    MAX_ITERATIONS,
    Derivatives,
    combine_components,
    laplace_covariance,
    laplace_evidence,
    make_positive_definite,
    maximise,
    solve,
)

Density = Callable[[np.ndarray], Derivatives]
RNG = np.random.default_rng(5)
ROOT = RNG.normal(size=(4, 4))
PRECISION = ROOT @ ROOT.T + np.eye(4)
CENTRE = np.array([3.0, -1.0, 0.5, 200.0])


def quadratic(x: np.ndarray) -> Derivatives:
    """A Gaussian without its constant."""
    pull = PRECISION @ (CENTRE - x)
    return float(pull @ (x - CENTRE) / 2), pull, PRECISION, None


def logistic(rows: np.ndarray, label: np.ndarray, variance: float) -> Density:
    """Logistic regression with a Gaussian prior."""

    def density(w: np.ndarray) -> Derivatives:
        score = rows @ w
        p = expit(score)
        value = label @ score - np.logaddexp(0, score).sum() - w @ w / (2 * variance)
        gradient = rows.T @ (label - p) - w / variance
        hessian = (rows.T * (p * (1 - p))) @ rows + np.eye(len(w)) / variance
        return float(value), gradient, hessian, None

    return density


def two_hills(x: np.ndarray) -> Derivatives:
    """−(x² − 1)² / 4 − y² / 2: maxima at (±1, 0), and a saddle between them."""
    a, b = x
    value = -((a**2 - 1) ** 2) / 4 - b**2 / 2
    hessian = np.diag([3 * a**2 - 1, 1.0])
    gradient = np.array([a - a**3, -b])
    return float(value), gradient, hessian, None


def test_a_quadratic_takes_one_step_and_one_that_confirms_it() -> None:
    found, _ = maximise(quadratic, np.zeros(4))
    np.testing.assert_allclose(found.position, CENTRE)
    assert (found.converged, found.iterations) == (True, 2)
    assert found.decrement == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.covariance @ PRECISION, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)

    first, _ = maximise(quadratic, np.zeros(4), iterations=1)
    assert first.decrement == pytest.approx(CENTRE @ PRECISION @ CENTRE)  # a squared length
    assert not first.converged
    np.testing.assert_allclose(first.position, CENTRE)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("variance", [0.1, 100.0])
def test_the_maximum_of_a_logistic_regression_is_that_of_scipy(
    scale: float, variance: float
) -> None:
    """From far away too, where full steps go wrong."""
    rows = RNG.normal(size=(60, 3)) * [scale, 1, 1]
    density = logistic(rows, (RNG.random(60) < 0.4).astype(float), variance)
    expected = minimize(
        lambda w: (-density(w)[0], -density(w)[1]),
        np.zeros(3),
        jac=True,
        hess=lambda w: density(w)[2],
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    for start in (np.zeros(3), np.array([5.0, -8.0, 9.0])):
        found, _ = maximise(density, start)
        assert found.converged
        error = found.position - expected
        assert error @ density(expected)[2] @ error < 1e-10


@pytest.mark.parametrize("start", [(0.1, 3.0), (-0.3, -1.0), (0.5, 0.0), (-20.0, 4.0)])
def test_a_search_that_starts_where_the_density_is_not_concave_goes_up(
    start: tuple[float, float],
) -> None:
    found, hessian = maximise(two_hills, np.array(start))
    assert found.converged
    np.testing.assert_allclose(np.abs(found.position), [1, 0], atol=1e-3)
    assert np.sign(found.position[0]) == np.sign(start[0])
    assert -found.potential_energy == two_hills(found.position)[0] >= two_hills(np.array(start))[0]
    np.testing.assert_array_equal(hessian, two_hills(found.position)[2])
    np.testing.assert_allclose(found.covariance, np.diag([0.5, 1.0]), atol=1e-2)


def test_an_endless_slope_ends_the_search_without_convergence() -> None:
    """Neither with a curvature in place of the Hessian, which is zero, nor without."""

    def rising(x: np.ndarray) -> Derivatives:
        return float(x.sum()), np.ones(2), np.zeros((2, 2)), 1e-3 * np.eye(2)

    def saturating(x: np.ndarray) -> Derivatives:
        return float(-np.exp(-x[0])), np.exp(-x), -np.diag(np.exp(-x)), None

    found, _ = maximise(rising, np.zeros(2))
    assert (found.converged, found.iterations) == (False, MAX_ITERATIONS)
    assert found.position == pytest.approx(1e3 * MAX_ITERATIONS)
    slope, _ = maximise(saturating, np.zeros(1))
    assert slope.position[0] > 10
    assert slope.decrement < 1e-4
    assert not slope.converged
    flat, _ = maximise(lambda x: (0.0, np.zeros(2), np.diag([1.0, 0.0]), None), np.zeros(2))
    assert (flat.converged, flat.decrement) == (False, 0)


@pytest.mark.parametrize("matrix", [np.full((2, 2), np.nan), np.zeros((2, 2)), np.ones((2, 2))])
def test_nan_and_singular_curvatures_end_the_search(matrix: np.ndarray) -> None:
    gradient = np.arange(2.0)
    found, _ = maximise(lambda x: (float(x.sum()), gradient, matrix, matrix), np.zeros(2))
    assert (found.converged, found.iterations) == (False, 1)
    assert np.isnan(found.decrement)
    assert np.isnan(solve(matrix, np.eye(2))).all()
    assert np.isnan(laplace_covariance(matrix)).all()


def test_a_step_to_where_the_density_is_nan_is_shortened() -> None:
    """The log density −x + log x is undefined below zero, where the full step from 10 ends."""

    def density(x: np.ndarray) -> Derivatives:
        if x[0] <= 0:
            nothing = np.full(1, np.nan)
            return np.nan, nothing, nothing[:, None], None
        return float(np.log(x[0]) - x[0]), 1 / x - 1, np.diag(x**-2), None

    assert np.isnan(density(np.full(1, 10.0) + 100 * density(np.full(1, 10.0))[1])[0])
    found, _ = maximise(density, np.full(1, 10.0))
    assert found.converged
    assert found.position == pytest.approx(1.0, abs=1e-6)


def test_a_matrix_becomes_positive_definite() -> None:
    vectors, units = np.linalg.qr(RNG.normal(size=(3, 3)))[0], np.diag([1e9, 1.0, 1e-9])
    scaled = units @ (np.eye(3) + 0.5) @ units
    negative, positive = ((vectors * [2.0, x, 1.0]) @ vectors.T for x in (-3.0, 3.0))
    for matrix, expected, was_definite, error in (
        (PRECISION, PRECISION, True, 0.0),
        (scaled, scaled, True, 0.0),
        (negative, positive, False, 1e-12),
    ):
        definite, before = make_positive_definite(matrix)
        np.testing.assert_allclose(definite, expected, rtol=1e-9, atol=error)
        assert before == was_definite
    singular, before = make_positive_definite(np.diag([1.0, 0.0]))
    assert not before
    assert np.linalg.eigvalsh(singular).min() > 0
    assert np.isnan(make_positive_definite(np.diag([np.inf, 1.0]))[0]).all()


def test_the_evidence_of_a_gaussian_is_exact() -> None:
    """The integral of a normal density is one, of any covariance."""
    covariance = np.linalg.inv(PRECISION)
    at_centre = multivariate_normal(CENTRE, covariance).logpdf(CENTRE)
    assert laplace_evidence(float(at_centre), covariance) == pytest.approx(0, abs=1e-10)


def test_the_moments_of_a_mixture_are_those_of_its_draws() -> None:
    """By the law of total covariance, written as second moments."""
    count, size = 5, 3
    means = RNG.normal(size=(count, size))
    roots = RNG.normal(size=(count, size, size))
    covariances = roots @ roots.transpose(0, 2, 1)
    log_p = RNG.normal(size=count)
    share, mean, covariance = combine_components(log_p - 1e4, means, covariances)
    np.testing.assert_allclose(share, np.exp(log_p) / np.exp(log_p).sum(), rtol=1e-9)
    np.testing.assert_allclose(mean, (share[:, None] * means).sum(axis=0))
    second = sum(
        p * (c + np.outer(m, m)) for p, m, c in zip(share, means, covariances, strict=True)
    )
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), atol=1e-12)


FEATURES = ("LM0", "TM0", "WP0")
CANONICAL = bpa.Weights(dict(zip(FEATURES, (0.5, 0.3, -0.2), strict=True)))
SIZES = (9, 1, 4, 6, 7, 2, 12, 3)
ORACLE = (3, 0, 2, 5, 0, 1, 7, 1)
VARIANCE = 2.0


@pytest.fixture(scope="module")
def lists() -> bpa.NBest:
    rng = np.random.default_rng(21)
    texts = [[str(i) for i in range(n)] for n in SIZES]
    return bpa.from_lists(texts, [rng.normal(0, 2, size=(n, 3)) for n in SIZES], FEATURES)


@pytest.fixture(scope="module")
def mode(lists: bpa.NBest) -> InferenceData:
    oracle = reference_model.given(*ORACLE)
    return bpa.adapt(
        lists, CANONICAL, sampler="map", prior=bpa.Isotropic(variance=VARIANCE), gain=oracle
    )


def potential_energy(lists: bpa.NBest, weights: reference_model.Array) -> float:
    log_likelihood = reference_model.log_likelihood(lists, ORACLE, weights).sum()
    return -log_likelihood - reference_model.log_prior(weights, CANONICAL.values_array, VARIANCE)


def gradient(lists: bpa.NBest, weights: reference_model.Array) -> reference_model.Array:
    """By hand: Σ_a (E[h] − h*) + (λ − λ_T) / σ_T."""
    total = (weights - CANONICAL.values_array) / VARIANCE
    for sentence, best in enumerate(ORACLE):
        features = lists.features[lists.rows(sentence)].astype(np.float64)
        p = np.exp(reference_model.log_choice(features, weights))
        total = total + p @ features - features[best]
    return total


def test_the_mode_is_that_of_scipy(lists: bpa.NBest, mode: InferenceData) -> None:
    found = minimize(
        lambda w: potential_energy(lists, w),
        CANONICAL.values_array,
        jac=lambda w: gradient(lists, w),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    ours = bpa.point_weights(mode, "mode")
    np.testing.assert_allclose(ours.values_array, found.x, atol=1e-3)
    assert potential_energy(lists, ours.values_array) <= found.fun + 1e-6
    assert bpa.point_weights(mode, "mean") == ours
    assert bpa.check(mode)


def test_the_laplace_covariance_is_the_inverse_of_a_numeric_hessian(lists: bpa.NBest) -> None:
    options = {"likelihood": "oracle", "prior": bpa.Isotropic(variance=VARIANCE)}
    target = log_density(lists, CANONICAL, gain=reference_model.given(*ORACLE), **options)
    found = find_mode(target)
    hessian = approx_fprime(np.asarray(found.position), lambda w: gradient(lists, w), 1e-6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(hessian), rtol=1e-4, atol=1e-5)
    assert bool(found.converged)

    before = find_mode(target, last_step=False)
    assert (before.converged, before.iterations) == (True, found.iterations - 1)
    np.testing.assert_array_equal(before.covariance, found.covariance)


@jax.custom_vjp
def exponential(x: jax.Array) -> jax.Array:
    return jnp.exp(x)


def forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.exp(x), jnp.exp(x)


def backward(value: jax.Array, slope: jax.Array) -> tuple[jax.Array]:
    return (value * slope,)


exponential.defvjp(forward, backward)


@jax.custom_jvp
def by_betainc(x: jax.Array) -> jax.Array:
    return jnp.exp(x)


#: I(1, 1; ½) is ½, and JAX has no derivative of it.
by_betainc.defjvps(lambda by, value, x: by * value * 2 * betainc(jnp.ones_like(x) + 0 * x, 1, 0.5))


@pytest.mark.parametrize("function", [exponential, by_betainc])
def test_the_mode_of_a_program_with_its_own_gradient_is_that_of_the_same_without(
    function: Callable[[jax.Array], jax.Array],
) -> None:
    """JAX cannot differentiate such a rule again: the Hessian is that of differences."""

    def program(function: Callable[[jax.Array], jax.Array]) -> None:
        rate = function(numpyro.sample("log_rate", dist.Normal(0, 1).expand([2]).to_event(1)))
        numpyro.sample("count", dist.Poisson(rate).to_event(1), obs=np.array([3, 40]))

    found, expected = (find_mode(make_model_target(program, (one,))) for one in (function, jnp.exp))
    assert found.converged
    np.testing.assert_allclose(found.position, expected.position, atol=1e-5)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-4, atol=1e-9)


def test_a_mode_that_was_not_searched_is_refused() -> None:
    with raises(bpa.DataError, parameter="point"):
        draws = name_weights(np.zeros((1, 9, 3)), FEATURES)
        bpa.point_weights(draws, "mode", unchecked=True)


START = {"LM0": 0.3, "WP0": -0.2}
COUNT, SIZE, POINTS = 8, 5, 161


def test_evidence_is_the_integral() -> None:
    variance, gamma = 0.3, 1.0
    rng = np.random.default_rng(5)
    worth = rng.integers(-6, 1, size=(COUNT, SIZE)).astype(float)
    features = rng.normal(size=(COUNT, SIZE, 2)).astype(np.float32)
    texts = [[f"{s} {e}" for e in range(SIZE)] for s in range(COUNT)]
    nbest, best = bpa.from_lists(texts, list(features), list(START)), worth.argmax(axis=1)
    mean = np.array(list(START.values()))

    def log_density(weights: reference_model.Array) -> reference_model.Array:
        total = norm.logpdf(weights, mean, np.sqrt(variance)).sum(axis=1)
        for s in range(COUNT):
            scores = weights @ features[s].astype(np.float64).T
            loss = worth[s, best[s]] - worth[s]
            total += scores[:, best[s]] - logsumexp(scores + gamma * loss, axis=1)
        return np.asarray(total)

    width = 10 * np.sqrt(variance)
    grid, _ = integrated(log_density, mean, width, points=POINTS)
    exact = logsumexp(log_density(grid)) + np.log((2 * width / (POINTS - 1)) ** 2)
    with jax.enable_x64(True):
        oracles = replace(reference_model.given(*best), gain="worth")
        options = {"likelihood": LIKELIHOODS["margin"](gamma=gamma), "gain": oracles}
        options |= {"prior": bpa.Isotropic(variance=variance)}
        target = bpa.log_density(nbest.with_extras(worth=worth.ravel()), START, **options)
        mode = require_mode(target)
    found = mode.figures.log_evidence  # of the posterior
    # The error of Laplace's approximation grows with the variance; it is below 6 % up to 0.3.
    assert found == pytest.approx(exact, abs=0.06)
