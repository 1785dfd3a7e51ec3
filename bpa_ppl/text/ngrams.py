"""Compiled n-gram statistics: clipped matches (BLEU) and expected matches in weighted groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from bpa_ppl.arrays import Float64, Int32, Int64
from bpa_ppl.compiling import compiled
from bpa_ppl.text.words import Ragged


@njit
def _count(gram: Int32, words: Int32) -> int:
    """Return the number of occurrences of an n-gram."""
    count = 0
    for start in range(len(words) - len(gram) + 1):
        matches = 0
        while matches < len(gram) and words[start + matches] == gram[matches]:
            matches += 1
        count += matches == len(gram)
    return count


@njit
def _clip(gram: Int32, words: Int32, starts: Int64) -> int:
    """Return the maximum number of occurrences of an n-gram in a reference."""
    largest = 0
    for r in range(len(starts) - 1):
        largest = max(largest, _count(gram, words[starts[r] : starts[r + 1]]))
    return largest


@njit
def _nearest_length(length: int, starts: Int64) -> int:
    """Return the nearest reference length, of two the shorter."""
    best = starts[1] - starts[0]
    for r in range(1, len(starts) - 1):
        other = starts[r + 1] - starts[r]
        if (abs(other - length), other) < (abs(best - length), best):
            best = other
    return int(best)


@compiled
def count_matches(
    hyps: Ragged, refs: Ragged, owner: Int64, ref_list_starts: Int64, longest: int
) -> Float64:
    """Return (hypotheses, 2N + 1): matches of each order, n-grams of each, reference length.

    The matches of an n-gram are clipped at its maximum count in a reference (Papineni et al.,
    2002).

    Args:
        hyps: the numbered words of all hypotheses, and the start of each hypothesis.
        refs: the same for all references.
        owner: (hypotheses,) the sentence of each hypothesis.
        ref_list_starts: (sentences + 1,) the first reference of each sentence, then their number.
        longest: N, the maximum order.

    >>> from bpa_ppl.text.words import Vocabulary
    >>> vocabulary = Vocabulary()
    >>> hyps = vocabulary.number([["a", "b", "a", "a"]])
    >>> refs = vocabulary.number([["a", "b", "a"], ["a"]])
    >>> count_matches(hyps, refs, np.array([0]), np.array([0, 2]), 4).tolist()
    [[3.0, 2.0, 1.0, 0.0, 4.0, 3.0, 2.0, 1.0, 3.0]]
    """
    words, starts = hyps
    counts = np.zeros((len(owner), 2 * longest + 1))
    for h in range(len(owner)):
        hyp = words[starts[h] : starts[h + 1]]
        first, last = ref_list_starts[owner[h]], ref_list_starts[owner[h] + 1]
        ref_starts = refs[1][first : last + 1]
        for n in range(1, longest + 1):
            for start in range(len(hyp) - n + 1):
                gram = hyp[start : start + n]
                clip = _clip(gram, refs[0], ref_starts)
                counts[h, n - 1] += clip > 0 and _count(gram, hyp[: start + n]) <= clip
            counts[h, longest + n - 1] = max(0, len(hyp) - n + 1)
        counts[h, 2 * longest] = _nearest_length(len(hyp), ref_starts)
    return counts


def expected_matches(
    text: Ragged, group: Int64, sentence: Int64, weights: Float64, order: int
) -> Iterator[Float64]:
    """Yield for n = 1 to `order` the (members,) expected matches of n-grams within each group.

    The expected matches of a member are the sum over all occurrences of n-grams of the weights of
    all members of the group that have the n-gram.

    Args:
        text: the numbered words of sentences, and the start of each sentence.
        group: (members,) the group of each, ascending.
        sentence: (members,) its sentence; each at most once in a group.
        weights: (members,) of each.
        order: the maximum order.

    >>> text = np.array([0, 1, 0, 0, 2]), np.array([0, 3, 5])
    >>> members = np.array([0, 0]), np.array([0, 1]), np.array([0.75, 0.25])
    >>> [matches.tolist() for matches in expected_matches(text, *members, 2)]
    [[2.75, 1.25], [1.5, 0.25]]
    """
    words, starts = text
    # The number of remaining words of the sentence at each token.
    left = np.repeat(starts[1:], np.diff(starts)) - np.arange(len(words))
    grams = words.astype(np.int64)
    for n in range(1, order + 1):
        if n > 1:  # number the n-gram at each token, -1 for none, from those of order n - 1
            begins = np.flatnonzero(left >= n)
            keys = grams[begins] * (int(words.max(initial=0)) + 1) + words[begins + n - 1]
            grams = np.full(len(grams), -1, dtype=np.int64)
            grams[begins] = np.unique(keys, return_inverse=True)[1]
        yield _matches(grams, starts, group, sentence, weights)


@compiled
def _matches(
    grams: Int64, starts: Int64, group: Int64, sentence: Int64, weights: Float64
) -> Float64:
    size = grams.max() + 1 if len(grams) else 0
    posterior = np.zeros(size)
    last = np.full(size, -1, np.int64)  # the last member that added its weight
    result = np.zeros(len(group))
    first = 0
    while first < len(group):
        end = first
        while end < len(group) and group[end] == group[first]:
            for gram in grams[starts[sentence[end]] : starts[sentence[end] + 1]]:
                if gram >= 0 and last[gram] != end:
                    # Sums of other groups are discarded.
                    previous = posterior[gram] if last[gram] >= first else 0.0
                    posterior[gram], last[gram] = previous + weights[end], end
            end += 1
        for member in range(first, end):
            for gram in grams[starts[sentence[member]] : starts[sentence[member] + 1]]:
                if gram >= 0:
                    result[member] += posterior[gram]
        first = end
    return result
