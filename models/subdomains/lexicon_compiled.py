"""The compiled parts of the lexicons: links numbered by their pair of words, counts and scores.

A link is a source and a target token of one sentence pair. The links of a sentence pair stand
source token by source token, and have the number of their pair of words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.text.ibm1_compiled import Rows, longest_run
from bpa_ppl.text.vocabulary import Ragged


@njit(nogil=True, cache=True)
def numbered_links(
    rows: Rows, where: Rows, source: Ragged, target: Ragged, size: int
) -> tuple[Int32, Int64]:
    """Return the numbers of all links, and where those of each sentence pair begin.

    Args:
        rows: the target words that each source word meets, ascending: a pair of words each.
        where: the sentences of each source word, as often as it stands there.
        source: the source sentences.
        target: the target sentences.
        size: how many target words there are.
    """
    starts = np.zeros(len(source[1]), np.int64)
    for s in range(len(starts) - 1):
        links = (source[1][s + 1] - source[1][s]) * (target[1][s + 1] - target[1][s])
        starts[s + 1] = starts[s] + links
    ids = np.empty(starts[-1], np.int32)
    number = np.zeros(size, np.int32)  # of the pairs of the source word at hand
    for f in range(len(rows[0]) - 1):
        for k in range(rows[0][f], rows[0][f + 1]):
            number[rows[1][k]] = k
        last = -1
        for s in where[1][where[0][f] : where[0][f + 1]]:
            if s == last:
                continue
            last = s
            words = target[0][target[1][s] : target[1][s + 1]]
            for i in range(source[1][s], source[1][s + 1]):
                if source[0][i] == f:
                    at = starts[s] + (i - source[1][s]) * len(words)
                    for j in range(len(words)):
                        ids[at + j] = number[words[j]]
    return ids, starts


@njit
def _add_up(
    words: Int32,
    own: Int32,
    along: int,
    by_source: bool,
    values: Float64,
    empty: Float64,
    sums: Float64,
) -> None:
    """Set the first of some sums to Σ t(word | given word), over the given words and the empty one.

    Args:
        words: the predicted words of a sentence pair, of one sum each.
        own: its links.
        along: how many given words it has.
        by_source: as for `expected_counts`.
        values: as for `expected_counts`.
        empty: as for `expected_counts`.
        sums: as many as words, or more.
    """
    across = len(words)
    for p in range(across):
        sums[p] = empty[words[p]]
    if by_source:
        for g in range(along):
            for p in range(across):
                sums[p] += values[own[g * across + p]]
    else:
        for p in range(across):
            for g in range(along):
                sums[p] += values[own[p * along + g]]


@njit(nogil=True, cache=True)
def expected_counts(
    links: tuple[Int32, Int64],
    given: Ragged,
    predicted: Ragged,
    by_source: bool,
    values: Float64,
    empty: Float64,
    weights: Float64,
) -> tuple[Float64, Float64]:
    """Return the expected counts of Model 1, each sentence pair with its weight.

    Args:
        links: from `numbered_links`.
        given: the sentences of the side that is given.
        predicted: those of the other.
        by_source: whether the source is given.
        values: (pairs,) t(predicted word | given word).
        empty: (predicted words,) t(predicted word | the empty word).
        weights: (sentences,) from 0 on.

    Returns:
        The counts of pairs, and of the predicted words with the empty word.
    """
    counts, alone = np.zeros(len(values)), np.zeros(len(empty))
    shares = np.empty(longest_run(predicted[1]))
    for s in range(len(weights)):
        if weights[s] == 0:
            continue
        words = predicted[0][predicted[1][s] : predicted[1][s + 1]]
        own = links[0][links[1][s] : links[1][s + 1]]
        across = len(words)
        along = given[1][s + 1] - given[1][s]
        _add_up(words, own, along, by_source, values, empty, shares)
        for p in range(across):
            shares[p] = weights[s] / shares[p] if shares[p] > 0 else 0.0
            alone[words[p]] += shares[p] * empty[words[p]]
        if by_source:
            for g in range(along):
                for p in range(across):
                    k = own[g * across + p]
                    counts[k] += shares[p] * values[k]
        else:
            for p in range(across):
                for g in range(along):
                    k = own[p * along + g]
                    counts[k] += shares[p] * values[k]
    return counts, alone


@njit(nogil=True, cache=True)
def log_probabilities(
    links: tuple[Int32, Int64],
    given: Ragged,
    predicted: Ragged,
    by_source: bool,
    values: Float64,
    empty: Float64,
    chosen: npt.NDArray[np.bool_],
) -> Float64:
    """Return (sentences,) natural log p(predicted | given) of Model 1, 0 for those not chosen.

    Args:
        links: as for `expected_counts`.
        given: as for `expected_counts`.
        predicted: as for `expected_counts`.
        by_source: as for `expected_counts`.
        values: as for `expected_counts`.
        empty: as for `expected_counts`.
        chosen: (sentences,) which are scored.
    """
    logs = np.zeros(len(given[1]) - 1)
    sums = np.empty(longest_run(predicted[1]))
    for s in np.flatnonzero(chosen):
        words = predicted[0][predicted[1][s] : predicted[1][s + 1]]
        own = links[0][links[1][s] : links[1][s + 1]]
        across = len(words)
        along = given[1][s + 1] - given[1][s]
        _add_up(words, own, along, by_source, values, empty, sums)
        for p in range(across):
            logs[s] += np.log(sums[p])
        logs[s] -= across * np.log(along + 1.0)
    return logs


@njit(nogil=True, cache=True)
def normalise(
    counts: Float64, alone: Float64, rows: Int32, size: int, prior: tuple[Float64, Float64, float]
) -> None:
    """Turn counts into probabilities, with pseudo-counts; a row without any becomes zeros.

    Args:
        counts: (pairs,).
        alone: (predicted words,) the counts of the empty word.
        rows: (pairs,) the given word of each.
        size: how many given words there are.
        prior: the probabilities (values, empty) that pseudo-counts are shared by, and how many
            a given word has.
    """
    totals = np.zeros(size)
    total = 0.0
    for k in range(len(counts)):
        counts[k] += prior[2] * prior[0][k]
        totals[rows[k]] += counts[k]
    for k in range(len(counts)):
        counts[k] = counts[k] / totals[rows[k]] if totals[rows[k]] > 0 else 0.0
    for word in range(len(alone)):
        alone[word] += prior[2] * prior[1][word]
        total += alone[word]
    for word in range(len(alone)):
        alone[word] = alone[word] / total if total > 0 else 0.0
