"""Predictions and leave-one-out: plain loops, quadrature and known truths."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit, log_expit
from scipy.stats import kstest, norm
from support import reference_model
from support.html_outline import Outline
from support.raising import raises
from support.targets import SENTENCES, balanced, integrated

from bpa_ppl import DataError, Draws, Isotropic, NBest, adapt, from_lists
from bpa_ppl.diagnostics.baseline_comparison import score_left_out
from bpa_ppl.diagnostics.predictive_checks import with_predictions
from bpa_ppl.diagnostics.raters import Raters
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.arviz_functions import InferenceData, arviz_version, import_arviz
from bpa_ppl.posterior.draws import importance_weights
from bpa_ppl.posterior.record import Agreement

NAMES = ("LM0", "WP0")
TRUTH = np.array([1.0, -0.5])


@cache
def adapted(sampler: str, variance: float = 1.0) -> InferenceData:
    """The posterior of one weight that a grid integrates."""
    known = balanced()
    oracle = reference_model.given(*[0] * SENTENCES)
    options = {
        "sampler": sampler,
        "prior": Isotropic(variance=variance),
        "gain": oracle,
        "draws": 4000,
    }
    return adapt(known.pool, known.canonical, **options)


def exact_loo(variance: float) -> np.ndarray:
    """Leave-one-out predictive densities of the one-weight target, each by quadrature."""
    known = balanced()
    rows = known.pool.features.reshape(SENTENCES, 2, 1)[:, 1].astype(np.float64)
    mean = np.array(list(known.canonical.values()))
    out = []
    for left in range(SENTENCES):
        others = np.delete(rows, left, axis=0)

        def log_density(w: np.ndarray, others: np.ndarray = others) -> np.ndarray:
            prior = norm.logpdf(w, mean, np.sqrt(variance)).sum(axis=1)
            return np.asarray(log_expit(-w @ others.T).sum(axis=1) + prior)

        grid, p = integrated(log_density, mean, 8.0)
        out.append(np.log(p @ expit(-grid @ rows[left])))
    return np.array(out)


def test_loo_is_that_of_leaving_one_out() -> None:
    """ArviZ's, from the log-likelihoods that a posterior records."""
    found = import_arviz().loo(adapted("imh"), pointwise=True)
    pointwise = found.elpd_i if hasattr(found, "elpd_i") else found.loo_i
    np.testing.assert_allclose(pointwise, exact_loo(1.0), atol=0.03)


def with_oracles(weights: np.ndarray, log_likelihood: np.ndarray, oracle: np.ndarray) -> Draws:
    return Draws(
        {"weights": weights},
        NAMES,
        log_likelihood={"oracle": log_likelihood},
        sentence_sites=("oracle",),
        observed={"oracle": oracle},
    )


def test_a_sentence_is_predicted_without_itself() -> None:
    """Two values of the weights, and one sentence that prefers one of them: it is left out."""
    pool = from_lists([list("abcde")], np.random.default_rng(7).normal(size=(1, 5, 2)), NAMES)
    weights = np.where(np.arange(400) < 200, 1.0, -1.0)[None, :, None] * TRUTH
    likelihood = reference_model.log_likelihood
    table = np.array([[likelihood(pool, [0], w) for w in weights[0]]])
    share = np.exp(table[0, :, 0])
    chosen = np.random.default_rng(1).choice(400, 4000, p=share / share.sum())
    draws = with_oracles(weights[:, chosen], table[:, chosen], np.array([0]))
    p, _ = score_left_out(draws, pool, by_mean=False)
    (even,) = reference_model.predictive(pool, np.array([TRUTH, -TRUTH]))
    np.testing.assert_allclose(p, even, atol=0.02)


def test_a_notebook_shows_the_table_of_a_terminal() -> None:
    result = Raters({"<b>": 3}, Agreement(2, 5, 4, 0.6), {"<b>": (0.1, 0.0, 0.2)})
    outline = Outline(result._repr_html_())
    (table,) = outline.tables
    assert len(table) == 2
    assert all(cell in str(result) for row in table for cell in row)
    assert "b" not in outline.tags


VARIANCE = 0.1
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
def predicting(count: int = 4000) -> InferenceData:
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
    grid, p = exact()
    probability = expit(-grid[:, None] * differences())
    left_out = [importance_weights(np.log(p) - np.log(own)) @ own for own in probability.T]
    np.testing.assert_allclose(pit(data), shares * left_out, atol=0.015)


def planted(count: int, seed: int) -> tuple[NBest, np.ndarray]:
    """Lists of four whose oracles are drawn from the model at weights drawn from the prior."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(4, 2)) for _ in range(count)]
    pool = from_lists([["a", "b", "c", "d"]] * count, features, NAMES)
    truth = rng.normal(MEAN, SPREAD)
    chosen = [rng.choice(4, p=importance_weights(own @ truth)) for own in features]
    return pool, np.array(chosen)


def test_predictive_draws_agree_with_plain_loops() -> None:
    pool, oracle = planted(5, seed=2)
    draws = Draws({"weights": np.ones((2, 2000, 2))}, NAMES, observed={"oracle": oracle})
    data = as_draws(with_predictions(draws, pool))
    drawn = np.floor(data.predictive["oracle"]).astype(int).reshape(-1, 5)
    for s, p in enumerate(reference_model.predictive(pool, np.ones((1, 2)))):
        share = np.bincount(drawn[:, s], minlength=4) / 4000
        assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000))
    assert np.floor(data.observed["oracle"]).tolist() == oracle.tolist()
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


def test_lists_of_others_are_refused() -> None:
    pool, oracle = planted(3, seed=2)
    draws = Draws({"weights": np.ones((2, 10, 2))}, NAMES, observed={"oracle": oracle})
    with raises(DataError, "mismatch"):
        with_predictions(draws, pool.select([0, 1]))


def test_the_pit_is_uniform_where_the_model_is_right_and_only_there() -> None:
    pool, right = planted(400, seed=5)
    wrong = np.where(np.random.default_rng(0).random(len(right)) < 0.5, 3, right)
    options = {
        "prior": Isotropic(variance=SPREAD**2),
        "likelihood": "oracle",
        "sampler": "imh",
        "seed": 1,
    }
    p_values = []
    for oracle in (right, wrong):
        given = reference_model.given(*oracle.tolist())
        draws = adapt(pool, dict(zip(NAMES, MEAN, strict=True)), gain=given, **options)
        p_values.append(kstest(pit(with_predictions(draws, pool)), "uniform").pvalue)
    assert p_values[0] > 0.01
    assert p_values[1] < 1e-6
