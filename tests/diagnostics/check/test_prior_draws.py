"""Draws of the prior, weighted by the likelihood, show modes that no chain has visited."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy.stats import binom
from support.posteriors import autoregressive

import bpa_ppl as bpa
from bpa_ppl import Draws
from bpa_ppl.diagnostics.check.prior import PriorDraws, compare_with_prior


def mixture(means: Any, deviations: Any) -> None:
    halves = dist.Categorical(probs=jnp.array([0.5, 0.5]))
    parts = dist.Normal(jnp.array(means), jnp.array(deviations))
    numpyro.sample("x", dist.MixtureSameFamily(halves, parts))


@pytest.mark.parametrize(
    ("sampler", "means", "deviations"),
    [
        ("imh", (0.0, 0.0), (0.001, 1.0)),
        pytest.param("auto", (0.0, 0.0), (0.001, 1.0), marks=pytest.mark.slow),
        pytest.param("rwm", (0.0, 0.0), (0.001, 1.0), marks=pytest.mark.slow),
        pytest.param("rwm", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
        pytest.param("nuts", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
        pytest.param("auto", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
    ],
)
def test_no_sampler_passes_with_one_of_two_modes(sampler: str, means: Any, deviations: Any) -> None:
    data = bpa.sample(mixture, (means, deviations), sampler=sampler)
    failed = {finding.name: finding.advice for finding in bpa.check(data).failures}
    assert failed
    if "R-hat" not in failed:  # all chains are at one mode
        assert "several modes" in failed[PriorDraws.title]


def weak(y: Any, scale: float) -> None:
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    with handlers.scale(scale=scale):
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def test_a_scaled_likelihood_counts_and_a_strong_one_has_nothing_to_compare() -> None:
    """Of ten observations at 1, scaled by a tenth, the posterior has the mean 1/2."""
    scaled = bpa.sample(weak, (np.ones(10), 0.1), sampler="imh")
    compared = bpa.as_draws(scaled).record.from_prior
    assert compared is not None
    assert compared.p_value > 0.001
    assert compared.mean == pytest.approx(0.5, abs=0.15)
    assert compared.deviation == pytest.approx(np.sqrt(0.5), abs=0.1)
    strong = bpa.sample(weak, (np.full(400, 2.0), 1.0), sampler="imh")
    assert bpa.as_draws(strong).record.from_prior is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "error", "correlation"), [(1, 0.2, 0.5), (5, 1.6, 0.9), (20, 4.0, 0.5)]
)
def test_the_level_is_as_stated(size: int, error: float, correlation: float) -> None:
    """Exact draws of a normal posterior of means, of which y is observed with an error."""
    p_values = []
    variance = 1 / (1 + error**-2)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=size) + error * rng.normal(size=size)
        prior = rng.normal(size=(1, 1000, size))
        drawn = autoregressive(correlation, 4, 1000, size, seed)
        x = variance * y / error**2 + np.sqrt(variance) * drawn
        log_likelihood = -(((y - prior[0]) / error) ** 2).sum(axis=-1) / 2
        values, of_prior = ({"x": of} for of in (x, prior))
        draws = Draws(values, sampled=("x",), prior=of_prior)
        if compared := compare_with_prior(draws, log_likelihood):
            p_values.append(compared.p_value)
    assert len(p_values) >= 100
    for level in (0.05, 0.01, PriorDraws().limit):
        refused = int(np.sum(np.array(p_values) < level))
        assert refused <= binom.isf(0.001, len(p_values), level), level
