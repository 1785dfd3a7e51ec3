"""Where the induction starts: a mixture of unigram models of both sides.

N-gram models of sentences that were assigned at random remember these sentences, and EM stays where
it began. Unigram models do not: the posteriors of P(z) P(e|z) P(f|z), with words drawn one by one,
are what the first n-gram models are estimated on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from bpa_ppl.models.subdomains.unigrams_compiled import add_scores, class_counts
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.text.vocabulary import Ragged

_SAMPLE = 20_000  # sentence pairs that the starts are tried on
_STARTS = 8
_POWERS = (*np.geomspace(0.1, 1.0, 20).tolist(), *[1.0] * 10)  # of the posteriors, in a trial
_LAST = 5  # iterations on all sentence pairs
_PSEUDO = 300.0  # words of each side of each subdomain, which are those of the whole corpus,
_AT_MOST = 0.02  # but no more than this share of it


def unigram_posteriors(source: NumberedText, target: NumberedText, k: int, seed: int) -> Float64:
    """Return (pairs, K) P(z | e, f) under a mixture of unigram models, fitted by EM.

    EM is started several times on a sample of the pairs, from posteriors at random that are made
    sharper step by step (deterministic annealing: Ueda & Nakano 1998), and continued on all pairs
    from where the likelihood is greatest.

    Args:
        source: the source sentences.
        target: their translations.
        k: how many subdomains.
        seed: of the sample and of the posteriors at random.
    """
    rng = np.random.default_rng(seed)
    pairs = len(source)
    chosen = np.sort(rng.choice(pairs, min(pairs, _SAMPLE), replace=False))
    whole = _Mixture([source, target])
    sample = whole.of([_rows(source, chosen), _rows(target, chosen)])
    best, found = -np.inf, None
    for _ in range(_STARTS):
        posteriors = rng.dirichlet(np.ones(k), len(chosen))
        for power in _POWERS:
            posteriors, likelihood = sample.step(posteriors, power)
        if likelihood > best:
            best, found = likelihood, sample.maximised(posteriors)
    assert found is not None  # there is at least one start
    posteriors, _ = whole.expected(found)
    for _ in range(_LAST):
        posteriors, _ = whole.step(posteriors)
    return posteriors


class _Mixture:
    """A mixture of unigram models of both sides of some sentence pairs."""

    def __init__(self, sides: Sequence[NumberedText], pseudo: Sequence[Float64] | None = None):
        self._sides: list[tuple[Ragged, int]] = [(t.sentences, len(t.words)) for t in sides]
        self._pseudo = [_pseudo_counts(side) for side in sides] if pseudo is None else pseudo

    def of(self, sides: Sequence[NumberedText]) -> _Mixture:
        """Return the mixture of a part of the pairs, with the pseudo-counts of all."""
        return _Mixture(sides, self._pseudo)

    def step(self, posteriors: Float64, power: float = 1.0) -> tuple[Float64, float]:
        """Return the next posteriors, and the log-likelihood that they belong to."""
        return self.expected(self.maximised(posteriors), power)

    def maximised(self, posteriors: Float64) -> list[Float64]:
        """Return (1, K) log P(z), and for each side (words, K) log P(word | z)."""
        found = [np.log(posteriors.mean(axis=0, keepdims=True) + 1e-300)]
        for (text, size), pseudo in zip(self._sides, self._pseudo, strict=True):
            counts = class_counts(text, posteriors, size) + pseudo
            found.append(np.log(counts) - np.log(counts.sum(axis=0)))
        return found

    def expected(self, logs: list[Float64], power: float = 1.0) -> tuple[Float64, float]:
        """Return the posteriors, raised to a power and normalised, and the log-likelihood."""
        scores = np.tile(logs[0], (len(self._sides[0][0][1]) - 1, 1))
        for (text, _), own in zip(self._sides, logs[1:], strict=True):
            add_scores(text, own, scores)
        scaled = scores * power
        posteriors = np.exp(scaled - logsumexp(scaled, axis=1, keepdims=True))
        return posteriors, float(logsumexp(scores, axis=1).sum())


def _pseudo_counts(text: NumberedText) -> Float64:
    """Return (words, 1) what is added to each count: no more for rare words than they are worth.

    The same for each word would be many words in all where the vocabulary is large, and small
    subdomains would lose their sentences to large ones.
    """
    counts = np.bincount(text.numbers, minlength=len(text.words)).astype(np.float64)
    total = counts.sum()
    result: Float64 = min(_PSEUDO, _AT_MOST * total) * counts[:, np.newaxis] / total
    return result


def _rows(text: NumberedText, chosen: np.ndarray) -> NumberedText:
    """Return some sentences of a text; the numbers of words stay."""
    lengths = np.diff(text.starts)[chosen]
    starts = np.append(0, np.cumsum(lengths))
    places = np.repeat(text.starts[chosen] - starts[:-1], lengths) + np.arange(starts[-1])
    return NumberedText(text.words, text.numbers[places], starts)
