"""MERT, minimum error rate training (Och, 2003), as the tool of Moses does it.

Its line search is exact: along a line of weights the score of each candidate is a line too, and
the best of a list are its upper envelope, which compiled code finds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.components import Count, CountOrNone, NotNegative
from bpa_ppl.extras.tuning.tuner import Tuned, Tuner, TuningProblem

# Narrower intervals are ignored, because of rounding errors (as in Moses).
_NARROWEST = 1e-4
# Length of a step into an unbounded interval beyond the outermost breakpoint.
_BEYOND = 0.1


class Mert(Tuner, frozen=True):
    """Several greedy searches, with the defaults of the tool of Moses.

    Each search steps along the best of all directions, to the exact optimum of the corpus metric,
    until the improvement is below the tolerance.

    Args:
        restarts: starting points, the first of them λ_T, the others random.
        random_directions: the number of random directions at each step, in addition to the axes
            (Cer et al., 2008).
        tolerance: in percent; a search ends with the first step that gains no more than this.

    Raises:
        UsageError: if a setting is invalid.
    """

    title = "minimum error rate training"
    restarts: Count = 20
    random_directions: CountOrNone = 0
    tolerance: NotNegative = 0.01

    def tune(self, problem: TuningProblem) -> Tuned:
        rng = np.random.default_rng(problem.seed)
        paths = (list(self._search(problem, start, rng)) for start in self._starts(problem, rng))
        return problem.find_best(paths, self.restarts)

    def _starts(self, problem: TuningProblem, rng: np.random.Generator) -> Iterator[Float64]:
        """Yield λ_T, then points of the unit cube, scaled to the length of λ_T (the sum of |λ|)."""
        yield problem.start
        length = np.abs(problem.start).sum() or 1.0
        for _ in range(self.restarts - 1):
            point = rng.uniform(size=len(problem.start))
            yield point * length / point.sum()

    def _search(
        self, problem: TuningProblem, start: Float64, rng: np.random.Generator
    ) -> Iterator[Float64]:
        """Yield the weights from a starting point to a local optimum."""
        axes = np.ascontiguousarray(problem.lists.features.T)
        weights, gain = start, problem.gain(start)
        yield weights
        while True:
            random = rng.uniform(-1, 1, size=(self.random_directions, len(start)))
            slopes = np.concatenate([axes, random @ axes])
            heights = problem.lists.scores(weights)
            steps = [choose_step(*search_line(problem, heights, line)) for line in slopes]
            line = int(np.argmax([gain for gain, _ in steps]))
            directions = np.concatenate([np.eye(len(start)), random])
            candidate = weights + steps[line][1] * directions[line]
            candidate_gain = problem.gain(candidate)
            if candidate_gain > gain:
                weights = candidate
                yield weights
            if candidate_gain <= gain + self.tolerance:
                return
            gain = candidate_gain


def search_line(
    problem: TuningProblem, heights: Float64, slopes: Float64
) -> tuple[Float64, Float64]:
    """Return the gain of the reranked lists for every x of heights + x · slopes.

    Source: Och (2003), section 5.

    Args:
        problem: its lists, of which the highest lines are chosen, and its metric.
        heights: (candidates,) scores at x = 0.
        slopes: (candidates,) growth of the scores.

    Returns:
        (B,) where the choice from some list changes, ascending; and (B + 1,) the corpus score,
        higher is better, which is constant between these.
    """
    offsets = problem.lists.offsets.copy()  # writable: another type would be compiled again
    first, breaks, before, after = find_envelopes(heights, slopes, offsets)
    order = np.argsort(breaks)
    counts = problem.lists.counts
    sums = np.empty((len(breaks) + 1, counts.shape[1]))
    sums[0] = counts[first].sum(axis=0)
    sums[1:] = (counts[after] - counts[before])[order]
    metric = problem.metric
    return breaks[order], metric.signed(metric.value(np.cumsum(sums, axis=0)))


def choose_step(breaks: Float64, gains: Float64) -> tuple[float, float]:
    """Return the highest gain, and the middle of its interval; of equal ones the first.

    >>> choose_step(np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0, 3.0]))
    (5.0, 2.0)
    """
    if not len(breaks):
        return float(gains[0]), 0.0
    edges = np.concatenate([[breaks[0] - 2 * _BEYOND], breaks, [breaks[-1] + 2 * _BEYOND]])
    wide = np.diff(edges) >= _NARROWEST
    best = int(np.argmax(np.where(wide, gains, -np.inf)))
    return float(gains[best]), float(edges[best] + edges[best + 1]) / 2


@compiled
def find_envelopes(
    heights: Float64, slopes: Float64, offsets: Int64
) -> tuple[Int64, Float64, Int64, Int64]:
    """Find the highest of the lines heights + x · slopes of each list, for every x.

    Args:
        heights: (candidates,) scores at x = 0.
        slopes: (candidates,) growth of the scores.
        offsets: (sentences + 1,) the first line of each list, then the number of lines.

    Returns:
        (sentences,) the highest line at x = −∞; then for each x at which another line becomes
        the highest of its list: x, the line before and the line after.

    >>> heights, slopes = np.array([0.0, 1.0, 0.0]), np.array([-1.0, 0.0, 1.0])
    >>> [part.tolist() for part in find_envelopes(heights, slopes, np.array([0, 3]))]
    [[0], [-1.0, 1.0], [0, 1], [1, 2]]
    """
    first = np.empty(len(offsets) - 1, np.int64)
    breaks = np.empty(len(slopes))
    before, after = np.empty(len(slopes), np.int64), np.empty(len(slopes), np.int64)
    count = 0
    for s in range(len(first)):
        start, stop = offsets[s], offsets[s + 1]
        current = start  # the line that is highest at minus infinity
        for i in range(start + 1, stop):
            if (slopes[i], -heights[i]) < (slopes[current], -heights[current]):
                current = i
        first[s] = current
        while True:
            crossing, best = np.inf, current  # where it is first overtaken, and by which
            for i in range(start, stop):
                rise = slopes[i] - slopes[current]
                if rise > 0:
                    x = (heights[current] - heights[i]) / rise
                    if x < crossing or (x == crossing and slopes[i] > slopes[best]):
                        crossing, best = x, i
            if best == current:
                break
            breaks[count], before[count], after[count] = crossing, current, best
            count += 1
            current = best
    return first, breaks[:count], before[:count], after[:count]
