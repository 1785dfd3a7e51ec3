"""Compiled n-gram statistics: the clipped matches of BLEU."""

from __future__ import annotations

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
