"""Active learning: the information compared with NumPy, and the effect of informative sentences."""

from __future__ import annotations

import numpy as np
import pytest
import reference_model
from raising import raises
from scipy.special import log_expit
from scipy.stats import entropy

from bpa_ppl import Draws, NBest, NotConverged, UsageError, next_sentences

NAMES = ("LM0", "WP0")


def posterior(seed: int = 0, draws: int = 400) -> Draws:
    """Return draws of two weights; the first has a smaller variance than the second."""
    rng = np.random.default_rng(seed)
    drawn = np.array([0.5, -0.2]) + rng.normal(size=(2, draws, 2)) * [0.05, 1.0]
    return Draws({"weights": drawn}, NAMES)


def pool(seed: int = 1, sentences: int = 5) -> NBest:
    """Return lists of different sizes."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(size + 2, 2)) * (size + 1) for size in range(sentences)]
    return NBest.from_lists([["x"] * len(table) for table in tables], tables, NAMES)


def reference_information(lists: NBest, draws: Draws) -> np.ndarray:
    """Return the information, one list and one draw at a time."""
    result = []
    for one in lists:
        p = np.exp([reference_model.log_choice(one.features, vector) for vector in draws.flat])
        mean = draws.importance @ p
        within = draws.importance @ entropy(p, axis=1)
        result.append(entropy(mean) - within)
    return np.array(result)


def test_information_agrees_with_scipy() -> None:
    ranked = next_sentences(pool(), posterior(), draws=800)
    information = reference_information(pool(), posterior())
    np.testing.assert_allclose(ranked.information, information, atol=1e-5)
    assert ranked.sentence_ids.tolist() == ranked.ids == [0, 1, 2, 3, 4]
    assert ranked.ranking.tolist() == np.argsort(-information).tolist()


def test_thinned_and_weighted_draws() -> None:
    start = posterior(draws=1000)
    log_weight = -(start.weights[..., 1] ** 2)
    weighed = Draws(start.values, NAMES, kind="weighted", log_weight=log_weight)
    information = reference_information(pool(), weighed)
    few = next_sentences(pool(), weighed, draws=900)
    np.testing.assert_allclose(few.information, information, atol=0.1)
    unweighed = reference_information(pool(), start)
    assert np.abs(unweighed - information).max() > 0.2


def test_information_agrees_with_quadrature() -> None:
    """I = E log p(λ | e) / p(λ) of one Bernoulli choice, by quadrature over the weight."""
    grid = np.linspace(-6, 6, 4001)
    prior = np.exp(-0.5 * grid**2)
    prior /= prior.sum()
    draws = np.random.default_rng(3).normal(size=(4, 5000, 1))
    lists = NBest.from_lists([["x", "y"]], [[[0.0], [2.0]]], ["LM0"])
    result = next_sentences(lists, Draws({"weights": draws}, ("LM0",)), draws=20000).information[0]
    gain = 0.0
    for sign in (1, -1):
        likelihood = np.exp(log_expit(sign * 2.0 * grid))
        evidence = prior @ likelihood
        after = prior * likelihood / evidence
        gain += evidence * entropy(after, prior)
    assert result == pytest.approx(gain, abs=0.01)


def test_stream_agrees_with_table() -> None:
    whole = next_sentences(pool(), posterior())
    parts = next_sentences(iter([pool()[:2], pool()[2:]]), posterior())
    np.testing.assert_array_equal(whole.information, parts.information)
    np.testing.assert_array_equal(whole.sentence_ids, parts.sentence_ids)


def test_rejects_invalid_arguments() -> None:
    point = Draws({"weights": np.zeros((1, 1, 2))}, NAMES, kind="point")
    with raises(UsageError, "not-supported", parameter="posterior"):
        next_sentences(pool(), point)
    with raises(UsageError, parameter="draws"):
        next_sentences(pool(), posterior(), draws=1)
    with raises(UsageError, "no-data", parameter="pool"):
        next_sentences(iter([]), posterior())
    stuck = Draws({"weights": np.zeros((4, 100, 2))}, NAMES)
    with pytest.raises(NotConverged):
        next_sentences(pool(), stuck)
    assert next_sentences(pool(), stuck, unchecked=True).information.max() < 1e-6
