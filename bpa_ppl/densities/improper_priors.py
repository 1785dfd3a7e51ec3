"""Sites whose priors have a density but no draws: improper, masked and scaled ones, and others.

NumPyro runs a program with a value of each site, of which only shapes matter or which is where a
search starts. The values here are those at which NumPyro's chains start.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import jax
import numpy as np
from numpyro.distributions import Distribution, ImproperUniform, biject_to
from numpyro.primitives import Messenger

from bpa_ppl.densities.own_models import is_improper, is_latent

#: Unconstrained values are between minus and plus this one.
RADIUS = 2.0


class WithStarts(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Gives sites whose priors have no draws values to start at: see `Structure.improper`.

    Args:
        program: a NumPyro program.
        others: sites that have no draws although their priors are neither improper nor scaled.
    """

    def __init__(self, program: Callable[..., Any], others: Container[str] = ()):
        self._others = others
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        if not is_latent(site) or site["fn"].support.is_discrete:
            return
        scale = 1 if site["scale"] is None else site["scale"]
        is_scaled = isinstance(scale, jax.core.Tracer) or np.any(scale != 1)
        if is_improper(site) or is_scaled or site["name"] in self._others:
            site["fn"] = _WithStarts(site["fn"])


class _WithStarts(ImproperUniform):  # type: ignore[misc] # NumPyro has no types
    """The density of a distribution; its draws are places to start at."""

    def __init__(self, density: Distribution):
        self._density = density
        super().__init__(density.support, density.batch_shape, density.event_shape)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        transform = biject_to(self.support)
        shape = transform.inverse_shape(sample_shape + self.batch_shape + self.event_shape)
        return transform(jax.random.uniform(key, shape, minval=-RADIUS, maxval=RADIUS))

    def log_prob(self, value: Any) -> Any:
        return self._density.log_prob(value)
