"""Statistics of draws: the figures of arviz-stats, and what is added to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from support.posteriors import autoregressive

from bpa_ppl.posterior.arviz_functions import import_arviz
from bpa_ppl.posterior.statistics import (
    TAILS,
    bfmi,
    by_blocks,
    count_moments,
    ess,
    estimate_tail_shapes,
    have_large_draws,
    mcse,
    r_hat,
    smooth_log_weights,
)


def test_each_component_has_the_figures_of_arviz() -> None:
    values = autoregressive(0.6, 4, 101, 6, seed=0).reshape(4, 101, 2, 3)
    for k in range(6):
        one = values[:, :, k // 3, k % 3]
        assert r_hat(values)[k // 3, k % 3] == array_stats.rhat(one)
        assert mcse(values)[k // 3, k % 3] == array_stats.mcse(one)
        for method in ("bulk", "tail", "mean"):
            options = {"prob": TAILS} if method == "tail" else {}
            expected = array_stats.ess(one, method=method, **options)
            assert ess(values, method)[k // 3, k % 3] == expected


def test_blocks_of_components_have_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    values = autoregressive(0.6, 4, 101, 15, seed=0).reshape(4, 101, 3, 5)
    whole = [r_hat(values), ess(values), ess(values, "tail"), mcse(values)]
    medians = by_blocks(lambda draws: np.median(draws, axis=1), values)
    monkeypatch.setattr("bpa_ppl.posterior.statistics._BLOCK", 2 * 4 * 101)
    for expected, found in zip(
        whole, [r_hat(values), ess(values), ess(values, "tail"), mcse(values)], strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    widths = []

    def find_medians(draws: np.ndarray) -> np.ndarray:
        widths.append(draws.shape[2])
        return np.median(draws, axis=1)

    np.testing.assert_array_equal(by_blocks(find_medians, values), medians)
    assert widths == [2] * 7 + [1]


@pytest.mark.parametrize(
    ("values", "size", "ratio"),
    [
        (np.full((2, 50), 0.3), 100, np.nan),
        (np.repeat([[0.0], [1.0]], 50, axis=1), None, np.inf),  # chains that do not move
        (np.where(np.arange(50) == 7, np.nan, 1.0)[None], np.nan, np.nan),
        (np.ones((2, 3)), np.nan, np.nan),
    ],
)
def test_draws_without_figures_raise_no_warning(
    values: np.ndarray, size: float | None, ratio: float
) -> None:
    assert r_hat(values) == pytest.approx(ratio, nan_ok=True)
    if size is not None:
        assert ess(values) == pytest.approx(size, nan_ok=True)


def test_a_single_chain_is_compared_with_itself() -> None:
    values = autoregressive(0.2, 1, 400, 1, seed=1)
    assert np.isnan(array_stats.rhat(values[..., 0]))
    assert r_hat(values)[0] == array_stats.rhat(values[..., 0].reshape(2, 200))
    values[0, 300:] += 3
    assert r_hat(values)[0] > 1.1


def test_bfmi_is_that_of_arviz() -> None:
    energy = np.cumsum(np.random.default_rng(0).normal(size=(3, 200)), axis=1)
    energy[1] = np.random.default_rng(1).normal(size=200)
    np.testing.assert_allclose(bfmi(energy), import_arviz().bfmi(energy), rtol=1e-10)
    assert np.isnan(bfmi(energy[:, :1])).all()


@pytest.mark.parametrize("count", [30, 226, 4000])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0])
def test_pareto_smoothing(count: int, scale: float) -> None:
    log_weight = scale * np.random.default_rng(count).normal(size=(2, count // 2))
    smoothed, k_hat = smooth_log_weights(log_weight)
    expected, expected_k = array_stats.psislw(-log_weight.reshape(-1))
    assert k_hat == expected_k
    np.testing.assert_array_equal(smoothed, expected.reshape(2, -1))


def test_no_tail_is_fitted_to_equal_few_and_zero_weights() -> None:
    for weights in (np.zeros(100), np.arange(24.0)):
        smoothed, k_hat = smooth_log_weights(weights)
        assert k_hat == np.inf
        assert len(smoothed) == len(weights)
    assert smooth_log_weights(np.full(100, -np.inf))[1] == np.inf
    log_weight = np.random.default_rng(0).normal(size=4000)
    expected = array_stats.psislw(-np.where(np.arange(4000) < 1000, log_weight, -np.inf))[1]
    assert smooth_log_weights(np.where(np.arange(4000) < 1000, log_weight, -np.inf))[1] == expected
    # 150 weights are fewer than the tail of 189 that k̂ describes; ArviZ calls it short.
    few = np.where(np.arange(4000) < 150, log_weight, -np.inf)
    assert array_stats.psislw(-few)[1] < 0.7
    assert smooth_log_weights(few)[1] == np.inf


def test_tails_of_draws_are_those_of_arviz_where_one_draw_is_far_away() -> None:
    rng = np.random.default_rng(0)
    normal, cauchy = rng.normal(size=(4, 500)), rng.standard_cauchy((4, 500))
    values = np.stack([normal, cauchy, np.ones((4, 500))], axis=-1)
    shapes, counts = estimate_tail_shapes(values, np.ones(3))
    assert shapes[[0, 2]].tolist() == [0, 0]
    assert shapes[1] == array_stats.pareto_khat(cauchy, r_eff=1.0, tail="both")
    assert counts.tolist() == [2000] * 3
    assert have_large_draws(values, np.ones(3)).tolist() == [False, True, False]


def chains_of(distribution: Any, correlation: float, size: int, seed: int) -> np.ndarray:
    """Return autoregressive chains with another marginal distribution."""
    normal = autoregressive(correlation, 4, 1000, size, seed)
    below = distribution.ppf(stats.norm.cdf(normal))
    return np.where(normal < 0, below, distribution.isf(stats.norm.sf(normal)))


def find_moments(values: np.ndarray) -> np.ndarray:
    share = np.fmin(ess(values), ess(values, "tail")) / values[..., 0].size
    return count_moments(*estimate_tail_shapes(values, share))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.8, 0.9])
@pytest.mark.parametrize("name", ["norm", "expon", "t10"])
def test_light_tails_are_seldom_said_to_be_heavy(name: str, correlation: float, size: int) -> None:
    """In at most 1% of 200 runs, of one and of twenty variables; ESS from 150 to 4,000."""
    light = stats.t(10) if name == "t10" else getattr(stats, name)()
    found = (find_moments(chains_of(light, correlation, size, seed)) for seed in range(200))
    assert sum((of < 2).any() for of in found) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "variance", "mean"),
    [
        (stats.levy(), 40, 40),
        (stats.cauchy(), 40, 15),
        (stats.halfcauchy(), 40, 10),
        (stats.t(1.5), 34, 0),
        (stats.lognorm(5), 40, 36),
    ],
)
def test_heavy_tails_are_found(distribution: Any, variance: int, mean: int) -> None:
    """Of 40 runs, so many at least are said to have no variance, and no mean."""
    found = np.array([find_moments(chains_of(distribution, 0.0, 1, seed)) for seed in range(40)])
    assert np.sum(found < 2) >= variance
    assert np.sum(found < 1) >= mean
