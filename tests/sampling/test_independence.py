"""The independence sampler: its kernel run by NumPyro, its walk against a plain loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from agreement import assert_moments
from numpyro.infer import MCMC
from scipy.stats import multivariate_t

from bpa_ppl.sampling.imh import Independence, accept

MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
#: Away from the target, so that only the right correction recovers it.
LOCATION = MEAN + np.array([0.7, 0.4])
SCALE = np.array([[2.0, 0.5], [0.5, 1.5]])


def gaussian() -> None:
    numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(MEAN), jnp.asarray(COVARIANCE)))


@pytest.mark.slow
@pytest.mark.parametrize(("chain_method", "chains"), [("sequential", 1), ("vectorized", 3)])
def test_a_gaussian_is_recovered_from_proposals_elsewhere(chain_method: str, chains: int) -> None:
    kernel = Independence(gaussian, location=LOCATION, covariance=SCALE, degrees_of_freedom=5.0)
    mcmc = MCMC(
        kernel,
        num_warmup=200,
        num_samples=12_000 // chains,
        num_chains=chains,
        chain_method=chain_method,
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1))
    assert_moments(mcmc.get_samples(group_by_chain=True)["x"], MEAN, COVARIANCE)


def test_proposals_and_their_ratio_are_those_of_the_student_t() -> None:
    kernel = Independence(gaussian, location=LOCATION, covariance=SCALE, degrees_of_freedom=9.0)
    current = jnp.array([0.0, 1.0])
    keys = jax.random.split(jax.random.key(2), 20_000)
    proposed, log_ratio = jax.vmap(lambda key: kernel.propose(key, current))(keys)
    assert_moments(np.asarray(proposed)[None], LOCATION, SCALE * 9 / 7)
    known = multivariate_t(LOCATION, SCALE, df=9)
    np.testing.assert_allclose(
        log_ratio, known.logpdf(current) - known.logpdf(proposed), rtol=1e-8, atol=1e-8
    )


def test_the_walk_over_known_proposals_is_the_plain_loop() -> None:
    log_ratio = np.random.default_rng(3).normal(0, 2, size=(3, 200))
    log_ratio[:, 50] = np.nan
    log_ratio[0, 0] = -np.inf
    uniform = np.random.default_rng(4).uniform(size=(3, 200))
    position, acceptance = accept(log_ratio, np.random.default_rng(4))
    for chain in range(3):
        at = 0
        for step in range(1, 200):
            new = log_ratio[chain, step]
            old = log_ratio[chain, at]
            probability = min(1.0, np.exp(new - old)) if np.isfinite(new) else 0.0
            assert acceptance[chain, step] == pytest.approx(probability)
            at = step if uniform[chain, step] < probability else at
            assert position[chain, step] == at
