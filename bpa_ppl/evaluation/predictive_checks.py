"""Predictive checks: what draws predict of the adaptation lists, for the checks of ArviZ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.gains.judged import select_judged
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.arviz_data import as_draws, to_arviz
from bpa_ppl.posterior.probabilities import normalise
from bpa_ppl.weight_draws import WeightDraws, as_weight_draws, find_ids

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Draws in a block, whose probabilities of a list fit into a processor cache.
_BLOCK = 64


def _check_lists(draws: WeightDraws, lists: NBest) -> tuple[NBest, Int64]:
    """Return the lists that a posterior was adapted to, with its features, and their oracles.

    If the gain is a column, only judged candidates are kept.

    Raises:
        DataError: if these are not its lists, or it records no oracles.
    """
    recipe = Recipe.of(draws)
    prepared = recipe.for_training(lists).lists
    if recipe.gain is not None:
        prepared = select_judged(prepared, recipe.gain).lists
    if "oracle" not in draws.draws.observed:
        message = "no record of oracles in the posterior: adapt again"
        raise DataError(message, code="no-data")
    index = np.asarray(draws.draws.observed["oracle"], np.int64)
    ids, of_lists = find_ids(draws, prepared)
    same = ids is None or not draws.adaptation.data or np.array_equal(ids, of_lists)
    if len(index) != len(prepared) or not same or np.any(index >= prepared.sizes):
        raise DataError(
            f"{len(index)} recorded oracles, but there are {len(prepared)} other lists: give the "
            "lists of the posterior, in the same order",
            prepared.origin,
            code="mismatch",
        )
    return prepared, index


def with_predictions(posterior: Posterior, lists: NBest, *, seed: int = 0) -> InferenceData:
    """Return the posterior with predictions of the lists, (C, D, S), for the checks of ArviZ.

    Each draw λ predicts one candidate of each sentence, drawn from p(e|f,λ). `oracle` is the
    position in the list, plus a uniform number in [0, 1), so that the probability integral
    transform (`loo_pit`) is uniform if the model is correct (Smith 1985). Draws with importance
    weights are resampled.

    Raises:
        DataError: if these are other lists, or features are missing.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weight_draws import name_weights
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [np.log(3)]]] * 2, ["LM0"])
    >>> draws = name_weights(np.ones((2, 500, 1)), ("LM0",), observed={"oracle": [1, 0]})
    >>> drawn = as_draws(with_predictions(draws, lists)).predictive["oracle"]
    >>> drawn.shape, bool(abs((drawn >= 1).mean() - 0.75) < 0.03)
    ((2, 500, 2), True)
    """
    draws = as_draws(posterior).resampled(seed)
    weights = as_weight_draws(draws)
    prepared, oracle = _check_lists(weights, lists)
    rng = np.random.default_rng(check_seed(seed))
    drawn = _draw(prepared, weights.aligned(prepared), rng).reshape(*draws.shape, len(prepared))
    exact = drawn + rng.random(drawn.shape)
    # Rounded towards zero: a position plus a fraction is below the next position.
    narrow = exact.astype(np.float32)
    narrow = np.where(narrow > exact, np.nextafter(narrow, np.float32(0)), narrow)
    observed = {**draws.observed, "oracle": oracle + rng.random(len(oracle))}
    return to_arviz(replace(draws, predictive={"oracle": narrow}, observed=observed))


def _draw(lists: NBest, weights: Float64, rng: np.random.Generator) -> Int64:
    """Return a candidate of each list for each vector of weights, (D, S) positions."""
    choices = np.empty((len(weights), len(lists)), np.int64)
    vectors = weights.T
    for s in range(len(lists)):
        rows, level = lists.features[lists.rows(s)], rng.random(len(weights))
        features = rows - rows[:1]
        for first in range(0, len(weights), _BLOCK):
            part = slice(first, first + _BLOCK)
            below = normalise(features @ vectors[:, part], axis=0)[1].cumsum(axis=0) < level[part]
            choices[part, s] = np.count_nonzero(below, axis=0)
    return choices.clip(max=lists.sizes - 1)
