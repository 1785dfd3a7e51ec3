"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
from numpyro.infer import NUTS

from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.density import Model
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import around, find_mode

FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


@dataclass(frozen=True)
class Settings:
    """NUTS (Hoffman & Gelman 2014): the metric is known, so a short warm-up tunes the step."""

    warmup: int = 150
    draws: int = 1000
    chains: int = 4
    thinning: int = 1
    target_accept: float = 0.8


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by NUTS, each chain from a draw of N(mode, 2 × Laplace).

    A density without a mode, which only a model of the user's own can have, is sampled as NumPyro
    does by itself: from the canonical weights, with a metric that the warm-up finds.
    """
    mode = find_mode(problem.model, problem.data, problem.start)
    if not mode.converged:
        start = repeated(problem.start, settings.chains)
        return run_chains(Plan(_adapting, problem.model, settings, FIELDS), problem, None, start)
    start = around(problem, mode, settings.chains)
    plan = Plan(_kernel, problem.model, settings, FIELDS)
    draws = run_chains(plan, problem, mode.covariance, start)
    return replace(draws, mode=mode.position, attrs=mode.attrs())


def _adapting(model: Model, settings: Settings, shape: None) -> NUTS:
    return NUTS(model, target_accept_prob=settings.target_accept)


def _kernel(model: Model, settings: Settings, covariance: jax.Array) -> NUTS:
    return NUTS(
        model,
        dense_mass=True,
        adapt_mass_matrix=False,
        inverse_mass_matrix=covariance,
        target_accept_prob=settings.target_accept,
    )
