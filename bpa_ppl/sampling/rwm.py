"""Random-walk Metropolis–Hastings in the metric of the posterior."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import potential_energy

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.sampling.chains import Chains, ChainSampler, run_chains
from bpa_ppl.sampling.mode import dispersed_starts, require_mode
from bpa_ppl.sampling.target import Sampled, Sites, Target, with_evaluations


def random_walk(
    target: Target, variance: Any, covariance: Any, keys: jax.Array, z: Sites
) -> Chains:
    """Return chains of random-walk Metropolis with proposals N(λ', σ_o Σ) of the whole vector.

    Metropolis et al. (1953). The state of the chains is z, the potential there, the probability
    with which the last proposal was accepted, and the keys of the next step.

    Args:
        target: the posterior.
        variance: σ_o.
        covariance: (d, d) Σ; None is the identity.
        keys: one for each chain.
        z: of each chain, with leading dimension chains.
    """
    factor = None if covariance is None else jnp.linalg.cholesky(jnp.asarray(covariance))
    potential = partial(potential_energy, target.program, target.data, {})

    def first(key: jax.Array, z: Sites) -> Any:
        energy = potential(z)
        return z, energy, jnp.zeros_like(energy), jax.random.split(key)[0]

    def step(state: Any) -> Any:
        z, energy, _, key = state
        key, propose_key, accept_key = jax.random.split(key, 3)
        position, unravel = ravel_pytree(z)
        noise = jax.random.normal(propose_key, position.shape, position.dtype)
        if factor is not None:
            noise = factor @ noise
        proposed = unravel(position + jnp.sqrt(variance) * noise)
        proposed_energy = potential(proposed)
        ratio = jnp.exp(jnp.minimum(energy - proposed_energy, 0.0))
        accept_prob = jnp.where(jnp.isfinite(proposed_energy), ratio, 0.0)
        accept = jax.random.uniform(accept_key, dtype=accept_prob.dtype) < accept_prob
        z, energy = jax.tree.map(
            lambda new, old: jnp.where(accept, new, old), (proposed, proposed_energy), (z, energy)
        )
        return z, energy, accept_prob, key

    def collect(state: Any) -> dict[str, Any]:
        return dict(zip(("z", "potential_energy", "accept_prob"), state, strict=False))

    return jax.vmap(first)(keys, z), jax.vmap(step), collect


class RandomWalkMetropolis(ChainSampler, frozen=True):
    """A walk of N(0, scale² / d × Laplace covariance); 2.38 is best for a Gaussian posterior.

    Gelman, Roberts & Gilks (1996), for d → ∞. Each chain starts at a draw of N(mode, 2 × Laplace).
    Successive steps are strongly correlated, so one in ten is kept.
    """

    scale: Positive = 2.38
    warmup: CountOrNone = 50
    thinning: Count = 10

    def initialise(self, target: Target, covariance: Any, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains of a walk in the metric of the posterior."""
        # Not scale**2: Python raises an error where it overflows; here it is infinite and no step
        # is accepted.
        variance = self.scale * self.scale / covariance.shape[0]
        return random_walk(target, variance, covariance, keys, z)

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by a random walk."""
        mode = require_mode(target)
        start = dispersed_starts(target, mode, self.chains)
        sampled = run_chains(self, target, mode.covariance, start)
        attrs = {**mode.attrs(), "step_setting": "scale"}
        return replace(with_evaluations(sampled, self.thinning), mode=mode.position, attrs=attrs)
