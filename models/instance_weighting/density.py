"""The density of the parameters φ of a weighted mixture, in JAX, which derivatives come from.

z are the unconstrained values of φ, (d,): logit α or log β, log γ if it is fitted, and λ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.caching import prepare_jax
from bpa_ppl.models.instance_weighting.mixture import MixtureData, Phi, Variant

#: λ·f beyond which a factor is constant: e^±300 is still far inside the range of a float.
_BOUND = 300.0
_LEAST = 1e-300
_SCALE_DEVIATION = 2.0  # of log β and log γ under the prior


@contextmanager
def placed(data: MixtureData) -> Iterator[MixtureData]:
    """Put the arrays of some data on JAX's device, for a block of double precision."""
    prepare_jax()
    with jax.enable_x64(True):
        arrays = data._replace(features=data.features.astype(np.float64), names=())
        yield jax.device_put(arrays)


@partial(jax.jit, static_argnums=1)  # compiled as a whole, because single operations take long
def probabilities(data: MixtureData, variant: Variant, phi: Phi) -> jax.Array:
    """Return p(x | y; φ) of each queried pair (D,); 0 without support.

    Args:
        data: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        phi: its parameters.
    """
    groups, group, row = len(data.missing), data.query_group, data.query_row
    eta = jnp.clip(jnp.asarray(data.features, phi.weights.dtype) @ phi.weights, -_BOUND, _BOUND)
    factor = jax.nn.sigmoid(eta) if variant.link == "logistic" else jnp.exp(eta)
    weighted = data.count * factor
    total = jax.ops.segment_sum(weighted, data.group, groups, indices_are_sorted=True)
    in_out = data.outside
    divisor = jnp.where(in_out, data.missing * total + phi.gamma, 1.0)
    uniform = in_out / jnp.maximum(data.missing * jnp.diff(data.starts), 1.0)
    if variant.mixture == "map":
        share = data.in_total / (data.in_total + phi.mixing)
    else:
        share = jnp.full(groups, phi.mixing)
    if variant.complete:
        share = jnp.where(in_out, jnp.where(data.in_total > 0, share, 0.0), 1.0)
    count = jnp.append(weighted, 0.0)[row]
    outer = jnp.where(row < 0, 0.0, (count + phi.gamma * uniform[group]) / divisor[group])
    result: jax.Array = share[group] * data.query_in + (1 - share[group]) * outer
    return result


@partial(jax.jit, static_argnums=(1, 2))
def log_densities(
    data: MixtureData, variant: Variant, deviation: float | None, z: Any
) -> tuple[jax.Array, jax.Array]:
    """Return the log posterior density of z, up to a constant, and log p(dev | φ) in it.

    It is a density of logit α, log β and log γ, so the density of α is multiplied by α (1 − α).

    Args:
        data: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        deviation: of the normal prior of each weight λ, with mean 0; α is then uniform, and
            log β and log γ are normal with a deviation of 2. None is the likelihood alone.
        z: (d,).
    """
    used = data.supported & (data.weight > 0)
    probability = jnp.maximum(probabilities(data, variant, constrained(variant, z)), _LEAST)
    total = likelihood = (data.weight * jnp.log(jnp.where(used, probability, 1.0))).sum()
    if deviation is not None:
        linear, free = variant.mixture == "linear", 1 + variant.smoothed
        scales, weights = z[int(linear) : free] / _SCALE_DEVIATION, z[free:]
        total -= 0.5 * ((scales**2).sum() + (weights**2).sum() / deviation**2)
        if linear:
            total += jax.nn.log_sigmoid(z[0]) + jax.nn.log_sigmoid(-z[0])
    return total, likelihood


#: `log_densities` and the gradient of the first of them, (d,).
value_and_gradient = jax.jit(
    jax.value_and_grad(log_densities, argnums=3, has_aux=True), static_argnums=(1, 2)
)


def constrained(variant: Variant, z: Any) -> Phi:
    """Return φ of its unconstrained values.

    >>> phi = constrained(Variant("linear"), np.array([0.0, 0.0, 2.0]))
    >>> float(phi.mixing), float(phi.gamma), phi.weights.tolist()
    (0.5, 1.0, [2.0])
    """
    mixing = jax.nn.sigmoid(z[0]) if variant.mixture == "linear" else jnp.exp(z[0])
    gamma = jnp.exp(z[1]) if variant.smoothed else jnp.zeros(())
    return Phi(mixing, gamma, z[1 + variant.smoothed :])
