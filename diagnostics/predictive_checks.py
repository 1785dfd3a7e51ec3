"""Predictive checks: what draws predict of the adaptation lists, for the checks of ArviZ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float32, Float64, Int64
from bpa_ppl.errors import DataError, checked_seed
from bpa_ppl.models import Preparation
from bpa_ppl.models.probabilities import normalised
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.quality.column import judged_lists

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Draws in a block, whose probabilities of a list fit into a processor cache.
_BLOCK = 64


def adapted_lists(draws: Draws, nbest: NBest) -> tuple[NBest, Int64]:
    """Return the lists that a posterior was adapted to, with its features, and their oracles.

    If the criterion is a column, only judged candidates are kept.

    Raises:
        DataError: if these are not its lists, or it records no oracles.
    """
    prepared = Preparation.recorded(draws)
    lists = prepared.for_training(nbest).nbest
    if prepared.gain is not None:
        lists = judged_lists(lists, prepared.gain)[0]
    if "oracle" not in draws.observed:
        message = "the posterior does not record oracles: adapt again"
        raise DataError(message, code="no-data")
    index = np.asarray(draws.observed["oracle"], np.int64)
    if len(index) != len(lists) or np.any(index >= lists.sizes):
        message = f"the {len(index)} recorded oracles are not of these {len(lists)} lists"
        raise DataError(f"{message}: give its lists", lists.origin, code="mismatch")
    return lists, index


def with_predictions(
    posterior: Posterior, nbest: NBest, *, gains: npt.ArrayLike | None = None, seed: int = 0
) -> InferenceData:
    """Return the posterior with the groups that predict the lists, for the checks of ArviZ.

    They are `posterior_predictive`, and `prior_predictive` from the recorded draws of the prior.

    Each draw λ predicts one hypothesis of each sentence, drawn from p(e|f,λ). Two variables
    describe the predictions, and the oracles in `observed_data`:

    * `oracle`: the position in the list from 0, plus a uniform random number in [0, 1), so that it
      is continuous: the probability integral transform (`loo_pit`) is then exactly uniform if the
      model is correct (randomised as by Smith 1985). Values below 1/2 on average mean that oracles
      rank higher in the lists than the model expects.
    * `gain`: its gain, if gains are given. The oracle has the best gain of its list, so that this
      measures the remaining headroom, not the fit of the model.

    Args:
        posterior: draws of the weights; draws with importance weights are resampled, because ArviZ
            treats all draws equally.
        nbest: the lists that it was adapted to, in the same order.
        gains: (hypotheses,) such as `bpa_ppl.gains(nbest)`.
        seed: of the predictions, and of the resampling.

    Returns:
        InferenceData, or a DataTree; (C, D, S) float32 each in the two groups.

    Raises:
        DataError: if these are other lists, features are missing, or there is not one gain for
            each hypothesis.

    >>> from bpa_ppl.posterior import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 2, [[[0.0], [np.log(3)]]] * 2, ["LM0"])
    >>> draws = Draws({"weights": np.ones((2, 500, 1))}, ("LM0",), observed={"oracle": [1, 0]})
    >>> drawn = as_draws(with_predictions(draws, lists)).predictive["oracle"]
    >>> drawn.shape, bool(abs((drawn >= 1).mean() - 0.75) < 0.03)
    ((2, 500, 2), True)
    """
    draws = as_draws(posterior).resampled(seed)
    lists, oracle = adapted_lists(draws, nbest)
    rng = np.random.default_rng(checked_seed(seed))
    drawn = _drawn(lists, draws.aligned(lists), rng).reshape(*draws.shape, len(lists))
    predicted, observed = {"oracle": drawn + rng.random(drawn.shape)}, {}
    observed["oracle"] = oracle + rng.random(len(oracle))
    if gains is not None:
        gain_values = np.asarray(gains, np.float64)
        if gain_values.shape != (len(lists.features),):
            message = f"{len(lists.features)} gains are needed, not an array of {gain_values.shape}"
            code = "wrong-length"
            raise DataError(message, lists.origin, parameter="gains", code=code)
        predicted["gain"], observed["gain"] = (
            gain_values[lists.offsets[:-1] + position] for position in (drawn, oracle)
        )
    from_prior = {}
    if WEIGHTS in draws.prior:
        prior = np.asarray(draws.prior[WEIGHTS], np.float64)
        vectors = draws.aligned(lists, prior.reshape(-1, prior.shape[-1]))
        positions = _drawn(lists, vectors, rng).reshape(*prior.shape[:2], len(lists))
        from_prior["oracle"] = _narrow(positions + rng.random(positions.shape))
        if gains is not None:
            from_prior["gain"] = _narrow(gain_values[lists.offsets[:-1] + positions])
    narrow = {name: _narrow(values) for name, values in predicted.items()}
    observed = {**draws.observed, **observed}
    return to_arviz(
        replace(draws, predictive=narrow, prior_predictive=from_prior, observed=observed)
    )


def _narrow(values: Float64) -> Float32:
    """Return float32 rounded towards zero: a position plus a fraction is below the next one."""
    rounded = values.astype(np.float32)
    lower = np.nextafter(rounded, np.float32(0))
    return np.where(np.abs(rounded) > np.abs(values), lower, rounded)


def _drawn(lists: NBest, weights: Float64, rng: np.random.Generator) -> Int64:
    """Return a hypothesis of each list for each vector of weights, (D, S) positions."""
    choices = np.empty((len(weights), len(lists)), np.int64)
    vectors = weights.T.astype(np.float32)
    for s in range(len(lists)):
        rows, level = lists.features[lists.rows(s)], rng.random(len(weights))
        features = rows - rows[:1]
        for first in range(0, len(weights), _BLOCK):
            part = slice(first, first + _BLOCK)
            below = normalised(features @ vectors[:, part], axis=0)[1].cumsum(axis=0) < level[part]
            choices[part, s] = np.count_nonzero(below, axis=0)
    return choices.clip(max=lists.sizes - 1)
