"""Random-walk Metropolis–Hastings, as published: an isotropic walk from the canonical weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.sampling.chains import Plan, run_chains
from bpa_ppl.sampling.density import Model
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.metropolis import Metropolis


class RandomWalk(Metropolis):
    """Random-walk Metropolis–Hastings with proposal N(λ', σ_o I).

    Args:
        model: the NumPyro model.
        proposal_variance: σ_o, a variance.

    >>> import jax, numpyro, numpyro.distributions as dist
    >>> from numpyro.infer import MCMC
    >>> model = lambda: numpyro.sample("x", dist.Normal(3.0, 1.0))
    >>> mcmc = MCMC(RandomWalk(model, proposal_variance=4.0), num_warmup=500, num_samples=5000,
    ...             progress_bar=False)
    >>> mcmc.run(jax.random.key(0))
    >>> bool(abs(mcmc.get_samples()["x"].mean() - 3.0) < 0.2)
    True
    """

    def __init__(self, model: Any, *, proposal_variance: float = 0.01, **options: Any):
        super().__init__(model, **options)
        self._proposal_variance = proposal_variance

    def propose(self, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return z + N(0, σ_o I); the proposal is symmetric."""
        noise = jax.random.normal(key, position.shape, position.dtype)
        return position + jnp.sqrt(self._proposal_variance) * noise, jnp.zeros((), position.dtype)


@dataclass(frozen=True)
class Settings:
    """The published settings: σ_o = 0.01, burn-in 500, 1000 draws kept; here of 4 chains."""

    proposal_variance: float = 0.01
    warmup: int = 500
    draws: int = 1000
    chains: int = 4


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by a random walk that starts at the canonical weights."""
    start = {
        name: np.broadcast_to(value, (settings.chains, *np.shape(value)))
        for name, value in problem.start.items()
    }
    plan = Plan(_kernel, problem.model, settings, ("accept_prob", "potential_energy"))
    return run_chains(plan, problem, None, start)


def _kernel(model: Model, settings: Settings, shape: None) -> RandomWalk:
    return RandomWalk(model, proposal_variance=settings.proposal_variance)
