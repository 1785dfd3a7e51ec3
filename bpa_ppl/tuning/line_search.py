"""Och's line search: the exact optimum of a corpus metric along a line of weights (Och, 2003).

Along a line the score of each hypothesis is a line too, and the best of a list are its upper
envelope, which compiled code finds. This module loads Numba: import it where it is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.tuning.base import TuningProblem

# Narrower intervals are ignored, because of rounding errors (as in Moses).
_NARROWEST = 1e-4
# Length of a step into an unbounded interval beyond the outermost breakpoint.
_BEYOND = 0.1


class ErrorSurface(NamedTuple):
    """The gain along a line: constant between breakpoints.

    Attributes:
        breaks: (B,) where the choice from some list changes, ascending.
        gains: (B + 1,) the corpus score, higher is better, in each interval.
    """

    breaks: Float64
    gains: Float64


def error_surface(problem: TuningProblem, heights: Float64, slopes: Float64) -> ErrorSurface:
    """Return the gain of the reranked lists for every x of heights + x · slopes.

    Source: Och (2003), section 5.

    Args:
        problem: its lists, of which the highest lines are chosen, and its metric.
        heights: (hypotheses,) scores at x = 0.
        slopes: (hypotheses,) growth of the scores.
    """
    first, breaks, before, after = envelopes(heights, slopes, problem.lists.offsets)
    order = np.argsort(breaks)
    counts = problem.lists.counts
    sums = np.empty((len(breaks) + 1, counts.shape[1]))
    sums[0] = counts[first].sum(axis=0)
    sums[1:] = (counts[after] - counts[before])[order]
    metric = problem.metric
    return ErrorSurface(breaks[order], metric.signed(metric.value(np.cumsum(sums, axis=0))))


def best_step(surface: ErrorSurface) -> tuple[float, float]:
    """Return the highest gain, and the middle of its interval; of equal ones the first.

    >>> best_step(ErrorSurface(np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0, 3.0])))
    (5.0, 2.0)
    """
    breaks, gains = surface
    if not len(breaks):
        return float(gains[0]), 0.0
    edges = np.concatenate([[breaks[0] - 2 * _BEYOND], breaks, [breaks[-1] + 2 * _BEYOND]])
    wide = np.diff(edges) >= _NARROWEST
    best = int(np.argmax(np.where(wide, gains, -np.inf)))
    return float(gains[best]), float(edges[best] + edges[best + 1]) / 2


@njit(nogil=True, cache=True)
def best_rows(scores: Float64, offsets: Int64) -> Int64:
    """Return (sentences,) the row of the highest score of each list; ties go to the first.

    >>> best_rows(np.array([1.0, 3.0, 3.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 3]
    """
    rows = np.empty(len(offsets) - 1, np.int64)
    for s in range(len(rows)):
        best = offsets[s]
        for row in range(offsets[s] + 1, offsets[s + 1]):
            if scores[row] > scores[best]:
                best = row
        rows[s] = best
    return rows


@njit
def _lowest_slope(heights: Float64, slopes: Float64) -> int:
    """Return the line that is highest at minus infinity."""
    best = 0
    for i in range(1, len(slopes)):
        if (slopes[i], -heights[i]) < (slopes[best], -heights[best]):
            best = i
    return best


@njit
def _next_line(heights: Float64, slopes: Float64, current: int) -> tuple[float, int]:
    """Return where the highest line is first overtaken, and by which; itself if never."""
    crossing, best = np.inf, current
    for i in range(len(slopes)):
        rise = slopes[i] - slopes[current]
        if rise > 0:
            x = (heights[current] - heights[i]) / rise
            if x < crossing or (x == crossing and slopes[i] > slopes[best]):
                crossing, best = x, i
    return crossing, best


@njit(nogil=True, cache=True)
def envelopes(
    heights: Float64, slopes: Float64, offsets: Int64
) -> tuple[Int64, Float64, Int64, Int64]:
    """Find the highest of the lines heights + x · slopes of each list, for every x.

    Args:
        heights: (hypotheses,) scores at x = 0.
        slopes: (hypotheses,) growth of the scores.
        offsets: (sentences + 1,) the first line of each list, then the number of lines.

    Returns:
        (sentences,) the highest line at x = −∞; then for each x at which another line becomes
        the highest of its list: x, the line before and the line after.

    >>> heights, slopes = np.array([0.0, 1.0, 0.0]), np.array([-1.0, 0.0, 1.0])
    >>> [part.tolist() for part in envelopes(heights, slopes, np.array([0, 3]))]
    [[0], [-1.0, 1.0], [0, 1], [1, 2]]
    """
    first = np.empty(len(offsets) - 1, np.int64)
    breaks = np.empty(len(slopes))
    before, after = np.empty(len(slopes), np.int64), np.empty(len(slopes), np.int64)
    count = 0
    for s in range(len(first)):
        start, stop = offsets[s], offsets[s + 1]
        current = _lowest_slope(heights[start:stop], slopes[start:stop])
        first[s] = start + current
        while True:
            crossing, best = _next_line(heights[start:stop], slopes[start:stop], current)
            if best == current:
                break
            breaks[count], before[count], after[count] = crossing, start + current, start + best
            count += 1
            current = best
    return first, breaks[:count], before[:count], after[:count]
