"""The mode alone: the plain point estimate."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from bpa_ppl.sampling.density import unraveller
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import find_mode


@dataclass(frozen=True)
class Settings:
    """There is nothing to set."""


def sample(problem: Problem, settings: Settings) -> Draws:
    """Return the mode of the posterior as its only draw."""
    mode = find_mode(problem.model, problem.data, problem.start)
    problem.progress(1, 1, f"{int(mode.iterations)} Newton steps")
    z = unraveller(problem.start)(mode.position)
    return Draws(
        z=jax.tree.map(lambda value: value[None, None], z),
        stats={"lp": np.full((1, 1), -float(mode.energy))},
        mode=mode.position,
        attrs=mode.attrs(),
    )
