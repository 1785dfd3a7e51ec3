"""Bootstrap over test sentences and over draws of A, apart and together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.quality.statistics import corpus_values


class Resamples(NamedTuple):
    """The same new samples for all methods, so that their differences are paired.

    Attributes:
        sentences: (B, S) how often each test sentence occurs.
        draws: (B, D) which draws of A are taken.
    """

    sentences: Float64
    draws: Int64


class Replicates(NamedTuple):
    """Means over draws of A, (B,), of B new samples.

    Attributes:
        both: of sentences and draws.
        sentences: of test sentences alone, with the draws as they are.
        draws: of draws of A alone, with the test text as it is.
    """

    both: Float64
    sentences: Float64
    draws: Float64


def resamples(count: int, sentences: int, draws: int, seed: int = 0) -> Resamples:
    """Draw B = `count` samples of as many sentences and draws as there are.

    >>> new = resamples(3, sentences=4, draws=2)
    >>> new.sentences.sum(axis=1).tolist(), new.draws.shape
    ([4.0, 4.0, 4.0], (3, 2))
    """
    source = np.random.default_rng(seed)
    chances = np.full(sentences, 1 / sentences)
    occurrences = source.multinomial(sentences, chances, size=count).astype(np.float64)
    return Resamples(occurrences, source.integers(draws, size=(count, draws)))


def replicates(counts: Float64, metric: str, new: Resamples) -> Replicates:
    """Return the corpus score, averaged over draws of A, of each new sample.

    Source: Koehn (2004) for test sentences; draws of A are resampled likewise.

    Args:
        counts: (D, S, K) of the translations chosen with each draw of A.
        metric: "ter" or "bleu".
        new: the samples.

    >>> counts = np.array([[[1.0, 4.0], [1.0, 4.0]], [[2.0, 4.0], [2.0, 4.0]]])
    >>> replicates(counts, "ter", resamples(2, 2, 2)).sentences.tolist()
    [37.5, 37.5]
    """
    draws, sentences, kinds = counts.shape
    beside = counts.transpose(1, 0, 2).reshape(sentences, draws * kinds)
    sums = (new.sentences @ beside).reshape(-1, draws, kinds)
    values = corpus_values(metric, sums)
    whole = corpus_values(metric, counts.sum(axis=1))
    return Replicates(
        both=np.take_along_axis(values, new.draws, axis=1).mean(axis=1),
        sentences=values.mean(axis=1),
        draws=whole[new.draws].mean(axis=1),
    )
