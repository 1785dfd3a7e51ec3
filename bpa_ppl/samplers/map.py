"""The sampler `map`: the mode of the posterior."""

from __future__ import annotations

import jax
import numpy as np

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import Sampled, Target, unflatten
from bpa_ppl.samplers.sampler import Sampler


class PosteriorMode(Sampler, frozen=True):
    """The mode of the posterior as its only draw; it has no settings.

    >>> PosteriorMode()
    PosteriorMode()
    """

    title = "mode of the posterior (maximum a posteriori)"
    any_coordinates = True
    exact = False

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        mode = mode_of(target)
        progress(1, 1, f"{mode.iterations} Newton steps")
        z = unflatten(mode.position, target.start)
        return Sampled(
            z=jax.tree.map(lambda value: value[None, None], z),
            kind="point",
            log_density=np.full((1, 1), -mode.potential_energy),
            mode=mode.position,
            figures=mode.figures,
        )
