"""Tercom's edit counts, compiled: the same as sacreBLEU's `lib_ter`, edit for edit.

TER (Snover et al., 2006) is the least number of insertions, deletions, substitutions and shifts
of blocks of words; Tercom searches for the shifts greedily. The limits, the order of the shifts
and the beam of the edit distance are sacreBLEU's. Words are integers here.

Loops are written out where NumPy has a function: each one that Numba brings in, with the messages
of its errors, takes as long to compile as ten lines of ours.
"""

from __future__ import annotations

import math

import numpy as np

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.nbest import Int32, Int64
from bpa_ppl.text.vocabulary import Ragged

#: In place of the edits of a hypothesis that cannot be the best of its list.
PRUNED = np.iinfo(np.int64).max

_MAX_SHIFT_SIZE = 10
_MAX_SHIFT_DISTANCE = 50
_MAX_SHIFT_CANDIDATES = 1000
_BEAM_WIDTH = 25
_OUTSIDE = 1 << 29


@inner
def _beam(row: int, n_hyp: int, n_ref: int) -> tuple[int, int]:
    """Return the columns, from and to, that the edit distance looks at in one row."""
    ratio = n_ref / n_hyp
    width = _BEAM_WIDTH
    if width < ratio / 2:
        width = math.ceil(ratio / 2 + _BEAM_WIDTH)
    diagonal = int(row * ratio)
    return max(0, diagonal - width), min(n_ref + 1, diagonal + width)


@inner
def _fill(costs: Int32, hyp: Int32, ref: Int32, first: int) -> None:
    """Compute the rows of the edit distance that follow the first `first` words of `hyp`."""
    for i in range(first + 1, len(hyp) + 1):
        low, high = _beam(i, len(hyp), len(ref))
        above, row, word = costs[i - 1], costs[i], hyp[i - 1]
        for j in range(len(row)):
            row[j] = _OUTSIDE
        if low == 0:
            row[0] = above[0] + 1
        for j in range(max(low, 1), high):
            differs = 1 if word != ref[j - 1] else 0
            row[j] = min(above[j - 1] + differs, above[j] + 1, row[j - 1] + 1)


@inner
def _align(
    costs: Int32, hyp: Int32, ref: Int32, align: Int32, hyp_wrong: Int32, ref_wrong: Int32
) -> None:
    """Walk the cheapest edits back: for each reference word the last hypothesis word reached.

    A match or substitution goes before a deletion, that before an insertion.
    """
    i, j = len(hyp), len(ref)
    while i > 0 or j > 0:
        if i > 0 and j > 0:
            differs = 1 if hyp[i - 1] != ref[j - 1] else 0
            if costs[i, j] == costs[i - 1, j - 1] + differs:
                i, j = i - 1, j - 1
                align[j] = i
                hyp_wrong[i] = ref_wrong[j] = differs
                continue
        if j == 0 or (i > 0 and costs[i, j] == costs[i - 1, j] + 1):
            i -= 1
            hyp_wrong[i] = 1
        else:
            j -= 1
            align[j] = i - 1
            ref_wrong[j] = 1


@inner
def _move(words: Int32, start: int, length: int, target: int, moved: Int32) -> int:
    """Write into `moved` the words with one block shifted; return the first changed position.

    A target inside of the block moves it to the right by as much.
    """
    if target < start:
        first, middle, last = target, start, start + length
    else:
        first, middle = start, start + length
        last = target if target > middle else min(length + target, len(words))
    # The words from `first` to `middle` and those from there to `last` change places.
    for i in range(len(words)):
        if i < first or i >= last:
            moved[i] = words[i]
        elif i < first + last - middle:
            moved[i] = words[i + middle - first]
        else:
            moved[i] = words[i + middle - last]
    return first


@inner
def _best_shift(
    costs: Int32, hyp: Int32, ref: Int32, checked: int
) -> tuple[tuple[int, int, int, int], int]:
    """Return the best shift as (gain, length, −start, −target), and how many were tried so far.

    Of several shifts the largest such tuple wins, which is Tercom's order.
    """
    n_hyp, n_ref = len(hyp), len(ref)
    align = np.empty(n_ref, np.int32)
    hyp_wrong = np.empty(n_hyp, np.int32)
    ref_wrong = np.empty(n_ref, np.int32)
    _align(costs, hyp, ref, align, hyp_wrong, ref_wrong)
    trial = np.empty(costs.shape, np.int32)
    moved = np.empty(n_hyp, np.int32)
    best = (0, 0, 0, 0)
    for start in range(n_hyp):
        for ref_start in range(
            max(0, start - _MAX_SHIFT_DISTANCE), min(n_ref, start + _MAX_SHIFT_DISTANCE + 1)
        ):
            hyp_errors = ref_errors = 0
            for length in range(1, 1 + min(_MAX_SHIFT_SIZE, n_hyp - start, n_ref - ref_start)):
                if hyp[start + length - 1] != ref[ref_start + length - 1]:
                    break
                hyp_errors += hyp_wrong[start + length - 1]
                ref_errors += ref_wrong[ref_start + length - 1]
                if hyp_errors == 0 or ref_errors == 0:
                    continue
                if start <= align[ref_start] < start + length:
                    continue
                previous = -1
                for aligned in range(ref_start - 1, min(ref_start + length, n_ref)):
                    target = 0 if aligned == -1 else align[aligned] + 1
                    if target == previous:
                        continue
                    previous = target
                    first = _move(hyp, start, length, target, moved)
                    for j in range(n_ref + 1):
                        trial[first, j] = costs[first, j]
                    _fill(trial, moved, ref, first)
                    gain = costs[n_hyp, n_ref] - trial[n_hyp, n_ref]
                    checked += 1
                    if (gain, length, -start, -target) > best:
                        best = (gain, length, -start, -target)
                if checked >= _MAX_SHIFT_CANDIDATES:
                    return best, checked
    return best, checked


@inner
def _edits(hyp: Int32, ref: Int32, fewest: int, limit: int) -> int:
    """Return the edits of one hypothesis, or PRUNED where they are sure to exceed `limit`.

    Args:
        hyp: its words.
        ref: the words of one reference.
        fewest: a lower bound of the edit distance, whatever the order of the words.
        limit: the edits that are still of interest.
    """
    if len(ref) == 0:
        return len(hyp)
    costs = np.empty((len(hyp) + 1, len(ref) + 1), np.int32)
    for j in range(len(ref) + 1):
        costs[0, j] = j
    hyp, moved = hyp.copy(), np.empty(len(hyp), np.int32)
    # No literal 0, for which a function would be compiled beside the numbers that follow it.
    shifts = checked = first = 0 * len(hyp)
    while True:
        _fill(costs, hyp, ref, first)
        distance = costs[len(hyp), len(ref)]
        if distance <= fewest + 1:  # a shift, which costs 1, could save no more than 1
            return shifts + distance
        if shifts + distance > limit and shifts + 1 + fewest > limit:
            return PRUNED
        (gain, length, start, target), checked = _best_shift(costs, hyp, ref, checked)
        if gain <= 0 or checked >= _MAX_SHIFT_CANDIDATES:
            return shifts + distance
        first = _move(hyp, -start, length, -target, moved)
        hyp, moved = moved, hyp
        shifts += 1


@inner
def _fewest(hyp: Int32, ref: Int32, counts: Int32) -> int:
    """Return the edits that no order of the words can spare: max(|hyp|, |ref|) − overlap.

    `counts` has the number of times that each word of the vocabulary occurs in the reference.
    """
    overlap = 0
    for word in hyp:
        overlap += counts[word] > 0
        counts[word] -= 1
    for word in hyp:
        counts[word] += 1
    return max(len(hyp), len(ref)) - overlap


@inner
def _nearest(hyp: Int32, refs: Ragged, fewest: Int64, limit: int) -> int:
    """Return the edits to the nearest of some references, or PRUNED."""
    best = PRUNED
    for r in range(len(fewest)):
        if fewest[r] <= limit and fewest[r] < best:
            best = min(best, _edits(hyp, _words(refs, r), fewest[r], limit))
    return best


@inner
def _words(ragged: Ragged, which: int) -> Int32:
    """Return the words of one sentence."""
    words, starts = ragged
    return words[starts[which] : starts[which + 1]]


@inner
def _bounds(hyps: Ragged, refs: Ragged, counts: Int32) -> Int64:
    """Return (hypotheses, references) edits that no order of the words can spare.

    `counts` has a zero for each word of the vocabulary, and gets them back.
    """
    bounds = np.empty((len(hyps[1]) - 1, len(refs[1]) - 1), np.int64)
    for r in range(bounds.shape[1]):
        ref = _words(refs, r)
        for word in ref:
            counts[word] += 1
        for h in range(bounds.shape[0]):
            bounds[h, r] = _fewest(_words(hyps, h), ref, counts)
        for word in ref:
            counts[word] -= 1
    return bounds


@inner
def _by_lowest(bounds: Int64) -> Int64:
    """Return the rows of some bounds, those with the lowest first."""
    lowest = np.empty(len(bounds), np.int64)
    most = 0
    for h in range(len(bounds)):
        lowest[h] = bounds[h, 0]
        for r in range(1, bounds.shape[1]):
            lowest[h] = min(lowest[h], bounds[h, r])
        most = max(most, lowest[h])
    before = np.zeros(most + 2, np.int64)
    for bound in lowest:
        before[bound + 1] += 1
    for step in range(most):
        before[step + 1] += before[step]
    order = np.empty(len(bounds), np.int64)
    for h in range(len(bounds)):
        order[before[lowest[h]]] = h
        before[lowest[h]] += 1
    return order


@inner
def _count_list(hyps: Ragged, refs: Ragged, counts: Int32, only_best: bool, edits: Int64) -> None:
    """Write the edits of the hypotheses of one list, the most promising first."""
    bounds = _bounds(hyps, refs, counts)
    limit = PRUNED - 1
    for h in _by_lowest(bounds):
        edits[h] = _nearest(_words(hyps, h), refs, bounds[h], limit)
        if only_best:
            limit = min(limit, edits[h])


@compiled
def count_edits(
    hyps: Ragged,
    refs: Ragged,
    list_starts: Int64,
    ref_list_starts: Int64,
    vocabulary: int,
    only_best: bool,
) -> Int64:
    """Return the edits of every hypothesis to the nearest of its references.

    Args:
        hyps: the words of all hypotheses, numbered from 0, and where each hypothesis begins.
        refs: the same of all references.
        list_starts: (sentences + 1,) the first hypothesis of each sentence, then their number.
        ref_list_starts: (sentences + 1,) the first reference of each sentence, then their number.
        vocabulary: how many different words there are.
        only_best: whether hypotheses that cannot have the fewest edits of their list may get
            PRUNED in place of theirs.

    >>> from bpa_ppl.text.vocabulary import Vocabulary, starts_of
    >>> vocabulary = Vocabulary()
    >>> hyps = vocabulary.number([["b", "c", "a"], ["a", "b"]])
    >>> refs = vocabulary.number([["a", "b", "c"]])
    >>> lists, ref_lists = starts_of([hyps[1][:-1]]), starts_of([refs[1][:-1]])
    >>> count_edits(hyps, refs, lists, ref_lists, len(vocabulary), False).tolist()
    [1, 1]
    """
    edits = np.empty(len(hyps[1]) - 1, np.int64)
    counts = np.zeros(vocabulary, np.int32)
    for s in range(len(list_starts) - 1):
        first, last = list_starts[s], list_starts[s + 1]
        ref_first, ref_last = ref_list_starts[s], ref_list_starts[s + 1]
        _count_list(
            (hyps[0], hyps[1][first : last + 1]),
            (refs[0], refs[1][ref_first : ref_last + 1]),
            counts,
            only_best,
            edits[first:last],
        )
    return edits
