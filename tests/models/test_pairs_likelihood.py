"""The likelihood of all pairs of a list, against NumPy, and how wide its intervals are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy.special import expit, log_expit
from support.reference_model import Array

from bpa_ppl import NBest, adapt, as_draws, from_lists
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.lists import PADDING, Lists, find_order, tabulate
from bpa_ppl.weights import match

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}  # the last one is fixed
WEIGHTS = np.array([0.9, -0.7])
#: Lists of one, and of four widths; all pairs of each are compared.
SIZES = (7, 1, 2, 18, 7, 40, 1, 33)


def made(sizes: tuple[int, ...], seed: int) -> tuple[NBest, Array]:
    """Return lists and gains: with ties, and with equal derivations of equal and of other gains."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(n, 3)).round(1) for n in sizes]
    gains = [rng.integers(-4, 1, size=n) / 2 for n in sizes]
    for own, gain in zip(features, gains, strict=True):
        if len(own) > 5:
            own[2:5] = own[1]  # four derivations, of which three have one gain
            gain[2:4], gain[4] = gain[1], gain[1] - 0.5
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, features, NAMES), np.concatenate(gains)


def by_hand(
    lists: NBest, gain: Array, weights: Array, exponent: float = 0.5, unit: float | None = None
) -> tuple[Array, Array]:
    """Return (2 c / k) Σ log σ(s_i − s_j) over the pairs with gain_i > gain_j, and its gradient.

    With a unit each pair counts √((gain_i − gain_j) / unit).
    """
    log_p, gradient = [], []
    for s, own in enumerate(np.broadcast_to(weights, (len(lists), 2))):
        table = lists.features[lists.rows(s)].astype(np.float64)
        difference = gain[lists.rows(s)][:, None] - gain[lists.rows(s)]
        better, worse = np.nonzero(difference > 0)
        lead = table[better] - table[worse]
        scores, factor = lead @ [*own, 1.0], np.full(len(lead), 2 * exponent / len(table))
        factor *= 1.0 if unit is None else np.sqrt(difference[better, worse] / unit)
        log_p.append(factor @ log_expit(scores))
        gradient.append((factor * expit(-scores)) @ lead[:, :2])
    return np.array(log_p), np.array(gradient)


def tabulated(
    lists: NBest, gain: Array, likelihood: Pairs, *, width: int = 0, **options: Any
) -> tuple[Lists, Any]:
    """Return the prepared lists, and the function of weights that gives the log-likelihoods.

    With a width the lists are in one bucket that is so wide.
    """
    best, matched = lists.best(gain), match(CANONICAL, lists)
    table = tabulate(lists, matched, best, gains=gain, **options)
    if width:
        (bucket,) = table.buckets
        fill = {"base": PADDING, "candidate": -1}
        wider = {
            name: np.pad(
                values,
                [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])],
                constant_values=fill.get(name, 0),
            )
            for name, values in bucket.items()
        }
        table = table._replace(buckets=(wider,))
    prepared, observing = likelihood.prepare(table)

    @jax.jit
    def log_likelihood(weights: Any) -> Any:
        site = handlers.trace(observing.observe).get_trace(prepared, weights)["oracle"]
        return site["fn"].log_prob(site["value"])

    return prepared, log_likelihood


@pytest.mark.parametrize(("exponent", "unit"), [(0.5, None), (0.25, 0.7)])
def test_density_and_gradient_of_all_pairs(exponent: float, unit: float | None) -> None:
    lists, gain = made((*SIZES, *[7] * 15), 1)  # 17 lists of 7 get one list of padding
    scale = Pairs().gain_scale if unit is None else "raw"
    prepared, log_likelihood = tabulated(lists, gain, Pairs(exponent, scale, unit))
    assert len(prepared.buckets) == 4
    merged = sum(int((bucket["candidate"] >= 0).sum()) for bucket in prepared.buckets)
    assert merged < len(gain)  # several candidates are one row
    jacobian = jax.jit(jax.jacobian(log_likelihood))
    for weights in (WEIGHTS, -4 * WEIGHTS, np.zeros(2)):
        each, slope = (np.asarray(f(weights)) for f in (log_likelihood, jacobian))
        expected, gradient = by_hand(lists, gain, weights, exponent, unit)
        order = find_order(prepared)
        np.testing.assert_allclose(each[order], expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(slope[order], gradient, rtol=1e-4, atol=1e-4)
        padding = np.asarray(prepared.sentence) < 0
        assert padding.any()
        assert not each[padding].any()
        assert not slope[padding].any()


def test_tied_best_candidates_change_nothing() -> None:
    """The share of an observation among tied candidates is another likelihood's."""
    lists, gain = made(SIZES, 2)
    best = np.repeat(np.maximum.reduceat(gain, lists.offsets[:-1]), lists.sizes)
    share = (gain == best) / np.repeat(
        np.add.reduceat(gain == best, lists.offsets[:-1]), lists.sizes
    )
    prepared, log_likelihood = tabulated(lists, gain, Pairs(), share=share)
    each = np.asarray(log_likelihood(WEIGHTS))[find_order(prepared)]
    np.testing.assert_allclose(each, by_hand(lists, gain, WEIGHTS)[0], rtol=2e-5, atol=2e-5)


def test_many_draws_together() -> None:
    """On CPUs jaxlib has compiled such sums wrongly for more than 32 draws."""
    lists, gain = made(SIZES, 4)
    prepared, log_likelihood = tabulated(lists, gain, Pairs())
    order = find_order(prepared)
    weights = np.random.default_rng(0).normal(size=(40, 2))
    values = jax.jit(jax.vmap(log_likelihood))(weights)
    gradients = jax.jit(jax.vmap(jax.grad(lambda w: log_likelihood(w).sum())))(weights)
    for draw, own in enumerate(weights):
        expected, gradient = by_hand(lists, gain, own)
        np.testing.assert_allclose(values[draw][order], expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(gradients[draw], gradient.sum(axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "width"), [(60, 60), (12, 96)])
def test_some_pairs_of_long_lists_represent_all(size: int, width: int) -> None:
    """On average over lists, also for the best candidate, which here differs from all others."""
    count, rng = 200, np.random.default_rng(5)
    features, gain = rng.normal(size=(count, size, 3)), rng.normal(size=(count, size))
    features[:, 7], gain[:, 7] = [-8.0, 0.0, 0.0], 9.0
    lists = from_lists([[str(i) for i in range(size)]] * count, list(features), NAMES)
    prepared, log_likelihood = tabulated(lists, gain.ravel(), Pairs(), width=width)
    order = find_order(prepared)
    each = np.asarray(log_likelihood(WEIGHTS))[order]
    slope = np.asarray(jax.jit(jax.jacobian(log_likelihood))(WEIGHTS))[order]
    for values, expected in zip((each, slope), by_hand(lists, gain.ravel(), WEIGHTS), strict=True):
        difference, size_of = values - expected, np.abs(expected).mean()
        error = difference.std(axis=0) / np.sqrt(count)
        assert np.all(np.abs(difference.mean(axis=0)) < 4 * error + 1e-6 * size_of)
        assert np.all(error < 0.02 * size_of)


def test_only_judged_candidates_of_a_list_are_compared() -> None:
    lists, gain = made((7, 7, 9), 7)
    gain[[1, 9, 10, 20]] = np.nan
    judged = replace(lists, extras={"quality": gain})
    draws = as_draws(adapt(judged, CANONICAL, likelihood="pairs", gain="quality", sampler="map"))
    assert draws.record.likelihood.plain == {
        "name": "pairs",
        "exponent": 0.5,
        "gain_scale": "ranked",
        "unit": None,
    }
    rows = np.split(np.arange(len(gain)), lists.offsets[1:-1])
    rows = [own[~np.isnan(gain[own])] for own in rows]
    rest = from_lists(
        [[str(i) for i in own] for own in rows], [lists.features[own] for own in rows], NAMES
    )
    expected, slope = by_hand(rest, np.concatenate([gain[own] for own in rows]), draws.mean)
    np.testing.assert_allclose(draws.pointwise[0, 0], expected, rtol=1e-5, atol=1e-5)
    # At the mode the gradient of the prior N(λ_T, 0.1) cancels that of the likelihood.
    np.testing.assert_allclose((draws.mean - [0.4, -0.2]) / 0.1, slope.sum(axis=0), atol=1e-3)
