"""Whether adapting the weights improved the choices from new lists, and which features did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.baselines.selection import CANONICAL
from bpa_ppl.diagnostics.baselines.table import BaselineComparison
from bpa_ppl.nbest import Int64, NBest
from bpa_ppl.quality import Column, Metric, Score, Scoreboard
from bpa_ppl.quality.bootstrap import ScoreDifference

PROBABILITY = 0.95
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
_MINUS = str.maketrans("-", "−")


class Change(NamedTuple):
    """The change of one corpus score.

    Attributes:
        name: of the metric, as in tables.
        score: the score after, its difference from that before, and the interval of the difference.
        verdict: `better` or `worse` if the interval excludes zero, else `unclear`; empty for the
            length.
        decimals: the number of decimals to print.
    """

    name: str
    score: ScoreDifference
    verdict: str
    decimals: int

    @property
    def cells(self) -> list[str]:
        """Before, after, difference and its interval, formatted."""
        after, change = self.score.score, self.score.difference
        signed = [f"{x:+.{self.decimals}f}" for x in (change, self.score.low, self.score.high)]
        plain = [f"{x:.{self.decimals}f}" for x in (after - change, after)]
        return [text.translate(_MINUS) for text in (*plain, signed[0], " to ".join(signed[1:]))]

    def __str__(self) -> str:
        before, after, change, interval = self.cells
        percent = f"{100 * PROBABILITY:g}%"
        return f"{self.name} {before} → {after} ({change}, {percent} interval {interval})"


@dataclass(frozen=True, eq=False)
class Improvement:
    """The change of the choices from new lists by adapting (S sentences).

    Attributes:
        lists: with references, or the column that the posterior was adapted to.
        before: (S,) positions that the baseline chooses.
        after: (S,) positions of the predictive decisions.
        scores: of both.
        changes: of each metric, the criterion first; the length last.
        criterion: of the posterior, if it has corpus scores; else TER.
        baseline: the canonical weights; if there are none, the best simple way to choose, as
            selected on the adaptation sentences.
        comparison: with all baselines, if the lists are judged or there are no canonical weights.
        left_out: the number of sentences without a gain before or after, which are not included.

    >>> import numpy as np
    >>> texts, references = [["bad", "good"]], [("good",)]
    >>> lists = NBest.from_lists(texts, [[[1.0], [0.0]]], ["LM0"], references=references)
    >>> from bpa_ppl.posterior import Draws
    >>> constants = {"canonical": [1.0]}
    >>> posterior = Draws(
    ...     {"weights": np.full((1, 1, 1), -1.0)}, ("LM0",), kind="point", constants=constants
    ... )
    >>> from bpa_ppl.decoding.improvement import evaluate_improvement
    >>> result = evaluate_improvement(lists, posterior)
    >>> result.after.tolist(), result.verdict, result.baseline
    ([1], 'yes', 'canonical weights')
    """

    lists: NBest
    before: Int64
    after: Int64
    scores: Scoreboard
    changes: tuple[Change, ...]
    criterion: Metric
    baseline: str = CANONICAL
    comparison: BaselineComparison | None = None
    left_out: int = 0

    @property
    def verdict(self) -> str:
        """`yes`, `no`, `both` if one metric improved and another got worse, or `unknown`.

        If the criterion is a column of judgements, only it counts.
        """
        verdicts = {change.verdict for change in self._deciding}
        if not self.scores.changed:
            return "no"
        if BETTER in verdicts:
            return "both" if WORSE in verdicts else "yes"
        return "no" if WORSE in verdicts else "unknown"

    def __str__(self) -> str:
        count, changed = self.scores.sentences, self.scores.changed
        if not changed:
            return f"No: none of {count} translations changed{self._against}."
        changes = "; ".join(map(str, self._deciding))
        unjudged = f" {counted(self.left_out, 'sentence')} without a gain left out."
        return (
            f"{self._head()}: {changes}. {changed} of {count} translations changed."
            f"{unjudged if self.left_out else ''}"
        )

    @property
    def _deciding(self) -> tuple[Change, ...]:
        judged = isinstance(self.criterion, Column)
        return self.changes[:1] if judged else tuple(c for c in self.changes if c.verdict)

    @property
    def _against(self) -> str:
        return "" if self.baseline == CANONICAL else f" compared with the {self.baseline}"

    def _head(self) -> str:
        by = {
            verdict: " and ".join(c.name for c in self._deciding if c.verdict == verdict)
            for verdict in (BETTER, WORSE, UNCLEAR)
        }
        unclear = f", no significant difference in {by[UNCLEAR]}" if by[UNCLEAR] else ""
        return {
            "yes": f"Yes, it helped by {by[BETTER]}{self._against}{unclear}",
            "no": f"No, it got worse by {by[WORSE]}{self._against}{unclear}",
            "both": f"Better by {by[BETTER]}, worse by {by[WORSE]}{self._against}{unclear}",
            "unknown": f"No significant difference{self._against}",
        }[self.verdict]


@dataclass(frozen=True)
class Contribution:
    """The choices without some of the features.

    Attributes:
        what: `canonical`, `adapted`, or a description of the removed features.
        features: the removed features.
        scores: of the corpus, one a metric.
        changed: the number of translations that differ from those with all features.
    """

    what: str
    features: tuple[str, ...]
    scores: tuple[Score, ...]
    changed: int
