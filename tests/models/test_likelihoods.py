"""The likelihoods that use gain differences, margin and risk, compared with SciPy."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp
from scipy.stats import norm
from support import reference_model
from support.raising import raises
from support.reference_model import Array

from bpa_ppl import NBest, UsageError, adapt, from_lists
from bpa_ppl.experiments.comparison.samplers import calibrate_sampler
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.risk import Risk
from bpa_ppl.models.lists import Lists, find_order, tabulate
from bpa_ppl.nbest import measure_deviation
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.observations import observe
from bpa_ppl.weights import match

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
SIZES = (7, 1, *[7] * 16)  # 17 lists of one length get one list of padding
JUDGED = np.flatnonzero(np.array(SIZES) > 1)  # nothing is chosen from a list of one
WEIGHTS = np.array([0.9, -0.7])


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal derivations, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[0][2] = features[0][3] = features[0][4]
    features[2][4] = features[2][5]
    return from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


@pytest.fixture(scope="module")
def gain_values(lists: NBest) -> Array:
    """Gains with ties, both among equal and among different features."""
    rng = np.random.default_rng(3)
    result = rng.integers(-4, 0, size=sum(SIZES)) / 2
    result[2:4], result[4] = -0.5, -1.0  # two of three equal derivations have equal gains
    result[12:14] = result[8:15].max()  # two of the best candidates have equal features
    return result


@pytest.fixture(scope="module")
def oracle(lists: NBest, gain_values: Array) -> Array:
    """The first candidate with the highest gain."""
    return lists.best(gain_values)


@pytest.fixture(scope="module")
def reference(lists: NBest, gain_values: Array, oracle: Array) -> Any:
    """The function (name, setting, weights) ↦ log-likelihood of each sentence, by the formulas."""

    def log_likelihood(name: str, setting: float, weights: Array) -> Array:
        result = []
        for s, best in enumerate(oracle):
            rows = lists.rows(s)
            log_p = reference_model.log_choice(lists.features[rows], [*weights, 1.0])
            loss = gain_values[rows].max() - gain_values[rows]
            margin = log_p[best] - logsumexp(log_p + setting * loss)
            result.append(margin if name == "margin" else -setting * np.exp(log_p) @ loss)
        return np.array(result)

    return log_likelihood


@lru_cache
def compiled_log_likelihood(observing: Likelihood) -> Any:
    """Return a compiled function of the log-likelihoods and the gradient of their sum."""

    def total(weights: Any, lists: Lists) -> Any:
        with handlers.trace() as observed:
            observing.observe(lists, weights)
        each = observed["oracle"]["fn"].log_prob(observed["oracle"]["value"])
        return each.sum(), each

    return jax.jit(jax.value_and_grad(total, has_aux=True))


def evaluate_likelihood(
    likelihood: Likelihood, lists: NBest, gain_values: Array, oracle: Any, weights: Array
) -> tuple[Array, Array, Array]:
    """Return the log-likelihoods of the sentences and of padding, and the gradient of the sum."""
    table = tabulate(lists, match(CANONICAL, lists), oracle, gains=gain_values)
    prepared, observing = likelihood.prepare(table)
    (_, each), gradient = compiled_log_likelihood(observing)(weights, prepared)
    empty = np.asarray(each)[np.asarray(prepared.sentence) < 0]
    return np.asarray(each)[find_order(prepared)], empty, np.asarray(gradient)


@pytest.mark.parametrize(
    ("name", "likelihood"), [("margin", Margin(gamma=0.7)), ("risk", Risk(kappa=1.5))]
)
def test_density_and_gradient_agree_with_scipy(
    lists: NBest, gain_values: Array, oracle: Array, reference: Any, name: str, likelihood: Any
) -> None:
    setting = getattr(likelihood, likelihood.factor[0])

    def expected(weights: Array) -> Array:
        return np.asarray(reference(name, setting, weights))

    for weights in (WEIGHTS, -4 * WEIGHTS):
        each, empty, gradient = evaluate_likelihood(likelihood, lists, gain_values, oracle, weights)
        np.testing.assert_allclose(each, expected(weights), rtol=2e-5, atol=2e-5)
        assert empty.tolist() == [0.0]
        slope = approx_fprime(weights, lambda w: expected(w).sum(), 1e-6)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)
    # A constant gain of a list has no effect.
    shifted = gain_values + np.repeat(8.0 * np.arange(len(SIZES)), SIZES)
    moved = evaluate_likelihood(likelihood, lists, shifted, oracle, weights)
    for part, other in zip((each, empty, gradient), moved, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-5)


def test_candidates_with_different_gains_are_not_merged(
    lists: NBest, gain_values: Array, oracle: Array
) -> None:
    matched, rows = match(CANONICAL, lists), []
    for gain in (None, gain_values):
        buckets = tabulate(lists, matched, oracle, gains=gain).buckets
        rows.append(sum(int((bucket["candidate"] >= 0).sum()) for bucket in buckets))
    assert rows == [118, 119]  # of 120


@pytest.fixture(scope="module")
def lists_with_gain_column(lists: NBest, gain_values: Array) -> NBest:
    """Lists of equal size with the gains as a column: one program is compiled for all."""
    return replace(lists, extras={"quality": gain_values}).select([0, 2, 0])


def test_risk_mode_agrees_with_scipy(lists: NBest, gain_values: Array, reference: Any) -> None:
    judged = replace(lists, extras={"quality": gain_values})
    draws = as_draws(adapt(judged, CANONICAL, likelihood="risk", gain="quality", sampler="map"))
    kappa, mean = draws.record.likelihood.settings["kappa"], [0.4, -0.2]

    def loss(weights: Array) -> float:
        prior = norm.logpdf(weights, mean, np.sqrt(0.1)).sum()
        return -float(reference("risk", kappa, weights)[JUDGED].sum() + prior)

    best = minimize(loss, mean, tol=1e-10)
    np.testing.assert_allclose(draws.mean, best.x, atol=1e-3)
    assert np.abs(best.x - mean).max() > 0.05
    each = reference("risk", kappa, draws.mean)[JUDGED]
    np.testing.assert_allclose(draws.pointwise[0, 0], each, rtol=1e-5, atol=1e-5)


def test_default_settings_are_derived_from_gains(lists_with_gain_column: NBest) -> None:
    spread = measure_deviation(lists_with_gain_column, lists_with_gain_column.extras["quality"])
    per_unit = {"margin": ("gamma", 2 / spread), "risk": ("kappa", 1 / spread)}
    for name, (setting, value) in per_unit.items():
        posterior = adapt(
            lists_with_gain_column, CANONICAL, likelihood=name, gain="quality", sampler="map"
        )
        assert as_draws(posterior).record.likelihood.plain == {
            "name": name,
            setting: pytest.approx(value, rel=0.005),
        }
    assert Risk(kappa=2.0).log_concave_start() == Margin(gamma=4.0)
    graded = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"]).with_extras(grade=[1, 9])
    scored = observe(graded, "grade", likelihood="risk")
    assert scored.edit == 4.0
    assert Risk().defaults(scored) == Risk(kappa=0.25)
    assert Margin(gamma=3.0).defaults(scored) == Margin(gamma=3.0)


@pytest.mark.parametrize("likelihood", [Margin(), Risk(), Pairs()])
def test_rejects_simulation_and_lists_without_gains(lists: NBest, likelihood: Likelihood) -> None:
    with raises(UsageError, "not-supported", parameter="likelihood"):
        calibrate_sampler(lists, CANONICAL, "laplace", likelihood=likelihood)
    with raises(UsageError, "missing-setting", parameter="gains"):
        likelihood.prepare(tabulate(lists, match(CANONICAL, lists)))
