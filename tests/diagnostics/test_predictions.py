"""ArviZ's own checks of our posteriors, against quadrature and planted truths."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import reference_model
from raising import raises
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import kstest, multivariate_t, norm
from targets import SENTENCES, balanced, integrated

from bpa_ppl import DataError, Draws, NBest, as_draws, write_posterior
from bpa_ppl.diagnostics import power_sensitivity, with_predictions
from bpa_ppl.posterior import import_arviz, read_draws
from bpa_ppl.posterior.arviz_functions import InferenceData, generation
from bpa_ppl.posterior.draws import importance_weights

VARIANCE = 0.1
NAMES = ("LM0", "WP0")
MEAN, SPREAD = np.array([1.0, -0.5]), 0.5


def differences() -> np.ndarray:
    """h(other) − h(oracle) of each sentence."""
    return balanced().pool.features[1::2, 0].astype(np.float64)


def log_prior(w: np.ndarray, variance: float = VARIANCE) -> np.ndarray:
    return np.asarray(norm.logpdf(w, balanced().canonical["LM0"], np.sqrt(variance)))


def exact(prior: float = 1.0, likelihood: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A grid of weights and the posterior there, its prior and likelihood raised to a power."""

    def log_density(w: np.ndarray) -> np.ndarray:
        log_likelihood = log_expit(-w * differences()).sum(axis=1)
        return likelihood * log_likelihood + log_prior(w[:, 0], VARIANCE / prior)

    grid, p = integrated(log_density, [balanced().canonical["LM0"]], 3.0, 6001)
    return grid[:, 0], p


@cache
def posterior(count: int = 4000) -> InferenceData:
    """Independent draws of the posterior of one weight, and what they predict of its lists."""
    grid, p = exact()
    drawn = np.random.default_rng(3).choice(grid, size=(4, count), p=p)
    log_likelihood = log_expit(-drawn[..., None] * differences())
    draws = Draws(
        {"weights": drawn[..., None]},
        ("LM0",),
        log_density=log_prior(drawn) + log_likelihood.sum(axis=-1),
        log_likelihood={"oracle": log_likelihood.astype(np.float32)},
        sentence_sites=("oracle",),
        observed={"oracle": np.zeros(SENTENCES, np.int64)},
    )
    gains = np.random.default_rng(4).normal(size=2 * SENTENCES)
    return with_predictions(draws, balanced().pool, gains=gains, seed=1)


def pit(data: InferenceData) -> np.ndarray:
    """ArviZ's LOO-PIT of the oracles."""
    if generation() < 1:
        return np.asarray(import_arviz().loo_pit(data, y="oracle"))
    return np.asarray(import_arviz().loo_pit(data, var_names="oracle")["oracle"])


def distance(grid: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """The cumulative Jensen–Shannon distance of two distributions on a grid (Nguyen & Vreeken)."""
    step = grid[1] - grid[0]
    p, q = np.cumsum(one)[:-1], np.cumsum(other)[:-1]
    middle = (p + q) / 2
    p_q, q_p = p.sum() * step, q.sum() * step
    both = [
        np.sum(f * np.log2(f / middle)) * step + (g_total - f_total) / (2 * np.log(2))
        for f, f_total, g_total in ((p, p_q, q_p), (q, q_p, p_q))
    ]
    return float(np.sqrt(sum(both) / (p_q + q_p)))


@pytest.mark.parametrize("component", ["prior", "likelihood"])
def test_power_scaling_is_that_of_scaling_the_power(component: str) -> None:
    """Posteriors whose prior has another variance, or whose data count otherwise, by quadrature."""
    grid, base = exact()
    # The distance depends on where the axis ends: at the furthest draws.
    drawn = posterior()["posterior"]["weights"].values
    inside = (grid >= drawn.min()) & (grid <= drawn.max())
    far = []
    for power in (1 / 1.01, 1.01):
        both = [p[inside] for p in (base, exact(**{component: power})[1])]
        flipped = [p[::-1] for p in both]
        far.append(max(distance(grid, *both), distance(grid, *flipped)))
    expected = sum(far) / (2 * np.log2(1.01))
    (found,) = power_sensitivity(posterior())
    assert getattr(found, component) == pytest.approx(expected, rel=0.1)


def test_the_pit_is_that_of_leaving_one_out() -> None:
    data = posterior()
    shares = data["observed_data"]["oracle"].values
    assert np.all((shares >= 0) & (shares < 1))  # the first of each list
    grid, p = exact()
    probability = expit(-grid[:, None] * differences())
    left_out = [importance_weights(np.log(p) - np.log(own)) @ own for own in probability.T]
    np.testing.assert_allclose(pit(data), shares * left_out, atol=0.015)


def planted(count: int, seed: int) -> tuple[NBest, np.ndarray]:
    """Lists of four whose oracles are drawn from the model at weights drawn from the prior."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(4, 2)) for _ in range(count)]
    pool = NBest.from_lists([["a", "b", "c", "d"]] * count, features, NAMES)
    truth = rng.normal(MEAN, SPREAD)
    chosen = [rng.choice(4, p=importance_weights(own @ truth)) for own in features]
    return pool, np.array(chosen)


def adapted_to(pool: NBest, oracle: np.ndarray) -> InferenceData:
    """The posterior by importance sampling around its mode."""
    features = pool.features.reshape(len(pool), 4, 2).astype(np.float64)

    def log_likelihood(w: np.ndarray) -> np.ndarray:
        scores = features @ w.T
        chosen = np.take_along_axis(scores, oracle[:, None, None], axis=1)[:, 0]
        return np.asarray((chosen - logsumexp(scores, axis=1)).T)

    def log_density(w: np.ndarray) -> np.ndarray:
        return log_likelihood(w).sum(axis=1) + norm.logpdf(w, MEAN, SPREAD).sum(axis=1)

    found = minimize(lambda w: -log_density(w[None])[0], MEAN)
    proposal = multivariate_t(found.x, found.hess_inv, df=5)
    drawn = proposal.rvs(2000, random_state=np.random.default_rng(1))
    draws = Draws(
        {"weights": drawn[None]},
        NAMES,
        kind="weighted",
        log_weight=(log_density(drawn) - proposal.logpdf(drawn))[None],
        log_likelihood={"oracle": log_likelihood(drawn)[None]},
        sentence_sites=("oracle",),
        observed={"oracle": oracle},
    )
    return with_predictions(draws, pool)


def test_the_pit_is_uniform_where_the_model_is_right_and_only_there() -> None:
    pool, oracle = planted(400, seed=5)
    assert kstest(pit(adapted_to(pool, oracle)), "uniform").pvalue > 0.01
    last = np.where(np.random.default_rng(0).random(len(oracle)) < 0.5, 3, oracle)
    assert kstest(pit(adapted_to(pool, last)), "uniform").pvalue < 1e-6


def test_predictive_draws_agree_with_plain_loops() -> None:
    pool, oracle = planted(5, seed=2)
    draws = Draws({"weights": np.ones((2, 2000, 2))}, NAMES, observed={"oracle": oracle})
    data = as_draws(with_predictions(draws, pool, gains=np.arange(20.0)))
    drawn = np.floor(data.predictive["oracle"]).astype(int).reshape(-1, 5)
    for s, p in enumerate(reference_model.predictive(pool, np.ones((1, 2)))):
        share = np.bincount(drawn[:, s], minlength=4) / 4000
        assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000))
    assert np.array_equal(data.predictive["gain"].reshape(-1, 5) - 4 * np.arange(5), drawn)
    assert data.observed["gain"].tolist() == (oracle + 4 * np.arange(5)).tolist()
    assert data.observed["oracle"].tolist() == oracle.tolist()
    again = as_draws(with_predictions(draws, pool))
    assert np.array_equal(again.predictive["oracle"], data.predictive["oracle"])


def test_weighted_draws_are_resampled_first() -> None:
    pool, oracle = planted(1, seed=2)
    both = np.array([[[0.0, 0.0], [9.0, 9.0]]])
    draws = Draws(
        {"weights": np.repeat(both, 500, axis=1)},
        NAMES,
        kind="weighted",
        log_weight=np.repeat([[0.0, -50.0]], 500, axis=1),
        observed={"oracle": oracle},
    )
    found = as_draws(with_predictions(draws, pool))
    assert found.kind == "chains"
    assert np.all(found.weights == 0)


def test_lists_and_gains_of_others_are_refused() -> None:
    pool, oracle = planted(3, seed=2)
    draws = Draws({"weights": np.ones((2, 10, 2))}, NAMES, observed={"oracle": oracle})
    with raises(DataError, "mismatch"):
        with_predictions(draws, pool.select([0, 1]))
    with raises(DataError, "wrong-length", parameter="gains"):
        with_predictions(draws, pool, gains=[1.0])


def test_draws_of_the_prior_predict_as_a_plain_loop(tmp_path: Path) -> None:
    """Shares of choices, against the mean of p(e|f,λ) over the draws of the prior."""
    rng = np.random.default_rng(3)
    pool = NBest.from_lists([["a", "b", "c"]] * 2, rng.normal(size=(2, 3, 1)), ["LM0"])
    prior = rng.normal(0.5, 1.0, size=(1, 4000, 1))
    draws = Draws(
        {"weights": np.full((2, 50, 1), 9.0)},
        ("LM0",),
        observed={"oracle": [0, 1]},
        prior={"weights": prior},
    )
    data = with_predictions(draws, pool, gains=np.arange(6.0))
    write_posterior(data, tmp_path / "p.nc")
    found = read_draws(tmp_path / "p.nc").prior_predictive
    assert {name: values.shape for name, values in found.items()} == dict.fromkeys(
        ("oracle", "gain"), (1, 4000, 2)
    )
    for s in range(2):
        scores = prior[0] * pool.features[pool.rows(s), 0]
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = (p / p.sum(axis=1, keepdims=True)).mean(axis=0)
        shares = np.bincount(found["oracle"][0, :, s].astype(int), minlength=3) / 4000
        np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / np.sqrt(4000))
        np.testing.assert_array_equal(found["gain"][..., s], found["oracle"][..., s] // 1 + 3 * s)
