"""Gains that say which of two candidates was chosen, and calibrated probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bpa_ppl import NBest, Reranker, adapt, as_draws, from_arrays, from_lists
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.metrics.column import Column
from bpa_ppl.metrics.ter import TER
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.likelihoods.risk import Risk
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.sampling.observations import choose_likelihood
from bpa_ppl.sklearn import BayesianRanker

JUDGES = 6
NEW = 1000
CHOSEN = Column(column="chosen")


def judged_pairs(pairs: int, strength: float, seed: int) -> NBest:
    """Pairs of answers with the scores of judges that agree in part, and the chosen answer.

    Args:
        pairs: how many.
        strength: the standard deviation of the true log odds; 0.8 are judges that are right in
            65 %, 4 in 90 %.
        seed: of weights, scores and choices.
    """
    rng = np.random.default_rng(seed)
    covariance = 0.5 + 0.5 * np.eye(JUDGES)
    weights = rng.normal(0.5, 1.0, JUDGES)
    weights *= strength / np.sqrt(weights @ covariance @ weights)
    scores = rng.multivariate_normal(np.zeros(JUDGES), covariance / 2, size=(pairs, 2))
    first = rng.random(pairs) < expit((scores[:, 0] - scores[:, 1]) @ weights)
    names = [f"judge{number}" for number in range(JUDGES)]
    lists = from_arrays([""] * (2 * pairs), scores.reshape(-1, JUDGES), names, 2)
    answers = [[[0, 1] if won else [1, 0]] for won in first]
    lists = lists.with_extras(chosen=np.stack([first, ~first], axis=1).ravel().astype(float))
    return lists.with_sentence_extras(preferences=answers)


def errors(probability: Float64, chosen: Float64) -> tuple[float, float]:
    """Return mean probability − share right, and the expected calibration error in ten bins."""
    p, right = probability.reshape(-1, 2), chosen.reshape(-1, 2)
    best = p.argmax(axis=1)
    difference = p.max(axis=1) - np.take_along_axis(right, best[:, None], axis=1)[:, 0]
    parts = np.array_split(difference[np.argsort(p.max(axis=1))], 10)
    return float(difference.mean()), float(np.mean([abs(part.mean()) for part in parts]))


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.8, 4.0])
@pytest.mark.parametrize("gain", [None, "chosen"])
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_probabilities_of_pairs_are_calibrated(gain: str | None, strength: float) -> None:
    found = []
    for seed in range(8):
        lists = judged_pairs(50 + NEW, strength, seed)
        judged, new = lists[:50], lists[50:]
        posterior = adapt(judged, None, gain=gain, sampler="laplace")
        probability = Reranker(posterior)(new).probabilities
        found.append(errors(probability, np.asarray(new.extras["chosen"])))
    difference, error = np.mean(found, axis=0)
    assert abs(difference) < 0.06
    assert error < 0.06


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_gains_of_two_candidates_are_preferences(size: int) -> None:
    """Also if they are two of a longer list, with the prior of answers about longer lists."""
    rng = np.random.default_rng(2)
    lists = from_arrays([""] * (20 * size), rng.normal(size=(20 * size, 2)), ["a", "b"], size)
    gains, answers = np.full((20, size), np.nan), []
    for row in gains:
        better, worse = rng.permutation(size)[:2].tolist()
        row[[better, worse]] = 1, 0
        answers.append([[better, worse]])
    lists = lists.with_extras(chosen=gains.ravel()).with_sentence_extras(preferences=answers)
    by_gain, by_preference = (
        as_draws(adapt(lists, None, sampler="laplace", **options))
        for options in ({"gain": "chosen"}, {})
    )
    assert by_gain.record.prior.scale == pytest.approx(by_preference.record.prior.scale, rel=0.01)
    np.testing.assert_allclose(by_gain.mean, by_preference.mean, rtol=0.01)


def test_the_estimator_learns_from_choices_of_two() -> None:
    lists = judged_pairs(50, 0.8, 0)
    ranker = BayesianRanker(sampler="laplace", random_state=0)
    ranker.fit(lists.features, lists.extras["chosen"], qid=np.repeat(range(50), 2))
    posterior = adapt(lists.without("chosen"), None, sampler="laplace")
    np.testing.assert_allclose(ranker.coef_, as_draws(posterior).mean, rtol=1e-5)


def test_one_chosen_of_two_is_a_logistic_regression() -> None:
    lists = judged_pairs(60, 2.0, 0)
    pairs = lists.features.reshape(-1, 2, JUDGES).astype(np.float64)
    chosen = np.asarray(lists.extras["chosen"]).reshape(-1, 2)[:, 0]
    scale = 0.7 / lists.spread
    fitted = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10)
    expected = fitted.fit((pairs[:, 0] - pairs[:, 1]) * scale, chosen).coef_[0] * scale
    options: dict[str, Any] = {"prior": Isotropic(scale=0.7), "sampler": "map"}
    for posterior in (adapt(lists, None, gain="chosen", **options), adapt(lists, None, **options)):
        np.testing.assert_allclose(as_draws(posterior).mean, expected, rtol=1e-3, atol=1e-4)


def test_the_default_likelihood_of_choices_of_two() -> None:
    pairs = judged_pairs(8, 1.0, 0)
    graded = pairs.with_extras(chosen=np.arange(16.0))
    three = from_lists([["a", "b", "c"]] * 2, [[[0.0], [1.0], [2.0]]] * 2, ["judge"])
    unjudged = three.with_extras(chosen=[1, None, 0] * 2)
    likelihoods = {
        Oracle: (
            pairs,
            pairs.with_extras(chosen=2 - 3 * np.array(pairs.extras["chosen"])),
            unjudged,
        ),
        Risk: (graded, three.with_extras(chosen=[1, 0, 0] * 2), unjudged[:1]),
    }
    for expected, cases in likelihoods.items():
        for lists in cases:
            assert type(choose_likelihood(CHOSEN, lists)) is expected
    assert isinstance(choose_likelihood(CHOSEN, pairs, indicators=True), Oracle)
    assert isinstance(choose_likelihood(TER(), pairs), Preference)  # no references


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_a_tie_is_no_choice_of_the_canonical_weights() -> None:
    pairs = judged_pairs(40, 1.0, 0)
    chosen = np.array(pairs.extras["chosen"])
    chosen[20:] = 1  # both answers to the other thirty questions are good
    tied = pairs.with_extras(chosen=chosen)
    canonical = dict.fromkeys(pairs.feature_names, 3.0)
    shared = [
        adapt(tied, canonical, gain="chosen", likelihood=likelihood, sampler="map")
        for likelihood in (None, "oracle:ties=shared")
    ]
    assert np.array_equal(*(as_draws(posterior).mean for posterior in shared))


def test_between_two_candidates_the_mean_of_the_weights_has_the_averaged_probability() -> None:
    lists = judged_pairs(60, 2.0, 1)
    posterior = adapt(lists[:20], None)
    assert as_draws(posterior).record.start == "none"
    by_rule = [
        Reranker(posterior, rule=rule, draws="all")(lists) for rule in ("mean", "predictive")
    ]
    assert np.array_equal(by_rule[0].probability, by_rule[1].probability)
    scores = lists.scores(as_draws(posterior).aligned(lists, as_draws(posterior).mean[None])[0])
    assert np.array_equal(by_rule[0].choice, lists.best(scores))
