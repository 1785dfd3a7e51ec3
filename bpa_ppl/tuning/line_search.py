"""Och's line search: the exact optimum of a corpus metric along a line of weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.tuning.envelope import envelopes
from bpa_ppl.tuning.objectives import Objective
from bpa_ppl.tuning.problem import Pool

# Narrower intervals are passed over: weights in them are at the mercy of rounding (as in Moses).
_NARROWEST = 1e-4
# How far beyond the outermost breakpoint a step goes into an interval without end.
_BEYOND = 0.1


class Surface(NamedTuple):
    """The objective along a line: constant between breakpoints.

    Attributes:
        breaks: (B,) where the choice of some list changes, ascending.
        gains: (B + 1,) the objective before the first, between two, and after the last.
    """

    breaks: Float64
    gains: Float64


class Step(NamedTuple):
    """Where the objective is highest along a line, as a multiple of the direction."""

    gain: float
    size: float


def error_surface(pool: Pool, objective: Objective, heights: Float64, slopes: Float64) -> Surface:
    """Return the objective of the reranked lists for every x of heights + x · slopes.

    Source: Och (2003), section 5.

    Args:
        pool: the lists.
        objective: of the choice of the highest line of each list.
        heights: (hypotheses,) scores at x = 0.
        slopes: (hypotheses,) growth of the scores.
    """
    first, breaks, before, after = envelopes(heights, slopes, pool.offsets)
    order = np.argsort(breaks)
    counts = pool.counts
    sums = np.empty((len(breaks) + 1, counts.shape[1]))
    sums[0] = counts[first].sum(axis=0)
    sums[1:] = (counts[after] - counts[before])[order]
    return Surface(breaks[order], objective.corpus(np.cumsum(sums, axis=0)))


def best_step(surface: Surface) -> Step:
    """Return the middle of the best interval; of equally good ones the first.

    >>> best_step(Surface(np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0, 3.0])))
    Step(gain=5.0, size=2.0)
    """
    breaks, gains = surface
    if not len(breaks):
        return Step(float(gains[0]), 0.0)
    edges = np.concatenate([[breaks[0] - 2 * _BEYOND], breaks, [breaks[-1] + 2 * _BEYOND]])
    wide = np.diff(edges) >= _NARROWEST
    best = int(np.argmax(np.where(wide, gains, -np.inf)))
    return Step(float(gains[best]), float(edges[best] + edges[best + 1]) / 2)
