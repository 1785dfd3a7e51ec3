"""Importance sampling around the mode: the Laplace approximation, corrected by weights."""

from __future__ import annotations

from bpa_ppl.component import Count, Positive
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.mode import require_mode
from bpa_ppl.sampling.proposals import propose


class Laplace(Sampler, frozen=True):
    """Draws of a Student t around the mode, and their Pareto-smoothed importance weights.

    More degrees of freedom mean lighter tails. The smoothing and its k̂, which tells whether the
    weights can be trusted, are those of Vehtari et al. (2024).
    """

    draws: Count = 4000
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target) -> Sampled:
        """Draw around the mode and weigh the draws."""
        mode = require_mode(target)
        proposals = propose(target, mode, 1, self.draws, self.degrees_of_freedom)
        log_weight, k_hat = pareto_smoothed(proposals.log_ratio)
        target.progress(self.draws, self.draws, f"Pareto k̂ {k_hat:.2f}")
        return Sampled(
            z=proposals.z,
            kind="weighted",
            log_density=proposals.log_density,
            log_weight=log_weight,
            mode=mode.position,
            log_likelihood=proposals.log_likelihood,
            attrs={"pareto_k": k_hat, **mode.attrs()},
        )
