"""Batch MIRA on n-best lists (Cherry and Foster, 2012), with the defaults of kbmira."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.tuning.problem import Problem, Tuned
from bpa_ppl.tuning.ranges import check_ranges


@dataclass(frozen=True)
class Settings:
    """Defaults of Cherry and Foster (2012).

    Args:
        epochs: passes over the sentences, each in a new order.
        step: C, the largest step along the difference of two feature vectors.
        decay: what is left of the pseudo-corpus after each sentence.

    Raises:
        UsageError: if a number makes no sense.
    """

    epochs: int = 60
    step: float = 0.01
    decay: float = 0.999

    def __post_init__(self) -> None:
        check_ranges(self, shares=("decay",))


class _Learner:
    """Weights that learn from one list at a time, their average, and the pseudo-corpus."""

    def __init__(self, problem: Problem, settings: Settings):
        self.problem, self.settings = problem, settings
        self.weights = problem.start.copy()
        self.background = problem.objective.background()
        self._total = np.zeros_like(self.weights)
        self._updates = 0

    @property
    def average(self) -> Float64:
        """The average over all updates so far."""
        return self._total / self._updates if self._updates else self.weights

    def learn(self, sentence: int) -> None:
        """Move the weights until hope is better than fear by its gain, or by a step at most."""
        pool = self.problem.pool
        rows = slice(pool.offsets[sentence], pool.offsets[sentence + 1])
        features, counts = pool.features[rows], pool.counts[rows]
        scores = features @ self.weights + pool.held[rows]
        gains = self.problem.objective.within(counts, self.background)
        hope, fear = int(np.argmax(scores + gains)), int(np.argmax(scores - gains))
        if hope == fear:
            return
        loss = (gains[hope] - gains[fear]) - (scores[hope] - scores[fear])
        difference = features[hope] - features[fear]
        length = difference @ difference
        if loss > 0 and length > 0:
            self.weights = self.weights + min(self.settings.step, loss / length) * difference
            self._total += self.weights
            self._updates += 1
        self.background = self.settings.decay * self.background + counts[hope]


def tune(problem: Problem, settings: Settings) -> Tuned:
    """Return the averaged weights of the epoch after which they rerank the lists best."""
    rng = np.random.default_rng(problem.seed)
    learner = _Learner(problem, settings)
    visited = []
    best, best_gain = problem.start, -np.inf
    for epoch in range(1, settings.epochs + 1):
        for sentence in rng.permutation(len(problem.pool)):
            learner.learn(sentence)
        visited.append(learner.average)
        gain = problem.gain(visited[-1])
        if gain > best_gain:
            best, best_gain = visited[-1], gain
        problem.progress(epoch, settings.epochs, f"{problem.objective.metric} {abs(best_gain):.2f}")
    return Tuned(best, np.array(visited))
