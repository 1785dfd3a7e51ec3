"""The mode alone: the plain point estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.target import constrained


@dataclass(frozen=True)
class Settings:
    """There is nothing to set."""


def sample(problem: Problem, settings: Settings) -> Draws:
    """Return the mode of the posterior as its only draw."""
    mode = find_mode(problem.target, problem.data)
    sites = constrained(problem.target, problem.data, mode.position[None, None])
    problem.progress(1, 1, f"{int(mode.iterations)} Newton steps")
    return Draws(
        sites={name: np.asarray(value) for name, value in sites.items()},
        stats={},
        constants={"mode": np.asarray(sites["weights"][0, 0])},
        attrs={
            "newton_iterations": int(mode.iterations),
            "newton_decrement": float(mode.decrement),
        },
    )
