"""MERT, minimum error rate training (Och, 2003), as the tool of Moses does it; and MERT+."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from bpa_ppl.component import Count, CountOrNone, NotNegative
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.tuning.base import Tuned, Tuner, TuningProblem


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

    restarts: Count = 20
    random_directions: CountOrNone = 0
    tolerance: NotNegative = 0.01

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return the best weights of all searches."""
        rng = np.random.default_rng(problem.seed)
        paths = (list(self._search(problem, start, rng)) for start in self._starts(problem, rng))
        return problem.best_of(paths, self.restarts)

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
        from bpa_ppl.tuning.line_search import best_step, error_surface

        axes = np.ascontiguousarray(problem.lists.features.T)
        weights, gain = start, problem.gain(start)
        yield weights
        while True:
            random = rng.uniform(-1, 1, size=(self.random_directions, len(start)))
            slopes = np.concatenate([axes, random @ axes])
            heights = problem.lists.scores(weights)
            steps = [best_step(error_surface(problem, heights, line)) for line in slopes]
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


class MertPlus(Mert, frozen=True):
    """MERT on the adaptation sentences and the out-of-domain development set together."""

    takes_extra: ClassVar[bool] = True

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return the weights that MERT finds on all sentences.

        Raises:
            UsageError: if there is no out-of-domain development set.
        """
        if problem.extra is None:
            raise UsageError(
                "mert+ also needs the lists of an out-of-domain development set",
                parameter="extra",
                code="missing-setting",
            )
        both = replace(problem, lists=problem.lists.joined(problem.extra), extra=None)
        return super().tune(both)
