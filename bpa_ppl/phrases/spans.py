"""Parse alignments and segmentations, and extract the spans of phrase pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.arrays import Int32, Int64
from bpa_ppl.compiling import compiled

_SPACES, _NEWLINE, _ZERO, _NINE, _HYPHEN = (32, 9, 13), 10, 48, 57, 45
_LARGEST = 1 << 24  # larger positions are clipped: they are outside any sentence


@compiled
def parse_lines(
    text: npt.NDArray[np.uint8], lines: int, separator: int
) -> tuple[Int32, Int64, int]:
    """Parse lines of pairs of positions: alignment points `0-0 1-2`, or spans `0-2=0-2 3=3`.

    Args:
        text: whole lines.
        lines: their number.
        separator: the byte between the two sides of a pair. If it is not a hyphen, each side is a
            position or a span, with its end included.

    Returns:
        (4, pairs) first and last source position, first and last target position; (lines + 1,) the
        start of each line; and the first malformed line, or −1.
    """
    capacity = 0
    for byte in text:
        capacity += byte == separator
    pairs, starts = np.empty((4, capacity), np.int32), np.zeros(lines + 1, np.int64)
    i = count = 0
    for line in range(lines):
        while text[i] != _NEWLINE:
            if text[i] in _SPACES:
                i += 1
                continue
            first, last, i = _span(text, i, separator)
            if first < 0 or text[i] != separator:
                return pairs, starts, line
            begin, end, i = _span(text, i + 1, separator)
            if begin < 0 or (text[i] != _NEWLINE and text[i] not in _SPACES):
                return pairs, starts, line
            pairs[0, count], pairs[1, count] = first, last
            pairs[2, count], pairs[3, count] = begin, end
            count += 1
        i += 1
        starts[line + 1] = count
    return pairs[:, :count], starts, -1


@njit
def _span(text: npt.NDArray[np.uint8], i: int, separator: int) -> tuple[int, int, int]:
    """Return the first and last position of a span, or −1, and the next place."""
    first, i = _number(text, i)
    if first < 0 or text[i] != _HYPHEN or separator == _HYPHEN:
        return first, first, i
    last, i = _number(text, i + 1)
    return (first if last >= first else -1), last, i


@njit
def _number(text: npt.NDArray[np.uint8], i: int) -> tuple[int, int]:
    """Return the number that begins at a place, or −1, and the next place."""
    value = -1
    while _ZERO <= text[i] <= _NINE:
        value = min(max(value, 0) * 10 + text[i] - _ZERO, _LARGEST)
        i += 1
    return value, i


@compiled
def extract_spans(
    lengths: tuple[Int64, Int64], points: tuple[Int32, Int32, Int64], longest: tuple[int, int]
) -> tuple[Int64, Int32]:
    """Return the spans of all phrase pairs that are consistent with the alignment.

    A pair has at least one point, and no word of either phrase is aligned outside the other;
    unaligned words at the borders may be included or not (Och & Ney 2004, Section 3).

    Args:
        lengths: (sentences,) the numbers of words of the source and of the target sentences.
        points: source and target positions, and the starts of the points of each sentence.
        longest: the maximum numbers of words of a source and of a target phrase.

    Returns:
        (sentences + 1,) the starts of the pairs of each sentence, and (pairs, 4): first source
        word, words, first target word, words.
    """
    spans = np.empty((1024, 4), np.int32)
    starts = np.zeros(len(lengths[0]) + 1, np.int64)
    count = 0
    for s in range(len(lengths[0])):
        low, high, outer_low, outer_high = _reach(s, lengths, points)
        for first in range(lengths[1][s]):
            smallest, largest = lengths[0][s], -1
            for last in range(first, min(first + longest[1], lengths[1][s])):
                smallest, largest = min(smallest, low[last]), max(largest, high[last])
                if largest < 0 or largest - smallest >= longest[0]:
                    continue
                if not _consistent(outer_low, outer_high, smallest, largest, first, last):
                    continue
                begin = smallest
                while begin == smallest or (begin >= 0 and outer_high[begin] < 0):
                    end, limit = largest, min(begin + longest[0], lengths[0][s])
                    while end < limit and (end == largest or outer_high[end] < 0):
                        if count == len(spans):
                            spans = np.concatenate((spans, np.empty_like(spans)))
                        spans[count, 0], spans[count, 1] = begin, end - begin + 1
                        spans[count, 2], spans[count, 3] = first, last - first + 1
                        count += 1
                        end += 1
                    begin -= 1
        starts[s + 1] = count
    return starts, spans[:count]


@njit
def _reach(
    s: int, lengths: tuple[Int64, Int64], points: tuple[Int32, Int32, Int64]
) -> tuple[Int64, Int64, Int64, Int64]:
    """Return the first and last source word of each target word, and the reverse; −1: none."""
    source, target, starts = points
    low = np.full(lengths[1][s], lengths[0][s])
    high = np.full(lengths[1][s], -1)
    outer_low = np.full(lengths[0][s], lengths[1][s])
    outer_high = np.full(lengths[0][s], -1)
    for p in range(starts[s], starts[s + 1]):
        first, second = np.int64(source[p]), np.int64(target[p])
        low[second], high[second] = min(low[second], first), max(high[second], first)
        outer_low[first] = min(outer_low[first], second)
        outer_high[first] = max(outer_high[first], second)
    return low, high, outer_low, outer_high


@njit
def _consistent(
    outer_low: Int64, outer_high: Int64, smallest: int, largest: int, first: int, last: int
) -> bool:
    """Return whether the source words of a span are aligned only inside the target span."""
    for f in range(smallest, largest + 1):
        if outer_high[f] >= 0 and (outer_low[f] < first or outer_high[f] > last):
            return False
    return True
