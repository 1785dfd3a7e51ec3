"""Re-estimate weights from n-best lists, references and canonical weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bpa_ppl._runtime.arguments import check_seed, require
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.evaluation.paired import Scoreboard, compare_choices
from bpa_ppl.extras.tuning.tuner import TUNERS, Tuner, TuningProblem, make_tuning_lists
from bpa_ppl.gains.gains import resolve
from bpa_ppl.gains.metric import Metric
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import AnyWeights, Weights


@dataclass(frozen=True, eq=False)
class Reestimation:
    """Re-estimated weights with their scores.

    Attributes:
        weights: one for each feature of the lists, including fixed ones.
        scores: of the translations by the canonical and by the new weights; the metric that was
            optimised comes first.
        visited: (steps, features) all weights that the tuner visited, in the order of `weights`.
    """

    weights: Weights
    scores: Scoreboard
    visited: Float64

    @property
    def before(self) -> float:
        """The corpus score of the lists reranked with the canonical weights."""
        return self.scores.changes[0].before.value

    @property
    def after(self) -> float:
        """The same with the new weights."""
        return self.scores.changes[0].after.value

    def __str__(self) -> str:
        return f"scores of the lists: {'; '.join(map(str, self.scores.changes))}"


def reestimate(
    lists: NBest,
    weights: AnyWeights,
    *,
    tuner: str | Tuner = "mert",
    gain: str | Metric = "bleu",
    seed: int = 0,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Reestimation:
    """Re-estimate weights on lists with references.

    Args:
        lists: n-best lists of the adaptation sentences, with references if the metric needs them.
        weights: the canonical weights λ_T from which every tuner starts, as for `adapt`.
        tuner: "mert" (Och, 2003), "mira" (Cherry and Foster, 2012), "pro" (Hopkins and May, 2011).
        gain: "bleu" or "ter" of sacreBLEU, a metric with settings, a function, or a column.
        seed: the same seed gives the same weights.
        fixed: features whose weights do not change; None fixes `UnknownWordPenalty0`.
        defaults: weights of features that `weights` does not name.
        progress: True draws a bar on standard error.
        settings: of the tuner: `restarts`, `epochs`, `pairs`, …

    Raises:
        DataError: if lists, references and weights do not fit together.
        UsageError: if a tuner, metric or setting does not exist or is invalid.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]]
    ... )
    >>> result = reestimate(lists, {"LM0": 1.0}, gain="ter")
    >>> result.weights["LM0"] < 0, str(result)
    (True, 'scores of the lists: TER 50.00 → 0.00 (−50.00); BLEU 0.00 → 0.00 (+0.00); ...')
    """
    require(lists, NBest, "reestimate takes n-best lists (NBest)", "lists")
    seed = check_seed(seed)
    chosen, metric = TUNERS.resolve(tuner, settings), resolve(gain, lists)
    matched, prepared = make_tuning_lists(lists, weights, metric, fixed, defaults)
    with reporter(progress, f"tune {TUNERS.name_of(chosen)}") as report:
        problem = TuningProblem(prepared, metric, matched.free_values, seed, report)
        tuned = chosen.tune(problem)
    result = Weights(zip(matched.names, matched.full(tuned.weights), strict=True))
    points = problem.start, tuned.weights
    first, after = (prepared.best(point) - prepared.offsets[:-1] for point in points)
    scores = compare_choices(lists, first, after, metric, titles=("canonical", "tuned"))
    return Reestimation(result, scores, matched.full(tuned.visited))
