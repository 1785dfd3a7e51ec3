"""Random-walk Metropolis–Hastings in the metric of the posterior."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import potential_energy

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count, CountOrNone, Positive
from bpa_ppl.densities.jumps import find_jumps
from bpa_ppl.densities.mode import disperse_starts, require_mode
from bpa_ppl.densities.target import Sampled, Sites, Target, with_evaluations
from bpa_ppl.diagnostics.check.advice import BEST_STEP
from bpa_ppl.posterior.statistics import r_hat
from bpa_ppl.samplers.chains import Chains, run_chains
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.samplers.starting import find_moments


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


#: Steps for each kept draw: for each value, and at least. An effective draw takes about three steps
#: of each value, and with 14 weights R-hat is below 1.01 only from a thousand effective draws on.
#: Twice as many where the posterior integrates over the scale of its prior and has heavier tails.
_STEPS_PER_VALUE, _MIN_STEPS = 1.5, 10
#: Chains of so many draws mix badly if their R-hat is larger than this, or if one accepts fewer of
#: its proposals.
_FEWEST, _MAX_R_HAT, _FEW_ACCEPTED = 100, 1.01, 0.15


class RandomWalkMetropolis(Sampler, frozen=True):
    """A walk of N(0, scale² / d × Laplace covariance); 2.38 is best for a Gaussian posterior.

    Gelman, Roberts & Gilks (1996), for d → ∞. Each chain starts at a draw of N(mode, 2 × Laplace).
    Where that approximation is poor, fitted moments take its place (see `refit`).
    Successive steps are strongly correlated, the more so the more weights there are.

    Args:
        scale: of the steps.
        warmup: draws of each chain that are discarded.
        draws: of each chain.
        chains: how many.
        thinning: steps from one draw to the next. None is 1.5 for each of d values, and at least
            10: 21 for the 14 weights of Moses; twice as many if the prior has an unknown scale.

    >>> RandomWalkMetropolis(scale=1.0)
    RandomWalkMetropolis(scale=1.0, warmup=50, draws=1000, chains=4, thinning=None)
    """

    title = "random-walk Metropolis, steps of the Laplace covariance"
    any_coordinates = True
    scale: Positive = BEST_STEP
    warmup: CountOrNone = 50
    draws: Count = 1000
    chains: Count = 4
    thinning: Count | None = None

    def initialise(self, target: Target, covariance: Any, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains of a walk in the metric of the posterior."""
        # Not scale**2: Python raises an error where it overflows; here it is infinite and no step
        # is accepted.
        variance = self.scale * self.scale / covariance.shape[0]
        return random_walk(target, variance, covariance, keys, z)

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        mode = require_mode(target)
        moments = find_moments(target, seed, progress)
        start = disperse_starts(target, moments, self.chains, seed)
        steps = max(int(np.ceil(_STEPS_PER_VALUE * target.dimension)), _MIN_STEPS)
        thinning = self.thinning or steps * (2 if target.hints.propose else 1)
        walk = msgspec.structs.replace(self, thinning=thinning)
        sampled = run_chains(walk, target, moments.covariance, start, seed, progress)
        figures = msgspec.structs.replace(mode.figures, step_setting="scale")
        if not target.hints.log_concave and _mix_badly(sampled):
            jumps, sites = find_jumps(target, sampled.z, seed)
            figures = msgspec.structs.replace(figures, jumps=jumps, jump_sites=sites)
        return replace(with_evaluations(sampled, thinning), mode=mode.position, figures=figures)


def _mix_badly(sampled: Sampled) -> bool:
    """Return whether an R-hat is too large, or a chain seldom accepts a proposal."""
    z, accepted = sampled.z, np.mean(sampled.statistics["acceptance_rate"], axis=1)
    if (shape := np.shape(next(iter(z.values())))[:2])[1] < _FEWEST:
        return False
    flat = np.concatenate([np.reshape(of, (*shape, -1)) for of in z.values()], axis=2)
    disagree = (r_hat(np.asarray(flat, np.float64)) > _MAX_R_HAT).any()
    return bool(disagree or accepted.min() < _FEW_ACCEPTED)
