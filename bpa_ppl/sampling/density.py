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
from numpyro import handlers
from numpyro.infer import Predictive, init_to_value, log_likelihood
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

from bpa_ppl.errors import UsageError
from bpa_ppl.models import Adaptation, in_order
from bpa_ppl.nbest import Float32, Float64

Model = Callable[[Adaptation], None]
Sites = dict[str, Any]

#: Draws evaluated side by side: the scores of one block of lists still fit into a cache.
_DRAWS = 128


@partial(jax.jit, static_argnums=0)
def starting_point(model: Model, data: Adaptation) -> Sites:
    """Return z at the canonical weights, (site shape) each.

    Raises:
        UsageError: if the model has no `weights` site of one value a feature.
    """
    _check_weights(model, data)
    canonical = init_to_value(values={"weights": data.prior_mean})
    return initialize_model(
        jax.random.key(0), model, init_strategy=canonical, dynamic_args=True, model_args=(data,)
    ).param_info.z


def _check_weights(model: Model, data: Adaptation) -> None:
    sites = handlers.trace(handlers.seed(model, 0)).get_trace(data)
    site = sites.get("weights")
    if site is None or jnp.shape(site["value"]) != data.prior_mean.shape:
        raise UsageError(
            "the model needs a site called `weights` with one value for each of the "
            f"{len(data.prior_mean)} free features"
        )


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
def _evaluated(model: Model, data: Adaptation, some: Sites) -> tuple[jax.Array, jax.Array]:
    def one(z: Sites) -> tuple[jax.Array, jax.Array]:
        # The likelihood stands in the potential too: the compiler computes it once.
        sites = log_likelihood(model, constrained(model, data, z), data, batch_ndims=0)
        total = sum(value.reshape(-1) for value in sites.values())
        return potential(model, data, z), total.astype(jnp.float32)

    return jax.vmap(one)(some)


def evaluate(model: Model, data: Adaptation, z: Sites) -> tuple[Float64, Float32]:
    """Return −log p(z, data) and log p(e*_a | f_a, λ) of many draws, computed side by side.

    Args:
        model: the NumPyro model.
        data: what it conditions on.
        z: with leading dimensions (chains, draws).

    Returns:
        float64 (chains, draws), and float32 (chains, draws, sentences) in the order of the
        n-best table.
    """
    shape = jnp.shape(jax.tree.leaves(z)[0])[:2]
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *np.shape(x)[2:]), z)
    count, order = shape[0] * shape[1], in_order(data)
    block = min(_DRAWS, count)
    energy, each = np.empty(count), np.empty((count, len(order)), np.float32)
    for first in range(0, count, block):
        # The last block is moved back so that all have one shape, and one compilation serves.
        part = slice(min(first, count - block), min(first + block, count))
        some = jax.tree.map(lambda x, part=part: x[part], flat)
        energies, sentences = _evaluated(model, data, some)
        energy[part], each[part] = energies, np.asarray(sentences)[:, order]
    return energy.reshape(shape), each.reshape(*shape, -1)


@partial(jax.jit, static_argnums=(0, 2))
def prior_draws(model: Model, data: Adaptation, count: int, key: jax.Array) -> jax.Array:
    """Return draws of the weights from the model's prior, (count, Q)."""
    predictive = Predictive(model, num_samples=count, return_sites=["weights"])
    return predictive(key, data)["weights"]
