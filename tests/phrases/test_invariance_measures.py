"""Phrase counts in subdomains compared with loops; entropies and distances with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import chebyshev as scipy_chebyshev
from scipy.special import rel_entr
from scipy.stats import entropy

from bpa_ppl.phrases.invariance import (
    CountedPhrases,
    chebyshev,
    hellinger,
    kullback_leibler,
    posteriors,
    renyi_entropy,
)
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains

RNG = np.random.default_rng(5)
WORDS = ["a", "b", "c", "d"]
TEXT = [list(RNG.choice(WORDS, size=n)) for n in RNG.integers(0, 30, 60)]
PHRASES = ["a", "d", "a b", "b b", "a a a", "c a d", "x", "a x", "d c b a", "b b b b b"]
SOFT = RNG.dirichlet(np.ones(3), 60)
HARD = RNG.integers(3, size=60)
SPREAD = np.vstack([RNG.dirichlet(np.full(6, 0.3), 50), np.eye(6)[:2], np.full((1, 6), 1 / 6)])


def occurrences(phrase: str, sentence: list[str]) -> int:
    """Return the counts of each phrase, overlapping occurrences included."""
    words = phrase.split()
    places = range(len(sentence) - len(words) + 1)
    return sum(sentence[place : place + len(words)] == words for place in places)


def reference_counts(shares: np.ndarray) -> list[np.ndarray]:
    counts = np.array([[occurrences(phrase, sentence) for sentence in TEXT] for phrase in PHRASES])
    return list(counts @ shares)


@pytest.mark.parametrize("assignment", [HARD, SOFT])
def test_counts_agree_with_loop(assignment: np.ndarray) -> None:
    text = NumberedText.of(TEXT)
    result = Subdomains(text, NumberedText.of([[]] * 60), assignment, np.full(3, 1 / 3))
    phrases = CountedPhrases(result, "source")
    counts = phrases.counts(phrases.numbers(PHRASES))
    np.testing.assert_allclose(counts, reference_counts(result.posteriors()), rtol=1e-6)
    assert [p for p, n in zip(PHRASES, counts.sum(axis=1), strict=True) if n == 0] == ["x", "a x"]


def test_later_phrases_are_counted() -> None:
    text = NumberedText.of(TEXT)
    result = Subdomains(text, text, SOFT, np.full(3, 1 / 3))
    phrases = CountedPhrases(result, "target")
    parts = [phrases.counts(phrases.numbers([phrase])) for phrase in PHRASES]
    whole = CountedPhrases(result, "target")
    np.testing.assert_array_equal(np.vstack(parts), whole.counts(whole.numbers(PHRASES)))
    np.testing.assert_array_equal(phrases.counts(phrases.numbers(PHRASES)), np.vstack(parts))


def test_phrase_posteriors() -> None:
    counts, weights = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), np.array([0.5, 0.3, 0.2])
    plain = posteriors(counts, weights)
    np.testing.assert_allclose(plain, [[0.75, 0.25, 0], weights])
    smooth = posteriors(counts, weights, smoothing=2.0)
    np.testing.assert_allclose(smooth, [[4 / 6, 1.6 / 6, 0.4 / 6], weights])
    # The limits of weak and of strong smoothing.
    np.testing.assert_allclose(posteriors(counts, weights, 1e-9), plain, atol=1e-9)
    np.testing.assert_allclose(posteriors(counts, weights, 1e9)[0], weights, atol=1e-8)


def test_shannon_entropy_agrees_with_scipy() -> None:
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1.0), entropy(SPREAD, axis=1), atol=1e-12)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1 + 2e-6), entropy(SPREAD, axis=1), atol=1e-4)


@pytest.mark.parametrize("order", [0.5, 2.0, 3.0])
def test_renyi_entropies_agree_with_formula(order: float) -> None:
    expected = np.log((SPREAD**order).sum(axis=1)) / (1 - order)
    np.testing.assert_allclose(renyi_entropy(SPREAD, order), expected, atol=1e-12)


def test_entropy_limits() -> None:
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1e5), -np.log(SPREAD.max(axis=1)), atol=1e-4)
    for order in (0.5, 1.0, 2.0, 1e5):
        result = renyi_entropy(SPREAD, order)
        np.testing.assert_allclose(result[-3:], [0, 0, np.log(6)], atol=1e-9)
        assert (result >= 0).all()
        assert (result <= np.log(6) + 1e-12).all()


def test_distances_agree_with_scipy() -> None:
    other = RNG.dirichlet(np.ones(6), len(SPREAD))
    expected = [scipy_chebyshev(*pair) for pair in zip(SPREAD, other, strict=True)]
    np.testing.assert_allclose(chebyshev(SPREAD, other), expected)
    np.testing.assert_allclose(kullback_leibler(SPREAD, other), rel_entr(SPREAD, other).sum(axis=1))
    assert kullback_leibler(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])).tolist() == [np.inf]
    # H² = 1 − Σ √(p q), with the Bhattacharyya coefficient
    coefficient = np.sqrt(SPREAD * other).sum(axis=1)
    np.testing.assert_allclose(hellinger(SPREAD, other) ** 2, 1 - coefficient, atol=1e-12)
    for distance in (chebyshev, hellinger, kullback_leibler):
        np.testing.assert_allclose(distance(SPREAD, SPREAD), 0, atol=1e-12)
