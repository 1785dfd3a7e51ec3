"""The weighted mixture of instance weighting as a NumPyro program, for reference."""

from __future__ import annotations

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bpa_ppl.models.instance_weighting import MixtureData, Phi, Variant
from bpa_ppl.models.instance_weighting.density import probabilities


def weighted_mixture(data: MixtureData, variant: Variant, deviation: float) -> None:
    """φ ~ p(φ); n(x, y) times log p(x | y; φ) is the log-likelihood of each dev pair.

    Up to a constant the counts of the x of one y are multinomial.

    Sites: `weights` (Q,), λ; `alpha` of a linear mixture, `beta` of a MAP one; `gamma` where it
    is fitted; `dev` (D,), observed, in a plate over pairs. Pairs without support or with count 0
    have log-likelihood 0.

    Args:
        data: from `Variant.apply`.
        variant: the form of the mixture.
        deviation: of the prior of each weight.
    """
    scale = dist.LogNormal(0.0, 2.0)
    if variant.mixture == "linear":
        mixing = numpyro.sample("alpha", dist.Beta(1.0, 1.0))
    else:
        mixing = numpyro.sample("beta", scale)
    gamma = numpyro.sample("gamma", scale) if variant.smoothed else jnp.zeros(())
    wide = dist.Normal(0.0, deviation).expand([len(data.names)])
    weights = numpyro.sample("weights", wide.to_event(1))
    phi, used = Phi(mixing, gamma, weights), data.supported & (data.weight > 0)
    p = jnp.where(used, probabilities(data._replace(names=()), variant, phi), 1.0)
    each = data.weight * jnp.log(p)
    with numpyro.plate("pair", len(data.weight)):
        numpyro.factor("dev", each)
