"""Corpus scores."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.references import References, check_parallel
from bpa_ppl.quality.registry import resolve
from bpa_ppl.quality.score import Score


def corpus_score(
    hypotheses: Sequence[str], references: References, metric: str | Metric = "ter"
) -> Score:
    """Return the corpus score of translations, the number that sacreBLEU gives.

    Args:
        hypotheses: one translation a sentence.
        references: one tuple a sentence; their numbers of references may differ.
        metric: "ter", "bleu", "chrf", or settings such as `BLEU(lowercase=True)`.

    Raises:
        DataError: if there are no sentences, or one of them has no reference.
        UsageError: if the metric is unknown.

    >>> print(corpus_score(["the cat sat"], [("the cat sat down",)]).value)
    25.0
    """
    check_parallel(hypotheses, references)
    return resolve(metric).corpus(hypotheses, references)
