"""What it matters downstream which sampler drew the posterior: other translations, other scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.references import References
from bpa_ppl.quality.statistics import corpus_values, statistics

METRICS = ("ter", "bleu")
PROBABILITY = 0.95
_RESAMPLES = 1000


@dataclass(frozen=True)
class ScoreDifference:
    """The corpus score of some translations less that of others, in percent.

    Attributes:
        metric: `ter` or `bleu`.
        score: of the translations.
        difference: from the score of the others.
        low, high: the 95% interval of the difference, by paired bootstrap over sentences.
    """

    metric: str
    score: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Downstream:
    """Translations chosen with one posterior, against those chosen with another.

    Attributes:
        changed: how many differ.
        sentences: of how many.
        scores: their corpus scores, where there are references.
    """

    changed: int
    sentences: int
    scores: tuple[ScoreDifference, ...] = ()


def downstream(
    ours: Sequence[str],
    theirs: Sequence[str],
    references: References | None = None,
    *,
    seed: int = 0,
) -> Downstream:
    """Compare two choices of translations of the same sentences.

    Args:
        ours, theirs: (sentences,) texts.
        references: one tuple a sentence; None leaves scores out.
        seed: of the bootstrap (Koehn 2004).

    Raises:
        DataError: if the numbers of translations differ, or there are none.

    >>> found = downstream(["a cat", "b"], ["the cat", "b"], [("a cat",), ("b",)])
    >>> found.changed, found.scores[0].metric, round(found.scores[0].difference, 2)
    (1, 'ter', -33.33)
    """
    if len(ours) != len(theirs) or not ours:
        raise DataError(f"{len(ours)} translations cannot be compared with {len(theirs)}")
    changed = sum(a != b for a, b in zip(ours, theirs, strict=True))
    if references is None:
        return Downstream(changed, len(ours))
    texts = [[a, b] for a, b in zip(ours, theirs, strict=True)]
    pairs = NBest.from_lists(texts, [np.zeros((2, 1))] * len(ours), ["none"], references=references)
    scores = tuple(_difference(pairs, metric, seed) for metric in METRICS)
    return Downstream(changed, len(ours), scores)


def _difference(pairs: NBest, metric: str, seed: int) -> ScoreDifference:
    counts = statistics(pairs, metric).counts.reshape(len(pairs), 2, -1)
    score, other = corpus_values(metric, counts.sum(axis=0))
    # How often each sentence is drawn, (resamples, sentences): the sums are then one product.
    times = np.random.default_rng(seed).multinomial(
        len(pairs), np.full(len(pairs), 1 / len(pairs)), size=_RESAMPLES
    )
    ours, theirs = corpus_values(metric, np.einsum("rs,sck->crk", times, counts))
    tail = (1 - PROBABILITY) / 2
    low, high = np.quantile(ours - theirs, (tail, 1 - tail))
    return ScoreDifference(metric, float(score), float(score - other), float(low), float(high))
