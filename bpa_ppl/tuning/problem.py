"""What every tuner takes and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.statistics import statistics
from bpa_ppl.tuning.objectives import Objective
from bpa_ppl.weights import Match


@dataclass(frozen=True, eq=False)
class Pool:
    """N-best lists as tuners see them: features of free weights, and sufficient statistics.

    Attributes:
        offsets: (sentences + 1,) the first row of each list, then the number of rows.
        features: (hypotheses, Q) float64, of the weights to be tuned.
        held: (hypotheses,) what the held features add to each score.
        counts: (hypotheses, S) the statistics of the metric, as `bpa_ppl.quality.statistics`.
    """

    offsets: Int64
    features: Float64
    held: Float64
    counts: Float64

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.offsets) - 1

    def scores(self, weights: Float64) -> Float64:
        """Return λ·h, (hypotheses,), the held features included."""
        # Not by BLAS: equal rows get equal scores, on any number of threads.
        return np.einsum("hq,q->h", self.features, weights) + self.held

    def best(self, weights: Float64) -> Int64:
        """Return (sentences,) the row of the highest score of each list; ties go to the first."""
        from bpa_ppl.tuning.envelope import best_rows

        rows: Int64 = best_rows(self.scores(weights), self.offsets)
        return rows

    def joined(self, other: Pool) -> Pool:
        """Return the lists of both."""
        return Pool(
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.features, other.features]),
            np.concatenate([self.held, other.held]),
            np.concatenate([self.counts, other.counts]),
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """A metric to be optimised on n-best lists.

    Attributes:
        pool: the lists.
        objective: what is to be maximised.
        start: (Q,) the canonical weights λ_T.
        seed: the only source of randomness.
        progress: told how far the tuning is.
        extra: the out-of-domain development set, for tuners that take one.
    """

    pool: Pool
    objective: Objective
    start: Float64
    seed: int
    progress: Reporter
    extra: Pool | None = None

    def gain(self, weights: Float64) -> float:
        """Return the objective of the lists reranked with some weights."""
        return self.gain_of(self.pool.best(weights))

    def gain_of(self, rows: Int64) -> float:
        """Return the objective of a choice of one row a list."""
        return float(self.objective.corpus(self.pool.counts[rows].sum(axis=0)))


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a tuner found.

    Attributes:
        weights: (Q,) the tuned weights.
        visited: (steps, Q) the weights it went through, in order.
    """

    weights: Float64
    visited: Float64


def lay_out(nbest: NBest, matched: Match, metric: str) -> Pool:
    """Return lists as tuners see them, with their features in the order of `matched`.

    Raises:
        DataError: if they have other features than `matched`, or no references.

    >>> from bpa_ppl.weights import match
    >>> lists = NBest.from_lists(
    ...     [["a b", "a"]], [[[1.0, 2.0], [0.5, 1.0]]], ["LM0", "W0"], references=[["a b"]]
    ... )
    >>> pool = lay_out(lists, match({"LM0": 2, "W0": 3}, lists, fixed=["W0"]), "ter")
    >>> pool.features.tolist(), pool.held.tolist(), pool.counts.tolist()
    ([[1.0], [0.5]], [6.0, 3.0], [[0.0, 2.0], [1.0, 2.0]])
    """
    features = nbest.features[:, _columns(nbest, matched)].astype(np.float64)
    return Pool(
        nbest.offsets,
        np.ascontiguousarray(features[:, matched.free]),
        features[:, ~matched.free] @ matched.values[~matched.free],
        statistics(nbest, metric).counts,
    )


def _columns(nbest: NBest, matched: Match) -> npt.NDArray[np.int64]:
    if set(nbest.feature_names) != set(matched.names):
        raise DataError(
            f"the lists have the features {', '.join(nbest.feature_names)}, the others have "
            f"{', '.join(matched.names)}: give lists of the same decoder",
            nbest.source,
        )
    return np.array([nbest.feature_names.index(name) for name in matched.names])
