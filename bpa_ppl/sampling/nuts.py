"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import jax
import msgspec
import numpy as np
from msgspec import Meta
from numpyro.infer import NUTS

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.base import Program, Sampled, Sampler, Sites, Target
from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.density import anatomy
from bpa_ppl.sampling.mode import Mode, around, mode_of
from bpa_ppl.sampling.proposals import POOR_PARETO_K, fitted, values_of

#: Where the warm-up finds the step: hierarchies have narrow places. With many values the same
#: target makes steps needlessly short: 500 sparse weights took half as many again, none of either
#: kind diverging, for fewer effective draws.
_TARGET, _TARGET_OF_MANY = 0.9, 0.8
_TUNED_FOR = 14  # dimensions
_TO_ADAPT = 500  # steps of a warm-up that has a metric to find
_DENSE = 100  # values; a full metric of more needs more draws than a warm-up has
_JITTER = 0.1
FIELDS = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")


class Nuts(Sampler, frozen=True):
    """NUTS (Hoffman & Gelman 2014) in the metric of the Laplace approximation.

    Each chain starts at a draw of N(mode, 2 × Laplace). In that metric the posterior is nearly a
    standard Gaussian, so that the best step is known: at `step_size` of its standard deviations a
    trajectory turns after three steps. The warm-up need only forget the start. With a
    `target_accept`, it tunes the step instead: for other posteriors.

    A hierarchy, or a prior that is no Gaussian, may be unlike its Laplace approximation, which a
    pilot sample tells; and a model of the user's own may have no mode. Then chains start near the
    medians of the prior, and a warm-up of at least 500 draws finds metric and step, as in NumPyro
    by itself. In more than 100 dimensions it tunes at least the step: few posteriors are near
    enough to a Gaussian in all of them.
    """

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1
    step_size: Positive = 1.1
    target_accept: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by NUTS."""
        mode, because = _metric(target)
        if mode is None:
            plan = Plan(_adapting(target), target.program, self._tuning(target), FIELDS)
            found = run_chains(plan, target, None, jittered(target, self.chains))
            return replace(found, attrs={"metric": f"found in the warm-up: {because}"})
        settings = self if values_of(target) <= _DENSE else self._tuning(target)
        plan = Plan(_kernel, target.program, settings, FIELDS)
        found = run_chains(plan, target, mode.covariance, around(target, mode, self.chains))
        return replace(found, mode=mode.position, attrs=mode.attrs())

    def _tuning(self, target: Target) -> Nuts:
        """Return the same with a warm-up that is long enough to tune the step."""
        usual = _TARGET if values_of(target) <= _DENSE else _TARGET_OF_MANY
        return msgspec.structs.replace(
            self,
            warmup=max(self.warmup, _TO_ADAPT),
            target_accept=self.target_accept or usual,
        )


def _metric(target: Target) -> tuple[Mode | None, str]:
    """Return the mode whose Laplace covariance is a good metric, or None and why there is none."""
    latent = anatomy(target.program, target.data).latent
    if latent == (WEIGHTS,) and target.data.prior.other is None:
        mode = mode_of(target)
        return (mode, "") if mode.converged else (None, "there is no mode")
    fit = fitted(target)
    return (fit.mode if fit.pareto_k <= POOR_PARETO_K else None), fit.because


def jittered(target: Target, chains: int) -> Sites:
    """Return z of a start for each chain, near that of the target."""
    rng = np.random.default_rng([target.seed, 3])
    result: Sites = jax.tree.map(
        lambda x: x + _JITTER * rng.normal(size=x.shape), repeated(target.start, chains)
    )
    return result


def _adapting(target: Target) -> Callable[[Program, Nuts, None], NUTS]:
    """Return what makes a kernel that finds its metric: full as far as a warm-up can find it."""
    if values_of(target) <= _DENSE:
        return _adapting_all
    together = _together(target.program)
    values = sum(int(np.size(target.start[site])) for site in together)
    return _adapting_together if 0 < values <= _DENSE else _adapting_each


def _together(program: Program) -> tuple[str, ...]:
    """Return the sites of a model that depend on one another, as far as it says so."""
    return tuple(getattr(program.model, "together", ()))


def _adapting_all(program: Program, settings: Nuts, covariance: None) -> NUTS:
    # Sites that depend on one another, such as a scale and what it scales, turn together.
    return NUTS(program, dense_mass=True, target_accept_prob=settings.target_accept)


def _adapting_together(program: Program, settings: Nuts, covariance: None) -> NUTS:
    block = [_together(program)]
    return NUTS(program, dense_mass=block, target_accept_prob=settings.target_accept)


def _adapting_each(program: Program, settings: Nuts, covariance: None) -> NUTS:
    return NUTS(program, target_accept_prob=settings.target_accept)


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
