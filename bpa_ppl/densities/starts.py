"""Where searches and chains start: at the medians of the prior, if the density is finite there."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer import init_to_uniform

from bpa_ppl.densities.own_models import model_error
from bpa_ppl.densities.target import (
    RUN_ONCE,
    Sites,
    Target,
    constrain,
    inspect_model,
    potential,
    unconstrain_sites,
)
from bpa_ppl.errors import UsageError, list_names
from bpa_ppl.posterior.draws import WEIGHTS

#: A site starts at the median of this many draws of its prior.
_START_DRAWS = 15


@jax.jit
def start_at_medians(target: Target, mean: Any = None) -> Sites:
    """Return z at the medians of the prior; weights at a mean, if their support contains it."""
    seeded = handlers.seed(target.program, jax.random.key(0))
    start = partial(_initial_value, mean)
    values = handlers.substitute(seeded, substitute_fn=start)
    return unconstrain_sites(handlers.trace(values).get_trace(*target.data))


def _initial_value(mean: Any, site: Any) -> Any:
    """Return the start of a site: the mean of the weights, else the median of draws of its prior.

    `partial(_initial_value, mean)` is an initialisation strategy of NumPyro.
    """
    if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
        return init_to_uniform(site)
    prior, options = site["fn"], site["kwargs"]
    transform = biject_to(prior.support)

    def draw(key: jax.Array) -> Any:
        return transform.inv(prior(rng_key=key, sample_shape=options["sample_shape"]))

    draws = jax.vmap(draw)(jax.random.split(options["rng_key"], _START_DRAWS))
    median = transform(jnp.median(draws, axis=0))
    if mean is None or site["name"] != WEIGHTS:
        return median
    # A mean outside of the support, or at its edge, is not the value of any finite z.
    z = transform.inv(mean)
    same = jnp.isfinite(z).all() & jnp.allclose(transform(z), mean, rtol=1e-6, atol=1e-9)
    return jnp.where(same, mean, median)


def is_usable_start(target: Target, z: Sites) -> bool:
    """Return whether the density and its gradient are finite numbers at a value of z."""
    leaves = jax.tree.leaves(_value_and_slope(target, z))
    return all(np.isfinite(leaf).all() for leaf in leaves)


@partial(jax.jit, compiler_options=RUN_ONCE)
def _value_and_slope(target: Target, z: Sites) -> tuple[jax.Array, Sites]:
    """Return the potential and its gradient."""
    return jax.value_and_grad(lambda sites: potential(target, sites))(z)


@partial(jax.jit, compiler_options=RUN_ONCE)
def _site_densities(target: Target, z: Sites) -> tuple[Sites, dict[str, Sites]]:
    """Return the log density of each site, and the sum of its gradient by each latent site."""

    def densities(z: Sites) -> Sites:
        seeded = handlers.seed(target.program, jax.random.key(0))
        values = handlers.substitute(seeded, data=constrain(target, z))
        sites = handlers.trace(values).get_trace(*target.data)
        sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
        return {name: site["fn"].log_prob(site["value"]).sum() for name, site in sampled.items()}

    return densities(z), jax.tree.map(jnp.sum, jax.jacrev(densities)(z))


def make_start_error(target: Target, z: Sites) -> UsageError:
    """Return the error of a model whose density cannot be sampled from a value of z."""
    values = {name: constrain(target, z)[name] for name in inspect_model(target).latent}
    densities, slopes, values = jax.device_get((*_site_densities(target, z), values))
    odd = [name for name, density in densities.items() if not np.isfinite(density)]
    zero = [name for name in odd if densities[name] == -np.inf]
    steep = [
        f"{n} by {by}" for n, of in slopes.items() for by, x in of.items() if not np.isfinite(x)
    ]
    if zero:
        problem = f"density of the site {zero[0]} of the model is 0"
        remedy = "bound sites by distributions such as TruncatedNormal"
        remedy += ", or change canonical weights" if target.has_lists else ""
    elif odd:
        problem = f"log density of the site {odd[0]} of the model is not a number"
        remedy = "logarithms, roots and scales need positive values, such as those of jnp.exp"
    else:
        problem = f"gradient of the site {' '.join(steep[:1])} of the model is not finite"
        remedy = "jnp.sqrt and jnp.linalg.norm have none at 0: add a small number to their argument"
    start = list_names(f"{name} = {np.round(x, 3)}" for name, x in values.items())
    return model_error(f"the {problem} where samplers start ({start}): {remedy}", "bad-number")
