"""Edit distances of words or characters, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl._runtime.cache import compiled

_BITS = 64


@njit
def _count_bits(bits: np.uint64) -> int:
    """Return the number of bits that are 1."""
    count = 0
    while bits:
        bits &= bits - np.uint64(1)
        count += 1
    return count


@compiled
def edit_distances(text: Int32, starts: Int64, rows: Int64, columns: Int64) -> Int64:
    """Return the Levenshtein distances, (rows, columns), of some sequences to others.

    That is the least number of insertions, deletions and substitutions, without the beam and the
    shifts of `tercom.count_edits`. In the table of the distances of their beginnings, neighbouring
    cells differ by −1, 0 or 1: the differences of 64 cells are two words of bits, which a few
    operations take from one unit of the row to the next (Myers 1999; Hyyrö 2003).

    Args:
        text: the units of all sequences, as integers ≥ 0.
        starts: where each of them begins in `text`, and the end.
        rows: the sequences.
        columns: the others.

    >>> text, starts = np.array([0, 1, 2, 1, 2], np.int32), np.array([0, 3, 5, 5])
    >>> edit_distances(text, starts, np.arange(3), np.array([0, 2])).tolist()
    [[0, 3], [1, 2], [3, 0]]
    """
    largest = longest = number = 0
    for unit in text:
        largest = max(largest, unit)
    for k in range(len(starts) - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    # Numbers without gaps: those of characters may be large.
    numbers, units = np.full(largest + 1, -1, np.int32), np.empty(len(text), np.int32)
    for i in range(len(text)):
        if numbers[text[i]] < 0:
            numbers[text[i]] = number
            number += 1
        units[i] = numbers[text[i]]
    zero, one, last, every = np.uint64(0), np.uint64(1), np.uint64(_BITS - 1), ~np.uint64(0)
    # The places of each unit in the column, as bits.
    occurs = np.zeros((longest // _BITS + 1, number), np.uint64)
    # Whether distances rise or fall with each unit of the row, below the cells that are done.
    rises, falls = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    distances = np.empty((len(rows), len(columns)), np.int64)
    for k in range(len(columns)):
        begin, end = starts[columns[k]], starts[columns[k] + 1]
        for i in range(begin, end):
            occurs[(i - begin) // _BITS, units[i]] |= one << np.uint64((i - begin) % _BITS)
        for r in range(len(rows)):
            start, length, stop = starts[rows[r]], starts[rows[r] + 1] - starts[rows[r]], end
            while stop > begin and length > 0 and units[stop - 1] == units[start + length - 1]:
                stop, length = stop - 1, length - 1  # a common end costs nothing
            distance = length
            for first in range(begin, stop, _BITS):
                bits, up, down = occurs[(first - begin) // _BITS], every, zero
                for i in range(length):
                    equal, rise, fall = bits[units[start + i]], one, zero
                    if first > begin:
                        rise, fall = rises[i], falls[i]
                    match = equal | fall
                    same = (((match & up) + up) ^ up) | match | down
                    right, left = down | ~(same | up), up & same
                    rises[i], falls[i] = right >> last, left >> last
                    right, left = (right << one) | rise, (left << one) | fall
                    up, down = left | ~(equal | down | right), right & (equal | down)
                inside = every >> np.uint64(max(first + _BITS - stop, 0))
                distance += _count_bits(up & inside) - _count_bits(down & inside)
            distances[r, k] = distance
        for i in range(begin, end):
            occurs[(i - begin) // _BITS, units[i]] = 0
    return distances
