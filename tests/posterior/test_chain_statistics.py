"""Statistics of draws are those of ArviZ's package arviz-stats."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest
from arviz_stats.base import array_stats
from external_posterior import autoregressive

from bpa_ppl.posterior.statistics import (
    TAILS,
    ess,
    mcse,
    pareto_smoothed,
    r_hat,
)


def samples() -> Iterator[np.ndarray]:
    """Yield draws, (C, D): good and bad ones, few and many."""
    rng = np.random.default_rng(0)
    for chains, draws in [(1, 8), (2, 4), (2, 5), (4, 7), (1, 100), (4, 101), (3, 1000)]:
        for correlation in (-0.7, 0.0, 0.9):
            yield autoregressive(correlation, chains, draws, 1, draws)[..., 0]
        yield rng.standard_cauchy((chains, draws))
        yield rng.integers(3, size=(chains, draws)).astype(float)  # ties
        yield rng.normal(size=(chains, draws)) + 5 * np.arange(chains)[:, None]
        yield np.repeat(rng.normal(size=(chains, 1)), draws, axis=1)  # chains that do not move
        yield np.cumsum(rng.normal(size=(chains, draws)), axis=1) * 1e-8
        yield np.full((chains, draws), 0.3)
        for odd in (np.nan, np.inf):
            values = rng.normal(size=(chains, draws))
            values[0, 1] = odd
            yield values


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("values", list(samples()))
def test_statistics_of_chains(values: np.ndarray, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    for method in ("bulk", "tail", "mean"):
        options = {"prob": TAILS} if method == "tail" else {}
        expected = array_stats.ess(values, method=method, **options)
        np.testing.assert_allclose(ess(values, method), expected, rtol=1e-8, err_msg=method)
    np.testing.assert_allclose(mcse(values), array_stats.mcse(values), rtol=1e-8)
    if len(values) > 1:
        np.testing.assert_allclose(r_hat(values), array_stats.rhat(values), rtol=1e-8)


def test_statistics_of_several_components() -> None:
    values = np.random.default_rng(0).normal(size=(4, 50, 2, 3))
    for function in (ess, mcse, r_hat):
        result = function(values)
        assert result.shape == (2, 3)
        assert result[1, 2] == function(values[:, :, 1, 2])


# arviz-stats 1 fits no tail of five values, as 25 draws have.
@pytest.mark.filterwarnings("ignore::UserWarning")  # large k̂
@pytest.mark.parametrize("count", [30, 60, 224, 226, 1000, 4000])
@pytest.mark.parametrize("scale", [1e-6, 0.1, 1.0, 3.0, 30.0])
def test_pareto_smoothing(count: int, scale: float) -> None:
    log_weight = scale * np.random.default_rng(count).normal(size=count)
    smoothed, k_hat = pareto_smoothed(log_weight)
    expected, expected_k = array_stats.psislw(-log_weight)
    assert k_hat == pytest.approx(float(expected_k), rel=1e-8)
    np.testing.assert_allclose(smoothed, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pareto_smoothing_of_equal_and_zero_weights() -> None:
    assert pareto_smoothed(np.zeros(100))[1] == np.inf
    some = np.where(np.arange(4000) < 1000, np.random.default_rng(0).normal(size=4000), -np.inf)
    smoothed, k_hat = pareto_smoothed(some)
    expected, expected_k = array_stats.psislw(-some)
    assert k_hat == pytest.approx(float(expected_k), rel=1e-8)
    np.testing.assert_allclose(smoothed, expected, rtol=1e-8)
