"""The posterior density of a NumPyro model, as functions that JAX compiles once.

Everywhere z is the dict of unconstrained latent values of a model, and the model is a static
argument of what is compiled: data of the same shapes need no new compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import Predictive, init_to_value, log_likelihood
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

from bpa_ppl.errors import UsageError
from bpa_ppl.models import Adaptation

Model = Callable[[Adaptation], None]
Sites = dict[str, Any]

#: Scores held at once while log-likelihoods are computed: 16 MiB of float32.
_BLOCK = 4_000_000


@partial(jax.jit, static_argnums=0)
def starting_point(model: Model, data: Adaptation) -> Sites:
    """Return z at the canonical weights, (site shape) each.

    Raises:
        UsageError: if the model has no `weights` site of one value a feature.
    """
    canonical = init_to_value(values={"weights": data.prior_mean})
    info = initialize_model(
        jax.random.key(0), model, init_strategy=canonical, dynamic_args=True, model_args=(data,)
    )
    site = info.model_trace.get("weights")
    if site is None or jnp.shape(site["value"]) != data.prior_mean.shape:
        raise UsageError(
            "the model needs a site called `weights` with one value for each of the "
            f"{len(data.prior_mean)} free features"
        )
    return info.param_info.z


def potential(model: Model, data: Adaptation, z: Sites) -> jax.Array:
    """Return −log p(z, data)."""
    return potential_energy(model, (data,), {}, z)


@partial(jax.jit, static_argnums=0)
def constrained(model: Model, data: Adaptation, z: Sites) -> Sites:
    """Return the values of the sites, deterministic ones included, for one z."""
    return constrain_fn(model, (data,), {}, z, return_deterministic=True)


@partial(jax.jit, static_argnums=0)
def constrained_draws(model: Model, data: Adaptation, z: Sites) -> Sites:
    """Return the values of the sites for z with leading dimensions (chains, draws)."""
    return jax.vmap(jax.vmap(partial(constrained, model, data)))(z)


def unraveller(z: Sites) -> Callable[[jax.Array], Sites]:
    """Return the function from the flat vector, (d,), to a dict like z."""
    return ravel_pytree(z)[1]


@partial(jax.jit, static_argnums=0)
def _log_likelihood(model: Model, data: Adaptation, some: Sites) -> jax.Array:
    sites = log_likelihood(model, some, data)
    return sum(v.reshape(v.shape[0], -1) for v in sites.values()).astype(jnp.float32)


def pointwise_log_likelihood(model: Model, data: Adaptation, draws: Sites) -> np.ndarray:
    """Return log p(e*_a | f_a, λ) of every draw and sentence, float32 (chains, draws, S).

    Args:
        model: the NumPyro model.
        data: what it conditions on.
        draws: values of the sites, with leading dimensions (chains, draws).
    """
    chains, length = np.shape(draws["weights"])[:2]
    flat = {name: np.reshape(v, (chains * length, *np.shape(v)[2:])) for name, v in draws.items()}
    block = min(max(1, _BLOCK // data.base.size), chains * length)
    table = jax.device_put(data)
    out = np.empty((chains * length, data.base.shape[0]), np.float32)
    for first in range(0, len(out), block):
        # The last block is moved back so that all have one shape, and one compilation serves.
        at = min(first, len(out) - block)
        some = {name: v[at : at + block] for name, v in flat.items()}
        out[at : at + block] = _log_likelihood(model, table, some)
    return out.reshape(chains, length, -1)


@partial(jax.jit, static_argnums=(0, 2))
def prior_draws(model: Model, data: Adaptation, count: int, key: jax.Array) -> jax.Array:
    """Return draws of the weights from the model's prior, (count, Q)."""
    predictive = Predictive(model, num_samples=count, return_sites=["weights"])
    return predictive(key, data)["weights"]
