"""Automatic choice of the sampler: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from bpa_ppl.component import Count
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.posterior import Draws
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.density import constrained_draws, model_info
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.proposals import GOOD_PARETO_K, assess_proposals

#: With fewer draws per chain the result is not checked: such runs are trials.
MIN_CHECKED_DRAWS = 100
#: Draws that fail their check are repeated with this many times as many.
_MORE = 4
#: The last attempts: NUTS with a longer warm-up and shorter steps.
_WARMUP, _TARGET_ACCEPT = 1000, 0.99


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample shows that its proposals fit the posterior, else `nuts`.

    If the draws fail their check, `imh` draws four times as many. If these fail too, or if the
    proposals do not fit, NUTS draws with shorter steps, and at last four times as many again.
    """

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and record which and why."""
        fit = assess_proposals(target)
        fits = fit.pareto_k <= GOOD_PARETO_K
        side, count = "≤" if fits else ">", _MORE * self.draws
        independence = [
            IndependenceMetropolis(draws=draws, chains=self.chains) for draws in (self.draws, count)
        ]
        last = [
            Nuts(draws=draws, chains=self.chains, warmup=_WARMUP, target_accept=_TARGET_ACCEPT)
            for draws in (count, _MORE * count)
        ]
        first = independence if fits else [Nuts(draws=self.draws, chains=self.chains)]
        reason = fit.reason.replace(" of proposals", f" {side} {GOOD_PARETO_K} of proposals")
        attrs, failed = {"chosen": "", "chosen_because": reason}, list[str]()
        samplers: list[Sampler] = [*first, *last]
        for sampler in samplers:
            sampled = sampler.sample(target)
            attrs["chosen"] = "nuts" if isinstance(sampler, Nuts) else "imh"
            if failed:
                attrs["drawn_again_because"] = ", ".join(failed)
            if self.draws < MIN_CHECKED_DRAWS:
                break
            failed, passed = failures(target, sampled)
            attrs |= passed
            if not failed:
                break
        return replace(sampled, attrs={**sampled.attrs, **attrs})


def failures(target: Target, sampled: Sampled) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the diagnostics that the draws fail.

    Returns:
        the names, and, if there are none, the attributes that record this: the posterior is then
        not checked again.
    """
    values = jax.device_get(constrained_draws(target.program, target.data, sampled.z))
    draws = Draws(
        values,
        target.match.free_names,
        statistics=sampled.statistics,
        sites=model_info(target.program, target.data).latent,
    )
    recorded, report = checked(draws)
    return [finding.name for finding in report.failures], dict(recorded.attrs)
