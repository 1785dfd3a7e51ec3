"""What it matters downstream which sampler drew the posterior: other translations, other scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.quality import counted_metrics, resolve, statistics
from bpa_ppl.quality.base import References
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import ScoreDifference, score_difference

PROBABILITY = 0.95


@dataclass(frozen=True)
class Downstream:
    """Translations chosen with one posterior, against those chosen with another.

    Attributes:
        changed: how many differ.
        sentences: of how many.
        scores: their corpus scores and the ratio of their length to that of the references, where
            there are some.
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
        ours: (sentences,) texts.
        theirs: (sentences,) texts of the other sampler.
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
    scores = []
    for metric in (*map(resolve, counted_metrics()), LengthRatio()):
        # Two rows a sentence: ours, theirs.
        counts = statistics(pairs, metric).counts
        made, other = counts[::2], counts[1::2]
        scores.append(score_difference(made, other, metric, probability=PROBABILITY, seed=seed))
    return Downstream(changed, len(ours), tuple(scores))
