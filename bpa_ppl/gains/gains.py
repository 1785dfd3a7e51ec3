"""Which gain a name stands for, the gain of each candidate, and corpus scores of choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64, to_members
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl._runtime.workers import count_workers, parallel_workers
from bpa_ppl.components import read_name
from bpa_ppl.errors import COLUMN, DataError, Remedy, UsageError, suggest_name
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.function import Function
from bpa_ppl.gains.metric import GAINS, Lists, Metric, References, Score
from bpa_ppl.lists.candidate_columns import numeric_columns, read_column
from bpa_ppl.lists.nbest import NBest, to_choice

_SENTENCES_PER_CALL = 16  # between two reports of progress, and handed to a worker at once


#: A gain by name, with its settings, or as a function.
AnyGain = str | Metric | Callable[..., Any]


def resolve(gain: AnyGain, lists: NBest | None = None) -> Metric:
    """Return a metric by its name in upper or lower case, with settings after it or defaults.

    A name that is not registered may be that of a column of the lists: a feature, or an extra of
    numbers; `-NAME` is a column for which lower is better. `column:column=NAME` always is a column.

    Args:
        gain: a name, a metric, or a function of (candidates[, references[, sources]]), lists of
            equal length, that returns one number each, higher is better.
        lists: lists whose columns may be named.

    Raises:
        UsageError: if there is no such metric and no such column.

    >>> from bpa_ppl import from_lists
    >>> resolve("BLEU")
    BLEU(tokenize='none', lowercase=False)
    >>> resolve("chrf:word_order=2")
    CHRF(char_order=6, word_order=2, beta=2)
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["comet"])
    >>> resolve("comet", lists), resolve("-comet", lists).lower_is_better
    (Column(column='comet', negative=False), True)
    """
    if isinstance(gain, str):
        written = read_name(gain)
        for name in (written, written.lower()):
            # `column` without a setting is a name that a column may have.
            if name in GAINS and (name != "column" or written != gain):
                return GAINS.resolve(name + gain.removeprefix(written))
        return _find_column(gain, lists)
    if callable(gain) and not isinstance(gain, type | Metric):
        return Function(function=gain)
    return GAINS.resolve(cast("Metric", gain))


def _find_column(name: str, lists: NBest | None = None) -> Metric:
    """Return the metric of a column by its name, or by `-NAME` if lower is better.

    Args:
        name: of the column.
        lists: the lists with the column; None for no lists.

    Raises:
        UsageError: if there is no such column; the message names the metrics.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["comet"])
    >>> _find_column("-comet", lists)
    Column(column='comet', negative=True)
    """
    present = () if lists is None else (*lists.feature_names, *lists.extras)
    column = name if name in present else name.removeprefix("-")
    if lists is not None and column in present:
        read_column(lists, column)  # raises an error that names a value that is not a number
        return Column(column=column, negative=column != name)
    metrics = ", ".join(metric for metric in GAINS if metric != "column")
    what = "metric" if lists is None else "gain"
    message = f"unknown {what} {name!r}{suggest_name(column, present)}: choose one of {metrics}"
    if lists is not None:
        message += ", or the column of the lists that says how good each candidate is"
    raise UsageError(message, parameter=what, code="unknown-name")


def resolve_without_lists(name: str) -> Metric:
    """Return a metric by its name, without lists: a name that is not registered is a column.

    >>> resolve_without_lists("-ter"), resolve_without_lists("ter").key
    (Column(column='ter', negative=True), 'ter')
    """
    if name in GAINS:
        return GAINS.resolve(name)
    return Column(column=name.removeprefix("-"), negative=name.startswith("-"))


def default_gain(lists: NBest, *, canonical: bool) -> str:
    """Return the default gain of lists with references: TER for translations, else chrF.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["lm"])
    >>> default_gain(lists, canonical=True), default_gain(lists, canonical=False)
    ('ter', 'chrf')
    """
    return "ter" if canonical or lists.totals is not None else "chrf"


def text_metrics() -> tuple[str, ...]:
    """Return the names of the metrics that compare texts: they need references only.

    >>> text_metrics()
    ('ter', 'bleu', 'chrf', 'ter+bleu', 'wer', 'cer')
    """
    return tuple(
        name
        for name, kind in GAINS.load()
        if isinstance(kind.needs, frozenset) and kind.needs <= {"references"}
    )


def list_reported_metrics() -> tuple[str, ...]:
    """Return the names of the metrics of texts that comparisons report.

    >>> list_reported_metrics()
    ('ter', 'bleu')
    """
    return tuple(name for name in text_metrics() if GAINS[name].reported)


def find_distinct(lists: NBest, group: Int64 | None = None) -> tuple[Int64, Int64, Int64]:
    """Return the distinct texts of each list, or of groups of lists (sentences,), group by group.

    They are (texts,) the group of each, ascending; (texts,) its number in `lists.strings`; and
    (candidates,) the distinct text of each candidate.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["b", "a", "b"], ["a"]], [[[0.0]] * 3, [[0.0]]], ["LM0"])
    >>> [part.tolist() for part in find_distinct(lists)]
    [[0, 0, 1], [0, 1, 1], [0, 1, 0, 2]]
    """
    groups = np.arange(len(lists)) if group is None else group
    count = max(len(lists.strings), 1)
    keys = np.repeat(groups, lists.sizes).astype(np.int64) * count + lists.string_index
    unique, inverse = np.unique(keys, return_inverse=True)
    return unique // count, unique % count, inverse


def corpus_score(
    candidates: Sequence[str],
    references: References | None,
    metric: str | Metric = "ter",
    *,
    sources: Sequence[str] | None = None,
) -> Score:
    """Return the corpus score of translations, as sacreBLEU computes it.

    Args:
        candidates: (sentences,) translations.
        references: (sentences,) tuples, which may differ in length, or texts; None for a metric
            that needs no references.
        metric: "ter", "bleu", "chrf", or settings such as `BLEU(lowercase=True)`.
        sources: (sentences,) source sentences, for a metric that needs them.

    Raises:
        DataError: if there are no sentences, or one of them lacks what the metric needs.
        UsageError: if the metric is unknown, or a column of n-best lists.

    >>> print(corpus_score(["the cat sat"], [("the cat sat down",)]).value)
    25.0
    """
    config = resolve(metric)
    if config.columns:
        message = f"{config.key} is a column of n-best lists: texts have no such score"
        raise UsageError(message, parameter="metric", code="not-supported")
    texts = to_members(candidates, "candidates")
    for text in texts:
        require(text, str, "candidates are one text for each sentence", "candidates")
    features = [np.zeros((1, 1))] * len(texts)
    lists = from_lists(
        [[text] for text in texts], features, ["none"], references=references, sources=sources
    )
    return score_choice(lists, np.zeros(len(texts), np.int64), config)


def score_choice(lists: NBest, choice: npt.ArrayLike, metric: str | Metric = "ter") -> Score:
    """Return the corpus score of one candidate of each list, whose positions are (sentences,).

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.75]]], ["comet"])
    >>> score_choice(lists, [1], "comet").value
    0.75
    """
    config = resolve(metric, lists)
    counts = count_statistics(select_choices(lists, choice), config)
    references = lists.references or [()] * len(lists)
    # Added from left to right, as sacreBLEU does.
    return config.score(np.cumsum(counts, axis=0)[-1], references)


def select_choices(lists: NBest, choice: npt.ArrayLike) -> NBest:
    """Return lists of one candidate each, at these positions, (sentences,)."""
    rows = lists.offsets[:-1] + to_choice(lists, choice)
    return lists.regroup(slice(None), rows, np.ones(len(lists), np.int64))


def scores_and_gains(
    lists: NBest,
    metric: Metric,
    *,
    jobs: int = 1,
    progress: Reporter | None = None,
) -> tuple[Float64, Float64]:
    """Return the sentence score and the gain of every candidate, (candidates,) each.

    Scores are in percent, by which oracles are chosen. Those of a column are in its own unit, and
    NaN where the column has no value.

    Args:
        lists: the lists, with references, sources or columns if the metric needs them.
        metric: with its settings.
        jobs: as for `gains`.
        progress: as for `gains`.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if `jobs` is not a number of workers.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "hat"]], [[[1.0], [0.0]]], ["LM0"], references=[("the cat",)]
    ... )
    >>> [part.tolist() for part in scores_and_gains(lists, resolve("ter"))]
    [[50.0, 100.0], [-1.0, -2.0]]
    """
    from joblib import delayed

    count_workers(jobs)
    texts, inverse = _find_distinct_lists(lists, metric)
    references, more = _collect_inputs(metric, lists)
    # A metric that reads columns gets all of them at once.
    step = len(lists) if metric.columns else _SENTENCES_PER_CALL
    chunks = [slice(start, start + step) for start in range(0, len(lists), step)]
    inputs = (
        (texts[c], references[c], more if metric.columns else {n: v[c] for n, v in more.items()})
        for c in chunks
    )
    parts = list[Float64]()
    with parallel_workers(jobs, prefer="threads" if metric.threads else None) as parallel:
        for part in parallel(delayed(_score_texts)(metric, *chunk) for chunk in inputs):
            parts.append(part)
            if progress is not None:
                progress(min(len(parts) * step, len(lists)), len(lists), "sentences")
    values = np.concatenate(parts)
    scores, gain = values.reshape(-1, 2)[inverse].T
    return scores, gain


def gains(
    lists: NBest,
    gain: str | Metric = "ter",
    *,
    jobs: int = 1,
    progress: Reporter | None = None,
) -> Float64:
    """Return the gain of every candidate, (candidates,), in words; higher is better.

    TER, WER: minus the edits. BLEU: sentence BLEU+1 (Lin and Och, 2004) times the reference length.
    chrF: as a fraction, times the mean reference length. CER: minus the edits of characters. A
    column or a function: its value, NaN where it has none.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat", "hat"]], [[[2.0], [1.0], [0.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> gains(lists).tolist(), gains(lists, "bleu").round(2).tolist()
    ([-1.0, 0.0, -2.0], [1.41, 2.0, 0.0])
    """
    require(lists, NBest, "gains are of n-best lists (NBest)", "lists")
    config = resolve(gain, lists)
    return scores_and_gains(lists, config, jobs=jobs, progress=progress)[1]


def count_statistics(lists: NBest, metric: str | Metric = "bleu") -> Float64:
    """Return the counts of every candidate, (candidates, S), with sacreBLEU's definitions.

    Raises:
        DataError: if a sentence lacks what the metric needs.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["the cat sat", "cat"]], [[[0.0], [1.0]]], ["LM0"], references=[["the cat sat down"]]
    ... )
    >>> count_statistics(lists, "ter").tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    config = resolve(metric, lists)
    texts, inverse = _find_distinct_lists(lists, config)
    references, more = _collect_inputs(config, lists)
    return config.counts(texts, references, **more)[inverse]


def no_references(lists: NBest, metric: Metric) -> DataError:
    """Return the error of lists without references where a metric needs them.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.7]]], ["ter"])
    >>> print(no_references(lists, resolve("ter")))
    no references, which the gain ter needs: add them, or name the column that says how good ...
    """
    columns = numeric_columns(lists)
    # A column with the name of the metric is named by a setting.
    named = f"column:column={COLUMN}" if metric.key in columns else COLUMN
    words = "name the column that says how good each candidate is"
    error = DataError(
        f"no references, which the gain {metric.key} needs",
        lists.origin,
        parameter="references",
        code="missing-references",
        remedies=["add them", Remedy(words, {"gain": named}, columns=columns)],
    )

    def read_again(changes: Mapping[str, Any]) -> Iterator[NBest]:
        read_column(lists, changes["gain"])
        yield lists

    return advise(error, read_again)


def _collect_inputs(metric: Metric, lists: NBest) -> tuple[References, dict[str, Any]]:
    """Return the references of each sentence, and the sources and columns that a metric needs."""
    references, origin, more = lists.references, lists.origin, dict[str, Any]()
    if not len(lists):
        raise DataError("no sentence to score: give lists", origin, code="no-data")
    if "references" not in metric.needs:
        references = ((),) * len(lists)
    elif references is None:
        raise no_references(lists, metric)
    elif not all(references):
        message = f"no reference of sentence {references.index(())}: give at least one"
        raise DataError(message, origin, parameter="references", code="missing-references")
    if "sources" in metric.needs:
        if lists.sources is None:
            message = f"no sources, which the gain {metric.key} needs: add them"
            raise DataError(message, origin, parameter="sources", code="missing-sources")
        more["sources"] = lists.sources
    if metric.columns:
        more["columns"] = {name: read_column(lists, name) for name in metric.columns}
    return references, more


def _find_distinct_lists(lists: NBest, metric: Metric) -> tuple[list[list[str]], Int64]:
    """Return the texts that a metric may score differently, and the one of each candidate.

    Equal texts of a list are scored once, except by a metric that reads columns.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "a"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> texts, inverse = _find_distinct_lists(lists, resolve("ter"))
    >>> texts, inverse.tolist()
    ([['a', 'b']], [0, 1, 0])
    """
    if metric.columns:
        everything = [list(lists.texts(sentence)) for sentence in range(len(lists))]
        return everything, np.arange(len(lists.features))
    group, string, inverse = find_distinct(lists)
    texts = [lists.strings[number] for number in string]
    ends = np.searchsorted(group, np.arange(len(lists) + 1))
    return [texts[start:end] for start, end in pairwise(ends)], inverse


def _score_texts(
    metric: Metric, lists: Lists, references: References, more: dict[str, Any]
) -> Float64:
    """Return the score and the gain of each text as a flat array."""
    counts = metric.counts(lists, references, **more)
    return np.column_stack([metric.sentence_values(counts), metric.gain(counts)]).ravel()
