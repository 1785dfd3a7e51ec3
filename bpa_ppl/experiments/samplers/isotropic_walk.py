"""The published random walk, isotropic and started at the canonical weights."""

from __future__ import annotations

from dataclasses import replace

import jax

from bpa_ppl.components import CountOrNone, Positive
from bpa_ppl.posterior.record import Figures
from bpa_ppl.sampling.chains import Chains, ChainSampler, repeat_start, run_chains
from bpa_ppl.sampling.rwm import random_walk
from bpa_ppl.sampling.target import Sampled, Sites, Target, with_evaluations


class IsotropicRandomWalk(ChainSampler, frozen=True):
    """The published random walk N(λ', σ_o I), which starts at λ_T, the mean of the prior.

    The published settings: σ_o = 0.01, burn-in 500, 1000 draws kept. The paper has one chain; here
    are four of them, which the check can compare, and which are used together.
    """

    likelihood = "oracle"
    proposal_variance: Positive = 0.01
    warmup: CountOrNone = 500

    def initialise(self, target: Target, covariance: None, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains of the published random walk."""
        return random_walk(target, self.proposal_variance, covariance, keys, z)

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by the published random walk."""
        sampled = run_chains(self, target, None, repeat_start(target.start, self.chains))
        figures = Figures(step_setting="proposal_variance")
        return replace(with_evaluations(sampled, self.thinning), figures=figures)
