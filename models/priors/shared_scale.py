"""Weights with an unknown common scale."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from numpyro.distributions import constraints


class SharedScale(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """Gaussian weights, some of which have an unknown common scale; event shape (Q,).

    These weights are m + τ x with x ~ N(0, C) and a scale τ whose median is 1. The density is
    integrated over τ.

    Args:
        loc: (Q,) m.
        covariance: (Q, Q) C, with zeros between weights that have the scale and those that do not;
            or (Q,) its diagonal, where C has no other values.
        scale: τ and the weights that have it, from `bpa_ppl.models.priors.scale`.

    >>> from bpa_ppl.models.priors.scale import LogNormalScale
    >>> narrow = LogNormalScale(1e-3, jnp.array([True, False]))  # τ is nearly 1
    >>> shared = SharedScale(jnp.zeros(2), jnp.eye(2), narrow)
    >>> both = dist.Normal(0.0, 1.0).log_prob(jnp.array([0.5, 0.7])).sum()
    >>> bool(jnp.isclose(shared.log_prob(jnp.array([0.5, 0.7])), both, atol=1e-5))
    True
    """

    support = constraints.real_vector
    pytree_data_fields = ("loc", "covariance", "scale")

    def __init__(self, loc: Any, covariance: Any, scale: Any) -> None:
        self.loc, self.covariance, self.scale = jnp.asarray(loc), jnp.asarray(covariance), scale
        super().__init__(event_shape=self.loc.shape)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        of_weights, of_scale = jax.random.split(key)
        unit = jax.random.normal(of_weights, (*sample_shape, *self.event_shape))
        scale = self.scale.draw_by_key(of_scale, sample_shape)[..., None]
        loc, shared = self._broadcast(unit.shape)
        unit = jnp.where(shared, scale * unit, unit)
        if self.covariance.ndim == 1:
            return loc + unit * jnp.sqrt(self.covariance)
        weights: jax.Array = loc + unit @ jnp.linalg.cholesky(self.covariance).T
        return weights

    def log_prob(self, value: Any) -> jax.Array:
        loc, shared = self._broadcast(jnp.shape(value))
        if self.covariance.ndim == 1:
            diagonal = jnp.sqrt(self.covariance)
            squared = jnp.square((jnp.asarray(value) - loc) / diagonal)
        else:
            factor = jnp.linalg.cholesky(self.covariance)
            diagonal = jnp.diag(factor)
            # A product with the inverse: solving for many weights at once would need more time.
            inverse = solve_triangular(factor, jnp.eye(len(self.loc)), lower=True)
            squared = jnp.square((jnp.asarray(value) - loc) @ inverse.T)
        size = len(self.loc)
        count = jnp.count_nonzero(self.scale.shared)
        inside = jnp.where(shared, squared, 0.0).sum(axis=-1)
        gaussian = jnp.where(shared, 0.0, squared).sum(axis=-1)
        gaussian += (size - count) * jnp.log(2 * jnp.pi)
        log_p: jax.Array = self.scale.log_marginal(inside, count, size)
        return log_p - gaussian / 2 - jnp.log(diagonal).sum()

    def _broadcast(self, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
        """Return m, and which weights have the common scale, in the shape of weights."""
        return jnp.broadcast_to(self.loc, shape), jnp.broadcast_to(self.scale.shared, shape)
