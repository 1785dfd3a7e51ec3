"""Scores of hypotheses and translations: per sentence, per corpus, and the counts behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.caching import key_of, key_of_code, read_array, write_array
from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.base import Metric, References, Score, check_parallel, resolve
from bpa_ppl.workers import check_jobs, parallel_workers

_CHUNK = 16  # sentences between two reports of progress, and handed to a worker at once
_MIN_CACHED = 1000  # fewer hypotheses are scored faster than a file is read


class Distinct(NamedTuple):
    """The distinct texts of each group of lists, group by group.

    Attributes:
        group: (texts,) the group of each, ascending.
        string: (texts,) its number in `nbest.strings`.
        inverse: (hypotheses,) the distinct text of each hypothesis.
    """

    group: Int64
    string: Int64
    inverse: Int64


def distinct(nbest: NBest, group: Int64 | None = None) -> Distinct:
    """Return the distinct texts of each list, or of groups of lists.

    Args:
        nbest: the lists.
        group: (sentences,) the group of each list; default: each list is a group.

    >>> lists = NBest.from_lists([["b", "a", "b"], ["a"]], [[[0.0]] * 3, [[0.0]]], ["LM0"])
    >>> [part.tolist() for part in distinct(lists)]
    [[0, 0, 1], [0, 1, 1], [0, 1, 0, 2]]
    """
    groups = np.arange(len(nbest)) if group is None else group
    count = max(len(nbest.strings), 1)
    keys = np.repeat(groups, nbest.sizes).astype(np.int64) * count + nbest.string_index
    unique, inverse = np.unique(keys, return_inverse=True)
    return Distinct(unique // count, unique % count, inverse)


def corpus_score(
    hypotheses: Sequence[str],
    references: References | None,
    metric: str | Metric = "ter",
    *,
    sources: Sequence[str] | None = None,
) -> Score:
    """Return the corpus score of translations, as sacreBLEU computes it.

    Args:
        hypotheses: (sentences,) translations.
        references: (sentences,) tuples, which may differ in length; None for a metric that needs
            no references.
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
        raise UsageError(f"{config.key} is a column of n-best lists: texts have no such score")
    inputs = _inputs(config, hypotheses, references, sources)
    refs, extra = inputs.part(slice(None))
    return config.corpus(hypotheses, refs, **extra)


def choice_score(nbest: NBest, choice: npt.ArrayLike, metric: str | Metric = "ter") -> Score:
    """Return the corpus score of one hypothesis of each list.

    The score of a column is the mean over the choices that have a value; their number is the detail
    `NAME.judged` of the score.

    Args:
        nbest: the lists, with references, sources or columns if the metric needs them.
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
    references, extra = _inputs_of(config, chosen).part(slice(None))
    return config.corpus([chosen.text(row) for row in range(len(chosen))], references, **extra)


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

    Scores of a column are in its own unit, and NaN where the column has no value.

    Args:
        nbest: the lists, with references, sources or columns if the metric needs them.
        metric: with its settings.
        only_best: hypotheses that cannot be the best of their list may get an infinitely bad
            score instead of their own.
        jobs: workers; -1 uses all cores.
        cache: whether scores are cached on disk.
        progress: called with the sentences done, their total, and a note.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if `jobs` is not a number of workers.

    >>> lists = NBest.from_lists(
    ...     [["a b", "b"]], [[[0.0], [1.0]]], ["LM0"], references=[("a b",)]
    ... )
    >>> sentence_scores(lists, resolve("bleu"), only_best=False).round(1).tolist()
    [100.0, 36.8]
    """
    hook = partial(metric.sentences, only_best=only_best)
    name = f"sentences only_best={only_best}"
    return _score_each(nbest, metric, hook, name, jobs=jobs, cache=cache, progress=progress)


def gains(
    nbest: NBest,
    metric: str | Metric = "ter",
    *,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Float64:
    """Return the gain of every hypothesis, (hypotheses,), in words; higher is better.

    TER: minus the edits. BLEU: sentence BLEU+1 (Lin and Och, 2004) times the reference length.
    chrF: the sentence score, as a fraction, times the mean reference length. `ter+bleu`: the mean
    of the gains of TER and BLEU. A column, or a Python function: its value, in its own unit; NaN
    where the column has none.

    Args:
        nbest: the lists, with references if the metric needs them.
        metric: "ter", "bleu", "chrf", settings, or the name of a column of the lists.
        jobs: workers; -1 uses all cores.
        cache: whether gains are cached on disk.
        progress: called with the sentences done, their total, and a note.

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
    hook = config.gains
    return _score_each(nbest, config, hook, "gains", jobs=jobs, cache=cache, progress=progress)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The counts of each hypothesis of some lists, whose sums determine a corpus score.

    Attributes:
        metric: with its settings.
        counts: (hypotheses, S) float64; see the metric. TER: edits, reference length. BLEU:
            matches of order 1 to 4, n-grams of order 1 to 4, reference length.
    """

    metric: Metric
    counts: Float64

    def corpus(self, rows: npt.ArrayLike) -> float:
        """Return the corpus score, in percent, of one hypothesis per sentence.

        Args:
            rows: (sentences,) rows of the table.

        >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=[["b"]])
        >>> statistics(lists, "ter").corpus([1])
        0.0
        """
        return float(self.metric.value(self.counts[np.asarray(rows)].sum(axis=0)))


def statistics(nbest: NBest, metric: str | Metric = "bleu") -> Statistics:
    """Return the counts of every hypothesis, with sacreBLEU's definitions.

    Args:
        nbest: lists with references.
        metric: one that is `counted`, "bleu" or "ter", settings, or the name of a column.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the corpus score of the metric is not a function of summed counts.

    >>> lists = NBest.from_lists(
    ...     [["the cat sat", "cat"]], [[[0.0], [1.0]]], ["LM0"], references=[["the cat sat down"]]
    ... )
    >>> statistics(lists, "ter").counts.tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    config = resolve(metric, nbest)
    references, extra = _inputs_of(config, nbest).part(slice(None))
    lists, inverse = distinct_lists(nbest, config)
    return Statistics(config, config.counts(lists, references, **extra)[inverse])


def no_references(origin: str | None) -> DataError:
    """Return the error of lists without references where a metric needs them.

    >>> no_references("dev.nbest").code
    'missing-references'
    """
    return DataError(
        "the lists have no references: give the references",
        origin,
        parameter="references",
        code="missing-references",
    )


class _Inputs(NamedTuple):
    """References, sources and columns, as far as a metric needs them."""

    references: References
    sources: Sequence[str] | None
    columns: Mapping[str, Float64] | None = None
    offsets: Int64 | None = None

    def part(self, chunk: slice) -> tuple[References, dict[str, Any]]:
        """Return the references of some sentences, and the other inputs as keywords."""
        extra: dict[str, Any] = {} if self.sources is None else {"sources": self.sources[chunk]}
        if self.columns is not None and self.offsets is not None:
            first, stop, _ = chunk.indices(len(self.offsets) - 1)
            rows = slice(self.offsets[first], self.offsets[stop])
            extra["columns"] = {name: values[rows] for name, values in self.columns.items()}
        return self.references[chunk], extra


def _inputs(
    metric: Metric,
    hypotheses: Sequence[Any] | Int64,
    references: References | None,
    sources: Sequence[str] | None,
    origin: str | None = None,
) -> _Inputs:
    """Return the references and the sources that a metric needs for some sentences."""
    if not len(hypotheses):
        raise DataError("there are no sentences to score", origin)
    if "references" not in metric.needs:
        references = [()] * len(hypotheses)
    elif references is None:
        raise no_references(origin)
    else:
        check_parallel(hypotheses, references, origin)
    if "sources" not in metric.needs:
        sources = None
    elif sources is None or len(sources) != len(hypotheses):
        raise DataError(
            f"{metric.key} needs the source of each sentence: give as many sources",
            origin,
            parameter="sources",
            code="missing-sources",
        )
    return _Inputs(references, sources)


def _inputs_of(metric: Metric, nbest: NBest) -> _Inputs:
    inputs = _inputs(metric, nbest.sizes, nbest.references, nbest.sources, nbest.origin)
    if not metric.columns:
        return inputs
    from bpa_ppl.quality.column import column_of

    columns = {name: column_of(nbest, name) for name in metric.columns}
    return inputs._replace(columns=columns, offsets=nbest.offsets)


def distinct_lists(nbest: NBest, metric: Metric) -> tuple[list[list[str]], Int64]:
    """Return the texts that a metric may score differently, and the one of each hypothesis.

    Equal texts of a list are scored once, except by a metric that reads columns.

    >>> lists = NBest.from_lists([["a", "b", "a"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> texts, inverse = distinct_lists(lists, resolve("ter"))
    >>> texts, inverse.tolist()
    ([['a', 'b']], [0, 1, 0])
    """
    if metric.columns:
        lists = [list(nbest.texts(sentence)) for sentence in range(len(nbest))]
        return lists, np.arange(len(nbest.features))
    group, string, inverse = distinct(nbest)
    texts = [nbest.strings[number] for number in string]
    ends = np.searchsorted(group, np.arange(len(nbest) + 1))
    return [texts[start:end] for start, end in pairwise(ends)], inverse


def _score_each(
    nbest: NBest,
    metric: Metric,
    hook: Callable[..., Float64],
    name: str,
    *,
    jobs: int,
    cache: bool,
    progress: Reporter | None,
) -> Float64:
    """Compute a method of the metric for each hypothesis, or read it from the cache.

    Args:
        nbest: the lists.
        metric: with its settings.
        hook: the method, of (lists, references, **more).
        name: of the method and its arguments, for the key of the cache.
        jobs: see `gains`, like the others.
        cache: likewise.
        progress: likewise.
    """
    check_jobs(jobs)
    inputs = _inputs_of(metric, nbest)
    lists, inverse = distinct_lists(nbest, metric)
    size = sum(map(len, lists))
    cached = cache and metric.kept and not metric.columns and size >= _MIN_CACHED
    key = _key(metric, name, lists, inputs) if cached else None
    values = None if key is None else read_array(key, size)
    if values is None:
        values = _computed(metric, hook, lists, inputs, jobs, progress)
        if key is not None:
            write_array(key, values)
    elif progress is not None:
        progress(len(nbest), len(nbest), "sentences")
    return values[inverse]


def _key(metric: Metric, name: str, lists: list[list[str]], inputs: _Inputs) -> str | None:
    """Return the cache key of scores; None if the source code is not available."""
    classes = [kind for kind in type(metric).__mro__ if issubclass(kind, Metric)]
    code = key_of_code([*(kind.__module__ for kind in classes), *metric.computed_by])
    if code is None:
        return None
    signature = metric.signature(inputs.references, sentence=True)
    content = [code, type(metric).__qualname__, repr(metric), signature, name]
    return key_of([content, lists, inputs.references, inputs.sources])


def _computed(
    metric: Metric,
    hook: Callable[..., Float64],
    lists: list[list[str]],
    inputs: _Inputs,
    jobs: int,
    progress: Reporter | None,
) -> Float64:
    """Compute `hook` in workers, chunk by chunk."""
    from joblib import delayed

    chunks = [slice(start, start + _CHUNK) for start in range(0, len(lists), _CHUNK)]
    parts = []
    kind = "threads" if metric.threads else "local"
    with parallel_workers(jobs, kind) as parallel:
        for part in parallel(delayed(_chunk)(hook, lists[c], *inputs.part(c)) for c in chunks):
            parts.append(part)
            if progress is not None:
                progress(min(len(parts) * _CHUNK, len(lists)), len(lists), "sentences")
    return np.concatenate(parts)


def _chunk(
    hook: Callable[..., Float64],
    lists: Sequence[Sequence[str]],
    references: References,
    extra: dict[str, Any],
) -> Float64:
    return np.asarray(hook(lists, references, **extra), np.float64)
