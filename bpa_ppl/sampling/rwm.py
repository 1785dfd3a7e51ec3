"""Random-walk Metropolis–Hastings, shaped like the posterior and started around its mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.sampling.base import Program, Sampled, Sampler, Target
from bpa_ppl.sampling.chains import Plan, run_chains
from bpa_ppl.sampling.metropolis import Metropolis
from bpa_ppl.sampling.mode import around, require_mode


class RandomWalk(Metropolis):
    """Random-walk Metropolis–Hastings with proposal N(λ', σ_o Σ).

    Args:
        model: the NumPyro model.
        proposal_variance: σ_o, a variance.
        covariance: (d, d) Σ; None is the identity.

    >>> import jax, numpyro, numpyro.distributions as dist
    >>> from numpyro.infer import MCMC
    >>> model = lambda: numpyro.sample("x", dist.Normal(3.0, 1.0))
    >>> mcmc = MCMC(RandomWalk(model, proposal_variance=4.0), num_warmup=500, num_samples=5000,
    ...             progress_bar=False)
    >>> mcmc.run(jax.random.key(0))
    >>> bool(abs(mcmc.get_samples()["x"].mean() - 3.0) < 0.2)
    True
    """

    def __init__(
        self, model: Any, *, proposal_variance: float = 0.01, covariance: Any = None, **options: Any
    ):
        super().__init__(model, **options)
        self._proposal_variance = proposal_variance
        self._factor = None if covariance is None else jnp.linalg.cholesky(jnp.asarray(covariance))

    def propose(self, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return z + N(0, σ_o Σ); the proposal is symmetric."""
        noise = jax.random.normal(key, position.shape, position.dtype)
        if self._factor is not None:
            noise = self._factor @ noise
        return position + jnp.sqrt(self._proposal_variance) * noise, jnp.zeros((), position.dtype)


class RandomWalkMetropolis(Sampler, frozen=True):
    """A walk of N(0, scale² / d × Laplace covariance); 2.38 is best for a Gaussian posterior.

    Gelman, Roberts & Gilks (1996), for d → ∞. Each chain starts at a draw of N(mode, 2 × Laplace).
    Successive steps are close relatives, so that one in ten is kept.
    """

    scale: Positive = 2.38
    warmup: CountOrNone = 50
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 10

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by a random walk."""
        mode = require_mode(target)
        start = around(target, mode, self.chains)
        plan = Plan(_kernel, target.program, self, ("accept_prob", "potential_energy"))
        found = run_chains(plan, target, mode.covariance, start)
        attrs = {**mode.attrs(), "step_setting": "scale"}
        return replace(found, mode=mode.position, attrs=attrs)


def _kernel(program: Program, settings: RandomWalkMetropolis, covariance: jax.Array) -> RandomWalk:
    # Not scale**2, which Python refuses where it is infinite: no step is accepted then.
    variance = settings.scale * settings.scale / covariance.shape[0]
    return RandomWalk(program, proposal_variance=variance, covariance=covariance)
