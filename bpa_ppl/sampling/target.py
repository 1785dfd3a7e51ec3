"""The posterior density of a model, over one flat unconstrained vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import Predictive, init_to_value, log_likelihood
from numpyro.infer.util import initialize_model

from bpa_ppl.errors import UsageError
from bpa_ppl.models import Adaptation

Model = Callable[[Adaptation], None]
Sites = dict[str, Any]

#: Scores held at once while log-likelihoods are computed: 16 MiB of float32.
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Target:
    """An unnormalised posterior; z is the dict of unconstrained latent values of a model.

    Attributes:
        model: the NumPyro model.
        start: z at the canonical weights.
        potential: z ↦ −log p(z, data) for given data: `potential(data)(z)`.
        constrain: z ↦ values of the sites, likewise.
    """

    model: Model
    start: Sites
    potential: Callable[[Adaptation], Callable[[Sites], jax.Array]]
    constrain: Callable[[Adaptation], Callable[[Sites], Sites]]


def make_target(model: Model, data: Adaptation) -> Target:
    """Trace a model once and return its posterior density.

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
    return Target(model, info.param_info.z, info.potential_fn, info.postprocess_fn)


def flat_potential(target: Target, data: Adaptation) -> Callable[[jax.Array], jax.Array]:
    """Return the potential energy of `data` as a function of the flat vector, (d,) ↦ ()."""
    unravel = ravel_pytree(target.start)[1]
    energy = target.potential(data)
    return lambda flat: energy(unravel(flat))


def constrained(target: Target, data: Adaptation, flat: jax.Array) -> Sites:
    """Return the values of the sites for flat vectors, (…, d) ↦ (…, site shape) each."""
    unravel = ravel_pytree(target.start)[1]
    convert = lambda row: target.constrain(data)(unravel(row))  # noqa: E731
    for _ in range(flat.ndim - 1):
        convert = jax.vmap(convert)
    return convert(flat)


def pointwise_log_likelihood(target: Target, data: Adaptation, draws: Sites) -> np.ndarray:
    """Return log p(e*_a | f_a, λ) of every draw and sentence, float32 (chains, draws, S).

    Args:
        draws: values of the sites, with leading dimensions (chains, draws).
    """
    chains, length = np.shape(draws["weights"])[:2]
    flat = {name: np.reshape(v, (chains * length, *np.shape(v)[2:])) for name, v in draws.items()}
    block = min(max(1, _BLOCK // data.base.size), chains * length)

    @jax.jit
    def evaluate(some: Sites, table: Adaptation) -> jax.Array:
        sites = log_likelihood(target.model, some, table)
        return sum(v.reshape(v.shape[0], -1) for v in sites.values()).astype(jnp.float32)

    table = jax.device_put(data)
    out = np.empty((chains * length, data.base.shape[0]), np.float32)
    for first in range(0, len(out), block):
        # The last block is moved back so that all have one shape, and one compilation serves.
        at = min(first, len(out) - block)
        out[at : at + block] = evaluate({n: v[at : at + block] for n, v in flat.items()}, table)
    return out.reshape(chains, length, -1)


def prior_draws(target: Target, data: Adaptation, count: int, key: jax.Array) -> np.ndarray:
    """Return draws of the weights from the model's prior, (count, Q)."""
    predictive = Predictive(target.model, num_samples=count, return_sites=["weights"])
    return np.asarray(predictive(key, data)["weights"])
