"""How raters agree on the pairs of candidates that several of them compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.preferences import UNNAMED, all_choices

#: The attribute of a posterior that records it.
AGREEMENT = "agreement"
_ANSWERS = (-1, 0, 1)  # second, tie, first


class Agreement(NamedTuple):
    """How raters agree on the pairs that several of them answered.

    Attributes:
        raters: how many.
        pairs: that at least two of them answered.
        alike: pairs of which all answers are the same.
        alpha: Krippendorff's α of the ordered answers first, tie, second; NaN if all are alike.

    >>> print(Agreement(raters=2, pairs=30, alike=21, alpha=0.58))
    2 raters answered 30 pairs in common, and 21 alike (Krippendorff's α 0.58)
    """

    raters: int
    pairs: int
    alike: int
    alpha: float

    def record(self) -> dict[str, float | None]:
        """Return the values for a posterior's attributes; α is None if it is undefined.

        >>> Agreement(2, 1, 1, np.nan).record()
        {'raters': 2, 'pairs': 1, 'alike': 1, 'alpha': None}
        """
        return {**self._asdict(), "alpha": None if np.isnan(self.alpha) else self.alpha}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Agreement:
        """Return the agreement that a posterior records.

        Raises:
            DataError: if it is not one.

        >>> print(Agreement.of_record({"raters": 2, "pairs": 1, "alike": 1, "alpha": None}))
        2 raters answered 1 pair in common, and 1 alike
        """
        try:
            raters, pairs, alike = (int(record[name]) for name in ("raters", "pairs", "alike"))
            alpha = np.nan if record["alpha"] is None else float(record["alpha"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            problem = "the posterior records no valid agreement of raters: adapt again"
            raise DataError(problem, parameter="posterior", code="damaged") from error
        return cls(raters, pairs, alike, alpha)

    def __str__(self) -> str:
        both = f"{self.raters} raters answered {counted(self.pairs, 'pair')} in common"
        if not self.pairs:
            return both
        alpha = "" if np.isnan(self.alpha) else f" (Krippendorff's α {self.alpha:.2f})"
        return f"{both}, and {self.alike} alike{alpha}"


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
    for choice in all_choices(nbest):
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


def ordinal_alpha(counts: Float64) -> float:
    """Return Krippendorff's α of ordered answers; NaN if all are the same.

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
    return float(1 - (pairs * distances).sum() / expected) if expected > 0 else math.nan
