"""Active learning: information in plain NumPy, and what it gains."""

from __future__ import annotations

import numpy as np
import plain
import pytest
from scipy.special import log_expit
from scipy.stats import entropy

from bpa_ppl import Draws, NBest, NotConverged, UsageError, next_sentences

NAMES = ("LM0", "WP0")


def posterior(seed: int = 0, draws: int = 400) -> Draws:
    """Draws of two weights, of which the first is known better than the second."""
    rng = np.random.default_rng(seed)
    drawn = np.array([0.5, -0.2]) + rng.normal(size=(2, draws, 2)) * [0.05, 1.0]
    return Draws({"weights": drawn}, NAMES)


def pool(seed: int = 1, sentences: int = 5) -> NBest:
    """Lists of different sizes."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(size + 2, 2)) * (size + 1) for size in range(sentences)]
    return NBest.from_lists([["x"] * len(table) for table in tables], tables, NAMES)


def expected(lists: NBest, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Information and entropy, a list and a draw at a time."""
    found = []
    for one in lists:
        p = np.exp([plain.log_choice(one.features, vector) for vector in draws.flat])
        mean = draws.importance @ p
        within = draws.importance @ entropy(p, axis=1)
        found.append((entropy(mean) - within, entropy(mean)))
    information, of_mean = np.array(found).T
    return information, of_mean


def test_information_and_entropy_are_those_of_scipy() -> None:
    ranked = next_sentences(pool(), posterior(), draws=800)
    information, of_mean = expected(pool(), posterior())
    np.testing.assert_allclose(ranked.information, information, atol=1e-5)
    np.testing.assert_allclose(ranked.entropy, of_mean, atol=1e-5)
    assert ranked.sentence_ids.tolist() == ranked.ids == [0, 1, 2, 3, 4]
    assert ranked.ranking.tolist() == np.argsort(-information).tolist()
    by_entropy = next_sentences(pool(), posterior(), draws=800, criterion="entropy")
    assert by_entropy.ranking.tolist() == np.argsort(-of_mean).tolist()


def test_fewer_draws_stand_for_all_and_weights_count() -> None:
    start = posterior(draws=1000)
    log_weight = -(start.weights[..., 1] ** 2)
    weighed = Draws(start.values, NAMES, kind="weighted", log_weight=log_weight)
    information, _ = expected(pool(), weighed)
    few = next_sentences(pool(), weighed, draws=900)
    np.testing.assert_allclose(few.information, information, atol=0.1)
    unweighed, _ = expected(pool(), start)
    assert np.abs(unweighed - information).max() > 0.2


def test_it_asks_where_the_weights_are_unsure_and_not_where_a_list_is_hard() -> None:
    tables = [
        [[0.0, 0.0], [0.0, 0.0]],  # as hard as can be, and nothing to learn
        [[0.0, 0.0], [0.0, 3.0]],  # the weight that is not known decides
        [[0.0, 0.0], [3.0, 0.0]],  # the weight that is known decides
    ]
    lists = NBest.from_lists([["x", "y"]] * 3, tables, NAMES)
    ranked = next_sentences(lists, posterior())
    assert ranked.ranking.tolist()[0] == 1
    assert ranked.information[0] == pytest.approx(0, abs=1e-6)
    assert next_sentences(lists, posterior(), criterion="entropy").ranking.tolist()[0] == 0


def test_the_information_is_what_the_posterior_shrinks_by() -> None:
    """I = E log p(λ | e) / p(λ): of one Bernoulli choice, by quadrature over a grid of weights."""
    grid = np.linspace(-6, 6, 4001)
    prior = np.exp(-0.5 * grid**2)
    prior /= prior.sum()
    draws = np.random.default_rng(3).normal(size=(4, 5000, 1))
    lists = NBest.from_lists([["x", "y"]], [[[0.0], [2.0]]], ["LM0"])
    found = next_sentences(lists, Draws({"weights": draws}, ("LM0",)), draws=20000).information[0]
    gain = 0.0
    for sign in (1, -1):
        likelihood = np.exp(log_expit(sign * 2.0 * grid))
        evidence = prior @ likelihood
        after = prior * likelihood / evidence
        gain += evidence * entropy(after, prior)
    assert found == pytest.approx(gain, abs=0.01)


def test_asking_for_the_most_informative_shrinks_the_posterior_faster_than_chance() -> None:
    """Choices are simulated from a true weight; lists of two differ in what they tell."""
    rng, truth = np.random.default_rng(5), np.array([0.7, -0.4])
    scales = rng.uniform(0.0, 3.0, size=(60, 1))
    rows = rng.normal(size=(60, 2)) * scales
    chosen = np.where(rng.uniform(size=60) < np.exp(log_expit(rows @ truth)), 1, -1)
    start = rng.normal(size=(1, 4000, 2))

    def deviation(asking: bool, seed: int) -> float:
        order, log_weight = (
            np.random.default_rng(seed).permutation(60).tolist(),
            np.zeros((1, 4000)),
        )
        for _ in range(6):
            draws = Draws({"weights": start}, NAMES, kind="weighted", log_weight=log_weight)
            lists = plain.pairs(rows[order], NAMES)
            at = next_sentences(lists, draws, unchecked=True).ranking[0] if asking else 0
            sentence = order.pop(int(at))
            log_weight = log_weight + log_expit(chosen[sentence] * (start @ rows[sentence]))
        final = Draws({"weights": start}, NAMES, kind="weighted", log_weight=log_weight)
        return float(np.prod(final.deviation))

    random = [deviation(False, seed) for seed in range(20)]
    assert deviation(True, 0) < np.quantile(random, 0.05)


def test_a_stream_is_asked_as_a_table_is() -> None:
    whole = next_sentences(pool(), posterior())
    parts = next_sentences(iter([pool()[:2], pool()[2:]]), posterior())
    np.testing.assert_array_equal(whole.information, parts.information)
    np.testing.assert_array_equal(whole.sentence_ids, parts.sentence_ids)


def test_misuse_is_refused() -> None:
    point = Draws({"weights": np.zeros((1, 1, 2))}, NAMES, kind="point")
    with pytest.raises(UsageError, match="single point"):
        next_sentences(pool(), point)
    with pytest.raises(UsageError, match="unknown criterion"):
        next_sentences(pool(), posterior(), criterion="luck")
    with pytest.raises(UsageError, match="at least 2 draws"):
        next_sentences(pool(), posterior(), draws=1)
    with pytest.raises(UsageError, match="no list"):
        next_sentences(iter([]), posterior())
    stuck = Draws({"weights": np.zeros((4, 100, 2))}, NAMES)
    with pytest.raises(NotConverged):
        next_sentences(pool(), stuck)
    assert next_sentences(pool(), stuck, unchecked=True).information.max() < 1e-6
