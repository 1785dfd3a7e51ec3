"""The mode alone: the plain point estimate."""

from __future__ import annotations

import jax
import numpy as np

from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.density import unflatten
from bpa_ppl.sampling.mode import mode_of


class Map(Sampler, frozen=True):
    """The mode of the posterior as its only draw; it has no settings."""

    exact = False

    def sample(self, target: Target) -> Sampled:
        """Return the mode of the posterior."""
        mode = mode_of(target)
        target.progress(1, 1, f"{mode.iterations} Newton steps")
        z = unflatten(mode.position, target.start)
        return Sampled(
            z=jax.tree.map(lambda value: value[None, None], z),
            kind="point",
            log_density=np.full((1, 1), -mode.potential_energy),
            mode=mode.position,
            attrs=mode.attrs(),
        )
