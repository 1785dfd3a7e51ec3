"""Estimates equal to those of other libraries: conditional logit, Bradley–Terry, Plackett–Luce."""

from __future__ import annotations

from typing import Any

import choix
import jax
import numpy as np
import pytest
from support.raising import raises
from support.targets import laplace

import bpa_ppl as bpa
from bpa_ppl import NBest, OracleChoice, Prior, UsageError, as_weight_draws, from_arrays, from_lists
from bpa_ppl.extending import match, tabulate
from bpa_ppl.models.likelihoods.choice import SlippingChoice

pytestmark = pytest.mark.usefixtures("several_buckets")

NAMES = ("price", "time", "comfort")
FLAT = 1e8  # the variance of a prior that does not matter
STRENGTHS = np.array([1.5, 0.8, 0.3, -0.2, -0.9, -1.5])


def choice_sets(seed: int, smallest: int, largest: int) -> NBest:
    """Return sets of alternatives of which one was chosen, by utilities with Gumbel noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(smallest, largest + 1, 80)
    # Differences of multiples of 1/64 are exact in 32 bits.
    features = np.round(rng.normal(size=(sizes.sum(), 3)) * 64) / 64
    utility = features @ [1.0, -0.7, 0.2] + rng.gumbel(size=len(features))
    starts = np.cumsum(sizes) - sizes
    best = np.repeat(np.maximum.reduceat(utility, starts), sizes)
    chosen = (utility == best).astype(float)
    return from_arrays([""] * len(features), features, NAMES, sizes, extras={"y": chosen})


@pytest.mark.parametrize(
    ("seed", "smallest", "largest"),
    [(2, 1, 3)] + [pytest.param(*of, marks=pytest.mark.slow) for of in ((0, 4, 4), (1, 2, 9))],
)
def test_the_oracle_is_chosen_by_a_conditional_logit(
    seed: int, smallest: int, largest: int
) -> None:
    """McFadden (1974): with a flat prior the mode is the estimate of statsmodels."""
    from statsmodels.discrete.conditional_models import ConditionalLogit

    lists = choice_sets(seed, smallest, largest)
    zero = dict.fromkeys(NAMES, 0.0)
    options: dict[str, Any] = {"gain": "y", "likelihood": "oracle"}
    options["prior"] = Prior.isotropic(zero, variance=FLAT)
    draws = as_weight_draws(bpa.adapt(lists, zero, sampler="map", **options))
    covariance = laplace(bpa.log_density(lists, zero, **options)).covariance

    several = np.repeat(lists.sizes > 1, lists.sizes)  # the others are no choice
    groups = np.repeat(np.arange(len(lists)), lists.sizes)[several]
    chosen, features = np.asarray(lists.extras["y"])[several], lists.features[several]
    model = ConditionalLogit(chosen, features.astype(np.float64), groups=groups)
    expected = model.fit(method="newton", disp=False, maxiter=50)
    assert draws.mean == pytest.approx(expected.params, rel=1e-5)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(expected.bse, rel=1e-4)
    assert np.sum(draws.pointwise) == pytest.approx(expected.llf, rel=1e-6)


def estimates(field: str, observed: list[Any]) -> np.ndarray:
    """Return the modes of the strengths of items, one indicator for each, with the mean 0."""
    items = [f"item{k}" for k in range(len(STRENGTHS))]
    lists = from_lists([items], [np.eye(len(items))], items)
    lists = lists.with_sentence_extras(**{field: [observed]})
    prior = Prior.isotropic(dict.fromkeys(items, 0.0), variance=FLAT)
    zero = dict.fromkeys(items, 0.0)
    posterior = bpa.adapt(lists, zero, prior=prior, likelihood="preference", sampler="map")
    mode = as_weight_draws(posterior).mean
    return np.asarray(mode - mode.mean())


def ranking(rng: np.random.Generator, size: int) -> list[int]:
    """Return some items in the order of their strengths with Gumbel noise."""
    items = rng.choice(len(STRENGTHS), size, replace=False)
    return [int(i) for i in items[np.argsort(-STRENGTHS[items] - rng.gumbel(size=size))]]


@pytest.mark.parametrize(
    ("field", "size", "best_only", "estimate"),
    [
        ("preferences", 2, False, choix.ilsr_pairwise),  # Bradley and Terry
        ("rankings", 3, False, choix.ilsr_rankings),  # Plackett and Luce
        pytest.param("rankings", 6, False, choix.ilsr_rankings, marks=pytest.mark.slow),
        ("rankings", 4, True, choix.ilsr_top1),  # Luce
    ],
)
def test_answers_have_the_estimates_of_choix(
    field: str, size: int, best_only: bool, estimate: Any
) -> None:
    rng = np.random.default_rng(size)
    orders = [ranking(rng, size) for _ in range(150)]
    choices = [[order[0], order[1:]] for order in orders] if best_only else orders
    expected = estimate(len(STRENGTHS), choices, max_iter=1000, tol=1e-12)
    assert estimates(field, choices) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("slip", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_rows_have_probabilities_and_frequencies_by_the_formula(slip: float) -> None:
    """In lists of several lengths, with equal candidates, of two domains, and judges who slip."""
    rng, sizes, domain = np.random.default_rng(4), (2, 30, 3, 70, 31), [0, 1, 1, 0, 0]
    tables = [rng.normal(size=(n, 2)).astype(np.float32) for n in sizes]
    for table in tables:
        table[1::3] = table[1]
    pool = from_lists([["x"] * n for n in sizes], tables, ["A", "B"])
    start = match({"A": 1.0, "B": 1.0}, pool)
    data = tabulate(pool, start, domain=domain, gains=np.zeros(sum(sizes)))
    weights = np.array([[0.5, -1.0], [1.5, 0.3]])
    choice = SlippingChoice(data, weights, slip) if slip else OracleChoice(data, weights)
    draws = np.asarray(jax.jit(choice.sample, static_argnums=1)(jax.random.key(0), (4000,)))
    tables_of_rows = [b["candidate"].reshape(-1, b["base"].shape[-1]) for b in data.buckets]
    rows = [row for table in tables_of_rows for row in np.asarray(table)]
    longest = range(max(map(len, rows)))
    log_prob = jax.jit(choice.log_prob)
    log_p = [np.asarray(log_prob(np.full(len(rows), row))) for row in longest]
    for absent in (-1, len(longest)):
        assert (np.asarray(log_prob(np.full(len(rows), absent))) == -np.inf).all()
    for place in np.flatnonzero(data.sentence >= 0):
        features = tables[data.sentence[place]]
        scores = np.exp(features.astype(float) @ weights[domain[data.sentence[place]]])
        p = (1 - slip) * scores / scores.sum() + slip / len(scores)
        for row, candidate in enumerate(rows[place][rows[place] >= 0]):
            expected = p[(features == features[candidate]).all(axis=1)].sum()
            assert np.exp(log_p[row][place]) == pytest.approx(expected, rel=1e-5)
            error = np.sqrt(expected * (1 - expected) / len(draws))
            assert abs((draws[:, place] == row).mean() - expected) < 5 * error
    for wrong in (weights[:1], weights[None], weights[0, :1]):
        with raises(UsageError, "mismatch", parameter="model", match="weights"):
            OracleChoice(data, wrong)
