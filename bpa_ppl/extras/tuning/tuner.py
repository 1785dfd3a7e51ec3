"""The interface of tuners: lists, problems and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.names import find_positions
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Component, Registry
from bpa_ppl.features.recipe import require_features
from bpa_ppl.gains.gains import count_statistics
from bpa_ppl.gains.metric import Metric
from bpa_ppl.lists.nbest import NBest, demote_to_extras, subtract_first
from bpa_ppl.weights import AnyWeights, Match, match


@dataclass(frozen=True, eq=False)
class TuningLists:
    """N-best lists for tuners: features of free weights, and counts of the metric.

    Attributes:
        offsets: (sentences + 1,) the first row of each list, then the number of rows.
        features: (candidates, Q) float64, of the weights to be tuned, relative to the first
            candidate of each list.
        fixed: (candidates,) the part of each score from features with fixed weights, also relative.
        counts: (candidates, S) the counts of the metric, as `Metric.counts`.
    """

    offsets: Int64
    features: Float64
    fixed: Float64
    counts: Float64

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.offsets) - 1

    def scores(self, weights: Float64) -> Float64:
        """Return λ·h minus that of the first candidate of the list, (candidates,)."""
        # Not by BLAS: equal rows get equal scores, on any number of threads.
        result: Float64 = np.einsum("hq,q->h", self.features, weights) + self.fixed
        return result

    def best(self, weights: Float64) -> Int64:
        """Return (sentences,) the row of the highest score of each list; ties go to the first."""
        scores, starts = self.scores(weights), self.offsets[:-1]
        highest = np.maximum.reduceat(scores, starts)
        rows = np.flatnonzero(scores == np.repeat(highest, np.diff(self.offsets)))
        return rows[np.searchsorted(rows, starts)]


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """A metric to be optimised on n-best lists.

    Attributes:
        lists: the lists.
        metric: whose corpus score is optimised.
        start: (Q,) the canonical weights λ_T.
        seed: the only source of randomness.
        progress: called with the number of steps done, their total number, and a note.
    """

    lists: TuningLists
    metric: Metric
    start: Float64
    seed: int = 0
    progress: Reporter = lambda done, total, note: None

    def gain(self, weights: Float64) -> float:
        """Return the corpus score of the lists reranked, in percent; higher is better."""
        sums = self.lists.counts[self.lists.best(weights)].sum(axis=0)
        return float(self.metric.signed(self.metric.value(sums)))

    def find_best(self, steps: Iterable[Sequence[Float64]], total: int) -> Tuned:
        """Return the best of the last weights of each step; report progress after each.

        Args:
            steps: the weights that each visits.
            total: the number of steps.
        """
        best, best_gain = self.start, -np.inf
        visited: list[Float64] = []
        for number, path in enumerate(steps, 1):
            visited += path
            gain = self.gain(path[-1])
            if gain > best_gain:
                best, best_gain = path[-1], gain
            score = f"{self.metric.signed(best_gain):.{self.metric.decimals}f}"
            self.progress(number, total, f"{self.metric.key} {score}")
        return Tuned(best, np.array(visited))


class Tuned(NamedTuple):
    """The result of a tuner.

    Attributes:
        weights: (Q,) the tuned weights.
        visited: (steps, Q) all weights it visited, in order.
    """

    weights: Float64
    visited: Float64


class Tuner(Component, frozen=True):
    """A method to re-estimate weights; the fields are its settings.

    Attributes:
        title: what it is, in words, for pages; empty for the first line of the docstring.

    >>> from bpa_ppl.extras.tuning.tuner import TUNERS
    >>> TUNERS.resolve("mira", {"epochs": 5}).settings()["epochs"]
    5
    """

    title: ClassVar[str] = ""

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return better weights for the lists of a problem, and all visited weights."""
        raise NotImplementedError(f"{type(self).__name__} does not tune")


def make_tuning_lists(
    lists: NBest,
    weights: AnyWeights,
    metric: Metric,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
) -> tuple[Match, TuningLists]:
    """Return weights matched to the features of lists, and the lists for tuners.

    Features that the metric reads are left out.

    Raises:
        DataError: if lists and weights do not fit together, or lack what the metric needs.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.gains.ter import TER
    >>> lists = from_lists(
    ...     [["a b", "a"]], [[[1.0, 2.0], [0.5, 1.0]]], ["LM0", "W0"], references=[["a b"]]
    ... )
    >>> _, lists = make_tuning_lists(lists, {"LM0": 2, "W0": 3}, TER(), fixed=["W0"])
    >>> lists.features.tolist(), lists.fixed.tolist(), lists.counts.tolist()
    ([[0.0], [-0.5]], [0.0, -3.0], [[0.0, 2.0], [1.0, 2.0]])
    """
    lists = demote_to_extras(lists, metric.columns)
    require_features(lists, metric)
    matched = match(weights, lists, fixed=fixed, defaults=defaults)
    columns = lists.features[:, find_positions(matched.names, lists.feature_names)]
    features = subtract_first(columns, lists.sizes)
    free = np.ascontiguousarray(features[:, matched.free])
    rest = features[:, ~matched.free] @ matched.values[~matched.free]
    return matched, TuningLists(lists.offsets, free, rest, count_statistics(lists, metric))


TUNERS: Registry[Tuner] = Registry(
    "tuner",
    "bpa_ppl.tuners",
    Tuner,
    {
        "mert": "bpa_ppl.extras.tuning.mert:Mert",
        "mira": "bpa_ppl.extras.tuning.mira:Mira",
        "pro": "bpa_ppl.extras.tuning.pro:Pro",
    },
)
