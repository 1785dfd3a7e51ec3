"""Which pair is asked, and the posterior given answers.

They are compared with brute force, the NumPyro model, SciPy and quadrature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import entropy, norm
from support.registries import LIKELIHOODS
from support.targets import starting_at_zero, with_common_scale

from bpa_ppl import Prior, from_lists
from bpa_ppl import log_density as model_density
from bpa_ppl.extras.judging.answers import (
    Alternatives,
    Answers,
    Gaussian,
    fit_posterior,
    integrate_scales,
    make_density,
)
from bpa_ppl.extras.judging.questions import Candidates, choose_informative, measure_information
from bpa_ppl.extras.judging.session import Session

PRIOR = Gaussian.prior(np.array([0.2, -0.1]), np.array([[0.5, 0.1], [0.1, 0.3]]))
FIRST, SECOND, TIE = range(3)


def log_density(
    answers: Answers, prior: Gaussian, slip: float = 0.0
) -> Callable[[np.ndarray], float]:
    density = make_density(answers, prior, slip)
    return lambda theta: density(theta)[0]


def question(rng: np.random.Generator) -> Alternatives:
    """A question about candidates with two features and a base."""
    return Alternatives.of(rng.normal(size=(2, 2)), rng.normal(size=2))


def about(*features: Any) -> Alternatives:
    """A question about candidates with some features, and no base."""
    return Alternatives.of(np.array(features, float).reshape(2, -1), np.zeros(2))


def together(given: list[tuple[Alternatives, int]], features: int = 2) -> Answers:
    """Questions with their answers."""
    table = np.reshape([asked.features for asked, _ in given], (-1, 3, features + 1))
    base = np.reshape([asked.base for asked, _ in given], (-1, 3))
    return Alternatives(table, base), np.array([chosen for _, chosen in given], np.int64)


def some_answers(count: int = 30) -> Answers:
    """Random answers."""
    rng = np.random.default_rng(1)
    return together([(question(rng), rng.integers(3)) for _ in range(count)])


def test_the_density_is_that_of_the_likelihood_preference() -> None:
    """Differences of the log density are those of the NumPyro program, with ν."""
    rng, slip = np.random.default_rng(0), 0.2
    lists = from_lists([["a", "b", "c"]] * 4, rng.normal(size=(4, 3, 2)), ["x", "y"])
    preferences, ties = [[[0, 1], [2, 0]], [[1, 2]], None, [[0, 2]]], [None, None, [[0, 1]], None]
    lists = lists.with_sentence_extras(preferences=preferences, ties=ties)
    given, table = [], lists.features.reshape(4, 3, 2).astype(np.float64)
    for s, (pairs, tied) in enumerate(zip(preferences, ties, strict=True)):
        given += [(about(table[s, pair[::-1]]), SECOND) for pair in pairs or ()]
        given += [(about(table[s, pair]), TIE) for pair in tied or ()]
    answers = together(given)
    names = {"x": 0.2, "y": -0.1}
    prior = Prior.gaussian(names, PRIOR.covariance[:2, :2])
    with starting_at_zero():
        model = model_density(
            lists, names, likelihood=LIKELIHOODS["preference"](slip=slip), prior=prior
        )
    points = rng.normal(size=(5, 3))
    expected = [model.value_and_gradient([*point[2:], *point[:2]])[0] for point in points]
    computed = list(map(log_density(answers, PRIOR, slip), points))
    np.testing.assert_allclose(np.diff(computed), np.diff(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_the_mean_is_the_mode(slip: float) -> None:
    """SciPy's general minimiser finds it, within the tolerance of 0.0003 standard deviations."""
    answers = some_answers()
    density = log_density(answers, PRIOR, slip)
    found = minimize(lambda theta: -density(theta), np.zeros(3), tol=1e-9)
    weights, _ = fit_posterior(answers, PRIOR, slip)
    deviation = np.sqrt(np.diag(weights.covariance))
    assert np.all(np.abs(weights.mean - found.x) < 4e-4 * deviation)


def test_the_covariance_is_the_inverse_hessian_without_slips() -> None:
    """Compared with differences of the density."""
    answers = some_answers()
    weights, _ = fit_posterior(answers, PRIOR)

    def gradient(theta: np.ndarray) -> np.ndarray:
        return approx_fprime(theta, log_density(answers, PRIOR), 1e-5)

    hessian = approx_fprime(weights.mean, gradient, 1e-4)
    np.testing.assert_allclose(weights.covariance, -np.linalg.inv(hessian), rtol=0.02, atol=1e-3)


def clear_answers(count: int) -> Answers:
    """About one feature, which three of four answers follow."""
    given = [
        (about(x, 0), FIRST if (x > 0) == (number % 4 > 0) else SECOND)
        for number, x in enumerate(np.random.default_rng(3).normal(size=count))
    ]
    return together(given, 1)


def of_scale(scale: float) -> Gaussian:
    """A prior of one weight."""
    return Gaussian.prior(np.zeros(1), scale**2 * np.eye(1))


@pytest.mark.parametrize(("scale", "slip"), [(0.6, 0.0), (2.0, 0.0), (2.0, 0.2)])
def test_the_evidence_is_nearly_that_of_quadrature(scale: float, slip: float) -> None:
    """Of 30 answers about one feature, relative to a narrow prior."""
    answers, grid = clear_answers(30), np.linspace(-8, 8, 65)
    weight, log_nu = np.meshgrid(grid, np.linspace(-6, 4, 16), indexing="ij")
    log_p = []
    for prior in (of_scale(scale), of_scale(0.01)):
        root = np.sqrt(np.diag(prior.covariance))
        points = np.stack([weight * root[0], log_nu], axis=-1).reshape(-1, 2)
        values = list(map(log_density(answers, prior, slip), points))
        log_p.append(np.logaddexp.reduce(values))  # steps of the grid and normaliser cancel
    computed = [
        fit_posterior(answers, prior, slip)[1] for prior in (of_scale(scale), of_scale(0.01))
    ]
    # With slips the curvature is that of expectation maximisation, which is larger.
    assert computed[0] - computed[1] == pytest.approx(
        log_p[0] - log_p[1], abs=0.35 if slip else 0.1
    )


@pytest.mark.parametrize(("count", "slip"), [(5, 0.05), (20, 0.0), (60, 0.0), (60, 0.05)])
def test_the_posterior_is_integrated_over_the_scale(count: int, slip: float) -> None:
    """Mean and deviation of one weight, compared with quadrature over it and over log τ.

    With slips the posterior is skewed, which a Gaussian given the scale does not describe.
    """
    typical = 0.2
    scale = with_common_scale(Prior.gaussian({"x": 0.0}, np.eye(1)), 0.5, [True]).scale
    answers = clear_answers(count)
    weights = integrate_scales(
        answers, lambda scale: of_scale(typical * scale), scale, scale.log_scales, slip
    )
    grid, log_nus = np.linspace(-4, 8, 81), np.linspace(-8, 4, 17)
    density = log_density(answers, of_scale(1e6), slip)
    values = np.array([[density(np.array([x, log_nu])) for log_nu in log_nus] for x in grid])
    log_scales = np.linspace(-5, 5, 400)[:, None]
    given_scale = norm.logpdf(grid, 0.0, typical * np.exp(log_scales))
    log_prior = np.logaddexp.reduce(given_scale + norm.logpdf(log_scales, 0.0, 0.5))
    log_p = np.logaddexp.reduce(values, axis=1) + log_prior
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    mean = p @ grid
    deviation = np.sqrt(p @ (grid - mean) ** 2)
    assert weights.shares.sum() == pytest.approx(1.0)
    assert weights.mean[0] == pytest.approx(mean, abs=(0.15 if slip else 0.08) * deviation)
    found = np.sqrt(weights.covariance[0, 0])
    assert found == pytest.approx(deviation, rel=0.12 if slip else 0.06)


def test_the_prior_is_that_of_adapt() -> None:
    """Of a session and of `adapt` with its answers."""
    features = np.random.default_rng(0).normal(size=(20, 3, 2))
    lists = from_lists([["a", "b", "c"]] * 20, features, ["x", "y"])
    session = Session(lists)
    for _ in range(3):
        session.next()
        session.answer("first")
    prior = model_density(session.judged, likelihood=LIKELIHOODS["preference"](slip=0.05)).prior
    np.testing.assert_array_equal(session.prior.scale.of_weights, prior.scale.of_weights)
    for name in ("mean", "covariance"):
        np.testing.assert_allclose(getattr(session.prior, name), getattr(prior, name))
    r = np.corrcoef((features - features.mean(axis=1, keepdims=True)).reshape(-1, 2).T)[0, 1]
    deviation = 0.2 / lists.spread  # 0.4 / √(2 K)
    expected = np.outer(deviation, deviation) * np.array([[1, r / 2], [r / 2, 1]])
    np.testing.assert_allclose(prior.covariance, expected, rtol=1e-5)


def test_a_million_to_one_does_not_overflow() -> None:
    """Neither does the search from far away."""
    answers = together([(about(1e4, 0), SECOND)], 1)
    prior = Gaussian.prior(np.array([50.0]), np.eye(1))
    weights, _ = fit_posterior(answers, prior)
    assert np.isfinite(weights.mean).all()
    assert weights.mean[0] < 1


def mutual_information(joint: np.ndarray) -> float:
    """Return the mutual information of a table of probabilities by its definition."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    cells = joint > 0
    return float((joint[cells] * np.log(joint[cells] / product[cells])).sum())


def test_the_information_is_that_of_the_joint_distribution() -> None:
    """Of answer and best candidate, summed over lists, one of which is certain."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(4, 50)).transpose(2, 0, 1)
    best = np.vstack([rng.integers(3, size=(5, 50)), np.ones((1, 50), int)])
    expected = np.zeros(4)
    for choices in best:
        for pair in range(4):
            joint = np.zeros((3, 3))
            for draw, choice in enumerate(choices):
                joint[:, choice] += p[:, pair, draw] / 50
            expected[pair] += mutual_information(joint)
    np.testing.assert_allclose(measure_information(p, best), expected, atol=1e-12)


def table(features: np.ndarray, sizes: list[int], text: list[int] | None = None) -> Candidates:
    """Return candidates without fixed features."""
    rows = len(features)
    return Candidates(
        features=features.astype(float),
        base=np.zeros(rows),
        offsets=np.append(0, np.cumsum(sizes)),
        text=np.arange(rows) if text is None else np.array(text),
    )


def test_random_candidates_differ() -> None:
    """Each is equally often the first, and each that differs from it the second."""
    candidates, rng = table(np.zeros((4, 1)), [4], [0, 1, 1, 2]), np.random.default_rng(0)
    pairs = [tuple(candidates.random_pair(0, rng).tolist()) for _ in range(20_000)]
    first = Counter(pair[0] for pair in pairs)
    assert all(abs(first[row] - 5000) < 5 * np.sqrt(5000) for row in range(4))
    counts = Counter(pairs)
    assert set(counts) == {(i, j) for i in range(4) for j in range(4) if i != j} - {(1, 2), (2, 1)}
    others = np.array([counts[0, row] for row in (1, 2, 3)])
    assert np.all(np.abs(others - 5000 / 3) < 5 * np.sqrt(5000 / 3))


def test_a_pair_that_tells_nothing_is_not_asked() -> None:
    """Only the second list's candidates differ in an uncertain feature."""
    features = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    candidates = table(features, [2, 2])
    weights = Gaussian.prior(np.array([3.0, 0.0]), np.diag([1e-6, 1.0]))
    pool, rng = np.arange(2), np.random.default_rng(0)
    asked = {choose_informative(candidates, pool, weights, rng)[0] for _ in range(20)}
    assert asked == {1}


def test_the_question_tells_the_most_of_random_ones() -> None:
    """About the weights: of the three possible pairs the one with the largest information."""
    rng = np.random.default_rng(4)
    candidates = table(rng.normal(size=(6, 2)), [2, 2, 2])
    weights = Gaussian.prior(np.array([1.0, -1.0]), np.eye(2))
    _, rows = choose_informative(candidates, np.arange(3), weights, rng, about="weights")
    draws = weights.sample(np.random.default_rng(6), 4000)

    def information(rows: np.ndarray) -> float:
        p = candidates.alternatives(rows).probabilities(draws)
        return float(entropy(p.mean(axis=1)) - entropy(p).mean())

    others = [candidates.random_pair(s, rng) for s in range(3)]
    assert information(rows) >= 0.9 * max(map(information, others))
