"""The distribution of phrases over latent subdomains (Cuong, Sima'an & Titov 2016, Section 3).

A phrase that is equally frequent in all subdomains is safe for any text; a phrase of a few
subdomains is specific. A pair of phrases with similar distributions is coherent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float32, Float64, Int32
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import Int16, Subdomains

_NEAR = 1e-6  # for orders this close to 1, the Rényi entropy is the Shannon entropy


class CountedPhrases:
    """Counts of the phrases of one side of a corpus in each of its subdomains.

    Phrases are numbered on first use, and counted in one pass over the text. Counts are kept, 8 K
    bytes a phrase.

    Args:
        subdomains: with the text.
        side: the language of the phrases.

    Attributes:
        tree: numbers the phrases.

    >>> from bpa_ppl.phrases.subdomains import NumberedText
    >>> text = NumberedText.of([["a", "b", "a"], ["a"]])
    >>> phrases = CountedPhrases(Subdomains(text, text, [0, 1], [0.5, 0.5]), "target")
    >>> phrases.counts(phrases.numbers(["a", "a b", "c"])).tolist()
    [[2.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, subdomains: Subdomains, side: Side):
        from bpa_ppl.phrases.tree import PhraseTree  # compiled

        self._text = subdomains.text(side)
        hard = subdomains.hard
        k = subdomains.k
        self._groups: Int16 = subdomains.winners() if hard else np.zeros(0, np.int16)
        self._shares: Float32 = np.zeros((0, k), np.float32) if hard else subdomains.posteriors()
        self.tree = PhraseTree()
        self._counted = np.zeros((1, k))

    def numbers(self, phrases: Iterable[str]) -> Int32:
        """Return (phrases,) int32, the numbers of phrases, words separated by spaces."""
        words = self.tree.words(phrase.encode() for phrase in phrases)
        lengths = np.diff(words[1]).astype(np.int32)
        index = np.arange(len(lengths) + 1)
        return self.tree.numbers(words, index, np.zeros(len(lengths), np.int32), lengths)

    def counts(self, numbers: npt.NDArray[Any]) -> Float64:
        """Return (n, K) float64, the expected counts of phrases in each subdomain.

        They are Σ P(z | e, f) c(phrase; sentence), over the sentence pairs of the corpus.

        Args:
            numbers: (n,) from `numbers`, or of the tree.
        """
        if len(self._counted) < len(self.tree):
            # The number in the tree of each word of the text; −1 if it is in no phrase.
            word_numbers = self.tree.known_words(word.encode() for word in self._text.words)[0]
            text = word_numbers[self._text.numbers], self._text.starts
            self._counted = self.tree.count(text, self._groups, self._shares, self._counted)
        return np.asarray(self._counted[numbers])


def posteriors(counts: Float64, weights: Float64, smoothing: float = 0.0) -> Float64:
    """Return (phrases, K) float64, P(z | phrase), from the counts of phrases in each subdomain.

    P(z | phrase) = (c(phrase, z) + β P(z)) / (c(phrase) + β). Without smoothing (β = 0, as
    published) these are relative frequencies. A phrase that is not in the corpus gets P(z), as
    with any β.

    Args:
        counts: (phrases, K) from `CountedPhrases`.
        weights: (K,) P(z).
        smoothing: β, the number of occurrences that P(z) is equivalent to.

    >>> posteriors(np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([0.4, 0.6])).tolist()
    [[0.75, 0.25], [0.4, 0.6]]
    """
    total = counts.sum(axis=1, keepdims=True)
    unknown = total == 0
    smoothed = counts + smoothing * weights
    return np.where(unknown, weights, smoothed / np.where(unknown, 1.0, total + smoothing))


def renyi_entropy(probabilities: Float64, order: float = 2.0) -> Float64:
    """Return (n,) float64, Rényi entropies in nats: 1/(1−α) log Σ p^α.

    From 0, all in one subdomain, to log K. For α = 1 it is the Shannon entropy, the limit.

    Args:
        probabilities: (n, K), rows that sum to 1.
        order: α, above 0.

    >>> renyi_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    if abs(order - 1) < _NEAR:
        logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
        return np.asarray(np.maximum(-(probabilities * logs).sum(axis=1), 0.0))
    # Divide by the largest, because powers of small numbers underflow for large α.
    largest = probabilities.max(axis=1)
    powers = ((probabilities / largest[:, None]) ** order).sum(axis=1)
    return np.asarray(np.maximum((np.log(powers) + order * np.log(largest)) / (1 - order), 0.0))


def chebyshev(first: Float64, second: Float64) -> Float64:
    """Return (n,) max |p − q| over the subdomains, from 0 to 1.

    >>> chebyshev(np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])).tolist()
    [0.25]
    """
    return np.asarray(np.abs(first - second).max(axis=1))


def hellinger(first: Float64, second: Float64) -> Float64:
    """Return (n,) Hellinger distances, √(½ Σ (√p − √q)²), from 0 to 1.

    >>> hellinger(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0]
    """
    return np.asarray(np.sqrt(((np.sqrt(first) - np.sqrt(second)) ** 2).sum(axis=1) / 2))


def kullback_leibler(first: Float64, second: Float64) -> Float64:
    """Return (n,) Σ p log(p / q), in nats; infinite if q is 0 and p is not.

    >>> kullback_leibler(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])).round(4).tolist()
    [0.6931]
    """
    inside = first > 0
    with np.errstate(divide="ignore"):
        ratio = np.where(inside, first, 1.0) / np.where(inside, second, 1.0)
        return np.asarray(np.maximum((first * np.log(ratio)).sum(axis=1), 0.0))
