"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import NUTS

from bpa_ppl.sampling.chains import run_chains
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.target import constrained


@dataclass(frozen=True)
class Settings:
    """NUTS (Hoffman & Gelman 2014) with a dense mass matrix that the warm-up refines."""

    warmup: int = 500
    draws: int = 1000
    chains: int = 4
    target_accept: float = 0.8


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by NUTS, each chain from a draw of N(mode, 2 × Laplace)."""
    mode = find_mode(problem.target, problem.data)
    kernel = NUTS(
        problem.target.model,
        dense_mass=True,
        inverse_mass_matrix=mode.covariance,
        target_accept_prob=settings.target_accept,
    )
    rng = np.random.default_rng(problem.seed)
    spread = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=settings.chains)
    unravel = ravel_pytree(problem.target.start)[1]
    draws = run_chains(
        kernel,
        problem,
        fields=("accept_prob", "potential_energy", "energy", "num_steps", "diverging"),
        start=jax.vmap(unravel)(spread),
        chains=settings.chains,
        warmup=settings.warmup,
        draws=settings.draws,
    )
    weights = constrained(problem.target, problem.data, mode.position)["weights"]
    draws.constants["mode"] = np.asarray(weights)
    return draws
