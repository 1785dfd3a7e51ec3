"""Whether adapting the weights improved the choices from new lists, and the section on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bpa_ppl.arrays import Int64
from bpa_ppl.columns import counted
from bpa_ppl.decoding.reranking import Reranker, with_defaults
from bpa_ppl.diagnostics.baselines.comparing import (
    compare_with_recorded,
    criterion,
    gains_of,
    indicators_of,
    no_gains,
    recorded_comparison,
    without_canonical,
)
from bpa_ppl.diagnostics.baselines.table import (
    CANONICAL,
    FIRST,
    RANDOM,
    BaselineComparison,
    BaselineRow,
    Baselines,
    system_column,
)
from bpa_ppl.diagnostics.choices import (
    ChoiceChanges,
    explanations,
    system_shares,
)
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Verdict
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.quality import Column, Metric
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import ScoreDifference, score_difference
from bpa_ppl.quality.scoreboard import Scoreboard, metrics_of, title_of
from bpa_ppl.quality.scoring import choice_score, one_each, statistics

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior

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
        before: (S,) positions that the baseline chooses.
        after: (S,) positions of the predictive decisions.
        scores: of both.
        changes: of each metric, the criterion first; the length last.
        criterion: of the posterior; if the lists lack its column, the default gain of `adapt`.
        choices: all of them, with explanations and the shares of the systems.
        comparison: with all baselines, if the lists are judged or there are no canonical weights.
        left_out: the number of sentences without a gain before or after, which are not included.

    >>> texts, references = [["bad", "good"]], [("good",)]
    >>> lists = NBest.from_lists(texts, [[[1.0], [0.0]]], ["LM0"], references=references)
    >>> constants = {"canonical": [1.0]}
    >>> posterior = Draws(
    ...     {"weights": np.full((1, 1, 1), -1.0)}, ("LM0",), kind="point", constants=constants
    ... )
    >>> result = evaluate_improvement(lists, posterior)
    >>> result.after.tolist(), result.verdict, result.baseline
    ([1], 'yes', 'canonical weights')
    """

    before: Int64
    after: Int64
    scores: Scoreboard
    changes: tuple[Change, ...]
    criterion: Metric
    choices: ChoiceChanges
    comparison: BaselineComparison | None = None
    left_out: int = 0

    @property
    def baseline(self) -> str:
        """The name of the baseline: the canonical weights, if there are any.

        Otherwise it is the best simple baseline, selected on the adaptation sentences.
        """
        return self.choices.baseline

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
            answer = (
                f"Better by {by[BETTER]}{self._against}, but not better than a random candidate"
            )
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


def evaluate_improvement(
    nbest: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
    seed: int = 0,
) -> Improvement:
    """Compare the predictive decisions with the choices of a baseline, on new lists.

    The baseline are the canonical weights. Where none were given, it is the best of the simple
    ways to choose, as selected on the adaptation sentences: see `bpa_ppl.compare_baselines`.
    A posterior that fails its check is used all the same. Scores are those by the criterion of the
    posterior; with TER and BLEU comes the other one.

    Args:
        nbest: lists with what the criterion of the posterior needs, references or its column; best
            ones that the posterior has not seen. Where they lack its column and have references,
            the criterion is the default gain of `adapt`.
        posterior: from `adapt`, or another one with a variable `weights`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.
        seed: of the paired bootstrap over sentences (Koehn 2004).

    Raises:
        DataError: if lists and posterior do not fit together, or have nothing to score by.

    >>> lists = NBest.from_lists(
    ...     [["a cat sat", "the cat sat"]] * 9, [[[1.0], [0.0]]] * 9, ["LM0"],
    ...     references=[("the cat sat",)] * 9,
    ... )
    >>> from bpa_ppl.posterior import Draws
    >>> after = Draws({"weights": -np.ones((2, 9, 1))}, ("LM0",), constants={"canonical": [1.0]})
    >>> print(evaluate_improvement(lists, after).changes[0])
    TER 33.33 → 0.00 (−33.33, 95% interval −33.33 to −33.33)
    """
    draws = with_defaults(as_draws(posterior), defaults)
    goal = criterion(nbest, draws)
    if goal is None:
        raise no_gains(nbest, draws)
    choices, comparison = _choices(nbest, draws, goal, moved_files)
    judged = _judged(nbest, goal, choices.before, choices.after)
    lists, before, after = nbest[judged], choices.before[judged], choices.after[judged]
    metrics = list(metrics_of(goal))
    pairs = zip(lists.chosen(before), lists.chosen(after), strict=True)
    scores = Scoreboard(
        before=tuple(choice_score(lists, before, metric) for metric in metrics),
        after=tuple(choice_score(lists, after, metric) for metric in metrics),
        changed=sum(old != new for old, new in pairs),
        sentences=len(lists),
    )
    names = [title_of(score) for score in scores.after]
    if "references" in goal.needs:
        metrics, names = [*metrics, LengthRatio()], [*names, "length"]
    pair = one_each(lists, before), one_each(lists, after)
    changes = tuple(_change(n, pair, m, seed) for n, m in zip(names, metrics, strict=True))
    left_out = len(nbest) - len(lists)
    return Improvement(before, after, scores, changes, goal, choices, comparison, left_out)


def compare_choices(
    nbest: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
) -> ChoiceChanges:
    """Compare the predictive decisions with the choices of a baseline, on lists without gains too.

    The result explains each changed choice by the features, and has the shares of the systems. The
    baseline is that of `evaluate_improvement`; where lists lack gains and the posterior records no
    baseline, it is the first candidate.

    Args:
        nbest: any lists that the posterior can rerank.
        posterior: from `adapt`, or another one with a variable `weights`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.

    Raises:
        DataError: if lists and posterior do not fit together.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.0], [0.5, 2.0]]], ["LM0", "qe"])
    >>> from bpa_ppl.posterior import Draws
    >>> draws = Draws(
    ...     {"weights": np.ones((2, 9, 2))}, ("LM0", "qe"), constants={"canonical": [1.0, 0.0]}
    ... )
    >>> changes = compare_choices(lists, draws)
    >>> changes.explanations[0].deciding, changes.baseline
    (('qe',), 'canonical weights')
    """
    draws = with_defaults(as_draws(posterior), defaults)
    return _choices(nbest, draws, criterion(nbest, draws), moved_files)[0]


def _choices(
    nbest: NBest, draws: Draws, goal: Metric | None, moved_files: MovedFiles | None
) -> tuple[ChoiceChanges, BaselineComparison | None]:
    """Return the choices before and after, and their comparison with all baselines if needed."""
    parts = list(Reranker(draws, moved_files=moved_files, unchecked=True).parts(nbest))
    prepared = NBest.concatenate([part.lists for part in parts], renumber=True)
    after = np.concatenate([part.result.choice for part in parts])
    before = np.concatenate([part.result.canonical for part in parts])
    baseline, recorded, comparison = CANONICAL, recorded_comparison(draws), None
    unknown = without_canonical(draws)
    if goal is not None and (unknown or recorded is not None):
        comparison = compare_with_recorded(draws, prepared, after, goal)
    if unknown:
        compared = comparison or recorded
        selected = Baselines(best=FIRST) if compared is None else compared.baselines
        before, baseline = selected.choice(prepared, selected.best), selected.named(selected.best)
    column = system_column(nbest, [source.column for source in indicators_of(draws)])
    judgement = goal.column if isinstance(goal, Column) else None
    changes = ChoiceChanges(
        nbest,
        before,
        after,
        baseline,
        tuple(explanations(prepared, draws, after, before)),
        tuple(system_shares(nbest, before, after, judgement=judgement, column=column)),
        column,
    )
    return changes, comparison


def _judged(nbest: NBest, metric: Metric, *choices: Int64) -> Int64:
    """Return the sentences in which all choices have a gain.

    Raises:
        DataError: if there are none.
    """
    if not isinstance(metric, Column):
        return np.arange(len(nbest))
    gains = gains_of(nbest, metric)
    judged = np.all([np.isfinite(gains[nbest.offsets[:-1] + c]) for c in choices], axis=0)
    if not judged.any():
        raise DataError(
            f"none of the chosen candidates has a {metric.column}", nbest.origin, code="no-data"
        )
    return np.flatnonzero(judged)


def _change(name: str, pair: tuple[NBest, NBest], metric: Metric, seed: int) -> Change:
    before, after = (statistics(lists, metric) for lists in pair)
    score = score_difference(after, before, metric, probability=PROBABILITY, seed=seed)
    low, high = sorted(metric.signed(np.array([score.low, score.high])).tolist())
    verdict = BETTER if low > 0 else WORSE if high < 0 else UNCLEAR
    label = "" if isinstance(metric, LengthRatio) else verdict
    return Change(name, score, label, metric.decimals)


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
    blocks: list[Block] = [Table(header, rows, caption)]
    if result.comparison is not None:
        blocks.append(result.comparison.block())
    blocks.append(f"Signatures: {', '.join(scores)}.")
    return Verdict(str(result), passed, caveats), Section("Did it help?", blocks)
