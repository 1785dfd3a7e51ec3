"""The sampler that suits the posterior: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from dataclasses import replace

from bpa_ppl.component import Count
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.proposals import fitted

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024), and an independence
#: sampler with the same ratios gets stuck.
GOOD_PARETO_K = 0.5


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample finds that its proposals fit the posterior, else `nuts`."""

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and say which and why."""
        fit = fitted(target)
        fits = fit.pareto_k <= GOOD_PARETO_K
        side = "≤" if fits else ">"
        why = fit.because.replace(" of proposals", f" {side} {GOOD_PARETO_K} of proposals")
        found = self._chosen(fits).sample(target)
        attrs = {**found.attrs, "chosen": "imh" if fits else "nuts", "chosen_because": why}
        return replace(found, attrs=attrs)

    def _chosen(self, fits: bool) -> Sampler:
        if fits:
            return IndependenceMetropolis(draws=self.draws, chains=self.chains)
        return Nuts(warmup=500, draws=self.draws, chains=self.chains, target_accept=0.8)
