"""Importance sampling with proposals around the mode of the posterior."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count, Positive
from bpa_ppl.densities.target import Sampled, Target, with_evaluations
from bpa_ppl.posterior.statistics import smooth_log_weights
from bpa_ppl.samplers.proposals import SkewedProposal, draw_proposals
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.samplers.starting import make_pilot_proposal

#: Draws of a pilot sample that tunes the mixture.
_TUNING_DRAWS = 256


class Laplace(Sampler, frozen=True):
    """Proposals around the mode, and their Pareto-smoothed importance weights.

    The proposal is a `SkewedProposal`. A pilot sample tunes the share of the Student t; more
    degrees of freedom mean lighter tails. The smoothing, and its k̂ that shows whether the weights
    are reliable, are those of Vehtari et al. (2024).
    """

    title = "Laplace approximation with importance weights"
    any_coordinates = True
    draws: Count = 4000
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        proposal = make_pilot_proposal(target, self.degrees_of_freedom, seed, progress)
        if isinstance(proposal, SkewedProposal):
            shape = 1, _TUNING_DRAWS
            proposal = proposal.tuned(draw_proposals(target, proposal, shape, seed, stream=1))
        proposals = draw_proposals(target, proposal, (1, self.draws), seed)
        log_weight, k_hat = smooth_log_weights(proposals.log_weight)
        progress(self.draws, self.draws, f"Pareto k̂ {k_hat:.2f}")
        mode, figures = proposal.report(target)
        sampled = replace(
            proposals,
            log_weight=log_weight,
            mode=mode,
            figures=structs.replace(figures, pareto_k=k_hat),
        )
        return with_evaluations(sampled)
