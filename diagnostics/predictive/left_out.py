"""Leave-one-out decisions: what the posterior without a sentence says of it, without refitting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import Draws, importance_weights
from bpa_ppl.posterior.statistics import loo_log_weights

_DRAWS = 1000  # used at most


class LeftOut(NamedTuple):
    """Importance weights of D draws for S sentences, each without the sentence (K features).

    Attributes:
        weights: (D, K) the draws, in the order of the columns of the lists.
        log_share: (S, D) logarithms of their importance weights.
        pareto_k: (S,) where it is above 0.7 the weights of the sentence are unreliable.
    """

    weights: Float64
    log_share: Float64
    pareto_k: Float64

    def probabilities(self, lists: NBest) -> list[Float64]:
        """Return p(e|f, A without the sentence) of each list, (N,) each."""
        from bpa_ppl.models.probabilities import normalised

        found = []
        for s in range(len(lists)):
            features = lists.features[lists.rows(s)].astype(np.float64)
            p = normalised((features - features[:1]) @ self.weights.T, axis=0)[1]
            found.append(p @ importance_weights(self.log_share[s]))
        return found

    def mean_scores(self, lists: NBest) -> list[Float64]:
        """Return the scores by the mean of the weights without the sentence, (N,) each."""
        found = []
        for s in range(len(lists)):
            mean = importance_weights(self.log_share[s]) @ self.weights
            found.append(lists.features[lists.rows(s)].astype(np.float64) @ mean)
        return found


def leave_one_out(draws: Draws, lists: NBest) -> LeftOut:
    """Return draws of the posterior without each sentence, by Pareto-smoothed importance sampling.

    The likelihood may be another than p(e*|f): a margin is left out as what it was.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared.

    Raises:
        DataError: if the draws are a point, or lack it, or are not of these lists, or of
            preferences.
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
    if "comparisons" in draws.attrs:
        raise DataError(
            "lists cannot be left out of a posterior of preferences, each of which is an "
            "observation of its own: judge the choices for new lists"
        )
    # Weighted draws count the likelihood with an exponent of its own (Eq. 11).
    exponent = float(draws.attrs.get("likelihood_exponent", 1.0))
    likelihood = exponent * draws.pointwise.reshape(len(draws.flat), -1)
    columns = _of_lists(likelihood[_thinned(draws)], draws, lists)
    whole = in_sample(draws, lists)
    for s, column in enumerate(columns.T):
        smoothed, whole.pareto_k[s] = loo_log_weights(whole.log_share[s], column)
        if np.isfinite(whole.pareto_k[s]):  # else there are too few draws to leave it out
            whole.log_share[s] = smoothed
    return whole


def _of_lists(likelihood: Float64, draws: Draws, lists: NBest) -> Float64:
    """Return the log-likelihood of all that was observed of each list, (D, S).

    Args:
        likelihood: (D, observations); preferences come after the lists.
        draws: which record the sentence of each observation.
        lists: the adaptation sentences.

    Raises:
        DataError: if they are other sentences.
    """
    count, ids = likelihood.shape[1], draws.sentence_ids
    if count == len(lists):
        return likelihood
    if ids is None or len(ids) != count or not np.isin(lists.sentence_ids, ids).all():
        raise DataError(
            f"the posterior was adapted to {count} sentences, and these are {len(lists)}: give "
            "the lists that it was adapted to",
            lists.origin,
        )
    result: Float64 = likelihood @ (np.asarray(ids)[:, None] == lists.sentence_ids).astype(
        np.float64
    )
    return result


def in_sample(draws: Draws, lists: NBest) -> LeftOut:
    """Return the draws as `leave_one_out` does, with no sentence left out."""
    chosen = _thinned(draws)
    share = np.log(np.maximum(draws.importance[chosen], np.finfo(np.float64).tiny))
    return LeftOut(
        draws.aligned(lists)[chosen], np.tile(share, (len(lists), 1)), np.zeros(len(lists))
    )


def left_out(draws: Draws, lists: NBest) -> tuple[list[Float64], Float64]:
    """Return log p(e|f, A without the sentence) of each list, (N,) each, and k̂ of each sentence.

    Arguments and errors are those of `leave_one_out`.
    """
    found = leave_one_out(draws, lists)
    tiny = np.finfo(np.float64).tiny
    return [np.log(np.maximum(p, tiny)) for p in found.probabilities(lists)], found.pareto_k


def _thinned(draws: Draws) -> np.ndarray:
    """Return which draws are used: at most 1000, evenly spaced."""
    return np.unique(np.linspace(0, len(draws.flat) - 1, _DRAWS).astype(np.int64))
