"""The random walk as a kernel of NumPyro's, run by NumPyro's MCMC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from moment_checks import assert_moments
from numpyro.infer import MCMC

from bpa_ppl.posterior import import_arviz
from bpa_ppl.sampling.rwm import RandomWalk

MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])


def gaussian(mean: Any) -> None:
    numpyro.sample("x", dist.MultivariateNormal(mean, jnp.asarray(COVARIANCE)))


def gamma(shape: Any) -> None:
    numpyro.sample("x", dist.Gamma(shape, 2.0))


def drawn(
    model: Callable[..., None], argument: Any, chain_method: str, chains: int, jit_args: bool
) -> MCMC:
    mcmc = MCMC(
        RandomWalk(model, proposal_variance=2.0),
        num_warmup=500,
        num_samples=9_000 // chains,
        num_chains=chains,
        chain_method=chain_method,
        jit_model_args=jit_args,
        progress_bar=False,
    )
    mcmc.run(jax.random.key(3), argument, extra_fields=("accept_prob", "potential_energy"))
    return mcmc


def test_a_gaussian_is_recovered_by_sequential_chains() -> None:
    mcmc = drawn(gaussian, jnp.asarray(MEAN), "sequential", 3, True)
    draws = mcmc.get_samples(group_by_chain=True)["x"]
    assert draws.shape == (3, 3_000, 2)
    assert_moments(draws, MEAN, COVARIANCE)


@pytest.fixture(scope="module")
def bounded() -> MCMC:
    return drawn(gamma, 1.5, "vectorized", 2, False)


def test_a_skewed_target_with_a_bound_is_recovered(bounded: MCMC) -> None:
    draws = np.asarray(bounded.get_samples(group_by_chain=True)["x"])[..., None]
    assert draws.min() > 0
    assert_moments(draws, [0.75], [[0.375]])
    energy = -dist.Gamma(1.5, 2.0).log_prob(draws[..., 0]) - np.log(draws[..., 0])
    recorded = bounded.get_extra_fields(group_by_chain=True)["potential_energy"]
    np.testing.assert_allclose(recorded, energy, rtol=1e-8, atol=1e-8)


def test_arviz_reads_the_run(bounded: MCMC) -> None:
    # NumPyro's normal distribution in several dimensions does not bear strict ranks here.
    data = import_arviz().from_numpyro(bounded)
    assert data["posterior"]["x"].shape == (2, 4_500)
    assert not data["sample_stats"]["diverging"].values.any()


def test_a_covariance_turns_the_steps() -> None:
    def flat() -> None:
        numpyro.sample("x", dist.ImproperUniform(dist.constraints.real_vector, (), (2,)))

    covariance = jnp.array([[1.0, 0.9], [0.9, 1.0]])
    kernel = RandomWalk(flat, proposal_variance=4.0, covariance=covariance)

    def step(key: jax.Array) -> jax.Array:
        return kernel.sample(kernel.init(key, 0, {"x": jnp.zeros(2)}, (), {}), (), {}).z["x"]

    steps = np.asarray(jax.jit(jax.vmap(step))(jax.random.split(jax.random.key(0), 5_000)))
    assert_moments(steps[None], np.zeros(2), 4.0 * np.asarray(covariance))
