"""The sampler that suits the posterior: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax

from bpa_ppl.component import Count
from bpa_ppl.diagnostics.checks.checking import check
from bpa_ppl.posterior import Draws
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.density import anatomy, constrained_draws
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.proposals import fitted

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024), and an independence
#: sampler with the same ratios gets stuck.
GOOD_PARETO_K = 0.5
#: Draws a chain, below which somebody wants to see no more than that it runs.
FEWEST = 100


#: Times as many draws where those asked for fail their check, and NUTS then steps with more care.
_MORE = 4
_USUAL, _CAREFUL = {"warmup": 500, "target_accept": 0.8}, {"warmup": 1000, "target_accept": 0.99}


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample finds that its proposals fit the posterior, else `nuts`.

    Draws that fail their check are made once more, four times as many, by NUTS with shorter steps.
    So one posterior in thousands fails that could be sampled, not one in a hundred.
    """

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and say which and why."""
        fit = fitted(target)
        fits = fit.pareto_k <= GOOD_PARETO_K
        side = "≤" if fits else ">"
        why = fit.because.replace(" of proposals", f" {side} {GOOD_PARETO_K} of proposals")
        found, again = self._chosen(fits, self.draws, _USUAL).sample(target), {}
        failed = failures(target, found) if self.draws >= FEWEST else []
        if failed:
            found = self._chosen(fits, _MORE * self.draws, _CAREFUL).sample(target)
            again = {"drawn_again_because": ", ".join(failed)}
        attrs = {**found.attrs, "chosen": "imh" if fits else "nuts", "chosen_because": why}
        return replace(found, attrs={**attrs, **again})

    def _chosen(self, fits: bool, draws: int, tuning: Mapping[str, Any]) -> Sampler:
        if fits:
            return IndependenceMetropolis(draws=draws, chains=self.chains)
        return Nuts(draws=draws, chains=self.chains, **tuning)


def failures(target: Target, sampled: Sampled) -> list[str]:
    """Return the names of the diagnostics that draws would fail."""
    values = jax.device_get(constrained_draws(target.program, target.data, sampled.z))
    draws = Draws(
        values,
        target.match.free_names,
        statistics=sampled.statistics,
        sites=anatomy(target.program, target.data).latent,
    )
    return [finding.name for finding in check(draws).failures]
