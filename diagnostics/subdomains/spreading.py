"""What latent subdomains are about: their words, where they stand in the corpus, their phrases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.phrases.invariance import CountedPhrases, chebyshev, posteriors, renyi_entropy
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains

_PRIOR = 1000.0  # tokens that the prior of typical words is worth
_TYPICAL = 2.0  # standard deviations above 0 from which a word is typical
_WORDS = 2000  # of a side, among which associated pairs are looked for


class Spread(NamedTuple):
    """How some phrases spread over the subdomains.

    Attributes:
        phrases: (n,) the phrases.
        counts: (n,) how often each occurs in the corpus.
        probabilities: (n, K), P(z | phrase).
    """

    phrases: Sequence[str]
    counts: Float64
    probabilities: Float64

    @property
    def entropies(self) -> Float64:
        """(n,) the entropies of Rényi of order 2."""
        return renyi_entropy(self.probabilities)

    def part(self, rows: npt.NDArray[np.int64]) -> Spread:
        """Return some of the phrases."""
        chosen = [self.phrases[row] for row in rows]
        return Spread(chosen, self.counts[rows], self.probabilities[rows])


def spread(found: Subdomains, side: Side, phrases: Sequence[str]) -> Spread:
    """Return how phrases of one side spread over the subdomains, counted in the corpus.

    >>> text = NumberedText.of([["a", "b"], ["a"]])
    >>> of = spread(Subdomains(text, text, [0, 1], [0.5, 0.5]), "source", ["a", "b"])
    >>> of.counts.tolist(), of.probabilities.tolist()
    ([2.0, 1.0], [[0.5, 0.5], [1.0, 0.0]])
    """
    counted = CountedPhrases(found, side)
    counts = counted.counts(counted.numbers(phrases))
    return Spread(phrases, counts.sum(axis=1), posteriors(counts, found.weights))


def incoherence(source: Spread, target: Spread) -> Float64:
    """Return (pairs,) the distances of Chebyshev between phrases side by side."""
    return chebyshev(source.probabilities, target.probabilities)


def typical_words(found: Subdomains, side: Side, shown: int) -> list[list[str]]:
    """Return the words that are most typical of each subdomain, the most typical one first.

    They are those whose log-odds of the subdomain against all others are most standard deviations
    above 0, and two at least, with the frequencies in the whole corpus as prior (Monroe, Colaresi &
    Quinn 2008, Eq. 16, 20 and 22).

    Args:
        found: the subdomains.
        side: the language.
        shown: how many words of each, at most.

    >>> text = NumberedText.of([["a", "x"]] * 40 + [["b", "x"]] * 40)
    >>> typical_words(Subdomains(text, text, [0] * 40 + [1] * 40, [0.5, 0.5]), "source", 2)
    [['a'], ['b']]
    """
    text = found.text(side)
    inside = text.word_counts().T @ found.posteriors().astype(np.float64)
    scores = _log_odds(inside)
    order = np.argsort(-scores, axis=0, kind="stable")[:shown]
    return [
        [text.words[word] for word in words if scores[word, z] > _TYPICAL]
        for z, words in enumerate(order.T)
    ]


def _log_odds(inside: Float64) -> Float64:
    """Return (words, K) z-scores of the log-odds of (words, K) counts."""
    everywhere = inside.sum(axis=1, keepdims=True)
    prior = _PRIOR * everywhere / max(everywhere.sum(), 1.0)
    outside = everywhere - inside

    def log_odds(counts: Float64) -> Float64:
        total = counts.sum(axis=0) + _PRIOR
        result: Float64 = np.log(counts + prior) - np.log(total - counts - prior)
        return result

    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt(1 / (inside + prior) + 1 / (outside + prior))
        result: Float64 = np.nan_to_num((log_odds(inside) - log_odds(outside)) / deviation)
        return result


def along(found: Subdomains, parts: int = 100) -> Float64:
    """Return (parts, K) the share of each subdomain in consecutive parts of the corpus.

    >>> text = NumberedText.of([["a"]] * 4)
    >>> along(Subdomains(text, text, [0, 0, 0, 1], [0.5, 0.5]), 2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    bounds = np.unique(np.linspace(0, len(found), min(parts, len(found)) + 1).astype(int))
    shares = found.posteriors()
    return np.array([shares[a:b].mean(axis=0, dtype=np.float64) for a, b in pairwise(bounds)])


def frequent_phrases(text: NumberedText, least: int, longest: int = 3) -> list[str]:
    """Return the phrases of a text that occur so often, the shorter first.

    Args:
        text: the sentences.
        least: how often, at least.
        longest: the most words of a phrase.

    >>> frequent_phrases(NumberedText.of([["a", "b", "a"], ["b", "a", "c"]]), 2)
    ['a', 'b', 'b a']
    """
    found: list[str] = []
    left = np.repeat(text.starts[1:], np.diff(text.starts)) - np.arange(len(text.numbers))
    # The number of the frequent phrase of n words that begins at each token, or −1; of no words 0.
    phrases, numbers = [""], np.zeros(len(text.numbers), np.int64)
    for n in range(1, longest + 1):
        places = np.flatnonzero((numbers >= 0) & (left >= n))
        keys = numbers[places] * len(text.words) + text.numbers[places + n - 1]
        distinct, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        kept = np.flatnonzero(counts >= least)
        kept = kept[np.argsort(first[kept])]
        heads, tails = np.divmod(distinct[kept], len(text.words))
        phrases = [
            f"{phrases[head]} {text.words[tail]}".strip()
            for head, tail in zip(heads.tolist(), tails.tolist(), strict=True)
        ]
        found += phrases
        renumbered = np.full(len(distinct), -1, np.int64)
        renumbered[kept] = np.arange(len(kept))
        numbers = np.full(len(numbers), -1, np.int64)
        numbers[places] = renumbered[inverse]
    return found


def associated_words(found: Subdomains, least: int) -> tuple[list[str], list[str]]:
    """Return the frequent source words, and the target word that each goes with most often.

    That is the one with the highest coefficient of Dice, 2 c(f, e) / (c(f) + c(e)), of the numbers
    of sentence pairs; of each side the 2000 most frequent words are looked at.

    Args:
        found: the subdomains with their corpus.
        least: how often a word occurs at least.
    """
    sides = [_frequent(text, least) for text in (found.source, found.target)]
    if not all(len(words) for words, _ in sides):
        return [], []
    (first, sources), (second, targets) = sides
    together = (sources.T @ targets).toarray()
    alone = [np.asarray(part.sum(axis=0)).ravel() for part in (sources, targets)]
    best = (together / (alone[0][:, None] + alone[1])).argmax(axis=1)
    words = [found.source.words[word] for word in first]
    return words, [found.target.words[second[place]] for place in best]


def _frequent(text: NumberedText, least: int) -> tuple[Int64, csr_matrix]:
    """Return the most frequent words, and (sentences, words) which sentences have them."""
    counts = np.bincount(text.numbers, minlength=len(text.words))
    chosen = np.argsort(-counts, kind="stable")[:_WORDS]
    chosen = chosen[counts[chosen] >= least]
    inside = text.word_counts()[:, chosen]
    inside.data[:] = 1
    return chosen, inside
