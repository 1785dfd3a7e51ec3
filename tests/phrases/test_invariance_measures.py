"""Phrase counts in subdomains compared with loops; entropies and distances with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import chebyshev as scipy_chebyshev
from scipy.stats import entropy

from bpa_ppl.phrases import NumberedText, Subdomains
from bpa_ppl.phrases.subdomains import chebyshev, renyi_entropy
from bpa_ppl.phrases.tree import PhraseTree

RNG = np.random.default_rng(5)
WORDS = ["a", "b", "c", "d"]
SENTENCES = [list(RNG.choice(WORDS, size=n)) for n in RNG.integers(0, 30, 60)]
TEXT = NumberedText.of(SENTENCES)
PHRASES = ["a", "d", "a b", "b b", "a a a", "c a d", "x", "a x", "d c b a", "b b b b b"]
SOFT = RNG.dirichlet(np.ones(3), 60)
HARD = RNG.integers(3, size=60)
SPREAD = np.vstack([RNG.dirichlet(np.full(6, 0.3), 50), np.eye(6)[:2], np.full((1, 6), 1 / 6)])


@pytest.mark.parametrize("assignment", [HARD, SOFT])
def test_counts_agree_with_loop(assignment: np.ndarray) -> None:
    subdomains = Subdomains(NumberedText.of([[]] * 60), TEXT, assignment, np.full(3, 1 / 3))
    expected = np.zeros((len(PHRASES), 3))
    for row, words in enumerate(map(str.split, PHRASES)):
        for sentence, shares in zip(SENTENCES, subdomains.posteriors(), strict=True):
            ends = range(len(words), len(sentence) + 1)
            occurrences = sum(sentence[e - len(words) : e] == words for e in ends)
            expected[row] += shares * min(occurrences, 1)
    tree = PhraseTree()
    words = tree.words(phrase.encode() for phrase in PHRASES)
    lengths = np.diff(words[1]).astype(np.int32)
    numbers = tree.numbers(words, np.arange(len(PHRASES) + 1), 0 * lengths, lengths)
    counts = tree.count(TEXT, subdomains.posteriors())[numbers]
    np.testing.assert_allclose(counts, expected, rtol=1e-6)
    assert [p for p, n in zip(PHRASES, counts.sum(axis=1), strict=True) if n == 0] == ["x", "a x"]


def test_renyi_entropies_agree_with_formula_and_scipy() -> None:
    for order in (0.5, 2.0, 3.0):
        expected = np.log((SPREAD**order).sum(axis=1)) / (1 - order)
        np.testing.assert_allclose(renyi_entropy(SPREAD, order), expected, atol=1e-12)
    shannon = entropy(SPREAD, axis=1)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1.0), shannon, atol=1e-12)
    np.testing.assert_allclose(renyi_entropy(SPREAD, 1 + 2e-6), shannon, atol=1e-4)
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
    np.testing.assert_allclose(chebyshev(SPREAD, SPREAD), 0, atol=1e-12)
