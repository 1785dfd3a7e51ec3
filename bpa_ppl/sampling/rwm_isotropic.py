"""The published random walk: isotropic, from the canonical weights."""

from __future__ import annotations

from dataclasses import replace

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.sampling.base import Program, Sampled, Sampler, Target
from bpa_ppl.sampling.chains import Plan, repeated, run_chains
from bpa_ppl.sampling.rwm import RandomWalk


class IsotropicRandomWalk(Sampler, frozen=True):
    """A walk N(λ', σ_o I) that starts at λ_T, the mean of the published prior.

    The published settings: σ_o = 0.01, burn-in 500, 1000 draws kept; here of 4 chains.
    """

    proposal_variance: Positive = 0.01
    warmup: CountOrNone = 500
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by the published random walk."""
        plan = Plan(_kernel, target.program, self, ("accept_prob", "potential_energy"))
        found = run_chains(plan, target, None, repeated(target.start, self.chains))
        return replace(found, attrs={"step_setting": "proposal_variance"})


def _kernel(program: Program, settings: IsotropicRandomWalk, covariance: None) -> RandomWalk:
    return RandomWalk(program, proposal_variance=settings.proposal_variance)
