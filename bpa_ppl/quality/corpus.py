"""Corpus scores."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.errors import DataError
from bpa_ppl.quality.base import Metric, References
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


def check_parallel(hypotheses: Sequence[str], references: References) -> None:
    """Raise a DataError unless there is a tuple of references for each hypothesis."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} hypotheses and references for {len(references)} sentences: "
            "there must be as many"
        )
    if not len(hypotheses):
        raise DataError("there are no sentences to score")
    check_references(references)


def check_references(references: References, source: str | None = None) -> None:
    """Raise a DataError unless each sentence has a tuple with at least one reference."""
    for sentence, refs in enumerate(references):
        if isinstance(refs, str):
            raise DataError(
                f"the references of sentence {sentence} are one string: give a tuple of strings",
                source,
            )
        if not refs:
            raise DataError(f"sentence {sentence} has no reference: give at least one", source)
