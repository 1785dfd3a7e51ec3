"""What tuners maximise: corpus BLEU, or corpus TER with its sign changed."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from bpa_ppl.errors import one_of
from bpa_ppl.nbest import Float64
from bpa_ppl.quality.bleu import ORDER
from bpa_ppl.quality.statistics import corpus_values


class Objective(Protocol):
    """A metric as tuners see it: the higher the better, a function of counts."""

    metric: ClassVar[str]

    def corpus(self, sums: Float64) -> Float64:
        """Return the corpus score of sums of counts, (…, S) ↦ (…), in percent."""

    def sentence(self, counts: Float64) -> Float64:
        """Return the score of single sentences, (n, S) ↦ (n,), as a fraction."""

    def background(self) -> Float64:
        """Return the counts, (S,), of the pseudo-corpus with which batch MIRA begins."""

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return what sentences score within a pseudo-corpus, (n, S) ↦ (n,), in words."""


class Bleu:
    """BLEU (Papineni et al., 2002); counts are matches, n-grams, reference length."""

    metric: ClassVar[str] = "bleu"

    def corpus(self, sums: Float64) -> Float64:
        """Return BLEU as sacreBLEU defines it."""
        return corpus_values("bleu", sums)

    def sentence(self, counts: Float64) -> Float64:
        """Return BLEU+1: one is added to the counts of every order (Lin and Och, 2004)."""
        smoothed = counts.copy()
        smoothed[:, : 2 * ORDER] += 1
        return _bleu(smoothed, counts[:, ORDER])

    def background(self) -> Float64:
        """Return one of everything, as kbmira does."""
        return np.ones(2 * ORDER + 1)

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return BLEU of background and sentence, times their reference length (Chiang, 2008)."""
        sums = counts + background
        return _bleu(sums, sums[:, ORDER]) * sums[:, 2 * ORDER]


class Ter:
    """TER (Snover et al., 2006), negative; counts are edits and reference length."""

    metric: ClassVar[str] = "ter"

    def corpus(self, sums: Float64) -> Float64:
        """Return −TER as sacreBLEU defines it."""
        return -corpus_values("ter", sums)

    def sentence(self, counts: Float64) -> Float64:
        """Return −TER of each sentence."""
        return -corpus_values("ter", counts) / 100

    def background(self) -> Float64:
        """Return no counts: the rate of a pseudo-corpus is defined without smoothing."""
        return np.zeros(2)

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return −TER of background and sentence, times their reference length: −edits."""
        return -(counts[:, 0] + background[0])


def _bleu(counts: Float64, lengths: Float64) -> Float64:
    """Return BLEU, (n,), of counts without zeros, as a fraction; `lengths` are in words."""
    precision = np.log(counts[:, :ORDER] / counts[:, ORDER : 2 * ORDER]).mean(axis=1)
    brevity = 1 - counts[:, 2 * ORDER] / np.maximum(lengths, 1)
    return np.exp(precision + np.minimum(0, brevity))


OBJECTIVES: dict[str, Objective] = {"bleu": Bleu(), "ter": Ter()}


def objective(metric: str) -> Objective:
    """Return what to maximise for a metric.

    Raises:
        UsageError: if the metric is no function of summed counts, or unknown.

    >>> float(objective("ter").corpus(np.array([1.0, 4.0])))
    -25.0
    """
    return OBJECTIVES[one_of(metric, OBJECTIVES, "metric to tune for")]
