"""Hierarchies of domains in coordinates that suit NUTS: the own part of each domain, whitened.

In the non-centred form λ_d = μ + R z_d a domain with informative data confines z_d to a narrow
region that moves and turns with R, so that steps must be short; the centred form has a funnel where
R is small. Given μ and R, and with the likelihood of the domain as a Gaussian of precision H around
λ̂, z_d has the precision K = I + RᵀHR and the mean K⁻¹RᵀH(λ̂ − μ). NUTS moves ε_d = Cᵀ(z_d − mean),
with CCᵀ = K, which is standard normal as far as the Gaussian holds, for all μ and R (conditional
non-centring). The change of variables is exact whatever H and λ̂ are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import constrain_fn

from bpa_ppl.models import Likelihood, Lists, Prior
from bpa_ppl.models.hierarchical import LOG_SLOPE, WHITENED, Hierarchical, Information
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.target import Sampled, Sites, Target

#: Values of the domains' weights, for which the Hessian of the likelihood is computed.
_MAX_VALUES = 200


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("lists", "prior", "start", "information"),
    meta_fields=("model", "likelihood"),
    drop_fields=("match", "seed", "progress", "problem"),
)
@dataclass(frozen=True, eq=False)
class Whitened(Target):
    """A hierarchy in whitened coordinates."""

    information: Information | None = None

    def program(self, lists: Lists, prior: Prior) -> None:
        """Run the model."""
        hierarchy: Any = self.model
        hierarchy(lists, prior, self.likelihood, self.information)


@dataclass(frozen=True)
class _Separate:
    """The domains without what they share, under a wide Gaussian."""

    domains: int

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        deviation = prior.distribution().variance ** 0.5
        each = (jnp.tile(values, (self.domains, 1)) for values in (prior.mean, deviation))
        weights = numpyro.sample("weights", dist.Normal(*each).to_event(2))
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)


def whitened(target: Target) -> Whitened | None:
    """Return a hierarchy in whitened coordinates; None for other models.

    Also None if the hierarchy has too many domains, or the likelihood of one has no mode.
    """
    model, prior = target.model, target.prior
    if not isinstance(model, Hierarchical):
        return None
    size = len(prior.mean)
    if model.domains * size > _MAX_VALUES:
        return None
    start = {"weights": np.tile(np.asarray(prior.mean), (model.domains, 1))}
    mode = find_mode(replace(target, model=_Separate(model.domains), start=start))
    if not mode.converged:
        return None
    prior_precision = 1 / np.asarray(prior.distribution().variance)
    precision = np.zeros((model.domains, size, size))
    for number in range(model.domains):
        own = slice(number * size, (number + 1) * size)
        curvature = np.linalg.inv(mode.covariance[own, own]) - np.diag(prior_precision)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        precision[number] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    information = precision, mode.position.reshape(model.domains, size)
    same = {field.name: getattr(target, field.name) for field in fields(target)}
    return Whitened(**same, information=jax.device_put(information))


def original(target: Whitened, sampled: Sampled) -> Sampled:
    """Return draws in whitened coordinates as draws of the model.

    Args:
        target: from `whitened`.
        sampled: its draws.
    """
    z, log_slope = _original(target, sampled.z)
    warmup = _original(target, sampled.warmup)[0] if sampled.warmup else {}
    log_density = sampled.log_density
    return replace(
        sampled,
        z=jax.device_get(z),
        warmup=jax.device_get(warmup),
        log_density=None if log_density is None else log_density - np.asarray(log_slope),
    )


@jax.jit
def _original(target: Whitened, z: Sites) -> tuple[Sites, jax.Array]:
    def of_one(one: Sites) -> tuple[Sites, jax.Array]:
        values = constrain_fn(target.program, target.data, {}, one, return_deterministic=True)
        return {**one, "own": values[WHITENED]}, values[LOG_SLOPE]

    return jax.vmap(jax.vmap(of_one))(z)
