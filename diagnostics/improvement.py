"""Whether adapting the weights improved the choices from new lists, and which features did.

Also the sections of the report on both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpa_ppl.arrays import Int64
from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.baselines.table import CANONICAL, RANDOM, BaselineComparison, BaselineRow
from bpa_ppl.diagnostics.choices import ChoiceChanges
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Verdict
from bpa_ppl.nbest import NBest
from bpa_ppl.quality import Metric, Score
from bpa_ppl.quality.bootstrap import ScoreDifference
from bpa_ppl.quality.scoreboard import Scoreboard, length_of, metrics_of, title_of
from bpa_ppl.quality.scoring import choice_score

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
        criterion: of the posterior; if the lists lack its column, the default gain of `adapt`.
        choices: all of them, with explanations and the shares of the systems.
        baseline: the canonical weights; if there are none, the best simple way to choose, as
            selected on the adaptation sentences.
        comparison: with all baselines, if the lists are judged or there are no canonical weights.
        left_out: the number of sentences without a gain before or after, which are not included.

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
    choices: ChoiceChanges
    baseline: str = CANONICAL
    comparison: BaselineComparison | None = None
    left_out: int = 0

    @property
    def verdict(self) -> str:
        """`yes`, `no`, `both` if one metric improved and another got worse, or `unknown`.

        Without canonical weights, `yes` also needs choices that are better than random ones.
        """
        verdicts = {change.verdict for change in self._deciding}
        if not self.scores.changed:
            return "no"
        if BETTER in verdicts and WORSE in verdicts:
            return "both"
        if BETTER in verdicts:
            return "yes" if self._random is None or self._random.low > 0 else "unknown"
        return "no" if WORSE in verdicts else "unknown"

    def __str__(self) -> str:
        count, changed = self.scores.sentences, self.scores.changed
        if not changed:
            return f"No: none of {count} choices changed{self._against}.{self._than_random}"
        by = {
            verdict: " and ".join(c.name for c in self._deciding if c.verdict == verdict)
            for verdict in (BETTER, WORSE, UNCLEAR)
        }
        unclear = f", no significant difference in {by[UNCLEAR]}" if by[UNCLEAR] else ""
        answer = {
            "yes": f"Yes, it helped by {by[BETTER]}{self._against}{unclear}",
            "no": f"No, it got worse by {by[WORSE]}{self._against}{unclear}",
            "both": f"Better by {by[BETTER]}, worse by {by[WORSE]}{self._against}{unclear}",
            "unknown": f"No significant difference{self._against}",
        }[self.verdict]
        if self.verdict == "unknown" and by[BETTER]:
            answer = f"Better by {by[BETTER]}{self._against}, but not than a random candidate"
        changes = "; ".join(map(str, self._deciding))
        unjudged = f" {counted(self.left_out, 'sentence')} without a gain left out."
        return (
            f"{answer}: {changes}. {changed} of {count} choices changed."
            f"{unjudged if self.left_out else ''}{self._than_random}"
        )

    @property
    def _deciding(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.verdict)

    @property
    def _random(self) -> BaselineRow | None:
        """The comparison with a random candidate; None if there are canonical weights."""
        if self.baseline == CANONICAL or self.comparison is None:
            return None
        return self.comparison.row(RANDOM)

    @property
    def _than_random(self) -> str:
        """A sentence on the choices and a random candidate."""
        row, comparison = self._random, self.comparison
        if row is None or comparison is None:
            return ""
        verdict = "better" if row.low > 0 else "worse" if row.high < 0 else "not clearly better"
        difference, interval, _ = row.cells[-3:]
        return (
            f" The choices are {verdict} than a random candidate (mean {comparison.unit} "
            f"{difference}, {100 * PROBABILITY:g}% interval {interval})."
        )

    @property
    def _against(self) -> str:
        return "" if self.baseline == CANONICAL else f" compared with the {self.baseline}"


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


def improvement_section(
    result: Improvement, caveats: Sequence[str] = ()
) -> tuple[Verdict, Section]:
    """Return whether adapting helped, as the verdict of a page and the section that explains it.

    Args:
        result: from `evaluate_improvement`.
        caveats: reasons why the verdict may be unreliable.
    """
    passed = {"yes": True, "no": False}.get(result.verdict)
    rows = [[change.name, *change.cells, change.verdict or "–"] for change in result.changes]
    header = ("metric", "before", "after", "difference", "95% interval", "verdict")
    caption = (
        f"{result.scores.sentences} sentences. Before: {result.baseline}; after: the "
        "predictive decision. Intervals by paired bootstrap over sentences. Length: words over "
        "those of the references."
    )
    scores = (f"{title_of(score)} {score.signature}" for score in result.scores.after)
    blocks: list[Block] = [Table(header, rows, caption), *_first_listed(result)]
    if result.comparison is not None:
        blocks.append(result.comparison.block())
    blocks.append(f"Signatures: {', '.join(scores)}.")
    return Verdict(str(result), passed, caveats), Section("Did it help?", blocks)


def _first_listed(result: Improvement) -> Iterator[Block]:
    """Yield the scores of the first candidates, if the baseline chooses others."""
    if result.comparison is not None:
        return  # its table has them
    first = np.zeros(len(result.lists), np.int64)
    pairs = zip(result.lists.chosen(first), result.lists.chosen(result.before), strict=True)
    if others := sum(listed != before for listed, before in pairs):
        scores = [choice_score(result.lists, first, m) for m in metrics_of(result.criterion)]
        shown = [
            f"{title_of(score)} {score.value:.{change.decimals}f}"
            for score, change in zip(scores, result.changes, strict=False)  # the length is no score
        ]
        yield (
            "The first candidates of the lists, which most systems output, differ from the "
            f"baseline in {others} of {len(first)} sentences, and have {', '.join(shown)}."
        )


def contributions_section(rows: Sequence[Contribution], sentences: int) -> Section:
    """Return the contributions of added features as a section of a page.

    Args:
        rows: from `contributions`.
        sentences: the number of sentences.
    """
    full = next(row for row in rows if row.what == "adapted")
    header = ["choices"]
    for score in full.scores:
        header += [title_of(score), "change", *(["length"] if length_of(score) else [])]
    cells = [
        [row.what, *_scored(row, full), str(row.changed) if row is not full else ""] for row in rows
    ]
    note = (
        f"Corpus scores of {sentences} sentences, and their differences from those with all "
        "features. Choices use the posterior mean; without a feature, the mean given that its "
        "weight is 0, so that other features can replace it."
    )
    table = Table((*header, "choices that differ"), cells, note)
    return Section("What the added features contributed", (table,))


def _scored(row: Contribution, full: Contribution) -> Iterator[str]:
    for score, best in zip(row.scores, full.scores, strict=True):
        yield f"{score.value:.{score.decimals}f}"
        yield "" if row is full else f"{score.value - best.value:+.{score.decimals}f}"
        if length := length_of(score):
            yield f"{length:.3f}"
