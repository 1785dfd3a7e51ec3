"""The compiled parts of IBM Model 1: co-occurrence, EM, and the scoring of pairs.

Sentences are segments of an array of numbered words. For training, source sentences begin with the
empty word, number 0; for scoring, they do not. An unknown word has number -1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.text.vocabulary import Ragged

#: Concatenated rows: the start of each (and the end of the last), and their content.
Rows = tuple[Int64, Int32]


@njit(nogil=True, cache=True)
def sentences_of_words(text: Ragged, size: int) -> Rows:
    """Return for each word the sentences of its occurrences, ascending."""
    words, starts = text
    begins = np.zeros(size + 1, np.int64)
    for word in words:
        begins[word + 1] += 1
    begins = np.cumsum(begins)
    free = begins[:-1].copy()
    sentences = np.empty(len(words), np.int32)
    for s in range(len(starts) - 1):
        for word in words[starts[s] : starts[s + 1]]:
            sentences[free[word]] = s
            free[word] += 1
    return begins, sentences


@njit(nogil=True, cache=True)
def co_occurring(occurrences: Rows, source: Ragged, size: int) -> Rows:
    """Return for each source word the distinct target words of its pairs, ascending.

    Args:
        occurrences: the sentences of each target word.
        source: the source sentences.
        size: the number of source words.
    """
    begins = np.zeros(size + 1, np.int64)
    free = begins[:0]
    columns = np.empty(0, np.int32)
    for filling in (False, True):
        if filling:
            begins = np.cumsum(begins)
            free = begins[:-1].copy()
            columns = np.empty(begins[-1], np.int32)
        last = np.full(size, -1, np.int32)  # the last target word of each source word
        for e in range(len(occurrences[0]) - 1):
            for s in occurrences[1][occurrences[0][e] : occurrences[0][e + 1]]:
                for f in source[0][source[1][s] : source[1][s + 1]]:
                    if last[f] == e:
                        continue
                    last[f] = e
                    if filling:
                        columns[free[f]] = e
                        free[f] += 1
                    else:
                        begins[f + 1] += 1
    return begins, columns


@njit(nogil=True, cache=True)
def sums_of_tokens(
    starts: Int64, columns: Int32, values: Float64, occurrences: Rows, target: Ragged, size: int
) -> Float64:
    """Return (target tokens,) Σ_i t(t_j | s_i): one source word at a time, without a search."""
    words, begins = target
    sums = np.zeros(len(words))
    row = np.zeros(size)  # of the current source word; other entries are not read
    for f in range(len(starts) - 1):
        for k in range(starts[f], starts[f + 1]):
            row[columns[k]] = values[k]
        for s in occurrences[1][occurrences[0][f] : occurrences[0][f + 1]]:
            for j in range(begins[s], begins[s + 1]):
                sums[j] += row[words[j]]
    return sums


@njit(nogil=True, cache=True)
def re_estimate(
    starts: Int64,
    columns: Int32,
    values: Float64,
    occurrences: Rows,
    target: Ragged,
    shares: Float64,
    size: int,
) -> None:
    """Set each row to its expected counts, normalised: t ∝ t Σ 1/Σ_i t(t_j | s_i)."""
    words, begins = target
    row = np.zeros(size)
    for f in range(len(starts) - 1):
        for k in range(starts[f], starts[f + 1]):
            row[columns[k]] = 0.0
        for s in occurrences[1][occurrences[0][f] : occurrences[0][f + 1]]:
            for j in range(begins[s], begins[s + 1]):
                row[words[j]] += shares[j]
        total = 0.0
        for k in range(starts[f], starts[f + 1]):
            values[k] *= row[columns[k]]
            total += values[k]
        for k in range(starts[f], starts[f + 1]):
            values[k] /= total


@njit
def longest_run(starts: Int64) -> int:
    """Return the length of the longest sentence."""
    longest = 0
    for s in range(len(starts) - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return longest


@njit
def _find(starts: Int64, columns: Int32, values: Float64, f: int, e: int) -> float:
    """Return t(e | f); 0 if it is not in the table."""
    if f < 0 or e < 0:
        return 0.0
    low, high = starts[f], starts[f + 1]
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < e:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < starts[f + 1] and columns[low] == e else 0.0


@njit(nogil=True, cache=True)
def entry(starts: Int64, columns: Int32, values: Float64, f: int, e: int) -> float:
    """Return t(e | f), as `_find`."""
    return _find(starts, columns, values, f, e)


@njit(nogil=True, cache=True)
def score_by_source(
    table: tuple[Int64, Int32, Float64],
    source: Ragged,
    target: Ragged,
    source_of: Int64,
    target_of: Int64,
    begins: Int64,
) -> Float64:
    """Return 1/(l + 1) Σ_i t(t_j | s_i) of each token, sharing work in runs of one source."""
    starts, columns, values = table
    scores = np.zeros(begins[-1])
    size = 1
    for e in columns:
        size = max(size, e + 1)
    cached_run, kept, run = np.full(size, -1, np.int64), np.empty(size), 0
    for k in range(len(source_of)):
        if k and source_of[k] != source_of[k - 1]:
            run = k
        first, last = source[1][source_of[k]], source[1][source_of[k] + 1]
        shift = target[1][target_of[k]] - begins[k]
        for j in range(begins[k], begins[k + 1]):
            e = target[0][shift + j]
            if e < 0:
                continue
            if cached_run[e] != run:
                total = _find(starts, columns, values, 0, e)
                for i in range(first, last):
                    total += _find(starts, columns, values, source[0][i], e)
                cached_run[e], kept[e] = run, total / (last - first + 1)
            scores[j] = kept[e]
    return scores


@njit(nogil=True, cache=True)
def score_by_target(
    table: tuple[Int64, Int32, Float64],
    distinct: tuple[Int64, Int64],
    source: Ragged,
    target: Ragged,
    source_of: Int64,
    target_of: Int64,
    begins: Int64,
) -> Float64:
    """Return the scores of `score_by_source`, sharing work in runs of one target.

    The arguments are those of `score_by_source`, and `distinct`: the distinct words of the
    sources, the empty one first, and the index of each source token among them.
    """
    starts, columns, values = table
    words, index = distinct
    cached_run, run = np.full(len(words), -1, np.int64), 0
    kept = np.empty((len(words), longest_run(target[1])))
    scores = np.zeros(begins[-1])
    for k in range(len(source_of)):
        if k and target_of[k] != target_of[k - 1]:
            run = k
        first, last = source[1][source_of[k]], source[1][source_of[k] + 1]
        size, begin = begins[k + 1] - begins[k], target[1][target_of[k]]
        for i in range(first - 1, last):  # the empty word first
            n = index[i] if i >= first else 0
            if cached_run[n] != run:
                for j in range(size):
                    kept[n, j] = _find(starts, columns, values, words[n], target[0][begin + j])
                cached_run[n] = run
            for j in range(size):
                scores[begins[k] + j] += kept[n, j]
        for j in range(begins[k], begins[k + 1]):
            scores[j] /= last - first + 1
    return scores
