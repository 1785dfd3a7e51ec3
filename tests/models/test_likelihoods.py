"""Margin, risk and all pairs of a list, compared with SciPy and NumPy."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm
from support import reference_model
from support.raising import raises
from support.reference_model import Array

from bpa_ppl import Isotropic, NBest, UsageError, adapt, as_weight_draws, from_lists
from bpa_ppl.extending import Likelihood, Lists, match, observe, prepare, tabulate
from bpa_ppl.models.likelihoods.lists import PADDING, find_order
from bpa_ppl.models.likelihoods.oracle import Margin, Risk
from bpa_ppl.models.likelihoods.pairs import Pairs

pytestmark = pytest.mark.usefixtures("several_buckets")

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
SIZES = (7, 1, *[7] * 16)  # 17 lists of one length get one list of padding
JUDGED = np.flatnonzero(np.array(SIZES) > 1)  # nothing is chosen from a list of one
WEIGHTS = np.array([0.9, -0.7])


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal derivations, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[0][2] = features[0][3] = features[0][4]
    features[2][4] = features[2][5]
    return from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


@pytest.fixture(scope="module")
def gain_values(lists: NBest) -> Array:
    """Gains with ties, both among equal and among different features."""
    rng = np.random.default_rng(3)
    result = rng.integers(-4, 0, size=sum(SIZES)) / 2
    result[2:4], result[4] = -0.5, -1.0  # two of three equal derivations have equal gains
    result[12:14] = result[8:15].max()  # two of the best candidates have equal features
    return result


@pytest.fixture(scope="module")
def oracle(lists: NBest, gain_values: Array) -> Array:
    """The first candidate with the highest gain."""
    return lists.best(gain_values)


@pytest.fixture(scope="module")
def reference(lists: NBest, gain_values: Array, oracle: Array) -> Any:
    """The function (name, setting, weights) ↦ log-likelihood of each sentence, by the formulas."""

    def log_likelihood(name: str, setting: float, weights: Array) -> Array:
        result = []
        for s, best in enumerate(oracle):
            rows = lists.rows(s)
            log_p = reference_model.log_choice(lists.features[rows], [*weights, 1.0])
            loss = gain_values[rows].max() - gain_values[rows]
            margin = log_p[best] - logsumexp(log_p + setting * loss)
            result.append(margin if name == "margin" else -setting * np.exp(log_p) @ loss)
        return np.array(result)

    return log_likelihood


@lru_cache
def compiled_log_likelihood(observing: Likelihood) -> Any:
    """Return a compiled function of the log-likelihoods and the gradient of their sum."""

    def total(weights: Any, lists: Lists) -> Any:
        with handlers.trace() as observed:
            observing.observe(lists, weights)
        each = observed["oracle"]["fn"].log_prob(observed["oracle"]["value"])
        return each.sum(), each

    return jax.jit(jax.value_and_grad(total, has_aux=True))


def evaluate_likelihood(
    likelihood: Likelihood, lists: NBest, gain_values: Array, oracle: Any, weights: Array
) -> tuple[Array, Array, Array]:
    """Return the log-likelihoods of the sentences and of padding, and the gradient of the sum."""
    table = tabulate(lists, match(CANONICAL, lists), oracle, gains=gain_values)
    prepared, observing = likelihood.prepare(table)
    (_, each), gradient = compiled_log_likelihood(observing)(weights, prepared)
    empty = np.asarray(each)[np.asarray(prepared.sentence) < 0]
    return np.asarray(each)[find_order(prepared)], empty, np.asarray(gradient)


@pytest.mark.parametrize(
    ("name", "likelihood"), [("margin", Margin(gamma=0.7)), ("risk", Risk(kappa=1.5))]
)
def test_density_and_gradient_agree_with_scipy(
    lists: NBest, gain_values: Array, oracle: Array, reference: Any, name: str, likelihood: Any
) -> None:
    setting = getattr(likelihood, likelihood.factor[0])

    def expected(weights: Array) -> Array:
        return np.asarray(reference(name, setting, weights))

    for weights in (WEIGHTS, -4 * WEIGHTS):
        each, empty, gradient = evaluate_likelihood(likelihood, lists, gain_values, oracle, weights)
        np.testing.assert_allclose(each, expected(weights), rtol=2e-5, atol=2e-5)
        assert empty.tolist() == [0.0]
        slope = approx_fprime(weights, lambda w: expected(w).sum(), 1e-6)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)
    # A constant gain of a list has no effect.
    shifted = gain_values + np.repeat(8.0 * np.arange(len(SIZES)), SIZES)
    moved = evaluate_likelihood(likelihood, lists, shifted, oracle, weights)
    for part, other in zip((each, empty, gradient), moved, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-5)


def test_candidates_with_different_gains_are_not_merged(
    lists: NBest, gain_values: Array, oracle: Array
) -> None:
    matched, rows = match(CANONICAL, lists), []
    for gain in (None, gain_values):
        buckets = tabulate(lists, matched, oracle, gains=gain).buckets
        rows.append(sum(int((bucket["candidate"] >= 0).sum()) for bucket in buckets))
    assert rows == [118, 119]  # of 120


def test_risk_mode_agrees_with_scipy(lists: NBest, gain_values: Array, reference: Any) -> None:
    judged = replace(lists, extras={"quality": gain_values})
    draws = as_weight_draws(
        adapt(judged, CANONICAL, likelihood="risk", gain="quality", sampler="map")
    )
    kappa, mean = draws.adaptation.likelihood.settings["kappa"], [0.4, -0.2]

    def loss(weights: Array) -> float:
        prior = norm.logpdf(weights, mean, np.sqrt(0.1)).sum()
        return -float(reference("risk", kappa, weights)[JUDGED].sum() + prior)

    best = minimize(loss, mean, tol=1e-10)
    np.testing.assert_allclose(draws.mean, best.x, atol=1e-3)
    assert np.abs(best.x - mean).max() > 0.05
    each = reference("risk", kappa, draws.mean)[JUDGED]
    np.testing.assert_allclose(draws.pointwise[0, 0], each, rtol=1e-5, atol=1e-5)


def test_default_settings_are_derived_from_gains(lists: NBest, gain_values: Array) -> None:
    judged = replace(lists, extras={"quality": gain_values})
    spread = judged.with_features("y", judged.extras["quality"]).spread[-1]
    for name, setting, value in (("margin", "gamma", 2 / spread), ("risk", "kappa", 1 / spread)):
        posterior = adapt(judged, CANONICAL, likelihood=name, gain="quality", sampler="map")
        expected = {"name": name, setting: pytest.approx(value, rel=0.005)}
        assert as_weight_draws(posterior).adaptation.likelihood.plain == expected
    assert Risk(kappa=2.0).log_concave_start() == Margin(gamma=4.0)
    graded = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"]).with_extras(grade=[1, 9])
    scored = observe(prepare(graded, gain="grade", likelihood="risk"))
    assert scored.edit == 4.0
    assert Risk().defaults(scored) == Risk(kappa=0.25)
    assert Margin(gamma=3.0).defaults(scored) == Margin(gamma=3.0)


@pytest.mark.parametrize("likelihood", [Margin(), Risk(), Pairs()])
def test_rejects_lists_without_gains(lists: NBest, likelihood: Likelihood) -> None:
    with raises(UsageError, "missing-setting", parameter="gains"):
        likelihood.prepare(tabulate(lists, match(CANONICAL, lists)))


#: Lists of one, and of four widths; all pairs of each are compared.
LENGTHS = (7, 1, 2, 18, 7, 40, 1, 33)


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
    lists: NBest,
    gain: Array,
    weights: Array,
    exponent: float = 0.5,
    power: float = 0.0,
    unit: float = 1.0,
) -> tuple[Array, Array]:
    """Return (2 c / k) Σ log σ(s_i − s_j) over the pairs with gain_i > gain_j, and its gradient.

    Each pair counts ((gain_i − gain_j) / unit) ** power.
    """
    log_p, gradient = [], []
    for s, own in enumerate(np.broadcast_to(weights, (len(lists), 2))):
        table = lists.features[lists.rows(s)].astype(np.float64)
        difference = gain[lists.rows(s)][:, None] - gain[lists.rows(s)]
        better, worse = np.nonzero(difference > 0)
        lead = table[better] - table[worse]
        scores, factor = lead @ [*own, 1.0], np.full(len(lead), 2 * exponent / len(table))
        factor *= (difference[better, worse] / unit) ** power
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
        (bucket,), wider = table.buckets, {}
        fill = {"base": PADDING, "candidate": -1}
        for name, values in bucket.items():
            added = [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])]
            wider[name] = np.pad(values, added, constant_values=fill.get(name, 0))
        table = table._replace(buckets=(wider,))
    prepared, observing = likelihood.prepare(table)

    @jax.jit
    def log_likelihood(weights: Any) -> Any:
        site = handlers.trace(observing.observe).get_trace(prepared, weights)["oracle"]
        return site["fn"].log_prob(site["value"])

    return prepared, log_likelihood


@pytest.mark.parametrize(
    ("exponent", "power"),
    [
        (0.25, 0.75),
        *(pytest.param(*of, marks=pytest.mark.slow) for of in ((0.5, 0.0), (0.25, 0.5))),
    ],
)
def test_density_and_gradient_of_all_pairs(exponent: float, power: float) -> None:
    lists, gain = made((*LENGTHS, *[7] * 15), 1)  # 17 lists of 7 get one list of padding
    prepared, log_likelihood = tabulated(lists, gain, Pairs(exponent, power, 0.7))
    assert len(prepared.buckets) == 4
    merged = sum(int((bucket["candidate"] >= 0).sum()) for bucket in prepared.buckets)
    assert merged < len(gain)  # several candidates are one row
    jacobian = jax.jacobian(log_likelihood)
    both = jax.jit(lambda weights: (log_likelihood(weights), jacobian(weights)))
    for weights in (WEIGHTS, -4 * WEIGHTS, np.zeros(2)):
        each, slope = map(np.asarray, both(weights))
        expected, gradient = by_hand(lists, gain, weights, exponent, power, 0.7)
        order = find_order(prepared)
        np.testing.assert_allclose(each[order], expected, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(slope[order], gradient, rtol=1e-4, atol=1e-4)
        padding = np.asarray(prepared.sentence) < 0
        assert padding.any()
        assert not each[padding].any()
        assert not slope[padding].any()


def test_tied_best_candidates_change_nothing() -> None:
    """The share of an observation among tied candidates is another likelihood's."""
    lists, gain = made(LENGTHS, 2)
    best = np.repeat(np.maximum.reduceat(gain, lists.offsets[:-1]), lists.sizes)
    count = np.repeat(np.add.reduceat(gain == best, lists.offsets[:-1]), lists.sizes)
    share = (gain == best) / count
    prepared, log_likelihood = tabulated(lists, gain, Pairs(), share=share)
    each = np.asarray(log_likelihood(WEIGHTS))[find_order(prepared)]
    np.testing.assert_allclose(each, by_hand(lists, gain, WEIGHTS)[0], rtol=2e-5, atol=2e-5)


def test_many_draws_together() -> None:
    """On CPUs jaxlib has compiled such sums wrongly for more than 32 draws."""
    lists, gain = made(LENGTHS, 4)
    prepared, log_likelihood = tabulated(lists, gain, Pairs())
    order = find_order(prepared)
    weights = np.random.default_rng(0).normal(size=(40, 2))
    of_sum = jax.grad(lambda weights: log_likelihood(weights).sum())
    both = jax.jit(jax.vmap(lambda weights: (log_likelihood(weights), of_sum(weights))))(weights)
    values, gradients = map(np.asarray, both)
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
    jacobian = jax.jacobian(log_likelihood)
    both = jax.jit(lambda weights: (log_likelihood(weights), jacobian(weights)))
    each, slope = (np.asarray(values)[order] for values in both(WEIGHTS))
    for values, expected in zip((each, slope), by_hand(lists, gain.ravel(), WEIGHTS), strict=True):
        difference, size_of = values - expected, np.abs(expected).mean()
        error = difference.std(axis=0) / np.sqrt(count)
        assert np.all(np.abs(difference.mean(axis=0)) < 4 * error + 1e-6 * size_of)
        assert np.all(error < 0.02 * size_of)


def test_only_judged_candidates_of_a_list_are_compared() -> None:
    lists, gain = made((7, 7, 7), 7)
    gain[[1, 9, 10, 20]] = np.nan
    judged = replace(lists, extras={"quality": gain})
    draws = as_weight_draws(
        adapt(judged, CANONICAL, likelihood="pairs", gain="quality", sampler="map")
    )
    settings = {"exponent": 0.5, "power": 0.0, "unit": None}
    assert draws.adaptation.likelihood.plain == {"name": "pairs", **settings}
    known = ~np.isnan(gain)
    sizes = np.add.reduceat(known, lists.offsets[:-1])
    rest = lists.regroup(slice(None), np.flatnonzero(known), sizes)
    expected, slope = by_hand(rest, gain[known], draws.mean)
    np.testing.assert_allclose(draws.pointwise[0, 0], expected, rtol=1e-5, atol=1e-5)
    # At the mode the gradient of the prior N(λ_T, 0.1) cancels that of the likelihood.
    np.testing.assert_allclose((draws.mean - [0.4, -0.2]) / 0.1, slope.sum(axis=0), atol=1e-3)


@pytest.mark.slow
def test_intervals_of_the_default_are_not_too_narrow() -> None:
    """In simulations from the prior; docs/model.md has more of them."""
    rng, inside = np.random.default_rng(8), []
    for _ in range(40):
        true, features = rng.normal(size=2), rng.normal(size=(20, 6, 2))
        graded = features @ true + rng.normal(size=(20, 6)) * np.pi / np.sqrt(6)
        lists = from_lists([[*"abcdef"]] * 20, list(features), ["x", "y"])
        lists = lists.with_extras(grade=graded.ravel())
        options = {"gain": "grade", "prior": Isotropic(variance={"x": 1.0, "y": 1.0})}
        draws = as_weight_draws(adapt(lists, None, sampler="imh:draws=200,chains=2", **options))
        assert draws.adaptation.likelihood.plain["power"] == 0.75
        low, high = np.quantile(draws.flat, [0.05, 0.95], axis=0)
        inside.append((low < true) & (true < high))
    assert np.sum(inside) > 66  # of 80; intervals of 90 % have fewer in one of 37 runs
