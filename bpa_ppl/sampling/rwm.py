"""Random-walk Metropolis–Hastings, shaped like the posterior and started around its mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from bpa_ppl.sampling.chains import Plan, run_chains
from bpa_ppl.sampling.density import Model
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.metropolis import Metropolis
from bpa_ppl.sampling.mode import around, require_mode


class RandomWalk(Metropolis):
    """Random-walk Metropolis–Hastings with proposal N(λ', σ_o Σ).

    Args:
        model: the NumPyro model.
        proposal_variance: σ_o, a variance.
        shape: (d, d) Σ; None is the identity.

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
        self, model: Any, *, proposal_variance: float = 0.01, shape: Any = None, **options: Any
    ):
        super().__init__(model, **options)
        self._proposal_variance = proposal_variance
        self._factor = None if shape is None else jnp.linalg.cholesky(jnp.asarray(shape))

    def propose(self, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return z + N(0, σ_o Σ); the proposal is symmetric."""
        noise = jax.random.normal(key, position.shape, position.dtype)
        if self._factor is not None:
            noise = self._factor @ noise
        return position + jnp.sqrt(self._proposal_variance) * noise, jnp.zeros((), position.dtype)


@dataclass(frozen=True)
class Settings:
    """A walk of N(0, scale² / d × Laplace covariance); 2.38 is best for a Gaussian posterior.

    Gelman, Roberts & Gilks (1996), for d → ∞. Successive steps are close relatives, so that one
    in ten is kept.
    """

    scale: float = 2.38
    warmup: int = 50
    draws: int = 1000
    chains: int = 4
    thinning: int = 10


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by a random walk, each chain from a draw of N(mode, 2 × Laplace)."""
    mode = require_mode(problem)
    start = around(problem, mode, settings.chains)
    plan = Plan(_kernel, problem.model, settings, ("accept_prob", "potential_energy"))
    draws = run_chains(plan, problem, mode.covariance, start)
    return replace(draws, mode=mode.position, attrs=mode.attrs())


def _kernel(model: Model, settings: Settings, covariance: jax.Array) -> RandomWalk:
    variance = settings.scale**2 / covariance.shape[0]
    return RandomWalk(model, proposal_variance=variance, shape=covariance)
