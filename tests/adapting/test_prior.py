"""The scale of the prior that is learned from the sentences, equal weights, posteriors as prior."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm
from support import reference_model
from support.posteriors import AdaptationRecord, PriorRecord
from support.raising import Note, capture_notes, raises
from support.registries import LIKELIHOODS

from bpa_ppl import (
    BpaWarning,
    DataError,
    Draws,
    Isotropic,
    NBest,
    Prior,
    UsageError,
    adapt,
    as_weight_draws,
    check,
    from_lists,
    log_density,
    rerank,
)
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.extending import StartingWeights

SIZE = 6


def simulated(
    sentences: int, weights: np.ndarray, seed: int = 0, unit: float = 1.0, size: int = SIZE
) -> NBest:
    """Lists of which one candidate is drawn from p(e | f, λ), which alone has the gain 1."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(sentences, size, len(weights)))
    chosen = [
        rng.choice(size, p=np.exp(reference_model.log_choice(table, weights))) for table in features
    ]
    gain = np.eye(size)[chosen]
    names = [f"f{k}" for k in range(len(weights))]
    texts = [[f"{s} {e}" for e in range(size)] for s in range(sentences)]
    return from_lists(texts, list(unit * features), names, extras={"gain": gain.tolist()})


def scale_of(pool: NBest, start: StartingWeights | None, likelihood: Any) -> float:
    record = require_adaptation(log_density(pool, start, gain="gain", likelihood=likelihood)).prior
    assert record is not None
    return float(record.scale)


GRID = np.linspace(-12, 12, 4_001)
#: The median of τ for one feature, and the standard deviation of log τ.
LISTS = (np.sqrt(0.5), 0.5)


def best_log_scale(
    log_p: np.ndarray, spread: float, median: float, deviation: float, mean: float = 0.0
) -> float:
    """Return the log τ that maximises ∫ p(A | λ) p(λ | τ) dλ · p(τ), by log p(A | λ) on `GRID`.

    The prior is N(m τ / spread, (τ / spread)²), with `mean` for m.
    """

    def loss(log_scale: float) -> float:
        unit = np.exp(log_scale) / spread
        prior = norm.logpdf(GRID, mean * unit, unit)
        return float(-logsumexp(log_p + prior) - norm.logpdf(log_scale, np.log(median), deviation))

    best = minimize_scalar(loss, bounds=(-4, 3), method="bounded", options={"xatol": 1e-4})
    return float(best.x)


def scores_of(pool: NBest, s: int) -> np.ndarray:
    """Return the scores of the candidates of a list for each weight of `GRID`."""
    return np.outer(GRID, pool.features[pool.rows(s), 0].astype(np.float64))


# Laplace's approximation of the integrals is good to 1 % here, and the optima are flat.


def graded(sentences: int, weight: float) -> tuple[NBest, np.ndarray]:
    """Lists of one feature whose candidates all have gains, which are scores with noise."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(sentences, SIZE, 1))
    gain = weight * features[..., 0] + rng.gumbel(size=features.shape[:2])
    texts = [[f"{s} {e}" for e in range(SIZE)] for s in range(sentences)]
    return from_lists(texts, list(features), ["f0"], extras={"gain": gain.tolist()}), gain


@pytest.mark.filterwarnings("ignore:the judgements do not separate the features")
@pytest.mark.parametrize(
    ("weight", "likelihood"), [(0.1, "oracle"), (2.5, "oracle"), (0.1, "risk"), (1.0, "margin")]
)
def test_one_feature_against_quadrature(weight: float, likelihood: str) -> None:
    """By the best candidates if the likelihood uses them alone, else by all pairs."""
    pool, gain = graded(30, weight)
    log_p = np.zeros_like(GRID)
    for s, values in enumerate(gain):
        scores = scores_of(pool, s)
        if likelihood == "oracle":
            log_p += scores[:, values.argmax()] - logsumexp(scores, axis=1)
        else:
            better, worse = np.nonzero(values[:, None] > values)
            log_p += log_expit(scores[:, better] - scores[:, worse]).sum(axis=1) / SIZE
    expected = best_log_scale(log_p, float(pool.spread[0]), *LISTS, mean=0.5)
    assert np.log(scale_of(pool, None, likelihood)) == pytest.approx(expected, abs=0.05)


def test_with_canonical_weights_a_margin_determines_the_scale() -> None:
    pool, gain = graded(30, 0.5)
    pool = pool.with_features(["model"], np.random.default_rng(5).normal(size=(30 * SIZE, 1)))
    model, gamma = pool.features[:, 1].astype(np.float64), 0.8
    log_p = np.zeros_like(GRID)
    for s, values in enumerate(gain):
        scores = scores_of(pool, s) + model[pool.rows(s)]
        loss = values.max() - values
        log_p += scores[:, values.argmax()] - logsumexp(scores + gamma * loss, axis=1)
    start = StartingWeights({"model": 1.0}, fixed=["model"], defaults={"f0": 0.0})
    found = scale_of(pool, start, likelihood=LIKELIHOODS["margin"](gamma=gamma))
    expected = best_log_scale(log_p, float(pool.spread[0]), *LISTS)
    assert np.log(found) == pytest.approx(expected, abs=0.05)


def answered(weight: float, size: int, count: int = 40) -> tuple[NBest, np.ndarray]:
    """Lists with an answer to a random pair each, and its log p on `GRID`."""
    rng = np.random.default_rng(6)
    pool = simulated(count, np.array([weight]), size=size)
    answers, log_p = [], np.zeros_like(GRID)
    for s in range(len(pool)):
        scores = scores_of(pool, s)
        pair = rng.choice(size, 2, replace=False)
        lead = weight * np.diff(pool.features[pool.rows(s), 0][pair[::-1]])[0]
        winner, loser = pair if rng.uniform() < expit(lead) else pair[::-1]
        answers.append([[int(winner), int(loser)]])
        log_p += log_expit(scores[:, winner] - scores[:, loser])
    return pool.without("gain").with_sentence_extras(preferences=answers), log_p


@pytest.mark.parametrize("weight", [0.1, pytest.param(2.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", [pytest.param("auto", marks=pytest.mark.slow), "laplace"])
@pytest.mark.parametrize("size", [2, SIZE])
@pytest.mark.filterwarnings("ignore:the judgements do not separate the features")
def test_the_posterior_of_answers_integrates_over_the_scale(
    weight: float, sampler: str, size: int
) -> None:
    """Compared with quadrature over the weight and over τ.

    log τ ~ N(log 0.4 τ₀, 1.25²), or N(log 1.25 τ₀, 1.25²) if all lists have two candidates.
    """
    judged, log_p = answered(weight, size)
    draws = as_weight_draws(adapt(judged, None, sampler=sampler))
    record = draws.adaptation.prior
    typical = float(f"{(1.25 if size == 2 else 0.4) * np.sqrt(0.5):.3g}")
    assert record.scale == typical
    assert not record.scale_learned
    assert record.log_deviation == 1.25
    log_scales = np.linspace(-6, 6, 200)
    log_prior = norm.logpdf(log_scales, 0.0, 1.25)
    deviation = typical / float(judged.spread[0]) * np.exp(log_scales)
    given_scale = norm.logpdf(GRID, 0.0, deviation[:, None]) + log_prior[:, None]
    joint = log_p + logsumexp(given_scale, axis=0) + np.log(log_scales[1] - log_scales[0])
    log_total = logsumexp(joint)
    p = np.exp(joint - log_total)
    mean = p @ GRID
    expected = np.sqrt(p @ (GRID - mean) ** 2)
    assert abs(draws.mean[0] - mean) < 0.15 * expected
    assert draws.deviation[0] == pytest.approx(expected, rel=0.1)
    below = np.interp([0.025, 0.5, 0.975], np.cumsum(p), GRID)
    found = [draws.importance @ (draws.flat[:, 0] < value) for value in below]
    assert found == pytest.approx([0.025, 0.5, 0.975], abs=0.04)
    log_evidence = log_total + np.log(GRID[1] - GRID[0])
    assert draws.record.figures.log_evidence == pytest.approx(log_evidence, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["auto", "nuts"])
def test_many_answers_that_determine_the_weights_are_sampled_without_the_scale(
    sampler: str,
) -> None:
    """Compared with quadrature; NUTS diverges in units of the scale."""
    judged, log_p = answered(2.5, SIZE, 1000)
    draws = as_weight_draws(adapt(judged, None, sampler=sampler))
    assert check(draws)
    if sampler == "auto":
        assert draws.record.figures.chosen_because.endswith("of proposals around the mode")
    log_scales = np.linspace(-6, 6, 600)
    deviation = draws.adaptation.prior.scale / float(judged.spread[0]) * np.exp(log_scales)
    given_scale = norm.logpdf(GRID, 0.0, deviation[:, None])
    log_p = log_p + logsumexp(given_scale + norm.logpdf(log_scales, 0.0, 1.25)[:, None], axis=0)
    p = np.exp(log_p - logsumexp(log_p))
    mean = p @ GRID
    expected = np.sqrt(p @ (GRID - mean) ** 2)
    assert abs(draws.mean[0] - mean) < 0.15 * expected
    assert draws.deviation[0] == pytest.approx(expected, rel=0.1)


def count_covered(seed: int, prior: Any) -> int:
    """Return how many of four weights are in their 95 % intervals, from 100 simulated answers."""
    weights = 1.5 * np.random.default_rng([seed, 2]).choice([-1.0, 1.0], size=4)
    pool = simulated(100, weights, seed, size=2)
    draws = as_weight_draws(adapt(pool, None, gain="gain", prior=prior, sampler="auto:draws=300"))
    low, high = np.quantile(draws.flat, [0.025, 0.975], axis=0)
    return int(np.count_nonzero((low < weights) & (weights < high)))


@pytest.mark.slow
def test_intervals_of_pairs_contain_the_weights_and_narrow_ones_do_not() -> None:
    """The weights have the size 1.5, four times their typical scale."""
    # Of 60; 95 % are 57, and fewer than 52 have a probability of 1 % if the intervals do not depend
    # on each other.
    assert sum(count_covered(seed, "isotropic") for seed in range(15)) >= 52
    plugged = Isotropic(scale=1 / (2 * 4) ** 0.5)
    assert sum(count_covered(seed, plugged) for seed in range(5)) < 10  # of 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the judgements do not separate the features")
def test_few_answers_that_weights_explain_perfectly_are_sampled() -> None:
    """Ten answers and six features: the likelihood has no maximum, and large scales are likely."""
    pool = simulated(10, np.full(6, 2.0), size=2)
    draws = as_weight_draws(adapt(pool, None, gain="gain", sampler="auto:draws=500"))
    assert draws.record.figures.chosen == "imh"
    assert check(draws)
    weighted = as_weight_draws(adapt(pool, None, gain="gain", sampler="laplace:draws=4000"))
    assert check(weighted)
    error = np.abs(weighted.mean - draws.mean) / draws.deviation
    assert error.max() < 0.2


def test_a_given_scale_is_not_learned() -> None:
    pool = simulated(20, np.array([1.0, -0.5]))

    def prior_of(**options: Any) -> tuple[Prior, PriorRecord]:
        target = log_density(pool, None, gain="gain", **options)
        record = require_adaptation(target).prior
        assert record is not None
        return target.prior, record

    prior, record = prior_of(prior="isotropic:variance=0.04")
    np.testing.assert_allclose(prior.variance, 0.04 / pool.spread**2, rtol=1e-6)
    assert not record.scale_learned
    with capture_notes() as notes:
        empty = as_weight_draws(adapt(pool, None, gain="gain", likelihood="none", sampler="map"))
    said = "the posterior equals its prior: no sentence was judged"
    assert Note(logging.INFO, said) in notes
    assert all(note.level == logging.INFO for note in notes)
    assert empty.adaptation.prior.scale == pytest.approx(1 / np.sqrt(2 * 2))
    assert empty.adaptation.observed.sentences == 0
    whole = Prior.isotropic({"f0": 0.0, "f1": 1.0}, 0.5)
    assert np.asarray(prior_of(prior=whole)[0].variance).tolist() == [0.5, 0.5]


def test_without_judgements_the_mean_of_standardised_features_ranks() -> None:
    new = simulated(50, np.array([1.0, 1.0, 1.0]))
    new = new.with_features(["cost"], -3 * new.features[:, 0])
    start = StartingWeights("equal", lower_is_better="cost")
    found = rerank(new, adapt(new.without("gain"), start, likelihood="none", sampler="map"))
    signs = np.array([1, 1, 1, -1]) / new.spread
    assert found.choice.tolist() == new.best(new.features @ signs).tolist()


def test_equal_weights_are_per_standard_deviation_with_the_sign_of_the_feature() -> None:
    pool = simulated(20, np.array([1.0, 1.0]))
    start = StartingWeights("equal", lower_is_better=["f1"])
    target = log_density(pool, start, gain="gain")
    np.testing.assert_allclose(target.prior.mean, np.array([1, -1]) / (4 * pool.spread))
    assert AdaptationRecord.of(require_adaptation(target).record(target)).start == "equal"


def test_signs_need_features_without_canonical_weights() -> None:
    pool = simulated(5, np.array([1.0]))
    with raises(DataError, "missing-feature", parameter="lower_is_better"):
        adapt(pool, StartingWeights("equal", lower_is_better=["comet"]), gain="gain")
    with raises(DataError, "missing-feature", parameter="lower_is_better"):
        adapt(pool, StartingWeights(lower_is_better=["comet"]), gain="gain")
    with raises(UsageError, "conflict", parameter="lower_is_better"):
        StartingWeights({"f0": 1.0}, lower_is_better=["f0"])


OF_PAIRS = ["LM0", "TM0"]
PAIRS = reference_model.pairs(np.random.default_rng(2).normal(size=(6, 2)), OF_PAIRS)
OLD = PAIRS.with_extras(quality=[1.0, 0.0] * 6)


def posterior_of(kappa: float, prior: Prior | str = "isotropic:variance=4") -> Draws:
    options = {"likelihood": f"risk:kappa={kappa}", "gain": "quality", "sampler": "imh:draws=500"}
    return as_weight_draws(adapt(OLD, dict.fromkeys(OF_PAIRS, 0.2), prior=prior, **options))


def test_other_settings_of_the_likelihood_are_warned_about() -> None:
    prior = Prior.of(posterior_of(1.5))
    with pytest.warns(BpaWarning, match=r"kappa=2.0.*kappa=1.5"):
        posterior_of(2.0, prior)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BpaWarning)
        posterior_of(1.5, prior)


def test_weights_of_features_that_agree_are_correlated() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(50, 4, 2))
    features[..., 1] = 3 * features[..., 0] + rng.normal(size=(50, 4))
    centred = features - features.mean(axis=1, keepdims=True)
    features += 100 * rng.normal(size=(50, 1, 2))  # differences between lists do not count
    lists = from_lists([["w", "x", "y", "z"]] * 50, features, ["a", "b"])
    prior = log_density(lists.with_sentence_extras(preferences=[[[0, 1]]] * 50)).prior
    found = prior.covariance[0, 1] / np.sqrt(np.prod(np.diag(prior.covariance)))
    assert found == pytest.approx(np.corrcoef(centred.reshape(-1, 2).T)[0, 1] / 2, abs=1e-3)
