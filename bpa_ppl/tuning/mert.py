"""MERT, minimum error rate training (Och, 2003), as the tool of Moses does it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.tuning.line_search import best_step, error_surface
from bpa_ppl.tuning.problem import Problem, Tuned
from bpa_ppl.tuning.ranges import check_ranges


@dataclass(frozen=True)
class Settings:
    """Defaults of the tool of Moses.

    Args:
        restarts: starting points, the first of them λ_T, the others random.
        random_directions: searched at each step beside the axes (Cer et al., 2008).
        tolerance: in percent; a search ends with the first step that gains no more.

    Raises:
        UsageError: if a number makes no sense.
    """

    restarts: int = 20
    random_directions: int = 0
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        check_ranges(self, zero=("random_directions", "tolerance"))


class _Move(NamedTuple):
    """A step along one of several lines."""

    line: int
    size: float


def tune(problem: Problem, settings: Settings) -> Tuned:
    """Return the best weights of several greedy searches.

    Each search steps along the best of all directions, to the exact optimum of the corpus metric,
    until that gains next to nothing.
    """
    rng = np.random.default_rng(problem.seed)
    visited: list[Float64] = []
    best, best_gain = problem.start, -np.inf
    for turn, start in enumerate(_starts(problem.start, settings.restarts, rng), 1):
        path = list(_search(problem, settings, start, rng))
        gain = problem.gain(path[-1])
        visited += path
        if gain > best_gain:
            best, best_gain = path[-1], gain
        note = f"{problem.objective.metric} {abs(best_gain):.2f}"
        problem.progress(turn, settings.restarts, note)
    return Tuned(best, np.array(visited))


def _starts(canonical: Float64, count: int, rng: np.random.Generator) -> Iterator[Float64]:
    """Yield λ_T, then points of the unit cube, scaled to the length of λ_T (the sum of |λ|)."""
    yield canonical
    length = np.abs(canonical).sum() or 1.0
    for _ in range(count - 1):
        point = rng.uniform(size=len(canonical))
        yield point * length / point.sum()


def _search(
    problem: Problem, settings: Settings, start: Float64, rng: np.random.Generator
) -> Iterator[Float64]:
    """Yield the weights from a starting point to where no direction gains any more."""
    axes = np.ascontiguousarray(problem.pool.features.T)
    weights, gain = start, problem.gain(start)
    yield weights
    while True:
        random = rng.uniform(-1, 1, size=(settings.random_directions, len(start)))
        slopes = np.concatenate([axes, random @ axes])
        move = _best_move(problem, problem.pool.scores(weights), slopes)
        candidate = weights + move.size * np.concatenate([np.eye(len(start)), random])[move.line]
        reached = problem.gain(candidate)
        if reached > gain:
            weights = candidate
            yield weights
        if reached <= gain + settings.tolerance:
            return
        gain = reached


def _best_move(problem: Problem, heights: Float64, slopes: Float64) -> _Move:
    """Return the best step of all lines that begin at the same scores."""
    surfaces = (error_surface(problem.pool, problem.objective, heights, s) for s in slopes)
    steps = [best_step(surface) for surface in surfaces]
    line = int(np.argmax([step.gain for step in steps]))
    return _Move(line, steps[line].size)
