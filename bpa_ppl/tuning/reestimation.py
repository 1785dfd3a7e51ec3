"""Re-estimate weights from n-best lists, references and canonical weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import checked_seed, require
from bpa_ppl.nbest import NBest, demote_to_extras
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import METRICS, Metric, compared, resolve
from bpa_ppl.quality.scoreboard import Scoreboard
from bpa_ppl.tuning.base import TUNERS, Tuner, TuningLists, TuningProblem, lay_out
from bpa_ppl.weights import AnyWeights, Match, Weights, match


@dataclass(frozen=True, eq=False)
class Reestimation:
    """Re-estimated weights with their scores.

    Attributes:
        weights: one for each feature of the lists, including fixed ones.
        metric: its name, "bleu", "ter" or that of a column.
        before: the corpus score, in percent, of the lists reranked with the canonical weights.
        after: the same with the new weights.
        visited: (steps, features) all weights that the tuner visited, in the order of `weights`.
        decimals: the number of decimals of printed scores.
        scores: all scores of the translations, before and after.

    >>> import numpy as np
    >>> print(Reestimation(Weights({"LM0": 1.0}), "bleu", 20.0, 21.5, np.ones((3, 1))))
    BLEU of the lists: 20.00 → 21.50
    """

    weights: Weights
    metric: str
    before: float
    after: float
    visited: Float64
    decimals: int = 2
    scores: Scoreboard | None = None

    def __str__(self) -> str:
        name = self.metric.upper() if self.metric in METRICS else self.metric
        before, after = (f"{value:.{self.decimals}f}" for value in (self.before, self.after))
        others = [] if self.scores is None else self.scores.changes[1:]
        return ", ".join([f"{name} of the lists: {before} → {after}", *others])


def reestimate(
    nbest: NBest,
    weights: AnyWeights,
    *,
    tuner: str | Tuner = "mert",
    metric: str | Metric = "bleu",
    seed: int = 0,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Reestimation:
    """Re-estimate weights on lists with references.

    The weights that MERT visits are the samples of the weight-trace method.

    Args:
        nbest: n-best lists of the adaptation sentences, with references if the metric needs them.
        weights: the canonical weights λ_T from which every tuner starts, as for `adapt`.
        tuner: "mert" (Och, 2003), "mira" (Cherry and Foster, 2012) or "pro" (Hopkins and May,
            2011); or settings, `Mert(…)`.
        metric: "bleu" or "ter" of sacreBLEU on tokenised text, a metric with settings, a function,
            or the name of a column of the lists, which is then no feature: its mean is optimised.
        seed: the same seed gives the same weights.
        fixed: features whose weights do not change; None fixes `UnknownWordPenalty0`.
        defaults: weights of features that `weights` does not name.
        progress: True draws a bar on standard error.
        settings: of the tuner: `restarts`, `epochs`, `pairs`, …

    Raises:
        DataError: if lists, references and weights do not fit together.
        UsageError: if a tuner, metric or setting does not exist or is invalid.

    >>> lists = NBest.from_lists(
    ...     [["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]]
    ... )
    >>> result = reestimate(lists, {"LM0": 1.0}, metric="ter")
    >>> result.weights["LM0"] < 0, str(result)
    (True, 'TER of the lists: 50.00 → 0.00, BLEU 0.00 → 0.00, length 0.500 → 1.000')
    """
    require(nbest, NBest, "reestimate takes n-best lists (NBest)", "nbest")
    seed = checked_seed(seed)
    chosen, goal = TUNERS.resolve(tuner, settings), resolve(metric, nbest)
    matched, lists = prepare_lists(nbest, weights, goal, fixed, defaults)
    with reporter(progress, f"tune {TUNERS.name_of(chosen)}") as report:
        problem = TuningProblem(lists, goal, matched.free_values, seed, report)
        tuned = chosen.tune(problem)
    points = problem.start, tuned.weights
    before, after = (goal.signed(problem.gain(point)) for point in points)
    result = Weights(zip(matched.names, matched.full(tuned.weights), strict=True))
    visited, scores = matched.full(tuned.visited), scores_of(nbest, lists, goal, *points)
    return Reestimation(result, goal.key, before, after, visited, goal.decimals, scores)


def scores_of(
    nbest: NBest, lists: TuningLists, metric: Metric, before: Float64, after: Float64
) -> Scoreboard:
    """Return the scores of the choices by the canonical and by the new weights.

    Args:
        nbest: the lists, with the columns of the metric.
        lists: the same lists for tuners.
        metric: what is optimised.
        before: (Q,) weights.
        after: (Q,) weights.
    """
    first, second = (lists.best(weights) - lists.offsets[:-1] for weights in (before, after))
    return compared(nbest, first, second, metric, titles=("canonical", "tuned"))


def prepare_lists(
    nbest: NBest,
    weights: AnyWeights,
    metric: Metric,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
) -> tuple[Match, TuningLists]:
    """Return weights matched to the features of lists, and the lists for tuners.

    Args:
        nbest: the lists, with the columns of the metric.
        weights: as for `reestimate`, like the other arguments.
        metric: what is optimised.
        fixed: as above.
        defaults: as above.

    Raises:
        DataError: as `reestimate`.
    """
    lists = demote_to_extras(nbest, metric.columns)
    matched = match(weights, lists, fixed=fixed, defaults=defaults)
    return matched, lay_out(nbest, matched, metric)
