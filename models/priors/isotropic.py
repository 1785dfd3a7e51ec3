"""The published prior: independent Gaussians around the canonical weights."""

from __future__ import annotations

from typing import Any

from bpa_ppl.models.priors.base import Prior, PriorFamily
from bpa_ppl.weights import Match


class Isotropic(PriorFamily, frozen=True):
    """p(λ | T) = N(λ; λ_T, σ_T I).

    Args:
        variance: σ_T, a variance: one number, or one a free feature.
    """

    variance: Any = 0.1

    def build(self, match: Match) -> Prior:
        """Return the prior around the canonical weights of the free features."""
        free = match.values[match.free]
        return Prior.isotropic(
            dict(zip(match.free_names, free.tolist(), strict=True)), self.variance
        )
