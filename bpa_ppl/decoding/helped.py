"""Did it help? The first-best before, the choices after, on lists with references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bpa_ppl.decoding.reranking import rerank
from bpa_ppl.diagnostics.pages.page import Block, Section, SideBySide, Table, Text, Verdict
from bpa_ppl.errors import DataError
from bpa_ppl.models.preparing import criterion_of
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import as_draws
from bpa_ppl.quality import Metric, Scoreboard, compared, judged, resolve, statistics
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import ScoreDifference, score_difference
from bpa_ppl.quality.scoreboard import choice_scores, reported, title_of

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import Where
    from bpa_ppl.posterior.adapter import Posterior

_PROBABILITY = 0.95
_BETTER, _WORSE, _UNKNOWN = "better", "worse", "cannot be told"
_SHOWN = 10  # changes side by side
_MINUS = str.maketrans("-", "−")


class Change(NamedTuple):
    """The change of one corpus score.

    Attributes:
        name: of the metric, as tables print it.
        found: the score after, its difference from that before, and the interval of that.
        verdict: `better` or `worse` where the interval leaves zero out, else `cannot be told`;
            empty for what is neither good nor bad, such as the length.
        decimals: how many are shown.
    """

    name: str
    found: ScoreDifference
    verdict: str
    decimals: int

    @property
    def cells(self) -> list[str]:
        """Before, after, difference and its interval, as they are shown."""
        after, change = self.found.score, self.found.difference
        signed = [f"{x:+.{self.decimals}f}" for x in (change, self.found.low, self.found.high)]
        plain = [f"{x:.{self.decimals}f}" for x in (after - change, after)]
        return [text.translate(_MINUS) for text in (*plain, signed[0], " to ".join(signed[1:]))]

    def __str__(self) -> str:
        before, after, change, interval = self.cells
        percent = f"{100 * _PROBABILITY:g}%"
        return f"{self.name} {before} → {after} ({change}, {percent} interval {interval})"


@dataclass(frozen=True, eq=False)
class Helped:
    """What adapting did to a text (S sentences).

    Attributes:
        lists: with references, or the column that the posterior was adapted to.
        before: (S,) position of the first-best under the canonical weights; where these are not
            known, of the first of each list.
        after: (S,) position of the predictive decision.
        scores: of both.
        changes: of each metric, the criterion first; the length last.
        criterion: what the posterior was adapted to, if corpus scores can tell it; else TER.

    >>> texts, references = [["bad", "good"]], [("good",)]
    >>> lists = NBest.from_lists(texts, [[[1.0], [0.0]]], ["LM0"], references=references)
    >>> from bpa_ppl.posterior import Draws
    >>> posterior = Draws({"weights": np.full((1, 1, 1), -1.0)}, ("LM0",), kind="point")
    >>> found = helped(lists, posterior)
    >>> found.after.tolist(), found.verdict
    ([1], 'yes')
    """

    lists: NBest
    before: Int64
    after: Int64
    scores: Scoreboard
    changes: tuple[Change, ...]
    criterion: Metric

    @property
    def verdict(self) -> str:
        """`yes`, `no`, `both` where one metric got better and another worse, or `unknown`."""
        found = {change.verdict for change in self.changes}
        if not self.scores.changed:
            return "no"
        if _BETTER in found:
            return "both" if _WORSE in found else "yes"
        return "no" if _WORSE in found else "unknown"

    def __str__(self) -> str:
        count, changed = self.scores.sentences, self.scores.changed
        if not changed:
            return f"No: not one of {count} translations changed."
        told = "; ".join(str(change) for change in self.changes if change.verdict)
        return f"{self._head()}: {told}. {changed} of {count} translations changed."

    def _head(self) -> str:
        named = {
            verdict: " and ".join(c.name for c in self.changes if c.verdict == verdict)
            for verdict in (_BETTER, _WORSE, _UNKNOWN)
        }
        open_ = f", and by {named[_UNKNOWN]} it cannot be told" if named[_UNKNOWN] else ""
        return {
            "yes": f"Yes, it helped by {named[_BETTER]}{open_}",
            "no": f"No, it got worse by {named[_WORSE]}{open_}",
            "both": f"Better by {named[_BETTER]}, worse by {named[_WORSE]}{open_}",
            "unknown": "Whether it helped cannot be told: no difference is clear of chance",
        }[self.verdict]


def helped(
    nbest: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    where: Where | None = None,
    seed: int = 0,
) -> Helped:
    """Hold the predictive decisions against the canonical first-best.

    Where no canonical weights were given, that is the first of each list, as most systems print it.
    A posterior that fails its check is used all the same: its report says so.

    Args:
        nbest: lists with references, or with the column that the posterior was adapted to, which
            then comes first; best ones that the posterior has not seen.
        posterior: from `adapt`, or anybody's with a variable `weights`.
        defaults: as for `rerank`.
        where: as for `rerank`.
        seed: of the paired bootstrap over sentences (Koehn 2004).

    Raises:
        DataError: if lists and posterior do not fit together, or nothing is there to score by.

    >>> lists = NBest.from_lists(
    ...     [["a cat sat", "the cat sat"]] * 9, [[[1.0], [0.0]]] * 9, ["LM0"],
    ...     references=[("the cat sat",)] * 9,
    ... )
    >>> from bpa_ppl.posterior import Draws
    >>> after = Draws({"weights": -np.ones((2, 9, 1))}, ("LM0",), constants={"canonical": [1.0]})
    >>> print(helped(lists, after).changes[0])
    TER 33.33 → 0.00 (−33.33, 95% interval −33.33 to −33.33)
    """
    draws = as_draws(posterior)
    goal = _criterion(nbest, criterion_of(draws.attrs))
    result = rerank(nbest, draws, defaults=defaults, where=where, unchecked=True)
    # Without canonical weights, nothing but the order of the lists says what the system preferred.
    unknown = draws.attrs.get("canonical_weights") == "none"
    before = np.zeros_like(result.canonical) if unknown else result.canonical
    scores = compared(nbest, before, result.choice, goal)
    metrics = list(reported(nbest, goal))
    names = [title_of(score) for score in scores.after]
    if nbest.references and all(nbest.references):
        metrics, names = [*metrics, LengthRatio()], [*names, "length"]
    pair = _chosen(nbest, before), _chosen(nbest, result.choice)
    changes = [
        _change(name, pair, metric, seed) for name, metric in zip(names, metrics, strict=True)
    ]
    return Helped(nbest, before, result.choice, scores, tuple(changes), goal)


def _criterion(nbest: NBest, goal: Metric | None) -> Metric:
    """Return what the posterior was adapted to; TER where lists lack the column that it was.

    Raises:
        DataError: if they have neither.
    """
    if goal is None or set(goal.columns) <= {*nbest.feature_names, *nbest.extras}:
        return goal or resolve("ter")
    if not nbest.references:
        raise DataError(
            f"neither references nor the column {', '.join(goal.columns)}, which the posterior "
            "was adapted to: give one of them",
            nbest.origin,
        )
    return resolve("ter")


def _chosen(nbest: NBest, choice: Int64) -> NBest:
    """Return lists of one hypothesis each."""
    return nbest.regroup(slice(None), nbest.offsets[:-1] + choice, np.ones(len(nbest), np.int64))


def _judged(pair: tuple[NBest, NBest], metric: Metric) -> tuple[NBest, NBest]:
    """Return the sentences of which both choices have a value, where the metric is a column.

    Raises:
        DataError: if there are none.
    """
    before, after = pair
    both = np.ones(len(before), bool)
    for name in metric.columns:
        both &= judged(before, name) & judged(after, name)
    if both.all():
        return pair
    if not both.any():
        raise DataError(
            f"no sentence has a value of {', '.join(metric.columns)} for both choices: judge them",
            before.origin,
        )
    return before[both], after[both]


def _change(name: str, pair: tuple[NBest, NBest], metric: Metric, seed: int) -> Change:
    before, after = (statistics(lists, metric).counts for lists in _judged(pair, metric))
    found = score_difference(after, before, metric, probability=_PROBABILITY, seed=seed)
    low, high = sorted(metric.signed(np.array([found.low, found.high])).tolist())
    verdict = _BETTER if low > 0 else _WORSE if high < 0 else _UNKNOWN
    told = "" if isinstance(metric, LengthRatio) else verdict
    return Change(name, found, told, metric.decimals)


def helped_answer(found: Helped, doubts: Sequence[str] = ()) -> tuple[Verdict, Section]:
    """Return the answer as the verdict of a page, and the section that shows it.

    Args:
        found: from `helped`.
        doubts: sentences on why the answer is not to be relied on.
    """
    passed = {"yes": True, "no": False}.get(found.verdict)
    rows = [[change.name, *change.cells, change.verdict or "–"] for change in found.changes]
    header = (
        "metric",
        "before",
        "after",
        "difference",
        f"{100 * _PROBABILITY:g}% interval",
        "verdict",
    )
    caption = (
        f"{found.scores.sentences} sentences. Before: the best by the canonical weights, or, where "
        "none were given, the first of each list; after: the predictive decision. Intervals by "
        "paired bootstrap over sentences. Length: words over those of the references."
    )
    told = (f"{title_of(score)} {score.signature}" for score in found.scores.after)
    signatures = Text(f"Signatures: {', '.join(told)}.")
    blocks: list[Block] = [Table(header, rows, caption), *_first_listed(found)]
    blocks += [*_side_by_side(found), signatures]
    return Verdict(str(found), passed, doubts), Section("Did it help?", blocks)


def _first_listed(found: Helped) -> Iterator[Block]:
    """Yield how good the first of each list is, where others were the best before."""
    first = np.zeros(len(found.lists), np.int64)
    pairs = zip(found.lists.chosen(first), found.lists.chosen(found.before), strict=True)
    if others := sum(listed != before for listed, before in pairs):
        scores = choice_scores(found.lists, first, found.criterion)
        told = [
            f"{title_of(score)} {score.value:.{change.decimals}f}"
            for score, change in zip(scores, found.changes, strict=False)  # the length is no score
        ]
        yield Text(
            f"The first of each list, which is what most systems print, is another translation in "
            f"{others} of {len(first)} sentences, and has {', '.join(told)}."
        )


def _side_by_side(found: Helped) -> Iterator[Block]:
    """Yield the largest changes, the text before and after, and what they are among all."""
    lists = found.lists
    compares = lists.references and all(lists.references)
    by = resolve("ter") if compares else found.criterion
    name = title_of(found.scores.after[0]) if by is found.criterion else "TER"
    pair = _chosen(lists, found.before), _chosen(lists, found.after)
    before, after = (statistics(one, by).counts for one in pair)
    gained = by.gain(after) - by.gain(before)
    texts = lists.chosen(found.before), lists.chosen(found.after)
    # Of a column, gains are NaN where a choice is not judged.
    differ = np.array([old != new for old, new in zip(*texts, strict=True)], bool)
    changed = np.flatnonzero(differ & np.isfinite(gained))
    if not len(changed):
        return
    order = changed[np.argsort(-np.abs(gained[changed]), kind="stable")][:_SHOWN]
    yield Text(_tally(gained[changed], name, len(order)))
    values = by.value(before), by.value(after)
    for s in order.tolist():
        old, new = (f"{value[s]:.{by.decimals}f}" for value in values)
        titles = f"before: {name} {old}", f"after: {name} {new}"
        title = f"{_gain_in_words(gained[s], name)} (sentence {lists.sentence_ids[s]})"
        yield SideBySide.of(title, _known(lists, s), titles, texts[0][s], texts[1][s])


def _tally(gained: Float64, name: str, shown: int) -> str:
    better, worse = int(np.sum(gained > 0)), int(np.sum(gained < 0))
    same = len(gained) - better - worse
    largest = f"The {shown} largest changes" if shown < len(gained) else "All changes"
    return (
        f"Of {len(gained)} translations that changed, {better} got better by {name}, {worse} worse "
        f"and {same} neither. {largest}, the largest first; what is struck out is gone, and what "
        "is underlined is new."
    )


def _gain_in_words(gain: float, name: str) -> str:
    """Say by how much a sentence changed; the gain of TER is in edits.

    >>> _gain_in_words(-1.0, "TER"), _gain_in_words(0.25, "comet"), _gain_in_words(0.0, "TER")
    ('1 edit more', 'comet better by 0.25', 'as many edits')
    """
    if name == "TER":
        edits = f"{abs(gain):g} edit{'' if abs(gain) == 1 else 's'}"
        return f"{edits} {'fewer' if gain > 0 else 'more'}" if gain else "as many edits"
    return f"{name} {'better' if gain > 0 else 'worse'} by {abs(gain):.4g}"


def _known(lists: NBest, sentence: int) -> list[tuple[str, str]]:
    """Return source and references of a sentence, as far as they are known."""
    known = [("source", lists.sources[sentence])] if lists.sources else []
    return known + [("reference", text) for text in (lists.references or {sentence: ()})[sentence]]
