"""The mode alone: the plain point estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl.sampling.density import constrained, unraveller
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode


@dataclass(frozen=True)
class Settings:
    """There is nothing to set."""


def sample(problem: Problem, settings: Settings) -> Draws:
    """Return the mode of the posterior as its only draw."""
    mode = find_mode(problem.model, problem.data, problem.start)
    sites = constrained(problem.model, problem.data, unraveller(problem.start)(mode.position))
    problem.progress(1, 1, f"{int(mode.iterations)} Newton steps")
    return Draws(
        sites={name: np.asarray(value)[None, None] for name, value in sites.items()},
        stats={},
        constants={"mode": np.asarray(sites["weights"])},
        attrs={
            "newton_iterations": int(mode.iterations),
            "newton_decrement": float(mode.decrement),
        },
    )
