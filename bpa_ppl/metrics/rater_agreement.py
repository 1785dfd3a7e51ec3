"""How raters agree on the pairs of candidates that several of them compared."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.metrics.preferences import UNNAMED, iter_choices
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.record import Agreement

_ANSWERS = (-1, 0, 1)  # second, tie, first


def agreement(nbest: NBest) -> Agreement:
    """Return how the raters of preferences and ties agree.

    Answers of raters without a name are left out, because they may be of several people. Of a pair
    that a rater answered twice, the first answer counts, and preferences come before ties.

    Args:
        nbest: lists whose `preferences` and `ties` name their raters.

    Raises:
        DataError: if an entry is not valid.

    >>> from bpa_ppl import from_lists
    >>> def entry(rater, *candidates):
    ...     return {"candidates": candidates, "rater": rater}
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"])
    >>> print(agreement(lists.with_sentence_extras(
    ...     preferences=[[entry("ann", 0, 1), entry("bob", 0, 1)], [entry("bob", 1, 0)]],
    ...     ties=[None, [entry("ann", 0, 1)]],
    ... )))
    2 raters answered 2 pairs in common, and 1 alike (Krippendorff's α 0.83)
    """
    table: dict[tuple[int, int, int], dict[str, int]] = {}
    raters: set[str] = set()
    for choice in iter_choices(nbest):
        if choice.rater == UNNAMED:
            continue
        raters.add(choice.rater)
        if choice.pair:
            low, high = sorted(choice.candidates)
            answer = 0 if choice.chosen else 1 if choice.candidates[0] == low else -1
            table.setdefault((choice.sentence, low, high), {}).setdefault(choice.rater, answer)
    common = [answers for answers in table.values() if len(answers) > 1]
    alike = sum(len(set(answers.values())) == 1 for answers in common)
    counts = np.zeros((len(common), len(_ANSWERS)))
    for row, answers in zip(counts, common, strict=True):
        np.add.at(row, [_ANSWERS.index(answer) for answer in answers.values()], 1)
    return Agreement(len(raters), len(common), alike, ordinal_alpha(counts))


def ordinal_alpha(counts: Float64) -> float | None:
    """Return Krippendorff's α of ordered answers; None if all are the same.

    Krippendorff, *Computing Krippendorff's alpha-reliability*, 2011.

    Args:
        counts: (items, answers) how many raters gave each answer; at least two rated each item.

    >>> ordinal_alpha(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])).__round__(3)
    0.444
    """
    raters = counts.sum(axis=1)
    pairs = (counts.T / (raters - 1)) @ counts  # of answers to the same item
    pairs -= np.diag((counts / (raters - 1)[:, None]).sum(axis=0))
    totals = counts.sum(axis=0)
    ranks = np.cumsum(totals) - totals / 2
    distances = np.subtract.outer(ranks, ranks) ** 2
    expected = totals @ distances @ totals / (totals.sum() - 1)
    return float(1 - (pairs * distances).sum() / expected) if expected > 0 else None
