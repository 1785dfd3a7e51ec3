"""Importance sampling around the mode: the Laplace approximation, corrected by weights."""

from __future__ import annotations

from bpa_ppl.component import Count, Positive
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.sampling.mode import mode_of
from bpa_ppl.sampling.proposals import TUNING_DRAWS, pilot_proposal, propose, with_tuned_mixture
from bpa_ppl.sampling.target import Sampled, Target, with_evaluations


class Laplace(Sampler, frozen=True):
    """Proposals around the mode (see `Proposal`), and their Pareto-smoothed importance weights.

    A pilot sample tunes the share of the Student t; more degrees of freedom mean lighter tails.
    The smoothing, and its k̂ that shows whether the weights are reliable, are those of Vehtari et
    al. (2024).
    """

    draws: Count = 4000
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target) -> Sampled:
        """Draw around the mode and weight the draws."""
        pilot = pilot_proposal(target, self.degrees_of_freedom)
        proposal = with_tuned_mixture(pilot, propose(target, pilot, 1, TUNING_DRAWS, stream=1))
        proposals = propose(target, proposal, 1, self.draws)
        log_weight, k_hat = pareto_smoothed(proposals.log_ratio)
        target.progress(self.draws, self.draws, f"Pareto k̂ {k_hat:.2f}")
        mode = mode_of(target)
        sampled = Sampled(
            z=proposals.z,
            kind="weighted",
            log_density=proposals.log_density,
            log_weight=log_weight,
            mode=mode.position if mode.converged else None,
            log_likelihood=proposals.log_likelihood,
            attrs={"pareto_k": k_hat, **mode.attrs(), **proposal.attrs()},
        )
        return with_evaluations(sampled)
