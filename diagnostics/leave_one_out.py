"""Leave-one-out scores of candidates from recorded log-likelihoods, without sampling again."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.draws import Draws, importance_weights
from bpa_ppl.posterior.statistics import loo_log_weights

_MAX_DRAWS = 1000


def leave_one_out(
    draws: Draws, lists: NBest, *, in_sample: bool = False, by_mean: bool = False
) -> tuple[list[Float64], Float64]:
    """Return scores of candidates by the posterior without their list, and k̂ of each list.

    The posterior without a list is that of at most 1000 evenly spaced draws, by Pareto-smoothed
    importance sampling. The likelihood need not be p(e*|f): whatever it was is removed.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared. All preferences about a list are left out
            together; two lists may be of the same sentence.
        in_sample: Use the posterior of all lists instead, which need not have log-likelihoods.
        by_mean: Score by the mean weights, not by the predictive probability.

    Returns:
        (N,) scores for each list; and (sentences,) Pareto k̂, above 0.7 they are unreliable.

    Raises:
        DataError: if the draws belong to other lists.
    """
    from bpa_ppl.models.probabilities import normalised

    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _MAX_DRAWS).astype(np.int64))
    likelihood = None if in_sample else _of_lists(draws, lists, chosen)
    log_weight = np.log(np.maximum(draws.importance[chosen], np.finfo(np.float64).tiny))
    weights, scores, pareto_k = draws.aligned(lists)[chosen], [], np.zeros(len(lists))
    for s in range(len(lists)):
        left_out = log_weight
        if likelihood is not None:
            smoothed, pareto_k[s] = loo_log_weights(log_weight, likelihood[:, s])
            left_out = smoothed if np.isfinite(pareto_k[s]) else log_weight  # else too few draws
        share = importance_weights(left_out)
        features = lists.features[lists.rows(s)].astype(np.float64)
        if by_mean:
            scores.append(features @ (share @ weights))
        else:
            p = normalised((features - features[:1]) @ weights.T, axis=0)[1]
            scores.append(p @ share)
    return scores, pareto_k


def _of_lists(draws: Draws, lists: NBest, chosen: Int64) -> Float64:
    """Return the log-likelihood of each list in some draws, (D, S), as it is in the posterior."""
    # Weighted draws may have a likelihood with an exponent (Eq. 11).
    exponent = draws.record.figures.likelihood_exponent
    likelihood = exponent * np.asarray(draws.pointwise).reshape(len(draws.flat), -1)[chosen]
    count, ids = likelihood.shape[1], draws.sentence_ids
    if count == len(lists) and draws.record.observed.kind != "preferences":
        return likelihood
    if ids is None or len(ids) != count or not np.isin(lists.sentence_ids, ids).all():
        message = f"{len(lists)} lists are not those of the posterior: give its {count} lists"
        raise DataError(message, lists.origin, code="mismatch")
    names, number = np.unique(ids, return_inverse=True)
    by_name = np.zeros((len(names), len(likelihood)))
    np.add.at(by_name, number, likelihood.T)
    return np.asarray(by_name[np.searchsorted(names, lists.sentence_ids)].T)
