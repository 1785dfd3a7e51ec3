"""What a posterior predicts of the lists that it was adapted to, as ArviZ's checks take it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.diagnostics.predictive.checks import adapted_lists
from bpa_ppl.errors import DataError, checked_seed
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import as_draws, to_arviz

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Draws looked at together: their probabilities of a list fit into a cache.
_BLOCK = 64


def with_predictions(
    posterior: Posterior, nbest: NBest, *, gains: npt.ArrayLike | None = None, seed: int = 0
) -> InferenceData:
    """Return the posterior with a group `posterior_predictive`, and what was observed beside it.

    Of each sentence each draw λ predicts one hypothesis, drawn from p(e|f,λ). Two things are told
    of it, and of the oracle:

    * `oracle`: its position in the list from 0 on, plus a uniform random share of one, which makes
      it continuous: the probability integral transform (`loo_pit`) is then exactly uniform where
      oracles are chosen as the model says. Under 1/2 on average, they stand higher in the lists
      than it expects (randomised as by Smith 1985).
    * `gain`: what it is worth, if gains are given. That of the oracle is the best of its list, so
      that it says how much a draw leaves to be won, not whether the model fits.

    Args:
        posterior: draws of the weights; those with importance weights are resampled, because
            ArviZ takes all draws alike.
        nbest: the lists that it was adapted to, in the same order.
        gains: (hypotheses,) what each is worth, such as `bpa_ppl.gains(nbest)`.
        seed: of the predictions, and of the resampling.

    Returns:
        InferenceData, or a DataTree; (C, D, S) float32 each in `posterior_predictive`.

    Raises:
        DataError: if these are not its lists, features are missing, or gains are not one for each
            hypothesis.

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
        worth = _one_each(gains, lists)
        predicted["gain"], observed["gain"] = (
            worth[lists.offsets[:-1] + position] for position in (drawn, oracle)
        )
    narrow = {name: _narrow(values) for name, values in predicted.items()}
    return to_arviz(
        replace(draws, predictive=narrow, observed={**draws.observed, **observed}),
    )


def _drawn(lists: NBest, weights: Float64, rng: np.random.Generator) -> Int64:
    """Return a hypothesis of each list for each vector of weights, (D, S) positions."""
    from bpa_ppl.models.probabilities import normalised

    found = np.empty((len(weights), len(lists)), np.int64)
    vectors = weights.T.astype(np.float32)
    for s in range(len(lists)):
        own, level = lists.features[lists.rows(s)], rng.random(len(weights))
        features = own - own[:1]
        for first in range(0, len(weights), _BLOCK):
            some = slice(first, first + _BLOCK)
            below = normalised(features @ vectors[:, some], axis=0)[1].cumsum(axis=0) < level[some]
            found[some, s] = np.count_nonzero(below, axis=0)
    return found.clip(max=lists.sizes - 1)


def _narrow(values: Float64) -> npt.NDArray[np.float32]:
    """Round towards zero, so that a position plus a share stays below the next position."""
    near = values.astype(np.float32)
    return np.where(np.abs(near) > np.abs(values), np.nextafter(near, np.float32(0)), near)


def _one_each(gains: npt.ArrayLike, lists: NBest) -> Float64:
    values = np.asarray(gains, np.float64)
    if values.shape != (len(lists.features),):
        raise DataError(
            f"gains must be one number for each of the {len(lists.features)} hypotheses, not an "
            f"array of shape {values.shape}: take bpa_ppl.gains of the same lists",
            lists.origin,
        )
    return values
