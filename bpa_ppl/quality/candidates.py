"""The distinct hypotheses of each n-best list, and their sentence scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.references import References

#: Called with the number of sentences done and the number of all.
Progress = Callable[[int, int], None]

# Sentences scored between two reports of progress, and handed to a worker at once.
_CHUNK = 16


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
    metric: Metric,
    lists: Sequence[Sequence[str]],
    references: References,
    *,
    only_best: bool,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Float64:
    """Return the sentence score of every candidate, (candidates,), in percent.

    Args:
        metric: with its settings.
        lists: the distinct texts of each sentence.
        references: one tuple a sentence.
        only_best: candidates that cannot be the best of their list may get an infinite value.
        jobs: workers; -1 takes every core.
        progress: called after each group of sentences.
    """
    parts: list[Float64] = []
    for done, part in enumerate(_parts(metric, lists, references, only_best, jobs), start=1):
        parts.append(part)
        if progress is not None:
            progress(min(done * _CHUNK, len(lists)), len(lists))
    return np.concatenate(parts)


def _parts(
    metric: Metric,
    lists: Sequence[Sequence[str]],
    references: References,
    only_best: bool,
    jobs: int,
) -> Iterator[Float64]:
    from joblib import Parallel, delayed

    work = delayed(_score_chunk)
    workers = Parallel(
        n_jobs=jobs,
        prefer="threads" if metric.threads else "processes",
        return_as="generator",
    )
    chunks = (slice(start, start + _CHUNK) for start in range(0, len(lists), _CHUNK))
    return workers(work(metric, lists[c], references[c], only_best) for c in chunks)


def _score_chunk(
    metric: Metric, lists: Sequence[Sequence[str]], references: References, only_best: bool
) -> Float64:
    return metric.sentences(lists, references, only_best=only_best)
