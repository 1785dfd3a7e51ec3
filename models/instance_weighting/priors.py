"""The prior of the parameters φ of a weighted mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpa_ppl.models.instance_weighting.variants import Variant
from bpa_ppl.nbest import Float64


@dataclass(frozen=True)
class PhiPrior:
    """λ ~ N(0, σ²), α ~ Beta(a, b), and β, γ ~ LogNormal(0, s²), all independent.

    Attributes:
        weight_deviation: σ, a standard deviation; features have the standard deviation 1.
        alpha: (a, b).
        scale_deviation: s, of log β and log γ.
    """

    weight_deviation: float = 1.0
    alpha: tuple[float, float] = (1.0, 1.0)
    scale_deviation: float = 2.0

    def log_density(self, variant: Variant, z: Float64) -> tuple[float, Float64]:
        """Return the log density of the unconstrained values, up to a constant, and its gradient.

        It is a density of logit α, log β and log γ, so that the density of α is multiplied by
        α (1 − α): what samplers of unconstrained values look at.

        >>> PhiPrior().log_density(Variant("map", smoothed=False), np.array([2.0, 1.0]))
        (-1.0, array([-0.5, -1. ]))
        """
        deviation = np.full(len(z), self.weight_deviation)
        deviation[: 1 + variant.smoothed] = self.scale_deviation
        gradient = -z / deviation**2
        value = 0.5 * gradient * z
        if variant.mixture == "linear":
            a, b = self.alpha
            # log of α^a (1 − α)^b, by the logit of α
            value[0] = -a * np.logaddexp(0.0, -z[0]) - b * np.logaddexp(0.0, z[0])
            gradient[0] = a - (a + b) / (1 + np.exp(-z[0]))
        return float(value.sum()), gradient
