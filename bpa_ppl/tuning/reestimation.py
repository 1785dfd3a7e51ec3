"""reestimate: from n-best lists, references and canonical weights to new weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.tuning.objectives import objective
from bpa_ppl.tuning.problem import Problem, lay_out
from bpa_ppl.tuning.registry import configure, load
from bpa_ppl.weights import Match, Weights, match


@dataclass(frozen=True, eq=False)
class Reestimation:
    """Re-estimated weights, and how they came about.

    Attributes:
        weights: one a feature of the lists, held ones included.
        metric: "bleu" or "ter".
        before: the corpus score, in percent, of the lists reranked with the canonical weights.
        after: the same with the new weights.
        visited: (steps, features) the weights that the tuner went through, in order, for the
            features in the order of `weights`.
    """

    weights: Weights
    metric: str
    before: float
    after: float
    visited: Float64

    def __str__(self) -> str:
        return f"{self.metric.upper()} of the lists: {self.before:.2f} → {self.after:.2f}"


def reestimate(
    nbest: NBest,
    weights: Mapping[str, float],
    *,
    tuner: str = "mert",
    metric: str = "bleu",
    seed: int = 0,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
    extra: NBest | None = None,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Weights:
    """Estimate the weights anew on lists with references.

    Args:
        nbest: n-best lists of the adaptation sentences, with references.
        weights: the canonical weights λ_T, by feature name, from which every tuner starts.
        tuner: "mert" (Och, 2003), "mira" (Cherry and Foster, 2012), "pro" (Hopkins and May, 2011),
            or "mert+", which is MERT on `nbest` and `extra` together.
        metric: "bleu" or "ter", as sacreBLEU defines them, of tokenised text.
        seed: the same seed gives the same weights.
        fixed: features held at their canonical weight; None holds `UnknownWordPenalty0`.
        defaults: weights of features that `weights` does not name.
        extra: lists of the out-of-domain development set, for "mert+" alone.
        progress: True draws a bar on standard error.
        settings: of the tuner: `restarts`, `epochs`, `pairs`, …

    Raises:
        DataError: if lists, references and weights do not fit together.
        UsageError: if a tuner, metric or setting does not exist or makes no sense.

    >>> lists = NBest.from_lists(
    ...     [["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]]
    ... )
    >>> reestimate(lists, {"LM0": 1.0}, metric="ter")["LM0"] < 0
    True
    """
    return reestimation(
        nbest,
        weights,
        tuner=tuner,
        metric=metric,
        seed=seed,
        fixed=fixed,
        defaults=defaults,
        extra=extra,
        progress=progress,
        **settings,
    ).weights


def reestimation(
    nbest: NBest,
    weights: Mapping[str, float],
    *,
    tuner: str = "mert",
    metric: str = "bleu",
    seed: int = 0,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
    extra: NBest | None = None,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Reestimation:
    """Do as `reestimate`, and tell what the tuner visited and gained.

    The visited weights of MERT are the sample of the weight-trace method.

    >>> lists = NBest.from_lists(
    ...     [["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]]
    ... )
    >>> print(reestimation(lists, {"LM0": 1.0}, metric="ter"))
    TER of the lists: 50.00 → 0.00
    """
    if extra is not None and tuner != "mert+":
        raise UsageError("out-of-domain lists (extra) are for the tuner mert+: leave them out")
    module, configuration = load(tuner), configure(tuner, settings)
    goal = objective(metric)
    matched = match(weights, nbest, fixed=fixed, defaults=defaults)
    with reporter(progress, f"tune {tuner}") as report:
        problem = Problem(
            pool=lay_out(nbest, matched, metric),
            objective=goal,
            start=matched.values[matched.free],
            seed=seed,
            progress=report,
            extra=None if extra is None else lay_out(extra, matched, metric),
        )
        tuned = module.tune(problem, configuration)
    return Reestimation(
        Weights(zip(matched.names, _all_weights(matched, tuned.weights), strict=True)),
        metric,
        abs(problem.gain(problem.start)),
        abs(problem.gain(tuned.weights)),
        _all_weights(matched, tuned.visited),
    )


def _all_weights(matched: Match, free: Float64) -> Float64:
    """Return weights of all features, (…, features), from those of the free ones, (…, Q)."""
    full = np.broadcast_to(matched.values, (*free.shape[:-1], len(matched.names))).copy()
    full[..., matched.free] = free
    return full
