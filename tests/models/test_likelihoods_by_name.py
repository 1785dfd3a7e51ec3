"""Likelihoods that look at gains, against SciPy, quadrature and simulation."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import plain
import pytest
from numpyro import handlers
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm

from bpa_ppl import NBest, UsageError, adapt
from bpa_ppl.experiments.calibration import calibrate_sampler
from bpa_ppl.models import Likelihood, Lists, Margin, Risk, in_order, tabulate
from bpa_ppl.posterior import as_draws
from bpa_ppl.weights import deviation_within, match

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
SIZES = (7, 1, 7, 7)
WEIGHTS = np.array([0.9, -0.7])


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal derivations, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[0][2] = features[0][3] = features[0][4]
    features[2][4] = features[2][5]
    return NBest.from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


@pytest.fixture(scope="module")
def worth(lists: NBest) -> plain.Array:
    """Gains with ties: between derivations of the same features, and of others."""
    rng = np.random.default_rng(3)
    found = rng.integers(-4, 0, size=sum(SIZES)) / 2
    found[2:4], found[4] = -0.5, -1.0  # two of three equal derivations are worth the same
    found[12:14] = found[8:15].max()  # and two of the best, of equal features, are too
    return found


@pytest.fixture(scope="module")
def oracle(lists: NBest, worth: plain.Array) -> plain.Array:
    """The first of the best."""
    return lists.best(worth)


def brute(
    name: str, setting: float, lists: NBest, worth: plain.Array, oracle: Any, weights: plain.Array
) -> plain.Array:
    """What the docstrings say, hypothesis by hypothesis, in float64."""
    found = []
    for s, best in enumerate(oracle):
        rows = lists.rows(s)
        gain = worth[rows]
        log_p = plain.log_choice(lists.features[rows], [*weights, 1.0])
        loss = gain.max() - gain
        found.append(
            {
                "margin": log_p[best] - logsumexp(log_p + setting * loss),
                "risk": -setting * np.exp(log_p) @ loss,
            }[name]
        )
    return np.array(found)


@lru_cache
def compiled(observing: Likelihood) -> Any:
    """The log-likelihood of each sentence, and the gradient of their sum."""

    def total(weights: Any, lists: Lists) -> Any:
        with handlers.trace() as seen:
            observing.observe(lists, weights)
        each = seen["oracle"]["fn"].log_prob(seen["oracle"]["value"])
        return each.sum(), each

    return jax.jit(jax.value_and_grad(total, has_aux=True))


def ours(
    likelihood: Likelihood, lists: NBest, worth: plain.Array, oracle: Any, weights: plain.Array
) -> tuple[plain.Array, plain.Array, plain.Array]:
    """The log-likelihood of each sentence, that of no sentence, and the gradient of the sum."""
    table = tabulate(lists, match(CANONICAL, lists), oracle, gains=worth, multiple=5)
    prepared, observing = likelihood.prepare(table)
    (_, each), gradient = compiled(observing)(weights, prepared)
    empty = np.asarray(each)[np.asarray(prepared.sentence) < 0]
    return np.asarray(each)[in_order(prepared)], empty, np.asarray(gradient)


CASES = [("margin", 0.7, Margin(gamma=0.7)), ("risk", 1.5, Risk(kappa=1.5))]


@pytest.mark.parametrize(("name", "setting", "likelihood"), CASES, ids=[c[0] for c in CASES])
def test_the_density_is_that_of_scipy(
    lists: NBest,
    worth: plain.Array,
    oracle: plain.Array,
    name: str,
    setting: float,
    likelihood: Likelihood,
) -> None:
    for weights in (WEIGHTS, -4 * WEIGHTS):
        each, empty, gradient = ours(likelihood, lists, worth, oracle, weights)
        expected = brute(name, setting, lists, worth, oracle, weights)
        np.testing.assert_allclose(each, expected, rtol=2e-5, atol=2e-5)
        assert len(empty) == 6
        np.testing.assert_array_equal(empty, 0.0)
        steps = 1e-5 * np.eye(2)
        slope = [
            np.subtract(
                *(brute(name, setting, lists, worth, oracle, weights + s) for s in (step, -step))
            ).sum()
            / 2e-5
            for step in steps
        ]
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "setting", "likelihood"), CASES, ids=[c[0] for c in CASES])
def test_a_constant_of_a_list_changes_nothing(
    lists: NBest,
    worth: plain.Array,
    oracle: plain.Array,
    name: str,
    setting: float,
    likelihood: Likelihood,
) -> None:
    shifted = worth + np.repeat([8.0, -3.0, 0.5, 64.0], SIZES)
    for part, moved in zip(
        ours(likelihood, lists, worth, oracle, WEIGHTS),
        ours(likelihood, lists, shifted, oracle, WEIGHTS),
        strict=True,
    ):
        np.testing.assert_allclose(part, moved, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def scored(lists: NBest, worth: plain.Array) -> NBest:
    """Lists of one length with their gains as a column: one compilation serves all."""
    return replace(lists, extras={"worth": worth}).select([0, 2, 0])


def test_the_mode_of_the_risk_is_found_from_the_margin(scored: NBest) -> None:
    posterior = adapt(scored, CANONICAL, likelihood="risk", metric="worth", sampler="map")
    draws, worth = as_draws(posterior), scored.extras["worth"]
    kappa = draws.attrs["likelihood"]["kappa"]
    assert kappa == pytest.approx(1 / deviation_within(scored, worth), rel=0.005)

    def density(weights: plain.Array) -> float:
        each = brute("risk", kappa, scored, worth, scored.best(worth), weights)
        return float(each.sum() + norm.logpdf(weights, [0.4, -0.2], np.sqrt(0.1)).sum())

    best = minimize(lambda weights: -density(weights), [0.4, -0.2], tol=1e-10)
    np.testing.assert_allclose(draws.mean, best.x, atol=1e-3)
    assert np.abs(best.x - [0.4, -0.2]).max() > 0.05
    each = brute("risk", kappa, scored, worth, scored.best(worth), draws.mean)
    assert draws.pointwise is not None
    np.testing.assert_allclose(draws.pointwise[0, 0], each, rtol=1e-5, atol=1e-5)


def test_open_settings_are_derived_from_the_gain(scored: NBest) -> None:
    spread = deviation_within(scored, scored.extras["worth"])
    per_unit = {"margin": ("gamma", 2 / spread), "risk": ("kappa", 1 / spread)}
    for name, (setting, value) in per_unit.items():
        posterior = adapt(scored, CANONICAL, likelihood=name, metric="worth", sampler="map")
        recorded = as_draws(posterior).attrs["likelihood"]
        assert recorded == {"name": name, setting: pytest.approx(value, rel=0.005)}
    assert Risk().with_defaults(4.0) == Risk(kappa=0.25)
    assert Margin(gamma=3.0).with_defaults(4.0) == Margin(gamma=3.0)


@pytest.mark.parametrize("name", ["margin", "risk"])
def test_what_is_no_distribution_is_not_simulated(scored: NBest, name: str) -> None:
    with pytest.raises(UsageError, match="simulated"):
        calibrate_sampler(scored, CANONICAL, "laplace", likelihood=name, metric="worth")


@pytest.mark.parametrize("likelihood", [Margin(), Risk()])
def test_gains_are_needed(lists: NBest, likelihood: Likelihood) -> None:
    with pytest.raises(UsageError, match="needs gains"):
        likelihood.prepare(tabulate(lists, match(CANONICAL, lists)))
