"""Weights with an unknown common scale: a multivariate Student t."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln
from numpyro.distributions import constraints


class SharedScale(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """Gaussian weights, some of which have an unknown common scale; event shape (Q,).

    These weights are m + τ x with x ~ N(0, C) and τ² ~ ν / χ²(ν), a scale with the median near 1.
    Integrated over τ this is the multivariate Student t with ν degrees of freedom.

    Args:
        loc: (Q,) m.
        covariance: (Q, Q) C, with zeros between weights that have the scale and those that do not;
            or (Q,) its diagonal, where C has no other values.
        degrees: (Q,) ν for weights that have the scale, 0 for the others.

    >>> shared = SharedScale(jnp.zeros(2), jnp.eye(2), jnp.array([3.0, 0.0]))
    >>> separate = dist.StudentT(3.0).log_prob(0.5) + dist.Normal(0.0, 1.0).log_prob(0.7)
    >>> bool(jnp.isclose(shared.log_prob(jnp.array([0.5, 0.7])), separate))
    True
    """

    support = constraints.real_vector
    pytree_data_fields = ("loc", "covariance", "degrees")

    def __init__(self, loc: Any, covariance: Any, degrees: Any) -> None:
        self.loc, self.covariance, self.degrees = map(jnp.asarray, (loc, covariance, degrees))
        super().__init__(event_shape=self.loc.shape)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw weights, (…, Q)."""
        of_weights, of_scale = jax.random.split(key)
        unit = jax.random.normal(of_weights, (*sample_shape, *self.event_shape))
        loc, shared, degrees = self._broadcast(unit.shape)
        chi_squared = 2 * jax.random.gamma(of_scale, degrees / 2, sample_shape)
        scale = jnp.sqrt(degrees / chi_squared)[..., None]
        unit = jnp.where(shared, scale * unit, unit)
        if self.covariance.ndim == 1:
            return loc + unit * jnp.sqrt(self.covariance)
        weights: jax.Array = loc + unit @ jnp.linalg.cholesky(self.covariance).T
        return weights

    def log_prob(self, value: Any) -> jax.Array:
        """Return the log density of weights, (…, Q)."""
        loc, shared, degrees = self._broadcast(jnp.shape(value))
        if self.covariance.ndim == 1:
            diagonal = jnp.sqrt(self.covariance)
            squared = jnp.square((jnp.asarray(value) - loc) / diagonal)
        else:
            factor = jnp.linalg.cholesky(self.covariance)
            diagonal = jnp.diag(factor)
            # A product with the inverse: solving for many weights at once would need more time.
            inverse = solve_triangular(factor, jnp.eye(len(self.loc)), lower=True)
            squared = jnp.square((jnp.asarray(value) - loc) @ inverse.T)
        count = jnp.count_nonzero(self.degrees)
        inside = jnp.where(shared, squared, 0.0).sum(axis=-1)
        gaussian = jnp.where(shared, 0.0, squared).sum(axis=-1)
        gaussian += (len(self.loc) - count) * jnp.log(2 * jnp.pi)
        constant = gammaln((degrees + count) / 2) - gammaln(degrees / 2)
        constant -= count / 2 * jnp.log(degrees * jnp.pi) + jnp.log(diagonal).sum()
        log_p: jax.Array = constant - (degrees + count) / 2 * jnp.log1p(inside / degrees)
        return log_p - gaussian / 2

    def _broadcast(self, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return m, and which weights have the common scale, in the shape of weights; and ν."""
        shared = jnp.broadcast_to(self.degrees > 0, shape)
        return jnp.broadcast_to(self.loc, shape), shared, jnp.max(self.degrees)
