"""Scores and predictions by leave-one-out: by the posterior without the list that is scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.gains.judged import Judged
from bpa_ppl.lists.nbest import NBest, score_differences, subtract_first
from bpa_ppl.posterior.draws import importance_weights
from bpa_ppl.posterior.statistics import loo_log_weights
from bpa_ppl.weight_draws import DOMAIN, WeightDraws, find_ids

_MAX_DRAWS = 1000  # that stand for the posterior


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A posterior without each of some lists in turn, from `leave_out`, or of all of them.

    Attributes:
        draws: the posterior of all lists.
        lists: the lists (S of them).
        weights: (D, K) some draws of the weights of the features of each list.
        share: (S, D) of each draw in the posterior without the list.
        pareto_k: (S,) Pareto k̂; above 0.7 the shares are unreliable. 0 if no list is left out.
        in_sample: whether no list is left out.
    """

    draws: WeightDraws
    lists: NBest
    weights: list[Float64]
    share: Float64
    pareto_k: Float64
    in_sample: bool

    def score(self, *, by_mean: bool | None = None) -> Float64:
        """Return scores of candidates by the posterior without their list, (candidates,).

        Args:
            by_mean: Score by the mean weights, not by the predictive probability; None does as
                `rerank` chooses, by the mean if there are no canonical weights.
        """
        from bpa_ppl.posterior.probabilities import normalise

        draws, lists = self.draws, self.lists
        by_mean = not draws.adaptation.canonical if by_mean is None else by_mean
        if self.in_sample and by_mean and not draws.domains:
            return score_differences(lists, draws.aligned(lists, draws.mean[None])[0])
        scores = np.zeros(len(lists.features))
        differences, ends = subtract_first(lists.features, lists.sizes), lists.offsets.tolist()
        for s, (weights, share) in enumerate(zip(self.weights, self.share, strict=True)):
            rows = slice(ends[s], ends[s + 1])
            features = differences[rows]
            if by_mean:
                scores[rows] = features @ (share @ weights)
            else:
                scores[rows] = normalise(features @ weights.T, axis=0)[1] @ share
        return scores

    def predict_answers(self, judged: Judged) -> Float64:
        """Return (P, 2) the probability of each preferred one of two candidates, and its weight.

        Gains have none, unless the best one of two candidates was observed as a choice.

        Args:
            judged: what was observed about the lists.
        """
        if judged.pairs is not None:
            better, worse, lists, weight = judged.pairs
            weight = weight / judged.weight[lists]
        elif judged.gains is not None and self._observes_better_one:
            gains = judged.gains.reshape(-1, 2)
            lists = np.flatnonzero(gains[:, 0] != gains[:, 1])
            first = self.lists.offsets[lists]
            is_second = gains[lists, 1] > gains[lists, 0]
            better, worse, weight = first + is_second, first + ~is_second, np.ones(len(lists))
        else:
            return np.empty((0, 2))
        rows = np.stack([better, worse], axis=1).ravel()
        difference = subtract_first(self.lists.features[rows], np.full(len(lists), 2))[1::2]
        p = np.empty(len(lists))
        for k, s in enumerate(lists.tolist()):
            p[k] = np.exp(-np.logaddexp(0.0, self.weights[s] @ difference[k])) @ self.share[s]
        return np.stack([p, weight], axis=1)

    @property
    def _observes_better_one(self) -> bool:
        """Whether the likelihood is that of the better one of two candidates."""
        name = getattr(self.draws.adaptation.likelihood, "name", "")
        return name == "oracle" and bool(np.all(self.lists.sizes == 2))


def leave_out(draws: WeightDraws, lists: NBest, *, in_sample: bool = False) -> LeftOut:
    """Return the posterior without each list, by Pareto-smoothed importance sampling.

    It is that of at most 1000 evenly spaced draws. Any likelihood of the list is removed.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared. All preferences about a list are left out
            together; two lists may be of the same sentence.
        in_sample: Use the posterior of all lists instead, which need not have log-likelihoods.
    """
    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _MAX_DRAWS).astype(np.int64))
    weights, pareto_k = _align_with_lists(draws, lists, chosen), np.zeros(len(lists))
    logs = draws.draws.log_weight
    log_weight = np.ravel(np.zeros(draws.shape) if logs is None else logs)[
        chosen
    ]  # far away −10,000 or less: exp(·) is 0
    if in_sample:
        share = np.broadcast_to(importance_weights(log_weight), (len(lists), len(chosen)))
        return LeftOut(draws, lists, weights, share, pareto_k, in_sample)
    smoothed, pareto_k = loo_log_weights(log_weight, _evaluate_lists(draws, lists, chosen))
    # Without a finite k̂ there are too few draws.
    smoothed[~np.isfinite(pareto_k)] = log_weight
    share = np.array([importance_weights(of_list) for of_list in smoothed])
    return LeftOut(draws, lists, weights, share, pareto_k, in_sample)


def require_adapted(draws: WeightDraws, lists: NBest) -> None:
    """Raise a DataError if a posterior was not adapted to all of some lists, by their ids.

    Posteriors of other programs may have other ids: then there must be as many lists.
    """
    ids, of_lists = find_ids(draws, lists)
    count = None if draws.pointwise is None else draws.pointwise.shape[-1]
    others = np.full(len(lists), count is not None) if ids is None else ~np.isin(of_lists, ids)
    if others.any() and (count != len(lists) or (ids is not None and draws.adaptation.data)):
        names = list_names(str(lists.ids[s]) for s in np.flatnonzero(others))
        raise DataError(
            f"the posterior was not adapted to the lists {names}: give those that it was adapted "
            "to, or the choices from new lists (choice)",
            lists.origin,
            parameter="lists",
            code="mismatch",
        )


def _align_with_lists(draws: WeightDraws, lists: NBest, chosen: Int64) -> list[Float64]:
    """Return some draws of the weights of each list, which may be those of its domain, (D, K)."""
    names = lists.sentence_extras.get(DOMAIN, (None,) * len(lists))
    domains = [str(name) if str(name) in draws.domains else None for name in names]
    of_domain = {name: draws if name is None else draws.of_domain(name) for name in set(domains)}
    weights = {name: of.aligned(lists)[chosen] for name, of in of_domain.items()}
    return [weights[name] for name in domains]


def _evaluate_lists(draws: WeightDraws, lists: NBest, chosen: Int64) -> Float64:
    """Return the log-likelihood of each list in some draws, (S, D), as it is in the posterior."""
    # Weighted draws may have a likelihood with an exponent, 1/δ.
    exponent = draws.record.figures.likelihood_exponent
    likelihood = exponent * np.asarray(draws.pointwise).reshape(len(draws.flat), -1)[chosen].T
    count, (ids, of_lists) = len(likelihood), find_ids(draws, lists)
    is_paired = count == len(lists) and draws.adaptation.observed.kind != "preferences"
    in_order = not draws.adaptation.data or np.array_equal(np.asarray(ids), of_lists)
    if ids is None or (is_paired and in_order):
        return likelihood
    names, number = np.unique(ids, return_inverse=True)
    by_name = np.zeros((len(names), len(chosen)))
    np.add.at(by_name, number, likelihood)
    return np.asarray(by_name[np.searchsorted(names, of_lists)])
