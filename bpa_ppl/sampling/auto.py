"""Automatic choice of the sampler: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax

from bpa_ppl.component import Count
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.models import log_linear
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.sampling.density import constrained_draws, model_info
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.proposals import (
    GOOD_PARETO_K,
    assess_proposals,
    fit_moments,
)
from bpa_ppl.sampling.target import Sampled, Target

#: With fewer draws per chain the result is not checked: such runs are trials.
MIN_CHECKED_DRAWS = 100
#: Draws that fail their check are repeated with this many times as many.
_MORE = 4
#: Proposals for more values are not fitted: a covariance needs too many draws.
_MAX_FITTED = 50
#: Steps for each kept draw of fitted proposals, so many that one proposal is effective, at most.
_MAX_THINNING = 8
#: The last attempts: NUTS with a longer warm-up and shorter steps.
_WARMUP, _TARGET_ACCEPT = 1000, 0.99


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample shows that its proposals fit the posterior, else `nuts`.

    If proposals around the mode do not fit, or their draws fail their check, they are fitted to the
    mean and the covariance of the posterior (see `fit_moments`), and assessed again. If these draws
    fail, `imh` draws four times as many. If these fail too, or if the fitted proposals do not fit
    either, NUTS draws, then with shorter steps, and at last four times as many.
    """

    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target) -> Sampled:
        """Draw with the sampler that suits the posterior, and record which and why."""
        failed, attrs = list[str](), dict[str, Any]()
        for chosen, reason, sampled in self._attempts(target):
            attrs |= {"chosen": chosen, "chosen_because": reason}
            if failed:
                attrs["drawn_again_because"] = ", ".join(failed)
            if self.draws < MIN_CHECKED_DRAWS:
                break
            failed, passed = failures(target, sampled)
            attrs |= passed
            if not failed:
                break
        return replace(sampled, attrs={**sampled.attrs, **attrs})

    def _attempts(self, target: Target) -> Iterator[tuple[str, str, Sampled]]:
        """Yield the name of a sampler, why it was chosen, and its draws, until they are good."""
        (mode, pareto_k, finding), count = assess_proposals(target), _MORE * self.draws
        # A mixture over scales has the tails of the posterior.
        mixed = target.prior.degrees is not None
        fits, limit = _compared(pareto_k, POOR_PARETO_K if mixed else GOOD_PARETO_K)
        reason = finding.replace(" of proposals", f" {limit} of proposals")
        independence = [
            IndependenceMetropolis(draws=draws, chains=self.chains) for draws in (self.draws, count)
        ]
        # Other models, such as hierarchies, have shapes that mean and covariance do not describe.
        simple = target.model is log_linear and target.dimension <= _MAX_FITTED
        if fits:
            # Where these draws fail, fitted proposals need less time than more draws.
            for imh in independence[: 1 if simple else None]:
                yield "imh", reason, imh.sample(target)
        if simple and mode is not None:
            proposal, pareto_k, effective = fit_moments(target, mode)
            fits, limit = _compared(pareto_k, POOR_PARETO_K)
            reason += f", {pareto_k:.2f} {limit} of those with fitted moments"
            if fits:
                # Fewer kept draws cost less in the check, and in everything that uses them.
                thinning = min(int(1 / effective), _MAX_THINNING)
                for imh in independence:
                    yield "imh", reason, imh.sample_by(target, proposal, thinning)
        if not fits:
            yield "nuts", reason, Nuts(draws=self.draws, chains=self.chains).sample(target)
        for draws in (count, _MORE * count):
            nuts = Nuts(
                draws=draws, chains=self.chains, warmup=_WARMUP, target_accept=_TARGET_ACCEPT
            )
            yield "nuts", reason, nuts.sample(target)


def _compared(value: float, limit: float) -> tuple[bool, str]:
    """Return whether a value is within its limit, and the comparison as text."""
    within = value <= limit
    return within, f"{'≤' if within else '>'} {limit}"


def failures(target: Target, sampled: Sampled) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the diagnostics that the draws fail.

    Returns:
        the names, and, if there are none, the attributes that record this: the posterior is then
        not checked again.
    """
    values = jax.device_get(constrained_draws(target, sampled.z))
    draws = Draws(
        values,
        target.match.free_names,
        statistics=sampled.statistics,
        sites=model_info(target).latent,
    )
    recorded, report = checked(draws)
    return [finding.name for finding in report.failures], dict(recorded.attrs)
