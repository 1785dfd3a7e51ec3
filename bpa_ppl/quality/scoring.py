"""Scores of lists and of translations: of sentences, of a corpus, and the counts behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.caching import key_of, key_of_code, read_array, write_array
from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.base import Metric, References, Score, check_parallel, resolve
from bpa_ppl.workers import check_jobs, parallel_workers

# Sentences scored between two reports of progress, and handed to a worker at once.
_CHUNK = 16

# Fewer hypotheses than this are scored faster than a file is worth.
_WORTH_KEEPING = 1000


@dataclass(frozen=True, eq=False)
class Distinct:
    """Each distinct text of each list once.

    Attributes:
        lists: the distinct texts of each sentence.
        inverse: (hypotheses,) int64, where the text of each row of the n-best table stands among
            all distinct texts, one list after the other.
    """

    lists: list[list[str]]
    inverse: Int64


def distinct(nbest: NBest) -> Distinct:
    """Return the distinct texts of each list.

    >>> lists = NBest.from_lists([["a", "b", "a"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> found = distinct(lists)
    >>> found.lists, found.inverse.tolist()
    ([['a', 'b']], [0, 1, 0])
    """
    sentence = np.repeat(np.arange(len(nbest)), nbest.sizes)
    pairs = sentence * len(nbest.strings) + nbest.string_index
    unique, inverse = np.unique(pairs, return_inverse=True)
    owner, string = np.divmod(unique, len(nbest.strings))
    texts = [nbest.strings[i] for i in string]
    ends = np.cumsum(np.bincount(owner, minlength=len(nbest)))
    starts = np.concatenate([[0], ends[:-1]])
    lists = [texts[start:end] for start, end in zip(starts, ends, strict=True)]
    return Distinct(lists, inverse.astype(np.int64))


def corpus_score(
    hypotheses: Sequence[str],
    references: References | None,
    metric: str | Metric = "ter",
    *,
    sources: Sequence[str] | None = None,
) -> Score:
    """Return the corpus score of translations, the number that sacreBLEU gives.

    Args:
        hypotheses: one translation a sentence.
        references: one tuple a sentence; their numbers of references may differ. None for a
            metric that needs none.
        metric: "ter", "bleu", "chrf", or settings such as `BLEU(lowercase=True)`.
        sources: one source sentence each, for a metric that needs them.

    Raises:
        DataError: if there are no sentences, or one of them lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> print(corpus_score(["the cat sat"], [("the cat sat down",)]).value)
    25.0
    """
    config = resolve(metric)
    given, more = _given(config, hypotheses, references, sources).part(slice(None))
    return config.corpus(hypotheses, given, **more)


def choice_score(nbest: NBest, choice: npt.ArrayLike, metric: str | Metric = "ter") -> Score:
    """Return the corpus score of one hypothesis of each list.

    That of a column is the mean over the choices that have a value there; their number is the
    detail `NAME.judged` of the score.

    Args:
        nbest: the lists, with what the metric needs.
        choice: (sentences,) the position of a hypothesis in each list.
        metric: a name, a metric, or the name of a column of the lists.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> lists = NBest.from_lists([["a", "b"]], [[[0.5], [0.75]]], ["comet"])
    >>> choice_score(lists, [1], "comet").value
    0.75
    """
    config = resolve(metric, nbest)
    rows = nbest.offsets[:-1] + np.asarray(choice)
    chosen = nbest.regroup(slice(None), rows, np.ones(len(nbest), np.int64))
    given, more = _given_of(config, chosen).part(slice(None))
    return config.corpus([chosen.text(row) for row in range(len(chosen))], given, **more)


def sentence_scores(
    nbest: NBest,
    metric: Metric,
    *,
    only_best: bool,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Float64:
    """Return the sentence score of every hypothesis, (hypotheses,), in percent.

    That of a column is in its own unit, and NaN where the column has no value.

    Args:
        nbest: the lists, with what the metric needs.
        metric: with its settings.
        only_best: hypotheses that cannot be the best of their list may get an infinitely bad
            score instead of their own.
        jobs: workers; -1 takes every core.
        cache: whether scores are kept on disk and taken from there.
        progress: called after each group of sentences.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if `jobs` is no number of workers.

    >>> lists = NBest.from_lists(
    ...     [["a b", "b"]], [[[0.0], [1.0]]], ["LM0"], references=[("a b",)]
    ... )
    >>> sentence_scores(lists, resolve("bleu"), only_best=False).round(1).tolist()
    [100.0, 36.8]
    """
    hook = partial(metric.sentences, only_best=only_best)
    name = f"sentences of which only_best={only_best}"
    return _of_each(nbest, metric, hook, name, jobs=jobs, cache=cache, progress=progress)


def gains(
    nbest: NBest,
    metric: str | Metric = "ter",
    *,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Float64:
    """Return what every hypothesis is worth, (hypotheses,): higher is better, in words.

    TER: minus the edits. BLEU: sentence BLEU+1 (Lin and Och, 2004) times the reference length.
    chrF: the sentence score, as a fraction, times the mean reference length. `ter+bleu`: half of
    TER's and half of BLEU's. A column, or a function from Python: its value, in its own unit; NaN
    where the column has none.

    Args:
        nbest: the lists, with references if the metric needs them.
        metric: "ter", "bleu", "chrf", settings, or the name of a column of the lists.
        jobs: workers; -1 takes every core.
        cache: whether gains are kept on disk and taken from there.
        progress: called with the sentences done, those in all, and a note.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat", "hat"]], [[[2.0], [1.0], [0.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> gains(lists).tolist(), gains(lists, "bleu").round(2).tolist()
    ([-1.0, 0.0, -2.0], [1.52, 2.0, 0.62])
    """
    require(nbest, NBest, "gains are of n-best lists (NBest)")
    config = resolve(metric, nbest)
    return _of_each(nbest, config, config.gains, "gains", jobs=jobs, cache=cache, progress=progress)


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a corpus score is a function of, for each hypothesis of some lists.

    Attributes:
        metric: with its settings.
        counts: (hypotheses, S) float64, see the metric. TER: edits, reference length. BLEU:
            matches of order 1 to 4, n-grams of order 1 to 4, reference length.
    """

    metric: Metric
    counts: Float64

    def corpus(self, rows: npt.ArrayLike) -> float:
        """Return the corpus score, in percent, of one hypothesis a sentence.

        Args:
            rows: (sentences,) rows of the table.

        >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=[["b"]])
        >>> statistics(lists, "ter").corpus([1])
        0.0
        """
        return float(self.metric.value(self.counts[np.asarray(rows)].sum(axis=0)))


def statistics(nbest: NBest, metric: str | Metric = "bleu") -> Statistics:
    """Count what a metric needs to know of every hypothesis, with sacreBLEU's definitions.

    Args:
        nbest: lists with references.
        metric: one that is counted, "bleu" or "ter", settings, or the name of a column.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the corpus score of the metric is no function of such counts.

    >>> lists = NBest.from_lists(
    ...     [["the cat sat", "cat"]], [[[0.0], [1.0]]], ["LM0"], references=[["the cat sat down"]]
    ... )
    >>> statistics(lists, "ter").counts.tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    config = resolve(metric, nbest)
    references, more = _given_of(config, nbest).part(slice(None))
    found = _told_apart(nbest, config)
    counts = config.counts(found.lists, references, **more)
    return Statistics(config, counts[found.inverse])


class _Given(NamedTuple):
    """What a metric compares hypotheses with: no more than it needs."""

    references: References
    sources: Sequence[str] | None
    columns: Mapping[str, Float64] | None = None
    offsets: Int64 | None = None

    def part(self, chunk: slice) -> tuple[References, dict[str, Any]]:
        """Return what belongs to some sentences: references, and the rest by keyword if needed."""
        more: dict[str, Any] = {} if self.sources is None else {"sources": self.sources[chunk]}
        if self.columns is not None and self.offsets is not None:
            first, stop, _ = chunk.indices(len(self.offsets) - 1)
            rows = slice(self.offsets[first], self.offsets[stop])
            more["columns"] = {name: values[rows] for name, values in self.columns.items()}
        return self.references[chunk], more


def _given(
    metric: Metric,
    hypotheses: Sequence[Any] | Int64,
    references: References | None,
    sources: Sequence[str] | None,
    where: str | None = None,
) -> _Given:
    """Return what a metric needs of what there is, for one hypothesis or list a sentence."""
    if not len(hypotheses):
        raise DataError("there are no sentences to score", where)
    if metric.columns:
        raise UsageError(
            f"{metric.key} is a column of n-best lists: texts alone have no such score"
        )
    return _compared(metric, hypotheses, references, sources, where)


def _compared(
    metric: Metric,
    hypotheses: Sequence[Any] | Int64,
    references: References | None,
    sources: Sequence[str] | None,
    where: str | None,
) -> _Given:
    """Return the references and the sources that a metric needs."""
    if "references" not in metric.needs:
        references = [()] * len(hypotheses)
    elif references is None:
        raise DataError("the lists have no references: read them with references", where)
    else:
        check_parallel(hypotheses, references, where)
    if "sources" not in metric.needs:
        sources = None
    elif sources is None or len(sources) != len(hypotheses):
        raise DataError(f"{metric.key} needs the source of each sentence: give as many", where)
    return _Given(references, sources)


def _given_of(metric: Metric, nbest: NBest) -> _Given:
    if not len(nbest):
        raise DataError("there are no sentences to score", nbest.origin)
    found = _compared(metric, nbest.sizes, nbest.references, nbest.sources, nbest.origin)
    if not metric.columns:
        return found
    from bpa_ppl.quality.column import column_of

    columns = {name: column_of(nbest, name) for name in metric.columns}
    return found._replace(columns=columns, offsets=nbest.offsets)


def _told_apart(nbest: NBest, metric: Metric) -> Distinct:
    """Return the hypotheses that a metric may score differently: equal texts are one of them."""
    if not metric.columns:
        return distinct(nbest)
    texts = [nbest.texts(sentence) for sentence in range(len(nbest))]
    return Distinct(texts, np.arange(len(nbest.features)))


def _of_each(
    nbest: NBest,
    metric: Metric,
    hook: Callable[..., Float64],
    name: str,
    *,
    jobs: int,
    cache: bool,
    progress: Reporter | None,
) -> Float64:
    """Return (hypotheses,) what a hook of the metric says, from disk where it is kept there."""
    check_jobs(jobs)
    given, found = _given_of(metric, nbest), _told_apart(nbest, metric)
    size = sum(map(len, found.lists))
    kept = cache and metric.kept and not metric.columns and size >= _WORTH_KEEPING
    key = _key(metric, name, found.lists, given) if kept else None
    values = None if key is None else read_array(key, size)
    if values is None:
        values = _computed(metric, hook, found.lists, given, jobs, progress)
        if key is not None:
            write_array(key, values)
    elif progress is not None:
        progress(len(nbest), len(nbest), "sentences")
    return values[found.inverse]


def _key(metric: Metric, name: str, lists: list[list[str]], given: _Given) -> str | None:
    """Return the hash of all that the values depend on; None where the code is not known."""
    classes = [kind for kind in type(metric).__mro__ if issubclass(kind, Metric)]
    code = key_of_code([*(kind.__module__ for kind in classes), *metric.computed_by])
    if code is None:
        return None
    signature = metric.signature(given.references, sentence=True)
    what = [code, type(metric).__qualname__, repr(metric), signature, name]
    return key_of([what, lists, given.references, given.sources])


def _computed(
    metric: Metric,
    hook: Callable[..., Float64],
    lists: list[list[str]],
    given: _Given,
    jobs: int,
    progress: Reporter | None,
) -> Float64:
    from joblib import delayed

    chunks = [slice(start, start + _CHUNK) for start in range(0, len(lists), _CHUNK)]
    parts = []
    kind = "threads" if metric.threads else "local"
    with parallel_workers(jobs, kind) as parallel:
        for part in parallel(delayed(_of_chunk)(hook, lists[c], *given.part(c)) for c in chunks):
            parts.append(part)
            if progress is not None:
                progress(min(len(parts) * _CHUNK, len(lists)), len(lists), "sentences")
    return np.concatenate(parts)


def _of_chunk(
    hook: Callable[..., Float64],
    lists: Sequence[Sequence[str]],
    references: References,
    more: dict[str, Any],
) -> Float64:
    return np.asarray(hook(lists, references, **more), np.float64)
