"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Annotated

import jax
import msgspec
import numpy as np
from msgspec import Meta
from numpyro.infer import NUTS

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.base import Program, Sampled, Sampler, Target
from bpa_ppl.sampling.chains import Plan, repeat_start, run_chains
from bpa_ppl.sampling.density import model_info
from bpa_ppl.sampling.mode import Mode, dispersed_starts, mode_of
from bpa_ppl.sampling.proposals import POOR_PARETO_K, assess_proposals

#: Target acceptance of a warm-up that tunes the step: hierarchies have narrow regions. With many
#: values the same target makes steps needlessly short: 500 sparse weights took half as many again,
#: without divergences in either case, for fewer effective draws.
_TARGET, _TARGET_OF_MANY = 0.9, 0.8
_TUNED_FOR = 14  # dimensions
_MIN_TUNING = 500  # warm-up steps that find a metric
_DENSE = 100  # values; a full metric of more needs more draws than a warm-up has
_JITTER = 0.1
FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


class Nuts(Sampler, frozen=True):
    """NUTS (Hoffman & Gelman 2014) in the metric of the Laplace approximation.

    Each chain starts at a draw of N(mode, 2 × Laplace). In that metric the posterior is nearly a
    standard Gaussian, so the best step is known: with a step of `step_size` standard deviations a
    trajectory turns after three steps. The warm-up only has to forget the start. With a
    `target_accept` it tunes the step instead, for other posteriors.

    A hierarchy, or a prior that is not Gaussian, may differ from its Laplace approximation, which a
    pilot sample detects, and a custom model may have no mode. Then chains start near the medians of
    the prior, and a warm-up of at least 500 draws finds metric and step, as NumPyro does by
    default. In more than 100 dimensions it tunes at least the step: few posteriors are near enough
    to a Gaussian in all of them.
    """

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1
    step_size: Positive = 1.1
    target_accept: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by NUTS."""
        small = target.dimension <= _DENSE
        tuning = msgspec.structs.replace(
            self,
            warmup=max(self.warmup, _MIN_TUNING),
            target_accept=self.target_accept or (_TARGET if small else _TARGET_OF_MANY),
        )
        mode, reason = _laplace_metric(target)
        if mode is None:
            rng = np.random.default_rng([target.seed, 3])
            start = jax.tree.map(
                lambda x: x + _JITTER * rng.normal(size=x.shape),
                repeat_start(target.start, self.chains),
            )
            plan = Plan(_tuning_kernel(_dense_mass(target)), target.program, tuning, FIELDS)
            sampled = run_chains(plan, target, None, start)
            return replace(sampled, attrs={"metric": f"found in the warm-up: {reason}"})
        plan = Plan(_laplace_kernel, target.program, self if small else tuning, FIELDS)
        start = dispersed_starts(target, mode, self.chains)
        sampled = run_chains(plan, target, mode.covariance, start)
        return replace(sampled, mode=mode.position, attrs=mode.attrs())


def _laplace_metric(target: Target) -> tuple[Mode | None, str]:
    """Return the mode whose Laplace covariance is a good metric, or None and the reason."""
    latent = model_info(target.program, target.data).latent
    if latent == (WEIGHTS,) and target.data.prior.other is None:
        mode = mode_of(target)
        return (mode, "") if mode.converged else (None, "there is no mode")
    fit = assess_proposals(target)
    return (fit.mode if fit.pareto_k <= POOR_PARETO_K else None), fit.reason


def _dense_mass(target: Target) -> bool | tuple[str, ...]:
    """Return for which sites the warm-up finds a full metric: all, none, or some.

    Sites that depend on one another, such as a scale and what it scales, need a full metric; a
    model names them in its attribute `together`.
    """
    if target.dimension <= _DENSE:
        return True
    sites = tuple(getattr(target.program.model, "together", ()))
    size = sum(int(np.size(target.start[site])) for site in sites)
    return sites if 0 < size <= _DENSE else False


@cache  # the function is a static argument of a compilation
def _tuning_kernel(dense: bool | tuple[str, ...]) -> Callable[[Program, Nuts, None], NUTS]:
    """Return a function that makes a kernel that tunes metric and step."""
    mass = [dense] if isinstance(dense, tuple) else dense

    def make(program: Program, settings: Nuts, covariance: None) -> NUTS:
        return NUTS(program, dense_mass=mass, target_accept_prob=settings.target_accept)

    return make


def _laplace_kernel(program: Program, settings: Nuts, covariance: jax.Array) -> NUTS:
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
