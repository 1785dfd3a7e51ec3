"""The density of the model against SciPy, from the lists themselves and in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import numpy.typing as npt
import plain
import pytest
from numpyro.infer.util import log_density
from scipy.optimize import approx_fprime

from bpa_ppl import NBest, UsageError, Weights, read_weights
from bpa_ppl.models import Oracle, Prior, log_linear, tabulate
from bpa_ppl.sampling import Data
from bpa_ppl.weights import Match, match

NAMES = ("LM0", "TM0[0]", "TM0[1]", "WP0")
CANONICAL = Weights(dict(zip(NAMES, (0.5, 0.2, -0.3, -1.0), strict=True)))
ORACLE = (2, 0, 1, 6)
VARIANCES = (0.1, 1e-3, 25.0, (0.1, 2.0, 0.5, 10.0))


@pytest.fixture
def ragged() -> NBest:
    """Lists of 5, 1, 3 and 17, as large as real ones, with equals of an oracle and of others."""
    rng = np.random.default_rng(11)
    sizes = (5, 1, 3, 17)
    tables = [rng.normal([-40, -8, 3, -9], [3, 2, 1, 1], size=(n, 4)) for n in sizes]
    tables[0][4] = tables[0][ORACLE[0]]
    tables[3][[8, 9]] = tables[3][2]
    return NBest.from_lists([[str(i) for i in range(n)] for n in sizes], tables, NAMES)


@jax.jit
def log_p(data: Data, weights: jax.Array) -> jax.Array:
    return log_density(log_linear, (*data, Oracle()), {}, {"weights": weights})[0]


gradient = jax.jit(jax.grad(log_p, argnums=1))


def given(
    pool: NBest, matched: Match, oracle: npt.ArrayLike, variance: npt.ArrayLike = 0.1
) -> Data:
    free = dict(zip(matched.free_names, matched.free_values, strict=True))
    prior = Prior.isotropic(free, variance)
    return Data(tabulate(pool, matched, oracle), prior._replace(names=None))


def library(pool: NBest, matched: Match, variance: npt.ArrayLike, weights: npt.ArrayLike) -> float:
    return float(log_p(given(pool, matched, ORACLE, variance), np.asarray(weights)))


def outside(pool: NBest, matched: Match, variance: npt.ArrayLike, weights: npt.ArrayLike) -> float:
    all_weights = matched.values.copy()
    all_weights[matched.free] = weights
    return plain.log_likelihood(pool, ORACLE, all_weights).sum() + plain.log_prior(
        weights, matched.values[matched.free], variance
    )


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("distance", [0.0, 0.3, 5.0])
def test_log_posterior_is_that_of_scipy(
    ragged: NBest, variance: npt.ArrayLike, distance: float
) -> None:
    matched = match(CANONICAL, ragged)
    shift = np.random.default_rng(3).normal(size=4)
    weights = CANONICAL.values_array + distance * shift
    ours = library(ragged, matched, variance, weights)
    assert ours == pytest.approx(outside(ragged, matched, variance, weights), rel=1e-6)


@pytest.mark.parametrize("fixed", [["WP0"], ["TM0"], ["LM0", "TM0[1]"]])
def test_fixed_features_count_with_their_canonical_weight(ragged: NBest, fixed: list[str]) -> None:
    matched = match(CANONICAL, ragged, fixed=fixed)
    weights = matched.values[matched.free] + 0.4
    ours = library(ragged, matched, 0.5, weights)
    assert ours == pytest.approx(outside(ragged, matched, 0.5, weights), rel=1e-6)


@pytest.mark.parametrize("fixed", [[], ["TM0[0]"]])
def test_gradient_is_that_of_finite_differences(ragged: NBest, fixed: list[str]) -> None:
    matched = match(CANONICAL, ragged, fixed=fixed)
    weights = matched.values[matched.free] + 0.2
    ours = gradient(given(ragged, matched, ORACLE, 0.7), weights)
    numeric = approx_fprime(weights, lambda w: outside(ragged, matched, 0.7, w), 1e-6)
    np.testing.assert_allclose(ours, numeric, rtol=1e-4, atol=1e-4)


def test_a_shift_common_to_a_list_counts_for_nothing(ragged: NBest) -> None:
    shifted = NBest.from_lists(
        [ragged.texts(s) for s in range(len(ragged))],
        [ragged.features[ragged.rows(s)] + np.float32(s * 8) for s in range(len(ragged))],
        NAMES,
    )
    matched = match(CANONICAL, ragged)
    weights = CANONICAL.values_array - 0.2
    once = library(ragged, matched, 0.1, weights)
    assert library(shifted, matched, 0.1, weights) == pytest.approx(once, rel=1e-5)


def test_scores_that_differ_by_thousands_keep_the_density_finite() -> None:
    pool = plain.pairs([[1e4], [-1e4]], ["LM0"])
    data = given(pool, match({"LM0": 1.0}, pool), [0, 0], 1.0)
    expected = plain.log_likelihood(pool, [0, 0], [1.0]).sum() + plain.log_prior([1.0], [1.0], 1.0)
    assert float(log_p(data, np.array([1.0]))) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient(data, np.array([1.0])), [-1e4], rtol=1e-6)


def test_without_sentences_only_the_prior_is_left(ragged: NBest) -> None:
    nothing = ragged.select([])
    data = given(nothing, match(CANONICAL, nothing), [], 0.1)
    weights = CANONICAL.values_array + 0.3
    assert float(log_p(data, weights)) == pytest.approx(
        plain.log_prior(weights, CANONICAL.values_array, 0.1), rel=1e-12
    )


@pytest.mark.parametrize("variance", [0.0, -0.1, np.nan, np.inf, (0.1, 0.1, 0.0, 0.1)])
def test_a_variance_must_be_positive_and_finite(ragged: NBest, variance: npt.ArrayLike) -> None:
    with pytest.raises(UsageError, match="must be positive and finite"):
        given(ragged, match(CANONICAL, ragged), ORACLE, variance)


@pytest.mark.parametrize("name", ["leaflet", "captions/adapt"])
def test_real_lists_have_the_density_that_scipy_computes(
    real_lists: Callable[[str], NBest], demo_data: Path, name: str
) -> None:
    pool = real_lists(name).select(np.arange(20))
    matched = match(read_weights(demo_data / "moses.ini"), pool)
    rng = np.random.default_rng(5)
    oracle = [int(rng.integers(size)) for size in pool.sizes]
    data = given(pool, matched, oracle, 0.1)
    assert matched.free.sum() == 14
    for scale in (0.0, 0.1, 1.0):
        weights = matched.values[matched.free] + scale * rng.normal(size=14)
        every = matched.values.copy()
        every[matched.free] = weights
        expected = plain.log_likelihood(pool, oracle, every).sum() + plain.log_prior(
            weights, matched.values[matched.free], 0.1
        )
        assert float(log_p(data, weights)) == pytest.approx(expected, rel=1e-6)
