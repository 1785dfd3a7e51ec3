"""Selective use: how well the confidence of reranking tells good changes from bad ones."""

from __future__ import annotations

from bpa_ppl.decoding.reranking import Reranked
from bpa_ppl.diagnostics import RiskCoverage, risk_coverage
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.quality import ter_edits


def selective(result: Reranked) -> RiskCoverage:
    """Return what is risked, in TER, where only the surest of the changes are made.

    Args:
        result: of `rerank` with `confidence=True`, and without `sure`, from lists with references.

    Raises:
        DataError: if the lists had no references.
        UsageError: if there is no confidence.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, NBest, rerank
    >>> lists = NBest.from_lists(
    ...     [["a b", "a c"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"], references=[["a b"], ["a c"]]
    ... )
    >>> posterior = Draws(
    ...     {"weights": np.ones((1, 4, 1))}, ("LM0",), constants={"canonical": -np.ones(1)}
    ... )
    >>> found = selective(rerank(lists, posterior, unchecked=True, confidence=True))
    >>> found.better.round(2).tolist(), found.coverage.tolist(), found.ter.tolist()
    ([0.73, 0.73], [0.0, 0.5, 1.0], [25.0, 50.0, 25.0])
    """
    if result.confidence is None:
        raise UsageError("there is no confidence in the choices: rerank with confidence=True")
    if len(result.references) != len(result.texts):
        raise DataError("the reranked lists have no references to be held against")
    before, lengths = ter_edits(result.canonical_texts, result.references)
    after, _ = ter_edits(result.texts, result.references)
    return risk_coverage(result.confidence.better, before, after, lengths, result.changed)
