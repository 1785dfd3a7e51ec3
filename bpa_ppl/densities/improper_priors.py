"""Sites with improper priors, which have a density but no draws.

NumPyro runs a program with a value of each site, of which only shapes matter or which is where a
search starts. The values here are those at which NumPyro's chains start.
"""

from __future__ import annotations

from typing import Any

import jax
from numpyro.distributions import Distribution, biject_to
from numpyro.distributions.constraints import Constraint
from numpyro.primitives import Messenger

from bpa_ppl.densities.own_models import is_improper, is_latent

#: Unconstrained values are between minus and plus this one.
_RADIUS = 2.0


class WithStarts(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Gives sites with improper priors values, so that a program runs: see `Structure.improper`."""

    def process_message(self, site: dict[str, Any]) -> None:
        if site["type"] == "sample" and is_latent(site) and is_improper(site):
            site["fn"] = _WithStarts(site["fn"])


class _WithStarts(Distribution):  # type: ignore[misc] # NumPyro has no types
    """An improper distribution whose draws are places to start at."""

    def __init__(self, improper: Distribution):
        self.base_dist = improper
        super().__init__(improper.batch_shape, improper.event_shape)

    @property
    def support(self) -> Constraint:
        return self.base_dist.support

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        transform = biject_to(self.support)
        shape = transform.inverse_shape(sample_shape + self.batch_shape + self.event_shape)
        return transform(jax.random.uniform(key, shape, minval=-_RADIUS, maxval=_RADIUS))

    def log_prob(self, value: Any) -> Any:
        return self.base_dist.log_prob(value)
