"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
from numpyro.infer import NUTS

from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.density import Model
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.mode import around, find_mode

_TARGET = 0.8  # NumPyro's own, where the warm-up tunes the step
_TUNED_FOR = 14  # dimensions
FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


@dataclass(frozen=True)
class Settings:
    """NUTS (Hoffman & Gelman 2014) in the metric of the Laplace approximation.

    In that metric the posterior is nearly a standard Gaussian, so that the best step is known: at
    `step_size` of its standard deviations a trajectory turns after three steps. The warm-up need
    only forget the start. With a `target_accept`, it tunes the step instead: for other posteriors.
    """

    warmup: int = 100
    draws: int = 1000
    chains: int = 4
    thinning: int = 1
    step_size: float = 1.1
    target_accept: float | None = None


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
    return NUTS(model, target_accept_prob=settings.target_accept or _TARGET)


def _kernel(model: Model, settings: Settings, covariance: jax.Array) -> NUTS:
    # The step that keeps the acceptance falls with d^(1/4) (Beskos et al. 2013).
    dimension = covariance.shape[0]
    return NUTS(
        model,
        dense_mass=True,
        adapt_mass_matrix=False,
        inverse_mass_matrix=covariance,
        step_size=settings.step_size * min(1.0, (_TUNED_FOR / dimension) ** 0.25),
        adapt_step_size=settings.target_accept is not None,
        target_accept_prob=settings.target_accept or _TARGET,
    )
