"""Importance sampling around the mode: the Laplace approximation, corrected by weights."""

from __future__ import annotations

from dataclasses import dataclass

from bpa_ppl.posterior import pareto_smoothed
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import require_mode
from bpa_ppl.sampling.proposals import propose


@dataclass(frozen=True)
class Settings:
    """Draws of a Student t around the mode; more degrees of freedom mean lighter tails."""

    draws: int = 4000
    degrees_of_freedom: float = 20.0


def sample(problem: Problem, settings: Settings) -> Draws:
    """Return draws of a Student t around the mode, and their Pareto-smoothed importance weights.

    The smoothing and its k̂, which tells whether the weights can be trusted, are those of
    Vehtari et al. (2024).
    """
    mode = require_mode(problem)
    proposals = propose(problem, mode, 1, settings.draws, settings.degrees_of_freedom)
    log_weight, k_hat = pareto_smoothed(proposals.log_ratio)
    problem.progress(settings.draws, settings.draws, f"Pareto k̂ {k_hat:.2f}")
    return Draws(
        z=proposals.z,
        stats={"log_weight": log_weight, "lp": -proposals.energy},
        mode=mode.position,
        attrs={"pareto_k": k_hat, **mode.attrs()},
        log_likelihood=proposals.log_likelihood,
    )
