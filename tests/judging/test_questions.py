"""Which pair is asked, compared with brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.stats import entropy

from bpa_ppl.judging.answers import Gaussian
from bpa_ppl.judging.questions import Candidates, choose_informative, measure_information


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
