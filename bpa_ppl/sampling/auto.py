"""The sampler that suits the posterior: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from dataclasses import replace

from bpa_ppl.component import Count
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.proposals import propose

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024), and an independence
#: sampler with the same ratios gets stuck.
GOOD_PARETO_K = 0.5
_PILOT = 1000
_APART = 1_000_003


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample finds that its proposals fit the posterior, else `nuts`."""

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and say which and why."""
        fits, why = _pilot(target)
        found = self._chosen(fits).sample(target)
        attrs = {**found.attrs, "chosen": "imh" if fits else "nuts", "chosen_because": why}
        return replace(found, attrs=attrs)

    def _chosen(self, fits: bool) -> Sampler:
        if fits:
            return IndependenceMetropolis(draws=self.draws, chains=self.chains)
        return Nuts(warmup=500, draws=self.draws, chains=self.chains, target_accept=0.8)


def _pilot(target: Target) -> tuple[bool, str]:
    """Say whether proposals around the mode fit the posterior, and by what sign."""
    mode = find_mode(target.program, target.data, target.start)
    if not mode.converged:
        return False, "the search for the mode did not converge"
    # A seed of its own: what the pilot finds shall not be part of what it judges.
    apart = replace(target, seed=target.seed + _APART)
    pilot = propose(apart, mode, 1, _PILOT, IndependenceMetropolis().degrees_of_freedom)
    k_hat = pareto_smoothed(pilot.log_ratio)[1]
    fits = k_hat <= GOOD_PARETO_K
    side = "≤" if fits else ">"
    return fits, f"Pareto k̂ {k_hat:.2f} {side} {GOOD_PARETO_K} of proposals around the mode"
