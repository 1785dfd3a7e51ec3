"""Sections of reports: whether adapting helped, what features contributed, and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bpa_ppl.diagnostics.baselines.table import BaselineComparison
from bpa_ppl.diagnostics.improvement import Contribution, Improvement
from bpa_ppl.diagnostics.pages.page import Block, Section, SideBySide, Table, Text, Verdict
from bpa_ppl.nbest import Float64
from bpa_ppl.quality import resolve, statistics
from bpa_ppl.quality.scoreboard import choice_scores, length_of, title_of

_MAX_CHANGES = 10  # shown side by side


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
        blocks.append(comparison_table(result.comparison))
    blocks += [*_side_by_side(result), Text(f"Signatures: {', '.join(scores)}.")]
    return Verdict(str(result), passed, caveats), Section("Did it help?", blocks)


def _first_listed(result: Improvement) -> Iterator[Block]:
    """Yield the scores of the first candidates, if the baseline chooses others."""
    if result.comparison is not None:
        return  # its table has them
    first = np.zeros(len(result.lists), np.int64)
    pairs = zip(result.lists.chosen(first), result.lists.chosen(result.before), strict=True)
    if others := sum(listed != before for listed, before in pairs):
        scores = choice_scores(result.lists, first, result.criterion)
        shown = [
            f"{title_of(score)} {score.value:.{change.decimals}f}"
            for score, change in zip(scores, result.changes, strict=False)  # the length is no score
        ]
        yield Text(
            "The first candidates of the lists, which most systems output, differ from the "
            f"baseline in {others} of {len(first)} sentences, and have {', '.join(shown)}."
        )


def _side_by_side(result: Improvement) -> Iterator[Block]:
    """Yield a summary of all changes, and the largest ones with the text before and after."""
    lists = result.lists
    compares = lists.references and all(lists.references)
    metric = resolve("ter") if compares else result.criterion
    name = title_of(result.scores.after[0]) if metric is result.criterion else "TER"
    ones, first = np.ones(len(lists), np.int64), lists.offsets[:-1]
    before, after = (
        statistics(lists.regroup(slice(None), first + choice, ones), metric).counts
        for choice in (result.before, result.after)
    )
    gained = metric.gain(after) - metric.gain(before)
    texts = lists.chosen(result.before), lists.chosen(result.after)
    changed = np.flatnonzero([old != new for old, new in zip(*texts, strict=True)])
    if not len(changed):
        return
    order = changed[np.argsort(-np.abs(gained[changed]), kind="stable")][:_MAX_CHANGES]
    yield Text(_tally(gained[changed], name, len(order)))
    values = metric.value(before), metric.value(after)
    for s in order.tolist():
        old, new = (f"{value[s]:.{metric.decimals}f}" for value in values)
        titles = f"before: {name} {old}", f"after: {name} {new}"
        title = f"{gain_in_words(gained[s], name)} (sentence {lists.sentence_ids[s]})"
        context = [("source", lists.sources[s])] if lists.sources else []
        context += [("reference", text) for text in (lists.references or {s: ()})[s]]
        yield SideBySide.of(title, context, titles, texts[0][s], texts[1][s])


def _tally(gained: Float64, name: str, count: int) -> str:
    better, worse = int(np.sum(gained > 0)), int(np.sum(gained < 0))
    unchanged = len(gained) - better - worse
    largest = f"The {count} largest changes" if count < len(gained) else "All changes"
    return (
        f"Of {len(gained)} translations that changed, {better} got better by {name}, {worse} worse "
        f"and {unchanged} neither. {largest}, the largest first; deleted words are struck out, "
        "inserted words are underlined."
    )


def gain_in_words(gain: float, name: str) -> str:
    """Describe the change of a sentence; the gain of TER is in edits.

    >>> gain_in_words(-1.0, "TER"), gain_in_words(0.25, "comet"), gain_in_words(0.0, "TER")
    ('1 edit more', 'comet better by 0.25', 'as many edits')
    """
    if name == "TER":
        edits = f"{abs(gain):g} edit{'' if abs(gain) == 1 else 's'}"
        return f"{edits} {'fewer' if gain > 0 else 'more'}" if gain else "as many edits"
    return f"{name} {'better' if gain > 0 else 'worse'} by {abs(gain):.4g}"


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
    return Section(
        "What the added features contributed",
        (Table((*header, "choices that differ"), cells, note),),
    )


def _scored(row: Contribution, full: Contribution) -> Iterator[str]:
    for score, best in zip(row.scores, full.scores, strict=True):
        yield f"{score.value:.{score.decimals}f}"
        yield "" if row is full else f"{score.value - best.value:+.{score.decimals}f}"
        if length := length_of(score):
            yield f"{length:.3f}"


def comparison_table(comparison: BaselineComparison) -> Table:
    """Return the comparison as a table of a page.

    Args:
        comparison: from `compare_baselines`.
    """
    header, rows = comparison.table()
    explained = (
        f"Mean {comparison.unit} of each way to choose, its share of the difference between the "
        "random and the best candidate, and the difference of the adapted weights from it, with a "
        "95% interval (Student's t, paired over lists). Features and systems are those selected "
        "on the adaptation sentences."
    )
    return Table(header, rows, " ".join([explained, *comparison.notes]))


def comparison_section(comparison: BaselineComparison) -> Section:
    """Return the comparison on the adaptation sentences as a section of a page."""
    sentence = comparison.warning or comparison.summary
    statement = Text(f"{sentence[:1].upper()}{sentence[1:]}.")
    return Section("Compared with simple baselines", (statement, comparison_table(comparison)))
