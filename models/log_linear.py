"""The model of Bayesian predictive adaptation: a Gaussian prior and log-linear oracles."""

from __future__ import annotations

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.data import Adaptation


def log_linear(data: Adaptation) -> None:
    """λ ~ N(λ_T, σ_T I); e*_a ~ p(e | f_a, λ) for each adaptation sentence a (Eq. 7).

    Sites: `weights` (Q,), and `oracle` (S,), observed, in a plate over sentences. A model of
    your own takes the same argument and needs a site called `weights`.
    """
    scale = jnp.sqrt(jnp.asarray(data.prior_variance))
    weights = numpyro.sample("weights", dist.Normal(data.prior_mean, scale).to_event(1))
    with numpyro.plate("sentence", len(data.oracle)):
        numpyro.sample("oracle", OracleChoice(data, weights), obs=data.oracle)
