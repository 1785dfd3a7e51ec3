"""The paired bootstrap: how far scores depend on the sentences, and on the draws of A.

Sentences are resampled by weights, how often each occurs (Koehn, 2004): sums of counts are then one
matrix product, and the values are those of the metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpa_ppl.errors import checked_seed
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.quality.base import Metric, resolve


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


@dataclass(frozen=True)
class ScoreDifference:
    """The corpus score of some translations less that of others, in percent.

    Attributes:
        metric: its name, such as `ter`.
        score: of the translations.
        difference: from the score of the others.
        low: lower end of the interval of the difference.
        high: its upper end.
    """

    metric: str
    score: float
    difference: float
    low: float
    high: float


def resamples(count: int, sentences: int, draws: int = 0, seed: int = 0) -> Resamples:
    """Draw B = `count` samples of as many sentences and draws as there are.

    >>> new = resamples(3, sentences=4, draws=2)
    >>> new.sentences.sum(axis=1).tolist(), new.draws.shape
    ([4.0, 4.0, 4.0], (3, 2))
    """
    source = np.random.default_rng(checked_seed(seed))
    chances = np.full(sentences, 1 / sentences)
    occurrences = source.multinomial(sentences, chances, size=count).astype(np.float64)
    taken = source.integers(draws, size=(count, draws)) if draws else np.zeros((count, 0), np.int64)
    return Resamples(occurrences, taken)


def replicates(counts: Float64, metric: str | Metric, new: Resamples) -> Replicates:
    """Return the corpus score, averaged over draws of A, of each new sample.

    Source: Koehn (2004) for test sentences; draws of A are resampled likewise.

    Args:
        counts: (D, S, K) of the translations chosen with each draw of A.
        metric: one that is counted, such as "ter" or "bleu".
        new: the samples.

    >>> counts = np.array([[[1.0, 4.0], [1.0, 4.0]], [[2.0, 4.0], [2.0, 4.0]]])
    >>> replicates(counts, "ter", resamples(2, 2, 2)).sentences.tolist()
    [37.5, 37.5]
    """
    config = resolve(metric)
    values = _values(counts, config, new)
    whole = config.value(counts.sum(axis=1))
    return Replicates(
        both=np.take_along_axis(values, new.draws, axis=1).mean(axis=1),
        sentences=values.mean(axis=1),
        draws=whole[new.draws].mean(axis=1),
    )


def score_difference(
    ours: Float64,
    theirs: Float64,
    metric: str | Metric,
    *,
    samples: int = 1000,
    probability: float = 0.95,
    seed: int = 0,
) -> ScoreDifference:
    """Compare two translations of the same sentences.

    Args:
        ours: (S, K) counts of the metric.
        theirs: (S, K) counts of the other system.
        metric: one that is counted, such as "ter" or "bleu".
        samples: of the bootstrap.
        probability: of the interval.
        seed: of the bootstrap.

    >>> better, worse = np.array([[1.0, 4.0]] * 9), np.array([[2.0, 4.0]] * 9)
    >>> found = score_difference(better, worse, "ter")
    >>> found.score, found.difference, found.high
    (25.0, -25.0, -25.0)
    """
    config, counts = resolve(metric), np.stack([ours, theirs])
    score, other = config.value(counts.sum(axis=1))
    values = _values(counts, config, resamples(samples, len(ours), seed=seed))
    tail = (1 - probability) / 2
    low, high = np.quantile(values[:, 0] - values[:, 1], (tail, 1 - tail))
    return ScoreDifference(config.key, float(score), float(score - other), float(low), float(high))


def _values(counts: Float64, metric: Metric, new: Resamples) -> Float64:
    """Return (B, C) the corpus scores of C choices of translations, (C, S, K), of new samples."""
    choices, sentences, kinds = counts.shape
    in_columns = counts.transpose(1, 0, 2).reshape(sentences, choices * kinds)
    return metric.value((new.sentences @ in_columns).reshape(-1, choices, kinds))
