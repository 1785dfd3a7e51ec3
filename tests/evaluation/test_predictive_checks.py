"""Predictions and leave-one-out: plain loops, quadrature and known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax
from scipy.stats import kstest, norm
from support import reference_model
from support.posteriors import (
    InferenceData,
    arviz_version,
    import_arviz,
    name_weights,
    record_of,
    with_parts,
)
from support.raising import raises
from support.targets import SENTENCES, balanced, integrated

from bpa_ppl import DataError, Isotropic, NBest, adapt, as_weight_draws, from_lists
from bpa_ppl.evaluation.leave_one_out import leave_out
from bpa_ppl.evaluation.predictive_checks import with_predictions

NAMES = ("LM0", "WP0")
TRUTH = np.array([1.0, -0.5])


def test_loo_is_that_of_leaving_one_out() -> None:
    """ArviZ's, from the log-likelihoods that a posterior records."""
    adapted = balanced().adapt("imh", {"draws": 4000}, prior=Isotropic(variance=1.0))
    found = import_arviz().loo(adapted, pointwise=True)
    pointwise = found.elpd_i if hasattr(found, "elpd_i") else found.loo_i
    np.testing.assert_allclose(pointwise, np.log(left_out(1.0)), atol=0.03)


def test_a_sentence_is_predicted_without_itself() -> None:
    """Two values of the weights, and one sentence that prefers one of them: it is left out."""
    pool = from_lists([list("abcde")], np.random.default_rng(7).normal(size=(1, 5, 2)), NAMES)
    weights = np.where(np.arange(400) < 200, 1.0, -1.0)[None, :, None] * TRUTH
    likelihood = reference_model.log_likelihood
    table = np.array([[likelihood(pool, [0], w) for w in weights[0]]])
    share = np.exp(table[0, :, 0])
    chosen = np.random.default_rng(1).choice(400, 4000, p=share / share.sum())
    draws = name_weights(
        weights[:, chosen],
        NAMES,
        log_likelihood={"oracle": table[:, chosen]},
        observed={"oracle": np.array([0])},
    )
    p = leave_out(draws, pool).score(by_mean=False)
    (even,) = reference_model.predictive(pool, np.array([TRUTH, -TRUTH]))
    np.testing.assert_allclose(p, even, atol=0.02)


VARIANCE = 0.1
MEAN, SPREAD = np.array([1.0, -0.5]), 0.5


def differences() -> np.ndarray:
    """h(other) − h(oracle) of each sentence."""
    return balanced().pool.features[1::2, 0].astype(np.float64)


def exact(variance: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid of weights, and the posterior there."""
    centre, deviation = balanced().canonical["LM0"], np.sqrt(variance)

    def log_density(w: np.ndarray) -> np.ndarray:
        log_prior = norm.logpdf(w[:, 0], centre, deviation)
        return np.asarray(log_expit(-w * differences()).sum(axis=1) + log_prior)

    grid, p = integrated(log_density, [centre], 9.5 * deviation, 6001)
    return grid[:, 0], p


def left_out(variance: float) -> np.ndarray:
    """The probability of each oracle given the other sentences."""
    grid, p = exact(variance)
    of_oracle = expit(-grid[:, None] * differences())
    return np.array([softmax(np.log(p) - np.log(own)) @ own for own in of_oracle.T])


def predicting() -> InferenceData:
    """Independent draws of the posterior of one weight, and what they predict of its lists."""
    grid, p = exact(VARIANCE)
    drawn = np.random.default_rng(3).choice(grid, size=(4, 4000), p=p)
    log_likelihood = log_expit(-drawn[..., None] * differences())
    draws = name_weights(
        drawn[..., None],
        ("LM0",),
        log_likelihood={"oracle": log_likelihood.astype(np.float32)},
        observed={"oracle": np.zeros(SENTENCES, np.int64)},
    )
    return with_predictions(draws, balanced().pool, seed=1)


def pit(data: InferenceData) -> np.ndarray:
    """ArviZ's LOO-PIT of the oracles."""
    if arviz_version() < 1:
        return np.asarray(import_arviz().loo_pit(data, y="oracle"))
    return np.asarray(import_arviz().loo_pit(data, var_names="oracle")["oracle"])


def test_the_pit_is_that_of_leaving_one_out() -> None:
    data = predicting()
    shares = data["observed_data"]["oracle"].values
    assert np.all((shares >= 0) & (shares < 1))  # the first of each list
    np.testing.assert_allclose(pit(data), shares * left_out(VARIANCE), atol=0.015)


def planted(count: int, seed: int) -> tuple[NBest, np.ndarray]:
    """Lists of four whose oracles are drawn from the model at weights drawn from the prior."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(4, 2)) for _ in range(count)]
    pool = from_lists([["a", "b", "c", "d"]] * count, features, NAMES)
    truth = rng.normal(MEAN, SPREAD)
    chosen = [rng.choice(4, p=softmax(own @ truth)) for own in features]
    return pool, np.array(chosen)


def test_predictive_draws_agree_with_plain_loops() -> None:
    pool, oracle = planted(5, seed=2)
    draws = name_weights(np.ones((2, 2000, 2)), NAMES, observed={"oracle": oracle})
    data = as_weight_draws(with_predictions(draws, pool))
    drawn = np.floor(data.draws.predictive["oracle"]).astype(int).reshape(-1, 5)
    for s, p in enumerate(reference_model.predictive(pool, np.ones((1, 2)))):
        share = np.bincount(drawn[:, s], minlength=4) / 4000
        assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000))
    assert np.floor(data.draws.observed["oracle"]).tolist() == oracle.tolist()
    again = as_weight_draws(with_predictions(draws, pool))
    assert np.array_equal(again.draws.predictive["oracle"], data.draws.predictive["oracle"])


def test_weighted_draws_are_resampled_first() -> None:
    pool, oracle = planted(1, seed=2)
    both = np.array([[[0.0, 0.0], [9.0, 9.0]]])
    draws = name_weights(
        np.repeat(both, 500, axis=1),
        NAMES,
        kind="weighted",
        log_weight=np.repeat([[0.0, -50.0]], 500, axis=1),
        observed={"oracle": oracle},
    )
    found = as_weight_draws(with_predictions(draws, pool))
    assert found.draws.kind == "chains"
    assert np.all(found.weights == 0)


def test_lists_of_others_are_refused() -> None:
    pool, oracle = planted(3, seed=2)
    draws = name_weights(np.ones((2, 10, 2)), NAMES, observed={"oracle": oracle})
    with raises(DataError, "mismatch"):
        with_predictions(draws, pool.select([0, 1]))
    recorded = with_parts(
        draws, coords={"sentence": np.arange(3)}, record=record_of(data={"texts": "adapt"})
    )
    with_predictions(recorded, pool)
    for lists in (pool[::-1], replace(pool, sentence_ids=pool.sentence_ids + 1)):
        with raises(DataError, "mismatch"):
            with_predictions(recorded, lists)


@pytest.mark.slow
def test_the_pit_is_uniform_where_the_model_is_right_and_only_there() -> None:
    pool, right = planted(400, seed=5)
    wrong = np.where(np.random.default_rng(0).random(len(right)) < 0.5, 3, right)
    options = {"prior": Isotropic(variance=SPREAD**2), "likelihood": "oracle", "sampler": "imh"}
    p_values = []
    for oracle in (right, wrong):
        given = reference_model.given(*oracle.tolist())
        draws = adapt(pool, dict(zip(NAMES, MEAN, strict=True)), gain=given, seed=1, **options)
        p_values.append(kstest(pit(with_predictions(draws, pool)), "uniform").pvalue)
    assert p_values[0] > 0.01
    assert p_values[1] < 1e-6
