"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import jax
from msgspec import Meta
from numpyro.infer import NUTS

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.sampling.base import Program, Sampled, Sampler, Target
from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.mode import around, find_mode

_TARGET = 0.8  # NumPyro's own, where the warm-up tunes the step
_TUNED_FOR = 14  # dimensions
FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


class Nuts(Sampler, frozen=True):
    """NUTS (Hoffman & Gelman 2014) in the metric of the Laplace approximation.

    Each chain starts at a draw of N(mode, 2 × Laplace). In that metric the posterior is nearly a
    standard Gaussian, so that the best step is known: at `step_size` of its standard deviations a
    trajectory turns after three steps. The warm-up need only forget the start. With a
    `target_accept`, it tunes the step instead: for other posteriors.

    A density without a mode, which only a model of the user's own can have, is sampled as NumPyro
    does by itself: from the mean of the prior, with a metric that the warm-up finds.
    """

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1
    step_size: Positive = 1.1
    target_accept: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by NUTS."""
        mode = find_mode(target.program, target.data, target.start)
        if not mode.converged:
            plan = Plan(_adapting, target.program, self, FIELDS)
            return run_chains(plan, target, None, repeated(target.start, self.chains))
        plan = Plan(_kernel, target.program, self, FIELDS)
        found = run_chains(plan, target, mode.covariance, around(target, mode, self.chains))
        return replace(found, mode=mode.position, attrs=mode.attrs())


def _adapting(program: Program, settings: Nuts, covariance: None) -> NUTS:
    return NUTS(program, target_accept_prob=settings.target_accept or _TARGET)


def _kernel(program: Program, settings: Nuts, covariance: jax.Array) -> NUTS:
    # The step that keeps the acceptance falls with d^(1/4) (Beskos et al. 2013).
    dimension = covariance.shape[0]
    return NUTS(
        program,
        dense_mass=True,
        adapt_mass_matrix=False,
        inverse_mass_matrix=covariance,
        step_size=settings.step_size * min(1.0, (_TUNED_FOR / dimension) ** 0.25),
        adapt_step_size=settings.target_accept is not None,
        target_accept_prob=settings.target_accept or _TARGET,
    )
