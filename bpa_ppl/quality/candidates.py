"""The distinct hypotheses of each n-best list, and their sentence scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bpa_ppl import __version__
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.cache import key_of, read, write
from bpa_ppl.quality.references import References

# Sentences scored between two reports of progress, and handed to a worker at once.
_CHUNK = 16

# Fewer candidates than this are scored faster than a file is worth.
_WORTH_KEEPING = 1000


@dataclass(frozen=True, eq=False)
class Candidates:
    """Each distinct text of each list once.

    Attributes:
        lists: the distinct texts of each sentence.
        inverse: (hypotheses,) int64, where the text of each row of the n-best table stands among
            all candidates, one list after the other.
    """

    lists: list[list[str]]
    inverse: Int64


def distinct(nbest: NBest) -> Candidates:
    """Return the distinct texts of each list.

    >>> pool = NBest.from_lists([["a", "b", "a"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> found = distinct(pool)
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
    return Candidates(lists, inverse.astype(np.int64))


def score(
    nbest: NBest,
    references: References,
    metric: Metric,
    *,
    only_best: bool,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Float64:
    """Return the sentence score of every hypothesis, (hypotheses,), in percent.

    Args:
        nbest: the lists.
        references: one tuple a sentence.
        metric: with its settings.
        only_best: hypotheses that cannot be the best of their list may get an infinitely bad
            score instead of their own.
        jobs: workers; -1 takes every core.
        cache: whether scores are kept on disk and taken from there.
        progress: called after each group of sentences.

    Raises:
        UsageError: if `jobs` is 0.

    >>> from bpa_ppl.quality import BLEU
    >>> pool = NBest.from_lists([["a b", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> score(pool, [("a b",)], BLEU(), only_best=False).round(1).tolist()
    [100.0, 36.8]
    """
    if jobs == 0:
        raise UsageError("0 jobs do no work: give 1 or more, or -1 for every core")
    candidates = distinct(nbest)
    compute = partial(_compute, metric, candidates.lists, references, only_best, jobs, progress)
    size = sum(map(len, candidates.lists))
    if not cache or size < _WORTH_KEEPING:
        return compute()[candidates.inverse]
    signature = metric.signature(references, sentence=True)
    key = key_of([__version__, repr(metric), signature, only_best, candidates.lists, references])
    scores = read(key, size)
    if scores is None:
        scores = compute()
        write(key, scores)
    elif progress is not None:
        progress(len(nbest), len(nbest), "sentences")
    return scores[candidates.inverse]


def _compute(
    metric: Metric,
    lists: Sequence[Sequence[str]],
    references: References,
    only_best: bool,
    jobs: int,
    progress: Reporter | None,
) -> Float64:
    from joblib import Parallel, delayed

    work = delayed(_score_chunk)
    workers = Parallel(
        n_jobs=jobs,
        prefer="threads" if metric.threads else "processes",
        return_as="generator",
    )
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(lists), _CHUNK)]
    parts = []
    for part in workers(work(metric, lists[c], references[c], only_best) for c in chunks):
        parts.append(part)
        if progress is not None:
            progress(min(len(parts) * _CHUNK, len(lists)), len(lists), "sentences")
    return np.concatenate(parts)


def _score_chunk(
    metric: Metric, lists: Sequence[Sequence[str]], references: References, only_best: bool
) -> Float64:
    return metric.sentences(lists, references, only_best=only_best)
