"""The start of the induction: a mixture of unigram models of both sides.

N-gram models of randomly assigned sentences memorise these sentences, and EM does not move. Unigram
models do not: the first n-gram models are estimated with the posteriors of P(z) P(e|z) P(f|z) under
unigram models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from scipy.special import logsumexp

from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.text.words import Ragged

_SAMPLE = 20_000  # sentence pairs for trying the starts
_STARTS = 8
_POWERS = (*np.geomspace(0.1, 1.0, 20).tolist(), *[1.0] * 10)  # of the posteriors, in a trial
_LAST = 5  # iterations on all sentence pairs
_PSEUDO = 300.0  # pseudo-words of each side of each subdomain, distributed as in the corpus,
_MAX_PSEUDO = 0.02  # but at most this share of it


def unigram_posteriors(source: NumberedText, target: NumberedText, k: int, seed: int) -> Float64:
    """Return (pairs, K) P(z | e, f) under a mixture of unigram models, fitted by EM.

    EM is started several times on a sample of the pairs, from random posteriors that are sharpened
    step by step (deterministic annealing: Ueda & Nakano 1998), and continued on all pairs from the
    start with the highest likelihood.

    Args:
        source: the source sentences.
        target: their translations.
        k: the number of subdomains.
        seed: of the sample and of the random posteriors.
    """
    rng = np.random.default_rng(seed)
    pairs = len(source)
    chosen = np.sort(rng.choice(pairs, min(pairs, _SAMPLE), replace=False))
    mixture = _Mixture([source, target])
    sample = _Mixture([_select(source, chosen), _select(target, chosen)], mixture.pseudo)
    best, model = -np.inf, None
    for _ in range(_STARTS):
        posteriors = rng.dirichlet(np.ones(k), len(chosen))
        for power in _POWERS:
            posteriors, likelihood = sample.step(posteriors, power)
        if likelihood > best:
            best, model = likelihood, sample.maximised(posteriors)
    assert model is not None  # there is at least one start
    posteriors, _ = mixture.expected(model)
    for _ in range(_LAST):
        posteriors, _ = mixture.step(posteriors)
    return posteriors


class _Mixture:
    """A mixture of unigram models of both sides of some sentence pairs."""

    def __init__(self, sides: Sequence[NumberedText], pseudo: Sequence[Float64] | None = None):
        self._sides: list[tuple[Ragged, int]] = [(t.sentences, len(t.words)) for t in sides]
        self.pseudo = [_pseudo_counts(side) for side in sides] if pseudo is None else pseudo

    def step(self, posteriors: Float64, power: float = 1.0) -> tuple[Float64, float]:
        """Return the next posteriors, and the log-likelihood of their model."""
        return self.expected(self.maximised(posteriors), power)

    def maximised(self, posteriors: Float64) -> list[Float64]:
        """Return (1, K) log P(z), and for each side (words, K) log P(word | z)."""
        model = [np.log(posteriors.mean(axis=0, keepdims=True) + 1e-300)]
        for (text, size), pseudo in zip(self._sides, self.pseudo, strict=True):
            counts = _class_counts(text, posteriors, size) + pseudo
            model.append(np.log(counts) - np.log(counts.sum(axis=0)))
        return model

    def expected(self, model: list[Float64], power: float = 1.0) -> tuple[Float64, float]:
        """Return the posteriors, raised to a power and normalised, and the log-likelihood."""
        scores = np.tile(model[0], (len(self._sides[0][0][1]) - 1, 1))
        for (text, _), log_p in zip(self._sides, model[1:], strict=True):
            _add_scores(text, log_p, scores)
        scaled = scores * power
        posteriors = np.exp(scaled - logsumexp(scaled, axis=1, keepdims=True))
        return posteriors, float(logsumexp(scores, axis=1).sum())


def _pseudo_counts(text: NumberedText) -> Float64:
    """Return (words, 1) the pseudo-count of each word, in proportion to its frequency.

    Equal pseudo-counts would be many words in total for a large vocabulary, and small subdomains
    would lose their sentences to large ones.
    """
    counts = np.bincount(text.numbers, minlength=len(text.words)).astype(np.float64)
    total = counts.sum()
    return np.asarray(min(_PSEUDO, _MAX_PSEUDO * total) * counts[:, np.newaxis] / total)


def _select(text: NumberedText, chosen: np.ndarray) -> NumberedText:
    """Return some sentences of a text; the numbers of words do not change."""
    lengths = np.diff(text.starts)[chosen]
    starts = np.append(0, np.cumsum(lengths))
    positions = np.repeat(text.starts[chosen] - starts[:-1], lengths) + np.arange(starts[-1])
    return NumberedText(text.words, text.numbers[positions], starts)


@njit(nogil=True, cache=True)
def _add_scores(text: Ragged, logs: Float64, scores: Float64) -> None:
    """Add to (sentences, K) scores the sums over the words of (words, K) logs."""
    words, starts = text
    for s in range(len(scores)):
        for i in range(starts[s], starts[s + 1]):
            for z in range(scores.shape[1]):
                scores[s, z] += logs[words[i], z]


@njit(nogil=True, cache=True)
def _class_counts(text: Ragged, posteriors: Float64, size: int) -> Float64:
    """Return (words, K) the counts of words, with each sentence distributed over (sentences, K)."""
    words, starts = text
    counts = np.zeros((size, posteriors.shape[1]))
    for s in range(len(posteriors)):
        for i in range(starts[s], starts[s + 1]):
            for z in range(posteriors.shape[1]):
                counts[words[i], z] += posteriors[s, z]
    return counts
