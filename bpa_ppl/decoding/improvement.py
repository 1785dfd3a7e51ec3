"""Reports: whether adapting improved the choices from new lists, and the page about a posterior."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import MINUS, as_sentence, format_count
from bpa_ppl.decoding.reranker import Reranker, with_defaults, without_features
from bpa_ppl.diagnostics.check.report import check_and_record
from bpa_ppl.diagnostics.page import Block, Headline, Section, items
from bpa_ppl.errors import DataError, UsageError, locate
from bpa_ppl.evaluation.compare_ways import BaselineComparison, NewChoices, read_comparison
from bpa_ppl.evaluation.gain import ACCURACY, choose_compared_gain, explain_missing_gains
from bpa_ppl.evaluation.paired import (
    BETTER,
    WORSE,
    Scoreboard,
    ScoreChange,
    choose_metrics,
    compare_scores,
    find_changed,
)
from bpa_ppl.evaluation.report import picture_ways, posterior_page
from bpa_ppl.evaluation.side_by_side import side_by_side
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way, find_indicators, find_system_column
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import count_statistics, select_choices
from bpa_ppl.gains.gains import gains as gains_in
from bpa_ppl.gains.judged import Judged
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.misplaced import check_references
from bpa_ppl.gains.preferences import choice_sets, has_preferences
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.opening import open_to_show
from bpa_ppl.weight_draws import WeightDraws, as_weight_draws, find_ids

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.arviz_data import Posterior

#: How an answer begins, by verdict.
_ANSWERS = {
    "yes": "Yes, it helped",
    "no": "No, it got worse",
    "both": "Better by one metric, worse by another,",
    "unknown": "It is not clear whether it helped",
}
_MAX_CHANGES = 10  # shown side by side
_FAILED = "The draws failed their check: reranking refuses them unless it is run unchecked."
_SAME_LISTS = "These are the lists that the weights were adapted to: evaluate on new ones."


@dataclass(frozen=True, eq=False, kw_only=True)
class Improvement(Scoreboard):
    """The change of the choices from new lists by adapting.

    The changes are those of each metric, the gain first; or of the accuracy on preferences; none if
    the lists have nothing to score by. The sentences are those with a gain before and after.

    Attributes:
        lists: the lists (S sentences).
        before: (S,) positions that the baseline chooses.
        after: (S,) positions of the predictive decisions.
        scores: (2, S) their scores λ·h, by the posterior mean.
        system_column: the extra of the lists that names the systems; empty if there is none.
        gain: of the posterior; if the lists lack its column, the default gain of `adapt`;
            None for preferences, and if there is nothing to score by.
        comparison: with all baselines; None if there are no gains.
        unknown: why it is unknown whether adapting helped; empty if there are gains.

    >>> from bpa_ppl import from_lists
    >>> texts, references = [["bad", "good"]], [("good",)]
    >>> lists = from_lists(texts, [[[1.0], [0.0]]], ["LM0"], references=references)
    >>> constants = {"canonical": [1.0]}
    >>> from bpa_ppl.weight_draws import name_weights
    >>> worse = np.full((1, 1, 1), -1.0)
    >>> posterior = name_weights(worse, ("LM0",), kind="point", constants=constants)
    >>> result = evaluate_improvement(lists, posterior)
    >>> result.after.tolist(), result.verdict, result.baseline
    ([1], 'unknown', 'canonical weights')
    """

    lists: NBest
    before: Int64
    after: Int64
    scores: Float64
    system_column: str
    gain: Metric | None = None
    comparison: BaselineComparison | None = None
    unknown: str = ""

    @property
    def baseline(self) -> str:
        """How the choices before were made: by canonical weights, or else the best simple way."""
        return self.titles[0]

    @property
    def verdict(self) -> str:
        """`yes`, `no`, `both` if one metric improved and another got worse, or `unknown`.

        Without canonical weights, `yes` also needs choices that are better than random ones.
        """
        verdicts = {change.verdict for change in self.changes}
        if not self.changed:
            return "unknown" if self.unknown else "no"
        if BETTER in verdicts and WORSE in verdicts:
            return "both"
        if BETTER in verdicts:
            random = None if self.comparison is None else self.comparison.row(Way.RANDOM)
            beaten = random is None or random.verdict == BETTER
            return "yes" if beaten or self.baseline == Way.CANONICAL else "unknown"
        return "no" if WORSE in verdicts else "unknown"

    def __str__(self) -> str:
        if self.unknown:
            return f"It is unknown whether it helped: {self.unknown}."
        against, verdict = f"compared with the {self.baseline}", self.verdict
        sentences = [f"No: none of {self.sentences} choices changed {against}."]
        if self.changed:
            scores = "; ".join(f"{one}, {one.verdict}" for one in self.changes if one.verdict)
            sentences = [f"{_ANSWERS[verdict]} {against}: {scores}."]
            sentences.append(f"{self.changed} of {self.sentences} choices changed.")
            if left_out := len(self.lists) - self.sentences:
                lacking = "a gain" if self.gain is not None else "a preference"
                sentences.append(
                    f"{format_count(left_out, 'sentence')} without {lacking} left out."
                )
        if self.comparison is not None and self.changed:
            texts = map(self.comparison.sentence, self.comparison.others)
            sentences += map(as_sentence, texts)
        return " ".join(sentences)


def evaluate_improvement(
    lists: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
    unchecked: bool = False,
    seed: int = 0,
) -> Improvement:
    """Compare the predictive decisions with the choices of a baseline, on new lists.

    The baseline are the canonical weights. Where none were given, it is the best of the simple
    ways to choose, as selected on the adaptation sentences: see `bpa_ppl.compare_baselines`; if the
    posterior records none and the lists have no gains, it is the first candidate.

    A posterior that fails its check is used all the same. Scores are those by the gain of the
    posterior; with TER and BLEU comes the other one.

    Args:
        lists: lists with what the gain of the posterior needs, references or its column; best
            new ones. Where they lack its column and have references, the gain is the default one of
            `adapt`. Without either, or for a posterior of preferences, it is the accuracy on their
            preferences. Without any of these, only the choices are compared.
        posterior: from `adapt`, or another one with a variable `weights`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.
        unchecked: use references that seem to be those of other lists.
        seed: of the paired bootstrap over sentences (Koehn 2004).

    Raises:
        DataError: if lists and posterior do not fit together, no chosen candidate is judged, or
            nearly all lists have the reference of a neighbour.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat sat", "the cat sat"]] * 9, [[[1.0, 0.0], [0.5, 2.0]]] * 9, ["LM0", "qe"],
    ...     references=[("the cat sat",)] * 9,
    ... )
    >>> from bpa_ppl.weight_draws import name_weights
    >>> after = name_weights(np.ones((2, 9, 2)), ("LM0", "qe"), constants={"canonical": [1.0, 0.0]})
    >>> print(evaluate_improvement(lists, after).changes[0])
    TER 33.33 → 0.00 (−33.33)
    >>> result = evaluate_improvement(lists.without("references"), after)
    >>> result.scores[:, 0].tolist(), result.verdict
    ([1.0, 2.5], 'unknown')
    """
    draws = with_defaults(as_weight_draws(posterior), defaults)
    gain = choose_compared_gain(lists, draws)
    reranker = Reranker(draws, moved_files=moved_files, unchecked=True)
    if gain is not None:
        check_references(lists, gain, unchecked=unchecked)
    chosen, comparison = reranker(lists), None
    before, after, baseline = chosen.canonical, chosen.choice, str(Way.CANONICAL)
    if gain is not None or has_preferences(lists):
        comparison = NewChoices(draws, gain).add(chosen.lists, after).comparison
    selected = baseline
    if draws.lacks_canonical:
        compared = comparison or read_comparison(draws.adaptation)
        row = None if compared is None else compared.baseline
        if row is None or row.scores(chosen.lists) is None:
            row = BaselineRow(Way.FIRST)
        selected, baseline, before = row.name, row.label, row.choose(chosen.lists)
    scores = chosen.lists.scores(draws.aligned(chosen.lists, draws.mean[None])[0])
    column = find_system_column(lists, [source.column for source in find_indicators(draws)])
    changes, scored, reason = tuple[ScoreChange, ...](), np.arange(len(lists)), ""
    if gain is not None:
        if isinstance(gain, Column):
            gains, first = gains_in(lists, gain), lists.offsets[:-1]
            scored = np.flatnonzero(np.isfinite(gains[first + before] + gains[first + after]))
            if not scored.size:
                message = f"no {gain.column} of a chosen candidate: judge them"
                raise DataError(message, lists.origin, code="no-data")
        both, metrics = (before[scored], after[scored]), choose_metrics(gain)
        changes = compare_scores(lists[scored], *both, metrics, seed=seed)
    elif comparison is not None:
        scored = Judged.by_preferences(lists).sentences
        row, adapted = comparison.row(selected), comparison.row(Way.ADAPTED)
        if row is None or adapted is None:
            reason = "the preferred candidate is the first of each list"
        else:
            change = row.change(ACCURACY)
            changes = (replace(change, after=replace(change.after, value=adapted.gain)),)
    else:
        reason = explain_missing_gains(lists, draws).message.removeprefix(locate(lists.origin))
    return Improvement(
        changes,
        0 if reason else int(find_changed(lists, before, after)[scored].sum()),
        0 if reason else len(scored),
        (baseline, str(Way.ADAPTED)),
        lists=lists,
        before=before,
        after=after,
        scores=scores[lists.offsets[:-1] + np.stack([before, after])],
        system_column=column,
        gain=gain,
        comparison=replace(comparison, selected=selected) if comparison and not reason else None,
        unknown=reason,
    )


def describe_improvement(
    result: Improvement, caveats: Sequence[str] = ()
) -> tuple[Headline, list[Section]]:
    """Return whether adapting helped, as the verdict of a page and the section that explains it.

    Args:
        result: from `evaluate_improvement`.
        caveats: reasons why the verdict may be unreliable.

    Returns:
        the verdict, and one section; none if the lists have nothing to score by.
    """
    passed = {"yes": True, "no": False}.get(result.verdict)
    verdict = Headline(str(result), passed, list(caveats))
    if result.unknown:
        return verdict, []
    caption = f"{result.sentences} sentences. " + (
        "The interval is that of the table below."
        if result.gain is None
        else "Intervals by paired bootstrap over sentences. Length: words over those of the "
        "references."
    )
    blocks: list[Block] = [result.block(caption)]
    if result.comparison is not None:
        blocks = [*picture_ways(result.comparison), *blocks, result.comparison.block()]
        blocks += map(as_sentence, filter(None, [result.comparison.share_of_best]))
    blocks += [items(result.notes)] if result.notes else []
    return verdict, [Section("Did it help?", blocks)]


def describe_changes(result: Improvement) -> list[Section]:
    """Return the largest changes side by side, with their scores.

    These are scores by the gain, or λ·h if there is none.

    Args:
        result: from `evaluate_improvement`.

    Returns:
        one section; nothing if no choice changed.
    """
    lists, gain, values = result.lists, result.gain, result.scores
    changed = np.flatnonzero(find_changed(lists, result.before, result.after))
    if not len(changed):
        return []
    words = f"{len(changed)} of {len(lists)} choices changed compared with the {result.baseline}."
    gained = values[1] - values[0]
    if gain is not None:
        scored = [_score_sentences(lists, c, gain) for c in (result.before, result.after)]
        gains, values = (np.stack(numbers) for numbers in zip(*scored, strict=True))
        gained = gains[1] - gains[0]
        signs = np.sign(gained[changed])
        better, worse, neither = (int(np.sum(signs == sign)) for sign in (1, -1, 0))
        unjudged = len(changed) - better - worse - neither
        words = (
            f"Of {len(changed)} choices that changed, {better} got better by {gain.title}, "
            f"{worse} worse and {neither} neither"
            f"{f'; {unjudged} are not judged' if unjudged else ''}."
        )
    size = np.nan_to_num(np.abs(gained[changed]), nan=-1.0)
    shown = changed[np.argsort(-size, kind="stable")[:_MAX_CHANGES]].tolist()
    largest = f"The {len(shown)} largest changes" if len(shown) < len(changed) else "All changes"
    words += (
        f" {largest}{'' if gain else ' of the score λ·h'}, the largest first; deleted words are "
        "struck out, inserted words are underlined."
    )
    blocks: list[Block] = [words]
    systems = lists.extras[result.system_column] if result.system_column else None
    for s in shown:
        title, context, titles = f"list {lists.ids[s]}", [], ["before", "after"]
        positions = result.before[s], result.after[s]
        if systems is not None:
            named = (systems[lists.offsets[s] + position] or "no system" for position in positions)
            titles = [f"{of}: {name}" for of, name in zip(titles, named, strict=True)]
        scores = zip(titles, values[:, s].tolist(), strict=True)
        titles = [f"{of}, {_describe_score(value, gain)}" for of, value in scores]
        if gain is not None and np.isfinite(gained[s]):
            title = f"{_describe_gain(gained[s], gain.title)} ({title})"
        context += [("source", lists.sources[s])] if lists.sources else []
        context += [("reference", text) for text in (lists.references or {s: ()})[s]]
        texts = [lists.texts(s)[position] for position in positions]
        blocks.append(side_by_side(title, context, titles, texts))
    return [Section("Which choices changed", blocks)]


def _score_sentences(lists: NBest, choice: Int64, gain: Metric) -> tuple[Float64, Float64]:
    """Return the gain and the score of one candidate of each list; NaN where it has no value."""
    if isinstance(gain, Column):
        values = read_column(lists, gain.column)[lists.offsets[:-1] + choice]
        return gain.signed(values), values
    counts = count_statistics(select_choices(lists, choice), gain)
    return gain.gain(counts), gain.value(counts)


def _describe_score(value: float, gain: Metric | None) -> str:
    """Return the score of a sentence; judgements are often integers."""
    if gain is None:
        return f"score {value:.3f}".translate(MINUS)
    if not math.isfinite(value):
        return f"{gain.title} unknown"
    form = ".4g" if isinstance(gain, Column) else f".{gain.decimals}f"
    return f"{gain.title} {value + 0.0:{form}}".translate(MINUS)  # zero has no sign


def _describe_gain(gain: float, name: str) -> str:
    """Describe the change of a sentence; the gain of TER is in edits.

    >>> _describe_gain(-1.0, "TER"), _describe_gain(0.25, "comet"), _describe_gain(0.0, "mqm")
    ('1 edit more', 'comet better by 0.25', 'mqm unchanged')
    """
    if name == "TER":
        edits = f"{abs(gain):g} edit{'' if abs(gain) == 1 else 's'}"
        return f"{edits} {'fewer' if gain > 0 else 'more'}" if gain else "as many edits"
    if not gain:
        return f"{name} unchanged"
    return f"{name} {'better' if gain > 0 else 'worse'} by {abs(gain):.4g}"


def report_page(
    posterior: Any,
    lists: NBest | None = None,
    *,
    moved_files: MovedFiles | None = None,
    without: Iterable[str] | None = None,
    unchecked: bool = False,
    title: str = "Posterior",
    top: int = 8,
    log_weights: str | None = None,
) -> str:
    """Return a self-contained HTML page about a posterior, which `bpa report` writes.

    Args:
        posterior: draws of any program, in any form that `read_posterior` takes.
        lists: new lists: the page shows which choices changed, and, with references, judgements or
            preferences, whether adaptation helped.
        moved_files: as for `rerank`.
        without: as for `rerank`.
        unchecked: as for `evaluate_improvement`.
        title: of the page.
        top: draw the chains of at most this many variables, those that mix worst.
        log_weights: the variable with the importance weights of draws, as for `compare`.

    Raises:
        DataError: if lists and posterior do not fit together.
        UsageError: if it is not a posterior, no variable is to be shown, or what is about new lists
            comes without them.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weight_draws import name_weights
    >>> data = name_weights(np.zeros((2, 5, 1)), ("LM0",), constants={"canonical": [1.0]})
    >>> new = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"], references=[("a",)])
    >>> "Did it help?" in report_page(data, new), "Did it help?" in report_page(data)
    (True, False)
    """
    of_lists = {"moved_files": moved_files, "without": without, "unchecked": unchecked}
    name = next((name for name, value in of_lists.items() if value), None)
    if lists is None and name is not None:
        raise UsageError(f"give lists, or leave out {name}", parameter=name, code="conflict")
    draws, answer = as_draws(open_to_show(posterior, log_weights=log_weights)), None
    if lists is not None:
        weights = without_features(as_weight_draws(draws), without)
        caveats = [] if check_and_record(draws)[1] else [_FAILED]
        caveats += [_SAME_LISTS] if _are_same_lists(weights, lists) else []
        result = evaluate_improvement(lists, weights, moved_files=moved_files, unchecked=unchecked)
        verdict, sections = describe_improvement(result, caveats)
        answer = verdict, [*sections, *describe_changes(result)]
    return posterior_page(draws, title=title, top=top, answer=answer)


def _are_same_lists(draws: WeightDraws, lists: NBest) -> bool:
    """Say whether a posterior records that it was adapted to these lists: the file and the ids."""
    if draws.adaptation.lists != lists.origin:
        return False
    observed = draws.adaptation.observed
    compared = observed.kind == "preferences" and has_preferences(lists)
    lists = choice_sets(lists).lists if compared else lists
    ids, of_lists = find_ids(draws, lists)
    if ids is not None:
        return np.array_equal(ids, of_lists)
    return observed.sentences in (None, len(lists))
