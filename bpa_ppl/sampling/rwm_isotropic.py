"""The published random walk: isotropic, from the canonical weights."""

from __future__ import annotations

from dataclasses import dataclass

from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.density import Model
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.rwm import RandomWalk


@dataclass(frozen=True)
class Settings:
    """The published settings: σ_o = 0.01, burn-in 500, 1000 draws kept; here of 4 chains."""

    proposal_variance: float = 0.01
    warmup: int = 500
    draws: int = 1000
    chains: int = 4
    thinning: int = 1


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw from the posterior by a random walk N(λ', σ_o I) that starts at λ_T."""
    plan = Plan(_kernel, problem.model, settings, ("accept_prob", "potential_energy"))
    return run_chains(plan, problem, None, repeated(problem.start, settings.chains))


def _kernel(model: Model, settings: Settings, shape: None) -> RandomWalk:
    return RandomWalk(model, proposal_variance=settings.proposal_variance)
