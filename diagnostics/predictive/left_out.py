"""Leave-one-out predictions: p(e|f, A without the sentence), without adapting again."""

from __future__ import annotations

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws, importance_weights
from bpa_ppl.posterior.statistics import unseen

_DRAWS = 1000  # used at most


def left_out(draws: Draws, lists: NBest) -> tuple[list[Float64], Float64]:
    """Return log p(e|f, A without the sentence) of each list, (N,) each, and k̂ of each sentence.

    The likelihood may be another than p(e*|f): a margin is left out as what it was.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared.

    Raises:
        DataError: if the draws are a point, or lack it.
    """
    if draws.kind == "point":
        raise DataError(
            "leave-one-out needs draws of the posterior, and this is one point: adapt with another "
            "sampler, such as laplace"
        )
    if draws.pointwise is None:
        raise DataError(
            "leave-one-out needs the log-likelihood of each adaptation sentence, which this "
            "posterior does not record"
        )
    # Weighted draws count the likelihood with an exponent of its own (Eq. 11).
    exponent = float(draws.attrs.get("likelihood_exponent", 1.0))
    likelihood = exponent * draws.pointwise.reshape(len(draws.flat), -1)
    if likelihood.shape[1] != len(lists):
        raise DataError(
            f"the posterior was adapted to {likelihood.shape[1]} sentences, and these are "
            f"{len(lists)}: give the lists that it was adapted to",
            lists.origin,
        )
    chosen, weights, log_importance = _thinned(draws, lists)
    log_p, k_hat = [], np.empty(len(lists))
    for s in range(len(lists)):
        smoothed, k_hat[s] = unseen(log_importance, likelihood[chosen, s])
        if not np.isfinite(k_hat[s]):  # too few draws to leave a sentence out
            smoothed = log_importance
        mixed = _mixed(lists, s, weights, smoothed)
        log_p.append(np.log(np.maximum(mixed, np.finfo(np.float64).tiny)))
    return log_p, k_hat


def predictive(draws: Draws, lists: NBest) -> list[Float64]:
    """Return p(e|f, A) of each list, (N,) each, as `left_out` does with no sentence left out."""
    _, weights, log_importance = _thinned(draws, lists)
    return [_mixed(lists, s, weights, log_importance) for s in range(len(lists))]


def _thinned(draws: Draws, lists: NBest) -> tuple[Int64, Float64, Float64]:
    """Return which draws are used, their weights (D, K), and the logarithms of their shares."""
    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _DRAWS).astype(np.int64))
    share = np.maximum(draws.importance[chosen], np.finfo(np.float64).tiny)
    return chosen, draws.aligned(lists)[chosen], np.log(share)


def _mixed(lists: NBest, sentence: int, weights: Float64, log_share: Float64) -> Float64:
    """Return the mean of p(e|f, λ) over draws with importance weights, (N,)."""
    from bpa_ppl.models.probabilities import normalised

    features = lists.features[lists.rows(sentence)].astype(np.float64)
    p = normalised((features - features[:1]) @ weights.T, axis=0)[1]
    return np.asarray(p @ importance_weights(log_share))
