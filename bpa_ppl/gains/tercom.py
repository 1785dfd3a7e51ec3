"""Tercom's edit counts, compiled: the same as sacreBLEU's `lib_ter`, edit for edit.

TER (Snover et al., 2006) is the least number of insertions, deletions, substitutions and shifts
of blocks of words; Tercom searches for the shifts greedily. The limits, the order of the shifts
and the beam of the edit distance are sacreBLEU's. Words are integers here.

Arrays are allocated once for all sentences, and sentences are positions in an array: slices and
NumPy functions would take long to compile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl._runtime.cache import compiled

_MAX_SHIFT_SIZE = 10
_MAX_SHIFT_DISTANCE = 50
_MAX_SHIFT_CANDIDATES = 1000
_BEAM_WIDTH = 25
_OUTSIDE = 1 << 29  # the cost of cells outside of the beam
_BITS = 62  # the longest reference in one integer, without overflow
_REF = 2  # the row of the reference in `_Workspace.words`


class _Workspace(NamedTuple):
    """Arrays that are reused for all pairs of a candidate and a reference.

    Attributes:
        table: the costs of the edit distance within the beam, row by row; see `_find_band`.
        row: the costs of one row.
        words: (3, longest + 1): rows 0 and 1 alternate between the candidate and the candidate
            with a block moved; row 2 is the reference, from column 1.
        align: the last candidate word reached before or at each reference word.
        wrong: (2, longest): which words of the candidate and of the reference are not matched.
        places: (words of the vocabulary,) where each word is in the reference, as bits.
        rows: (3, longest + 1) the costs of the candidate, for `_measure_in_bits`: at which words of
            the reference the costs of a row increase and decrease, as bits, and the last cost.
    """

    table: Int32
    row: Int32
    words: Int32
    align: Int32
    wrong: Int32
    places: Int64
    rows: Int64


@njit
def _beam(n_hyp: int, n_ref: int) -> int:
    """Return how far from the diagonal costs are computed."""
    half = n_ref / n_hyp / 2
    return math.ceil(half + _BEAM_WIDTH) if half > _BEAM_WIDTH else _BEAM_WIDTH


@njit
def _find_band(i: int, ratio: float, beam: int) -> tuple[int, int, int]:
    """Return the first column of row i in the beam, the end, and where the table has column 0.

    A row has 2 · beam costs in the table, so that all rows have about n_ref + 50 · n_hyp.
    """
    low = math.floor(i * ratio) - beam
    return low, low + 2 * beam, 2 * beam * i - low


@njit
def _look_up_cost(space: _Workspace, i: int, j: int, ratio: float, beam: int) -> int:
    """Return a cost that has been computed; the first row is not in the table."""
    low, high, place = _find_band(i, ratio, beam)
    if i == 0:
        return j if j < _find_band(1, ratio, beam)[1] else _OUTSIDE
    return space.table[place + j] if low <= j < high else _OUTSIDE


@njit
def _measure_distance(
    space: _Workspace, hyp: int, n_hyp: int, n_ref: int, first: int, kept: int
) -> int:
    """Return the edit distance; the costs up to the row `first` are in the table already.

    Each row is computed in place of the one above; those up to `kept` are written to the table.
    """
    table, row, words = space.table, space.row, space.words
    ratio, beam = n_ref / n_hyp, _beam(n_hyp, n_ref)
    low, high, place = _find_band(max(first, 1), ratio, beam)
    low, high = max(low, 0), min(high, n_ref + 1)
    if first == 0:
        for j in range(high):
            row[j] = j
    else:
        for j in range(low, high):
            row[j] = table[place + j]
        if low > 0:
            row[low - 1] = _OUTSIDE
    for j in range(high, n_ref + 1):
        row[j] = _OUTSIDE
    for i in range(first + 1, n_hyp + 1):
        low, high, place = _find_band(i, ratio, beam)
        word = words[hyp, i - 1]
        corner = left = _OUTSIDE
        if low > 0:  # the beam moves right: no later row reads cells further left
            corner = row[low - 1]
            row[low - 1] = _OUTSIDE
        low, high = max(low, 0), min(high, n_ref + 1)
        for j in range(low, high):
            above = row[j]
            cost = corner + 1 if word != words[_REF, j] else corner
            if above < cost:
                cost = above + 1
            if left < cost:
                cost = left + 1
            row[j] = left = cost
            corner = above
        if i <= kept:
            for j in range(low, high):
                table[place + j] = row[j]
    result: int = row[n_ref]
    return result


@njit
def _suits_bits(n_hyp: int, n_ref: int, distance: int) -> bool:
    """Return whether `_measure_in_bits` finds all distances below this one, as if in the beam.

    A path through a cell outside of the beam, at least 24 from the diagonal, has more than
    48 − |n_hyp − n_ref| insertions and deletions.
    """
    return n_ref <= _BITS and distance + abs(n_hyp - n_ref) <= 2 * (_BEAM_WIDTH - 1)


@njit
def _prepare_bits(space: _Workspace, hyp: int, n_hyp: int, n_ref: int) -> None:
    """Write `places` and `rows` of a candidate, before its shifts are measured."""
    words, places, rows = space.words, space.places, space.rows
    for i in range(n_hyp):
        places[words[hyp, i]] = 0
    for j in range(n_ref):
        places[words[_REF, j + 1]] = 0
    for j in range(n_ref):
        places[words[_REF, j + 1]] |= 1 << j
    rows[0, 0], rows[1, 0], rows[2, 0] = (1 << n_ref) - 1, 0, n_ref
    _measure_in_bits(space, hyp, n_hyp, n_ref, 0, n_hyp)


@njit
def _measure_in_bits(
    space: _Workspace, hyp: int, n_hyp: int, n_ref: int, first: int, kept: int
) -> int:
    """Return the edit distance without a beam; a row takes a few operations (Hyyrö 2003).

    H. Hyyrö, A bit-vector algorithm for computing Levenshtein and Damerau edit distances, Nordic
    Journal of Computing 10.

    The costs of the row `first` are in `rows`; those up to `kept` are written there.
    """
    words, places, rows = space.words, space.places, space.rows
    every, last = (1 << n_ref) - 1, n_ref - 1
    more, less, cost = rows[0, first], rows[1, first], rows[2, first]
    for i in range(first, n_hyp):
        equal = places[words[hyp, i]]
        diagonal = ((((equal & more) + more) ^ more) | equal | less) & every
        rise, fall = less | (~(diagonal | more) & every), diagonal & more
        cost += ((rise >> last) & 1) - ((fall >> last) & 1)
        rise, fall = (rise << 1) | 1, fall << 1
        more, less = (fall | ~(diagonal | rise)) & every, rise & diagonal
        if i < kept:
            rows[0, i + 1], rows[1, i + 1], rows[2, i + 1] = more, less, cost
    result: int = cost
    return result


@njit
def _align(space: _Workspace, hyp: int, n_hyp: int, n_ref: int) -> None:
    """Trace the cheapest edits back, and write `align` and `wrong`.

    A match or substitution is preferred to a deletion, and a deletion to an insertion.
    """
    words, align, wrong = space.words, space.align, space.wrong
    ratio, beam = n_ref / n_hyp, _beam(n_hyp, n_ref)
    i, j = n_hyp, n_ref
    while i > 0 or j > 0:
        cost = _look_up_cost(space, i, j, ratio, beam)
        if i > 0 and j > 0:
            differs = 1 if words[hyp, i - 1] != words[_REF, j] else 0
            if cost == _look_up_cost(space, i - 1, j - 1, ratio, beam) + differs:
                i, j = i - 1, j - 1
                align[j] = i
                wrong[0, i] = wrong[1, j] = differs
                continue
        if j == 0 or (i > 0 and cost == _look_up_cost(space, i - 1, j, ratio, beam) + 1):
            i -= 1
            wrong[0, i] = 1
        else:
            j -= 1
            align[j] = i - 1
            wrong[1, j] = 1


@njit
def _move(words: Int32, hyp: int, n_hyp: int, start: int, length: int, target: int) -> int:
    """Write the candidate with one block shifted; return the first changed position.

    A target inside of the block moves the block to the right by its offset.
    """
    if target < start:
        first, middle, last = target, start, start + length
    else:
        first, middle = start, start + length
        last = target if target > middle else min(length + target, n_hyp)
    # The words from `first` to `middle` and those from `middle` to `last` change places.
    for i in range(n_hyp):
        if i < first or i >= last:
            words[1 - hyp, i] = words[hyp, i]
        elif i < first + last - middle:
            words[1 - hyp, i] = words[hyp, i + middle - first]
        else:
            words[1 - hyp, i] = words[hyp, i + middle - last]
    return first


@njit
def _find_best_shift(
    space: _Workspace, hyp: int, n_hyp: int, n_ref: int, distance: int, checked: int
) -> tuple[int, int, int, int]:
    """Return the best shift as (rank, start, target), and the number of shifts tried so far.

    Its rank is (_MAX_SHIFT_SIZE + 1) · gain + length. Of shifts with the same rank the first start
    wins, then the first target, as in Tercom.
    """
    words, align, wrong = space.words, space.align, space.wrong
    best = best_start = best_target = 0
    in_bits = _suits_bits(n_hyp, n_ref, distance)
    if in_bits:
        _prepare_bits(space, hyp, n_hyp, n_ref)
    for start in range(n_hyp):
        for ref_start in range(
            max(0, start - _MAX_SHIFT_DISTANCE), min(n_ref, start + _MAX_SHIFT_DISTANCE + 1)
        ):
            hyp_errors = ref_errors = 0
            for length in range(1, 1 + min(_MAX_SHIFT_SIZE, n_hyp - start, n_ref - ref_start)):
                if words[hyp, start + length - 1] != words[_REF, ref_start + length]:
                    break
                hyp_errors += wrong[0, start + length - 1]
                ref_errors += wrong[1, ref_start + length - 1]
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
                    first = _move(words, hyp, n_hyp, start, length, target)
                    if in_bits:
                        shifted = _measure_in_bits(space, 1 - hyp, n_hyp, n_ref, first, first)
                    else:
                        shifted = _measure_distance(space, 1 - hyp, n_hyp, n_ref, first, first)
                    rank = (_MAX_SHIFT_SIZE + 1) * (distance - shifted) + length
                    checked += 1
                    if rank > best or (
                        rank == best and start == best_start and target < best_target
                    ):
                        best, best_start, best_target = rank, start, target
                if checked >= _MAX_SHIFT_CANDIDATES:
                    return best, best_start, best_target, checked
    return best, best_start, best_target, checked


@njit(inline="always")  # compiles faster
def _count_edits(text: Int32, starts: Int64, h: int, r: int, fewest: int, space: _Workspace) -> int:
    """Return the edits of a candidate to a reference.

    Args:
        text: the words of all candidates, then of all references.
        starts: where each of them begins in `text`.
        h: the number of the candidate.
        r: the number of the reference.
        fewest: a lower bound of the edit distance for any order of the words.
        space: work space.
    """
    n_hyp, n_ref = starts[h + 1] - starts[h], starts[r + 1] - starts[r]
    if n_hyp == 0 or n_ref == 0:
        return int(n_hyp + n_ref)
    for i in range(n_hyp):
        space.words[0, i] = text[starts[h] + i]
    space.words[_REF, 0] = -1  # equal to no word
    for j in range(n_ref):
        space.words[_REF, j + 1] = text[starts[r] + j]
    # For a literal 0 Numba would compile another version of each function that it is passed to.
    zero: Any = np.int64(0)
    shifts: int
    shifts = checked = first = hyp = zero
    while True:
        distance = _measure_distance(space, hyp, n_hyp, n_ref, first, n_hyp)
        if distance <= fewest + 1:  # a shift, which costs 1, could save no more than 1
            return shifts + distance
        _align(space, hyp, n_hyp, n_ref)
        rank, start, target, checked = _find_best_shift(space, hyp, n_hyp, n_ref, distance, checked)
        gain, length = rank // (_MAX_SHIFT_SIZE + 1), rank % (_MAX_SHIFT_SIZE + 1)
        if gain == 0 or checked >= _MAX_SHIFT_CANDIDATES:
            return shifts + distance
        first = _move(space.words, hyp, n_hyp, start, length, target)
        hyp = 1 - hyp
        shifts += 1


@compiled
def lower_bounds(
    text: Int32, starts: Int64, hyps: tuple[int, int], refs: tuple[int, int], occurs: Int32
) -> Int64:
    """Return (references, candidates) edits of one list that any order of the words needs.

    They are max(|hyp|, |ref|) − overlap.

    Args:
        text: see `_count_edits`.
        starts: see `_count_edits`.
        hyps: the first candidate of the list, and the end.
        refs: the first reference, and the end.
        occurs: a zero for each word of the vocabulary.
    """
    bounds = np.empty((refs[1] - refs[0], hyps[1] - hyps[0]), np.int64)
    for r in range(refs[0], refs[1]):
        for i in range(starts[r], starts[r + 1]):
            occurs[text[i]] += 1
        for h in range(hyps[0], hyps[1]):
            overlap = 0
            for i in range(starts[h], starts[h + 1]):
                overlap += occurs[text[i]] > 0
                occurs[text[i]] -= 1
            for i in range(starts[h], starts[h + 1]):
                occurs[text[i]] += 1
            longest = max(starts[h + 1] - starts[h], starts[r + 1] - starts[r])
            bounds[r - refs[0], h - hyps[0]] = longest - overlap
        for i in range(starts[r], starts[r + 1]):
            occurs[text[i]] -= 1
    return bounds


@compiled
def count_edits(
    text: Int32, starts: Int64, hyps_of: Int64, refs_of: Int64, vocabulary: int
) -> Int64:
    """Return the edits of every candidate to the nearest of its references.

    The work space grows with the length of the texts; each call has its own, so that threads can
    call in parallel.

    Args:
        text: the words of all candidates, then of all references, numbered from 0.
        starts: where each of them begins in `text`, and the end.
        hyps_of: (sentences + 1,) the first candidate of each sentence, and the end.
        refs_of: (sentences + 1,) the first reference of each sentence, counted from the first
            candidate of all, and the end.
        vocabulary: the number of distinct words.

    >>> from bpa_ppl.text.words import Vocabulary
    >>> vocabulary = Vocabulary()
    >>> text = vocabulary.number([["b", "c", "a"], ["a", "b"], ["a", "b", "c"]])
    >>> count_edits(*text, np.array([0, 2]), np.array([2, 3]), len(vocabulary)).tolist()
    [1, 1]
    """
    edits = np.full(hyps_of[-1], np.iinfo(np.int64).max, np.int64)
    occurs = np.zeros(vocabulary, np.int32)
    longest = cells = 0
    for s in range(len(hyps_of) - 1):
        n_hyp = n_ref = 0
        for h in range(hyps_of[s], hyps_of[s + 1]):
            n_hyp = max(n_hyp, starts[h + 1] - starts[h])
        for r in range(refs_of[s], refs_of[s + 1]):
            n_ref = max(n_ref, starts[r + 1] - starts[r])
        longest = max(longest, n_hyp, n_ref)
        cells = max(cells, 2 * (n_ref + (_BEAM_WIDTH + 1) * (n_hyp + 1)))
    space = _Workspace(
        np.empty(cells, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty((3, longest + 1), np.int32),
        np.empty(longest + 1, np.int32),
        np.empty((2, longest + 1), np.int32),
        np.empty(vocabulary, np.int64),
        np.empty((3, longest + 1), np.int64),
    )
    for s in range(len(hyps_of) - 1):
        hyps = hyps_of[s], hyps_of[s + 1]
        refs = refs_of[s], refs_of[s + 1]
        bounds = lower_bounds(text, starts, hyps, refs, occurs)
        for h in range(hyps[0], hyps[1]):
            for r in range(refs[0], refs[1]):
                bound = bounds[r - refs[0], h - hyps[0]]
                if bound < edits[h]:
                    edits[h] = min(edits[h], _count_edits(text, starts, h, r, bound, space))
    return edits
