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
        name: of the metric, as tables print it.
        score: the score after, its difference from that before, and the interval of that.
        verdict: `better` or `worse` where the interval excludes zero, else `unclear`; empty for
            what is neither good nor bad, such as the length.
        decimals: how many are shown.
    """

    name: str
    score: ScoreDifference
    verdict: str
    decimals: int

    @property
    def cells(self) -> list[str]:
        """Before, after, difference and its interval, as they are shown."""
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
    """What adapting changed in the choices from new lists (S sentences).

    Attributes:
        lists: with references, or the column that the posterior was adapted to.
        before: (S,) position that the baseline chooses.
        after: (S,) position of the predictive decision.
        scores: of both.
        changes: of each metric, the criterion first; the length last.
        criterion: what the posterior was adapted to, if it has corpus scores; else TER.
        baseline: what chooses before: the canonical weights; where none were given, the best of
            the simple ways to choose, as selected on the adaptation sentences.
        comparison: with every baseline, where the lists are judged or no canonical weights were
            given.
        left_out: how many sentences have no gain before or after, and are not among the lists.

    >>> import numpy as np
    >>> texts, references = [["bad", "good"]], [("good",)]
    >>> lists = NBest.from_lists(texts, [[[1.0], [0.0]]], ["LM0"], references=references)
    >>> from bpa_ppl.posterior import Draws
    >>> constants = {"canonical": [1.0]}
    >>> posterior = Draws(
    ...     {"weights": np.full((1, 1, 1), -1.0)}, ("LM0",), kind="point", constants=constants
    ... )
    >>> from bpa_ppl.decoding.improvement import evaluate_improvement
    >>> found = evaluate_improvement(lists, posterior)
    >>> found.after.tolist(), found.verdict, found.baseline
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
        """`yes`, `no`, `both` where one metric got better and another worse, or `unknown`.

        Where the criterion is a column of judgements, it alone decides.
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
        named = {
            verdict: " and ".join(c.name for c in self._deciding if c.verdict == verdict)
            for verdict in (BETTER, WORSE, UNCLEAR)
        }
        unclear = f", no significant difference in {named[UNCLEAR]}" if named[UNCLEAR] else ""
        return {
            "yes": f"Yes, it helped by {named[BETTER]}{self._against}{unclear}",
            "no": f"No, it got worse by {named[WORSE]}{self._against}{unclear}",
            "both": f"Better by {named[BETTER]}, worse by {named[WORSE]}{self._against}{unclear}",
            "unknown": f"No significant difference{self._against}",
        }[self.verdict]


@dataclass(frozen=True)
class Contribution:
    """The choices under some of the features.

    Attributes:
        what: `canonical`, `adapted`, or what is left out.
        features: those that are left out.
        scores: of the corpus, one a metric.
        changed: how many translations differ from those with all features.
    """

    what: str
    features: tuple[str, ...]
    scores: tuple[Score, ...]
    changed: int
