"""The compiled parts of a mixture of unigram models: scores and counts of numbered sentences."""

from __future__ import annotations

import numpy as np
from numba import njit

from bpa_ppl.nbest import Float64
from bpa_ppl.text.vocabulary import Ragged


@njit(nogil=True, cache=True)
def add_scores(text: Ragged, logs: Float64, scores: Float64) -> None:
    """Add to (sentences, K) scores the sums over the words of (words, K) logs."""
    words, starts = text
    for s in range(len(scores)):
        for at in range(starts[s], starts[s + 1]):
            for z in range(scores.shape[1]):
                scores[s, z] += logs[words[at], z]


@njit(nogil=True, cache=True)
def class_counts(text: Ragged, posteriors: Float64, size: int) -> Float64:
    """Return (words, K) how often each word occurs, the sentences shared by (sentences, K)."""
    words, starts = text
    counts = np.zeros((size, posteriors.shape[1]))
    for s in range(len(posteriors)):
        for at in range(starts[s], starts[s + 1]):
            for z in range(posteriors.shape[1]):
                counts[words[at], z] += posteriors[s, z]
    return counts
