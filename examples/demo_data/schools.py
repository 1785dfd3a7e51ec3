"""The eight schools (Rubin 1981): what coaching adds to the scores of pupils in a test."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpy.typing import ArrayLike


def model(effect: ArrayLike, error: ArrayLike) -> None:
    """Effects of schools around a common mean; `error` is the standard error of each effect."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", 8):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("effect", dist.Normal(theta, jnp.array(error)), obs=jnp.array(effect))
