"""The sampler that suits the posterior: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bpa_ppl.posterior import pareto_smoothed
from bpa_ppl.sampling import imh, nuts
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.proposals import propose

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024), and an independence
#: sampler with the same ratios gets stuck.
GOOD_PARETO_K = 0.5
_PILOT = 1000
_APART = 1_000_003


@dataclass(frozen=True)
class Settings:
    """What both samplers share."""

    draws: int = 1000
    chains: int = 4


def sample(problem: Problem, settings: Settings) -> Draws:
    """Draw with `imh` if a pilot sample finds that its proposals fit the posterior, else `nuts`."""
    fits, why = _pilot(problem)
    draws = (_independent if fits else _hamiltonian)(problem, settings)
    attrs = {**draws.attrs, "chosen": "imh" if fits else "nuts", "chosen_because": why}
    return replace(draws, attrs=attrs)


def _independent(problem: Problem, settings: Settings) -> Draws:
    return imh.sample(problem, imh.Settings(draws=settings.draws, chains=settings.chains))


def _hamiltonian(problem: Problem, settings: Settings) -> Draws:
    tuned = nuts.Settings(
        warmup=500, draws=settings.draws, chains=settings.chains, target_accept=0.8
    )
    return nuts.sample(problem, tuned)


def _pilot(problem: Problem) -> tuple[bool, str]:
    """Say whether proposals around the mode fit the posterior, and by what sign."""
    mode = find_mode(problem.model, problem.data, problem.start)
    if not mode.converged:
        return False, "the search for the mode did not converge"
    # A seed of its own: what the pilot finds shall not be part of what it judges.
    apart = replace(problem, seed=problem.seed + _APART)
    pilot = propose(apart, mode, 1, _PILOT, imh.Settings.degrees_of_freedom)
    k_hat = pareto_smoothed(pilot.log_ratio)[1]
    fits = k_hat <= GOOD_PARETO_K
    side = "≤" if fits else ">"
    return fits, f"Pareto k̂ {k_hat:.2f} {side} {GOOD_PARETO_K} of proposals around the mode"
