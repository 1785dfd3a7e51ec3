"""The paired bootstrap: how much scores vary with the sentences, and with the draws of A.

A resample is the number of times that each sentence occurs (Koehn, 2004), so that summed counts of
all resamples are one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.metrics.gains import resolve
from bpa_ppl.metrics.metric import Metric

#: (B, S) how often each test sentence occurs in each of B resamples, and (B, D) their draws of A.
#: All methods use the same, so that their differences are paired.
_Resamples = tuple[Float64, Int64]


@dataclass(frozen=True)
class ScoreDifference:
    """The difference of the corpus scores of two translations, in percent.

    Attributes:
        metric: its name, such as `ter`.
        score: of the first translation.
        difference: the score of the first minus that of the second.
        low: the lower end of the interval of the difference.
        high: the upper end.
    """

    metric: str
    score: float
    difference: float
    low: float
    high: float


def draw_resamples(count: int, sentences: int, draws: int = 0, seed: int = 0) -> _Resamples:
    """Draw B = `count` bootstrap samples of sentences and draws.

    >>> occurrences, chosen = draw_resamples(3, sentences=4, draws=2)
    >>> occurrences.sum(axis=1).tolist(), chosen.shape
    ([4.0, 4.0, 4.0], (3, 2))
    """
    rng = np.random.default_rng(check_seed(seed))
    uniform = np.full(sentences, 1 / sentences)
    occurrences = rng.multinomial(sentences, uniform, size=count).astype(np.float64)
    chosen = rng.integers(draws, size=(count, draws)) if draws else np.zeros((count, 0), np.int64)
    return occurrences, chosen


def score_resamples(
    counts: Float64, metric: str | Metric, new: _Resamples
) -> tuple[Float64, Float64, Float64]:
    """Return the corpus score, averaged over draws of A, of each resample.

    Source: Koehn (2004) for test sentences; draws of A are resampled likewise.

    Args:
        counts: (D, S, K) of the translations chosen with each draw of A.
        metric: such as "ter" or "bleu".
        new: B resamples.

    Returns:
        (B,) the scores of resampled sentences and draws; (B,) those of resampled sentences with the
        original draws; and (B,) those of resampled draws with the original sentences.

    >>> counts = np.array([[[1.0, 4.0], [1.0, 4.0]], [[2.0, 4.0], [2.0, 4.0]]])
    >>> _, of_sentences, _ = score_resamples(counts, "ter", draw_resamples(2, 2, 2))
    >>> of_sentences.tolist()
    [37.5, 37.5]
    """
    config, (occurrences, draws) = resolve(metric), new
    values, all_values = (
        _score_resamples(counts, config, occurrences),
        config.value(counts.sum(axis=1)),
    )
    both = np.take_along_axis(values, draws, axis=1).mean(axis=1)
    return both, values.mean(axis=1), all_values[draws].mean(axis=1)


def compare_scores(
    first: Float64,
    second: Float64,
    metric: str | Metric,
    *,
    samples: int = 1000,
    probability: float = 0.95,
    seed: int = 0,
) -> ScoreDifference:
    """Compare two translations of the same sentences.

    Args:
        first: (S, K) counts of the metric, of the first translation.
        second: likewise, of the second.
        metric: such as "ter" or "bleu".
        samples: the number of bootstrap samples.
        probability: of the interval.
        seed: of the bootstrap.

    >>> better, worse = np.array([[1.0, 4.0]] * 9), np.array([[2.0, 4.0]] * 9)
    >>> result = compare_scores(better, worse, "ter")
    >>> result.score, result.difference, result.high
    (25.0, -25.0, -25.0)
    """
    config, counts = resolve(metric), np.stack([first, second])
    score, other = config.value(counts.sum(axis=1))
    values = _score_resamples(counts, config, draw_resamples(samples, len(first), seed=seed)[0])
    tail = (1 - probability) / 2
    low, high = np.quantile(values[:, 0] - values[:, 1], (tail, 1 - tail))
    return ScoreDifference(config.key, float(score), float(score - other), float(low), float(high))


def _score_resamples(counts: Float64, metric: Metric, occurrences: Float64) -> Float64:
    """Return (B, C) the corpus scores in each resample of C translations, (C, S, K) counts."""
    choices, sentences, kinds = counts.shape
    in_columns = counts.transpose(1, 0, 2).reshape(sentences, choices * kinds)
    return metric.value((occurrences @ in_columns).reshape(-1, choices, kinds))
