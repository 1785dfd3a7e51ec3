"""The log density of the model and of lists as models use them, compared with SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import pytest
from numpyro.infer.util import log_density
from scipy.optimize import approx_fprime
from support import reference_model
from support.raising import raises

from bpa_ppl import DataError, NBest, Prior, UsageError, Weights, adapt, from_lists, read_weights
from bpa_ppl.extending import Lists, Match, log_linear, match, tabulate
from bpa_ppl.models.likelihoods.oracle import Oracle

NAMES = ("LM0", "TM0[0]", "TM0[1]", "WP0")
CANONICAL = Weights(dict(zip(NAMES, (0.5, 0.2, -0.3, -1.0), strict=True)))
ORACLE = (2, 0, 1, 6)


@pytest.fixture
def ragged_lists(several_buckets: None) -> NBest:
    """Lists of 5, 1, 3 and 17 with realistic values and duplicates of an oracle and of others."""
    rng = np.random.default_rng(11)
    sizes = (5, 1, 3, 17)
    tables = [rng.normal([-40, -8, 3, -9], [3, 2, 1, 1], size=(n, 4)) for n in sizes]
    tables[0][4] = tables[0][ORACLE[0]]
    tables[3][[8, 9]] = tables[3][2]
    return from_lists([[str(i) for i in range(n)] for n in sizes], tables, NAMES)


@jax.jit
@jax.value_and_grad
def log_p_and_gradient(weights: jax.Array, data: tuple[Lists, Prior]) -> jax.Array:
    return log_density(log_linear, (*data, Oracle()), {}, {"weights": weights})[0]


def model_data(
    pool: NBest, matched: Match, oracle: npt.ArrayLike, variance: npt.ArrayLike = 0.1
) -> tuple[Lists, Prior]:
    free = dict(zip(matched.free_names, matched.free_values, strict=True))
    prior = Prior.isotropic(free, variance)
    return tabulate(pool, matched, oracle), prior._replace(names=None)


def reference_log_density(
    pool: NBest,
    matched: Match,
    variance: npt.ArrayLike,
    weights: npt.ArrayLike,
    oracle: npt.ArrayLike = ORACLE,
) -> float:
    likelihood = reference_model.log_likelihood(pool, oracle, matched.full(weights)).sum()
    return likelihood + reference_model.log_prior(weights, matched.free_values, variance)


@pytest.mark.parametrize(("fixed", "variance"), [([], (0.1, 2.0, 0.5, 10.0)), (["TM0"], 1e-3)])
def test_density_and_gradient_with_fixed_weights(
    ragged_lists: NBest, fixed: list[str], variance: Any
) -> None:
    matched = match(CANONICAL, ragged_lists, fixed=fixed)
    weights, data = matched.free_values + 0.4, model_data(ragged_lists, matched, ORACLE, variance)
    density = lambda w: reference_log_density(ragged_lists, matched, variance, w)  # noqa: E731
    log_p, gradient = log_p_and_gradient(weights, data)
    assert float(log_p) == pytest.approx(density(weights), rel=1e-6)
    slope = approx_fprime(weights, density, 1e-6)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)


def test_density_is_finite_for_large_scores() -> None:
    pool = reference_model.pairs([[1e4], [-1e4]], ["LM0"])
    matched = match({"LM0": 1.0}, pool)
    data = model_data(pool, matched, [0, 0], 1.0)
    expected = reference_log_density(pool, matched, 1.0, [1.0], [0, 0])
    log_p, gradient = log_p_and_gradient(np.array([1.0]), data)
    assert float(log_p) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient, [-1e4], rtol=1e-6)


def test_density_of_real_lists_agrees_with_scipy(leaflet: NBest, demo_data: Path) -> None:
    pool = leaflet.select(np.arange(20))
    matched = match(read_weights(demo_data / "moses.ini"), pool)
    rng = np.random.default_rng(5)
    oracle = [int(rng.integers(size)) for size in pool.sizes]
    data = model_data(pool, matched, oracle, 0.1)
    assert matched.free.sum() == 14
    for scale in (0.0, 0.1, 1.0):
        weights = matched.free_values + scale * rng.normal(size=14)
        expected = reference_log_density(pool, matched, 0.1, weights, oracle)
        assert float(log_p_and_gradient(weights, data)[0]) == pytest.approx(expected, rel=1e-6)


OF_TWO = {"A": 0.3, "B": -0.2}


def _random_lists(sizes: list[int], seed: int = 0, *, whole: bool = False) -> NBest:
    rng = np.random.default_rng(seed)
    # Of whole numbers many rows are equal.
    tables = [rng.normal(size=(n, 2)).astype(np.float32) for n in sizes]
    tables = [np.round(table) for table in tables] if whole else tables
    return from_lists([[f"w{h}" for h in range(n)] for n in sizes], tables, ["A", "B"])


@pytest.mark.usefixtures("several_buckets")
@pytest.mark.parametrize("whole", [False, True])
def test_likelihood_of_ragged_lists_agrees_with_scipy(whole: bool) -> None:
    sizes = [1, 2, 3, 9, 17, 33, 70, 71, 150, 300, 5, 500]
    pool = _random_lists(sizes, whole=whole)
    oracle = np.array([n // 2 for n in sizes])
    result = adapt(pool, OF_TWO, sampler="map", gain=reference_model.given(*oracle))
    weights = result["posterior"]["weights"].values[0, 0]
    ours = result["log_likelihood"]["oracle"].values[0, 0]
    expected = reference_model.log_likelihood(pool, oracle, weights)
    np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=2e-6)


ONE = from_lists([["a", "b"]] * 2, [np.eye(2)] * 2, ["A", "B"])
MATCHED = match(OF_TWO, ONE)


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"lists": "lists"}, "wrong-type", "lists"),
        ({"match": OF_TWO}, "wrong-type", "match"),
        ({"oracle": reference_model.given(0, 0)}, "wrong-type", "oracle"),
        ({"gains": "ter"}, "wrong-type", "gain"),
        ({"oracle": [0.5, 0]}, "mismatch", "oracle"),
        ({"oracle": [0, 2]}, "mismatch", "oracle"),
        ({"oracle": [-1, 0]}, "mismatch", "oracle"),
        ({"domain": [-1, 0]}, "mismatch", "domain"),
        ({"rater": [1, -1]}, "mismatch", "rater"),
        ({"weight": [1.0, 0.0]}, "mismatch", "weight"),
        ({"weight": [1.0]}, "wrong-length", "weight"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    arguments: dict[str, Any], code: str, parameter: str
) -> None:
    kind = DataError if code in ("mismatch", "wrong-length") else UsageError
    with raises(kind, code, parameter=parameter):
        tabulate(**{"lists": ONE, "match": MATCHED, **arguments})
