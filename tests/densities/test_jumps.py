"""Densities that jump are noticed, and drawn by a sampler that does not follow a gradient."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support.moment_checks import assert_moments

import bpa_ppl as bpa
from bpa_ppl.densities.jumps import find_jumps
from bpa_ppl.densities.model_target import make_model_target


def switch() -> None:
    """The mean of u is ±1, so its variance is 2, and its covariance with c is E|c|."""
    c = numpyro.sample("c", dist.Normal(0.0, 1.0))
    numpyro.sample("u", dist.Normal(jnp.where(c > 0, 1.0, -1.0), 1.0))


def branch() -> None:
    c = numpyro.sample("c", dist.Normal(0.0, 1.0))
    mean = jax.lax.cond(c > 0.3, lambda x: x, lambda x: -2 * x - 1, c)
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=1.0)


def bound() -> None:
    """No draw is beyond the bound."""
    b = numpyro.sample("b", dist.HalfNormal(2.0))
    numpyro.factor("data", jnp.where(b > 3.0, -20 * jnp.log(b), -jnp.inf))


def smooth() -> None:
    """A kink, and a ridge a thousand times as narrow as it is long."""
    c = numpyro.sample("c", dist.Laplace(0.0, 1.0))
    u = numpyro.sample("u", dist.Normal(0.0, 1.0))
    numpyro.factor("ridge", -5e5 * (c**2 + u**2 - 1) ** 2)


@pytest.mark.parametrize(
    ("program", "jumps"), [(switch, True), (branch, True), (bound, True), (smooth, False)]
)
def test_jumps_are_found(program: Callable[[], None], jumps: bool) -> None:
    target = make_model_target(program)
    rng = np.random.default_rng(0)
    centre = np.log(3.2) if program is bound else 0.0
    z = {name: centre + 0.05 * rng.normal(size=(4, 100)) for name in target.start}
    if program is not bound:
        z = {name: 20 * values for name, values in z.items()}
    with jax.enable_x64(True):
        assert (find_jumps(target, z, 0)[0] > 0) == jumps


@pytest.mark.slow
def test_a_density_that_jumps_is_drawn_and_named() -> None:
    data = bpa.sample(switch, seed=1)
    assert bpa.check(data)
    assert data.attrs["chosen"] == "rwm"
    assert data.attrs["chosen_because"].endswith("the density jumps")
    drawn = np.stack([data["posterior"][name] for name in ("c", "u")], axis=-1)
    mean_size = np.sqrt(2 / np.pi)
    assert_moments(drawn, np.zeros(2), np.array([[1, mean_size], [mean_size, 2]]), ess=400)
    failures = bpa.check(bpa.sample(switch, sampler="nuts", seed=1)).failures
    assert failures
    for finding in failures:
        assert "the density jumps" in finding.advice
        assert "non-centred" not in finding.advice
