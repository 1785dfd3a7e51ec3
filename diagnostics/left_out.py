"""Scores and predictions by leave-one-out: by the posterior without the list that is scored."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.diagnostics.judged import Judged
from bpa_ppl.errors import DataError
from bpa_ppl.metrics.preferences import Comparisons
from bpa_ppl.nbest import NBest, score_differences, subtract_first
from bpa_ppl.posterior.draws import DOMAIN, Draws, importance_weights
from bpa_ppl.posterior.statistics import loo_log_weights

_MAX_DRAWS = 1000  # that stand for the posterior


def score_left_out(
    draws: Draws, lists: NBest, *, in_sample: bool = False, by_mean: bool | None = None
) -> tuple[Float64, Float64]:
    """Return scores of candidates by the posterior without their list, and k̂ of each list.

    The posterior without a list is that of at most 1000 evenly spaced draws, by Pareto-smoothed
    importance sampling. The likelihood need not be p(e*|f): whatever it was is removed.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared. All preferences about a list are left out
            together; two lists may be of the same sentence.
        in_sample: Use the posterior of all lists instead, which need not have log-likelihoods.
        by_mean: Score by the mean weights, not by the predictive probability; None does as `rerank`
            chooses, by the mean if there are no canonical weights.

    Returns:
        (candidates,) scores; and (sentences,) Pareto k̂, above 0.7 they are unreliable.

    Raises:
        DataError: if the draws belong to other lists.
    """
    from bpa_ppl.posterior.probabilities import normalise

    scores, pareto_k = np.zeros(len(lists.features)), np.zeros(len(lists))
    by_mean = not draws.record.canonical if by_mean is None else by_mean
    if in_sample and by_mean and not draws.domains:
        return score_differences(lists, draws.aligned(lists, draws.mean[None])[0]), pareto_k
    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _MAX_DRAWS).astype(np.int64))
    likelihood = None if in_sample else _evaluate_lists(draws, lists, chosen)
    logs = np.zeros(draws.shape) if draws.log_weight is None else draws.log_weight
    log_weight = logs.reshape(-1)[chosen]  # far away −10,000 or less: exp(·) is 0
    for s, weights in enumerate(_align_with_lists(draws, lists, chosen)):
        left_out = log_weight
        if likelihood is not None:
            smoothed, pareto_k[s] = loo_log_weights(log_weight, likelihood[:, s])
            left_out = smoothed if np.isfinite(pareto_k[s]) else log_weight  # else too few draws
        rows, share = lists.rows(s), importance_weights(left_out)
        features = subtract_first(lists.features[rows], lists.sizes[s : s + 1])
        if by_mean:
            scores[rows] = features @ (share @ weights)
        else:
            scores[rows] = normalise(features @ weights.T, axis=0)[1] @ share
    return scores, pareto_k


def predict_answers(draws: Draws, judged: Judged, *, in_sample: bool = False) -> Float64:
    """Return (P, 2) the probability of each preferred one of two candidates, and its weight.

    Gains have none, unless the best one of two candidates was observed as a choice.
    """
    if isinstance(judged, Comparisons):
        rows, lists = np.stack([judged.better, judged.worse], axis=1), judged.of_list
        weight = judged.weight / judged.list_weight[lists]
    elif getattr(draws.record.likelihood, "name", "") == "oracle" and all(judged.lists.sizes == 2):
        gains = judged.gains.reshape(-1, 2)
        lists = np.flatnonzero(gains[:, 0] != gains[:, 1])
        order = np.argsort(-gains[lists], axis=1)
        rows, weight = judged.lists.offsets[lists, None] + order, np.ones(len(lists))
    else:
        return np.empty((0, 2))
    of_two = judged.lists.regroup(lists, rows.ravel(), np.full(len(rows), 2))
    p, _ = score_left_out(draws, of_two, in_sample=in_sample, by_mean=False)
    return np.stack([p[::2], weight], axis=1)


def _align_with_lists(draws: Draws, lists: NBest, chosen: Int64) -> list[Float64]:
    """Return some draws of the weights of each list, which may be those of its domain, (D, K)."""
    names = lists.sentence_extras.get(DOMAIN, (None,) * len(lists))
    domains = [str(name) if str(name) in draws.domains else None for name in names]
    of_domain = {name: draws if name is None else draws.of_domain(name) for name in set(domains)}
    weights = {name: of.aligned(lists)[chosen] for name, of in of_domain.items()}
    return [weights[name] for name in domains]


def _evaluate_lists(draws: Draws, lists: NBest, chosen: Int64) -> Float64:
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
