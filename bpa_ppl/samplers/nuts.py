"""The No-U-Turn sampler of NumPyro, started around the mode with the Laplace covariance."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import jax
import msgspec
import numpy as np
from msgspec import Meta
from numpyro.infer import NUTS

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Positive
from bpa_ppl.densities.jumps import find_jumps
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import Sampled, Sites, Target
from bpa_ppl.posterior.record import Figures
from bpa_ppl.samplers.chains import Chains, ChainSampler, collect_trajectory, run_chains
from bpa_ppl.samplers.proposals import GOOD_PARETO_K
from bpa_ppl.samplers.starting import draw_starts

#: Target acceptance of a warm-up that tunes the step: posteriors may have narrow regions. With many
#: values the same target makes steps needlessly short: 500 sparse weights took half as many again,
#: without divergences in either case, for fewer effective draws. The narrow regions of hierarchies
#: need shorter steps: docs/results/groups.txt.
_TARGET, _TARGET_OF_OTHERS, _TARGET_OF_MANY = 0.9, 0.95, 0.8
#: Below this acceptance of a chain, the step is tuned: of the known length, every step from a start
#: in the tail of a skewed posterior may be rejected.
_STUCK = 0.1
_TUNED_FOR = 14  # dimensions
_MIN_TUNING = 500  # warm-up steps that find a metric
#: Values up to which the step of a known metric is known, too, and up to which a warm-up has enough
#: draws for a full metric: ten a value. With 84 it took three times as long as a diagonal one.
_KNOWN_STEP, _DENSE = 100, 50
#: Where the density may jump: steps of a trajectory, and the share of divergent ones.
_MANY_STEPS, _MANY_DIVERGENT = 100, 0.05
#: The fields of the kernel's state that are kept.
_COLLECTED = ("z", "accept_prob", "potential_energy", "energy", "num_steps", "diverging")


class Nuts(ChainSampler, frozen=True):
    """NUTS (Hoffman & Gelman 2014) in the metric of the Laplace approximation.

    Each chain starts at a draw of N(mode, 2 × Laplace). In that metric the posterior is nearly a
    standard Gaussian, so the best step is known: with a step of `step_size` standard deviations a
    trajectory turns after three steps. The warm-up only has to forget the start. With a
    `target_accept` it tunes the step instead, for other posteriors; it does so, too, for models
    other than the default one, if a chain rejects nearly every step, and if a pilot sample shows
    that the Laplace approximation is rough (Pareto k̂ above 0.5, or a small share of effective
    draws, where fitted moments take its place: see `refit`).

    Another model, or a prior that is not Gaussian, may differ from its Laplace approximation, which
    a pilot sample detects, and may have no mode. Then chains start around the medians of the prior,
    and a warm-up of at least 500 draws finds metric and step, as NumPyro does by default. In more
    than 100 dimensions it tunes at least the step: few posteriors are near enough to a Gaussian in
    all of them. If more than 50 directions of the span of the lists have a common unknown scale, it
    samples this scale, and the directions in units of it.

    >>> Nuts(warmup=500).settings()["warmup"]
    500
    """

    title = "No-U-Turn sampler"
    any_coordinates = True
    step_size: Positive = 1.1
    target_accept: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def kernel(self, target: Target, covariance: Any, z: Sites) -> NUTS:
        """Return the kernel with a given metric, or one that tunes metric and step."""
        if covariance is None:
            return NUTS(
                target.program,
                dense_mass=sum(x[0].size for x in z.values()) <= _DENSE,
                target_accept_prob=self.target_accept,
            )
        return NUTS(
            target.program,
            dense_mass=True,
            adapt_mass_matrix=False,
            inverse_mass_matrix=covariance,
            # The step that keeps the acceptance falls with d^(1/4) (Beskos et al. 2013).
            step_size=self.step_size * min(1.0, (_TUNED_FOR / len(covariance)) ** 0.25),
            adapt_step_size=self.target_accept is not None,
            target_accept_prob=self.target_accept or _TARGET,
        )

    def initialise(self, target: Target, covariance: Any, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains at their starting points; each step moves one chain after the other.

        Chains in a batch would wait for the longest trajectory among them, and at each step they
        would compute what only the end of a window of the warm-up needs.
        """
        kernel, arguments = self.kernel(target, covariance, z), target.data

        def initial(chain: tuple[jax.Array, Sites]) -> Any:
            return kernel.init(chain[0], self.warmup * self.thinning, chain[1], arguments, {})

        def step(state: Any) -> Any:
            return kernel.sample(state, arguments, {})

        def collect(state: Any) -> dict[str, Any]:
            return {
                **{name: getattr(state, name) for name in _COLLECTED},
                **collect_trajectory(state, is_nuts=True),
            }

        return jax.lax.map(initial, (keys, z)), partial(jax.lax.map, step), collect

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        sampled = self._draw(target, seed, progress)
        if target.hints.log_concave or not struggles(sampled, _MANY_STEPS, _MANY_DIVERGENT):
            return sampled
        jumps, sites = find_jumps(target, sampled.z, seed)
        figures = msgspec.structs.replace(sampled.figures, jumps=jumps, jump_sites=sites)
        return replace(sampled, figures=figures)

    def _draw(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        small, default = target.dimension <= _KNOWN_STEP, target.hints.log_concave
        accept = _TARGET if default else _TARGET_OF_OTHERS
        accept = self.target_accept or (accept if small else _TARGET_OF_MANY)
        warmup = max(self.warmup, _MIN_TUNING)
        tuning = msgspec.structs.replace(self, warmup=warmup, target_accept=accept)
        start, (moments, pareto_k, reason) = draw_starts(target, self.chains, seed, progress)
        if moments is None:
            sampled = run_chains(tuning, target, None, start, seed, progress)
            return replace(sampled, figures=Figures(metric=f"found in the warm-up: {reason}"))
        # Of other models, such as a hierarchy, the Pareto k̂ of a pilot sample may be low by chance.
        near = small and default and pareto_k <= GOOD_PARETO_K
        walk = self if near else tuning
        sampled = run_chains(walk, target, moments.covariance, start, seed, progress)
        accepted = np.mean(sampled.statistics["acceptance_rate"], axis=1)
        if near and self.target_accept is None and accepted.min() < _STUCK:
            sampled = run_chains(tuning, target, moments.covariance, start, seed, progress)
        mode = mode_of(target)
        return replace(sampled, mode=mode.position, figures=mode.figures)


def struggles(sampled: Sampled, steps: float, divergent: float) -> bool:
    """Return whether trajectories of NUTS have so many steps on average, or diverge so often."""
    means = (sampled.statistics[name].mean() for name in ("n_steps", "diverging"))
    return any(mean >= limit for mean, limit in zip(means, (steps, divergent), strict=True))
