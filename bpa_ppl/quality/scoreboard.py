"""Scores side by side: what was asked for, TER, BLEU and length, of several choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from bpa_ppl.nbest import NBest
from bpa_ppl.quality.base import Metric, Score, resolve
from bpa_ppl.quality.scoring import choice_score
from bpa_ppl.registry import METRICS
from bpa_ppl.tables import text_table

#: What is told beside any other score: a choice by one of them may be bought with the others.
TOGETHER = ("ter", "bleu")


@dataclass(frozen=True)
class Scoreboard:
    """Corpus scores of the canonical first-best and of the chosen translations.

    With BLEU comes the length, words of the translations over those of the references: a choice
    by TER may shorten them, and BLEU then falls where TER does not show it.

    Attributes:
        before: one score per metric.
        after: one score per metric.
        changed: how many translations differ.
        sentences: how many translations there are.
        titles: what the two are.
    """

    before: tuple[Score, ...]
    after: tuple[Score, ...]
    changed: int
    sentences: int
    titles: tuple[str, str] = ("canonical", "adapted")

    def __str__(self) -> str:
        rows = [
            (name, old, new, f"{change:+.{decimals}f}")
            for name, old, new, change, decimals in self._rows()
        ]
        table = text_table(rows, ("", *self.titles, "change"), align="rrrr", least=9)
        signatures = [score.signature for score in self.after]
        changed = f"{self.changed} of {self.sentences} translations changed"
        return "\n".join([table, changed, *self._partly_judged(), *signatures])

    @property
    def changes(self) -> list[str]:
        """Each of them in words, such as `TER 50.00 → 40.00`."""
        return [f"{name} {old} → {new}" for name, old, new, *_ in self._rows()]

    def _partly_judged(self) -> Iterator[str]:
        """Yield how many of the choices the mean of a column is of, where that is not all."""
        for before, after in zip(self.before, self.after, strict=True):
            name = judged_key(after.name)
            details: list[Any] = [before.details, after.details]
            counts = [int(detail.get(name, self.sentences)) for detail in details]
            if min(counts) < self.sentences:
                old, new = (f"{n} {title}" for n, title in zip(counts, self.titles, strict=True))
                yield (
                    f"{title_of(after)}: means of the choices that are judged, {old} and {new} of "
                    f"{self.sentences}"
                )

    def _rows(self) -> list[tuple[str, str, str, float, int]]:
        """Return name, both values as they are shown, their difference, and its decimals."""
        return [
            (name, shown, also, value - worth, decimals)
            for (name, shown, worth, decimals), (_, also, value, _) in zip(
                cells(self.before), cells(self.after), strict=False
            )
        ]


def judged_key(column: str) -> str:
    """Return the name of the detail of a score that counts the choices with a value of a column.

    >>> judged_key("mqm")
    'mqm.judged'
    """
    return f"{column}.judged"


def cells(scores: tuple[Score, ...]) -> list[tuple[str, str, float, int]]:
    """Return name, value as it is shown, value and decimals of scores, the length at the end."""
    found = [
        (title_of(score), f"{score.value:.{score.decimals}f}", score.value, score.decimals)
        for score in scores
    ]
    lengths = [length for score in scores if (length := length_of(score)) is not None]
    return found + [("length", f"{length:.3f}", length, 3) for length in lengths]


def title_of(score: Score) -> str:
    """Return the name of a metric as tables print it."""
    return score.metric.upper() if score.metric in METRICS else score.name


def length_of(score: Score) -> float | None:
    """Return words of the translations over those of the references, where a score says it."""
    ratio = score.details.get("length_ratio")
    return ratio if isinstance(ratio, float) else None


def reported(nbest: NBest, metric: str | Metric) -> tuple[Metric, ...]:
    """Return a metric, and what is told beside it: TER and BLEU, where there are references.

    >>> bare = NBest.from_lists([["a"]], [[[0.5]]], ["comet"])
    >>> [one.key for one in reported(bare, "comet")]
    ['comet']
    >>> [one.key for one in reported(bare.with_references([("a",)]), "bleu")]
    ['bleu', 'ter']
    """
    goal = resolve(metric, nbest)
    others = TOGETHER if nbest.references and all(nbest.references) else ()
    return goal, *(resolve(name) for name in others if name != goal.key)


def choice_scores(nbest: NBest, choice: npt.ArrayLike, metric: str | Metric) -> tuple[Score, ...]:
    """Return the corpus scores of one hypothesis of each list: the metric, TER and BLEU.

    Args:
        nbest: the lists, with what the metric needs.
        choice: (sentences,) the position of a hypothesis in each list.
        metric: a name, a metric, or the name of a column of the lists: its score comes first.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.
    """
    return tuple(choice_score(nbest, choice, one) for one in reported(nbest, metric))


def compared(
    nbest: NBest,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    metric: str | Metric = "ter",
    titles: tuple[str, str] = ("canonical", "adapted"),
) -> Scoreboard:
    """Return the scores of two choices from the same lists side by side.

    Args:
        nbest: the lists, with what the metric needs.
        before: (sentences,) the position of a hypothesis in each list.
        after: likewise.
        metric: whose score comes first; see `choice_scores`.
        titles: what the two are.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> lists = NBest.from_lists(
    ...     [["a b c d e", "a b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d e"]]
    ... )
    >>> compared(lists, [1], [0]).changes
    ['TER 60.00 → 0.00', 'BLEU 0.00 → 100.00', 'length 0.400 → 1.000']
    """
    texts = zip(nbest.chosen(before), nbest.chosen(after), strict=True)
    return Scoreboard(
        choice_scores(nbest, before, metric),
        choice_scores(nbest, after, metric),
        sum(one != other for one, other in texts),
        len(nbest),
        titles,
    )
