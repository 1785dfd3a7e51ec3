"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS

from bpa_ppl.sampling.chains import Plan, run_chains
from bpa_ppl.sampling.density import Model, constrained, unraveller
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode

FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


@dataclass(frozen=True)
class Settings:
    """NUTS (Hoffman & Gelman 2014) with a dense mass matrix that the warm-up refines."""

    warmup: int = 500
    draws: int = 1000
    chains: int = 4
    target_accept: float = 0.8


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by NUTS, each chain from a draw of N(mode, 2 × Laplace)."""
    mode = find_mode(problem.model, problem.data, problem.start)
    rng = np.random.default_rng(problem.seed)
    spread = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=settings.chains)
    unravel = unraveller(problem.start)
    plan = Plan(_kernel, problem.model, settings, FIELDS)
    draws = run_chains(plan, problem, mode.covariance, jax.vmap(unravel)(jnp.asarray(spread)))
    weights = constrained(problem.model, problem.data, unravel(mode.position))["weights"]
    draws.constants["mode"] = np.asarray(weights)
    return draws


def _kernel(model: Model, settings: Settings, covariance: jax.Array) -> NUTS:
    return NUTS(
        model,
        dense_mass=True,
        inverse_mass_matrix=covariance,
        target_accept_prob=settings.target_accept,
    )
