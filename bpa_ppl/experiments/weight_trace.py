"""Weight-trace sampling: the weights that MERT visited on the text that λ_T was tuned on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import build
from bpa_ppl.quality import oracles
from bpa_ppl.tuning import reestimation
from bpa_ppl.weights import Match, Weights, match

if TYPE_CHECKING:
    from arviz import InferenceData


def visited_weights(lists: NBest, weights: Weights, *, restarts: int, seed: int) -> Float64:
    """Return the weights that MERT for BLEU visits, (steps, features), λ_T first.

    Each vector is scaled to the length of λ_T (Σ|λ|), since MERT knows directions only.

    >>> lists = NBest.from_lists(
    ...     [["a b c d", "a b c"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d"]]
    ... )
    >>> visited_weights(lists, Weights({"LM0": 0.5}), restarts=1, seed=0).tolist()
    [[0.5], [-0.5]]
    """
    matched = match(weights, lists)
    found = reestimation(lists, weights, tuner="mert", seed=seed, restarts=restarts).visited
    length = np.abs(matched.values[matched.free]).sum()
    norms = np.abs(found[:, matched.free]).sum(axis=1, keepdims=True)
    return np.where(matched.free, found * length / norms, found)


def weight_trace(
    adaptation: NBest,
    weights: Weights,
    visited: Float64,
    *,
    metric: str = "ter",
    prior_variance: float = 0.1,
    delta: float = 1.0,
) -> InferenceData:
    """Weigh given weight vectors by p(A|λ)^(1/δ) p(λ|T), as Eq. 11 weighs the heuristic sample.

    Args:
        adaptation: lists of A, with references.
        weights: λ_T.
        visited: (steps, features) for the features of the lists, in their order.
        metric: what makes an oracle.
        prior_variance: σ_T.
        delta: the leveraging factor δ.

    Returns:
        a posterior as `adapt` returns it, for the predictive rule.

    >>> lists = NBest.from_lists(
    ...     [["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]]
    ... )
    >>> sample = weight_trace(lists, Weights({"LM0": 0.5}), np.array([[0.5], [-0.5]]))
    >>> sample["sample_stats"]["log_weight"].values.round(3).tolist()
    [[-0.974, -5.474]]
    """
    matched = match(weights, adaptation)
    chosen = oracles(adaptation, metric, scores=adaptation.scores(matched.values), cache=False)
    log_p = np.array([_log_likelihood(adaptation, chosen.index, row) for row in visited])
    away = (visited - matched.values)[:, matched.free]
    log_prior = -0.5 * (away**2).sum(axis=1) / prior_variance
    log_weight = log_p / delta + log_prior
    return _posterior(matched, visited, log_weight, log_p + log_prior, delta)


def _log_likelihood(lists: NBest, oracle: np.ndarray, weights: Float64) -> float:
    """Return log p(A|λ), the sum of log p(e*|f, λ)."""
    scores = lists.scores(weights)
    normaliser = np.logaddexp.reduceat(scores, lists.offsets[:-1])
    return float((scores[lists.offsets[:-1] + oracle] - normaliser).sum())


def _posterior(
    matched: Match, visited: Float64, log_weight: Float64, log_p: Float64, delta: float
) -> InferenceData:
    free = matched.free
    groups = {
        "posterior": {"weights": visited[None, :, free]},
        "sample_stats": {"log_weight": log_weight[None], "lp": log_p[None]},
        "constant_data": {"canonical": matched.values[free], "held": matched.values[~free]},
    }
    coords = {
        "feature": list(matched.free_names),
        "held_feature": [n for n in matched.names if n not in matched.free_names],
    }
    return build(groups, coords, {"sampler": "weight-trace", "power": 1.0 / delta})
