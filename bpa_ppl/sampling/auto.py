"""The sampler that suits the posterior: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import jax

from bpa_ppl.component import Count
from bpa_ppl.diagnostics.checks import check
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


#: Where the draws fail their check, so many times as many are made.
_MORE = 4
#: The last attempt: NUTS with a longer warm-up and shorter steps.
_WARMUP, _TARGET_ACCEPT = 1000, 0.99


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample finds that its proposals fit the posterior, else `nuts`.

    If the draws fail their check, `imh` makes four times as many; if these fail too, or proposals
    do not fit, NUTS does with shorter steps.
    """

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and record which and why."""
        fit = fitted(target)
        fits = fit.pareto_k <= GOOD_PARETO_K
        side = "≤" if fits else ">"
        why = fit.because.replace(" of proposals", f" {side} {GOOD_PARETO_K} of proposals")
        attrs, failed = {"chosen": "", "chosen_because": why}, list[str]()
        for name, sampler in self._attempts(fits):
            found = sampler.sample(target)
            attrs |= {"chosen": name}
            if failed:
                attrs |= {"drawn_again_because": ", ".join(failed)}
            failed = failures(target, found) if self.draws >= FEWEST else []
            if not failed:
                break
        return replace(found, attrs={**found.attrs, **attrs})

    def _attempts(self, fits: bool) -> Iterator[tuple[str, Sampler]]:
        """Yield the samplers to try, one after the other, with their names."""
        more = _MORE * self.draws
        if fits:
            for draws in (self.draws, more):
                yield "imh", IndependenceMetropolis(draws=draws, chains=self.chains)
        else:
            yield "nuts", Nuts(draws=self.draws, chains=self.chains)
        yield (
            "nuts",
            Nuts(draws=more, chains=self.chains, warmup=_WARMUP, target_accept=_TARGET_ACCEPT),
        )


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
