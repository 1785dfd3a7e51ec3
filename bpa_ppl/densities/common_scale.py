"""Sampling of weights with an unknown common scale: by the scale and the weights in units of it.

The integral over the scale has heavy tails where few answers leave the scale open. Proposals for
the weights alone miss these tails, and NUTS fails the BFMI. The scale and the weights in units of
it have the tails of their priors.

Where many answers determine the weights, those in units of the scale are on a narrow curved ridge,
on which NUTS diverges. Then the weights are sampled themselves, and also beside slip rates of
raters, which only NUTS samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.coordinates import Coordinates
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import Sampled, Sites, Target, evaluate, unflatten
from bpa_ppl.models.log_linear import log_linear, scaled_log_linear
from bpa_ppl.posterior.draws import WEIGHTS

#: With 60 directions, every second run of independent proposals fails its check.
_MANY_SCALED = 50
#: The answers determine the weights if the mean square of their distances from the prior mean is
#: larger, in standard deviations of the posterior given this large scale, in units of the typical
#: one. With 100 choices of one of four by five weights it is 13, and with 1000 it is 130.
_DETERMINED, _LARGE = 40.0, float(np.exp(1.5))


def find_determined(target: Target) -> Sites | None:
    """Return the mode given a large scale if the answers determine the weights, else None."""
    given = replace(target, data=target.data._replace(prior=target.prior.with_scale(_LARGE)))
    mode = mode_of(given)
    if not mode.converged:
        return None
    start = unflatten(mode.position, target.start)
    deviation = unflatten(np.sqrt(np.diag(mode.covariance)), target.start)
    z = (start[WEIGHTS] - np.asarray(target.prior.mean)) / deviation[WEIGHTS]
    return start if np.mean(z[target.prior.has_scale] ** 2) > _DETERMINED else None


def samples_scale(target: Target) -> bool:
    """Return whether a posterior is one of the common scale and the weights in units of it."""
    return target.model is scaled_log_linear


def has_wide_scale(target: Target) -> bool:
    """Return whether a posterior is one of the common scale and many directions in units of it."""
    if not samples_scale(target):
        return False
    return target.prior.covariance is None and len(target.features) > _MANY_SCALED


@dataclass(frozen=True, eq=False)
class Scaled(Coordinates):
    """Weights with a common scale, by the scale and the weights in units of it."""

    @classmethod
    def of(cls, target: Target) -> Scaled:
        """Return the coordinates of a log-linear posterior whose prior has an unknown scale."""
        scaled = replace(target, model=scaled_log_linear)
        start = cls(target, scaled).scale_sites(target.start, 0.0)
        return cls(target, replace(scaled, start=start))

    @classmethod
    def from_scaled(cls, target: Target) -> Scaled:
        """Return the coordinates with a `target` for which `samples_scale` is true."""
        original = replace(target, model=log_linear)
        start = cls(original, target).restore_sites(target.start)
        return cls(replace(original, start=start), target)

    def restore(self, sampled: Sampled) -> Sampled:
        """Return draws of the weights alone, with their log density and their mode."""
        z, warmup, mode = self.restore_sites(sampled.z), sampled.warmup, mode_of(self.original)
        log_density, log_likelihood = evaluate(self.original, z)
        figures = structs.replace(
            sampled.figures, newton_iterations=mode.iterations, newton_decrement=mode.decrement
        )
        return replace(
            sampled,
            z=z,
            warmup=self.restore_sites(warmup) if warmup else warmup,
            mode=mode.position if mode.converged else None,
            log_density=log_density,
            log_likelihood=log_likelihood,
            figures=figures,
        )

    def restore_sites(self, z: Sites) -> Sites:
        """Return the weights, given the scale and the weights in units of it."""
        factor = self._factor(-np.asarray(z["precision"])[..., None] / 2)
        weights = np.asarray(self.original.prior.mean) + factor * np.asarray(z["unit"])
        others = {name: z[name] for name in z if name not in ("precision", "unit")}
        return {WEIGHTS: weights, **others}

    def scale_sites(self, z: Sites, log_scale: float) -> Sites:
        """Return the scale and the weights in units of it, given log τ and the weights."""
        difference = np.asarray(z[WEIGHTS]) - np.asarray(self.original.prior.mean)
        unit = difference / self._factor(log_scale)
        others = {name: z[name] for name in z if name != WEIGHTS}
        return {**others, "precision": np.array(-2 * log_scale), "unit": unit}

    def _factor(self, log_scale: Any) -> Float64:
        """Return τ for the weights that have the scale, and 1 for the others."""
        return np.where(self.original.prior.has_scale, np.exp(log_scale), 1.0)
