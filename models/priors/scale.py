"""An unknown common scale τ of some weights, in units of a typical one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.posterior.probabilities import normalise

if TYPE_CHECKING:
    import jax
    import numpyro.distributions as dist

#: The quadrature over log τ reaches so many standard deviations.
_REACH = 6.0
#: Log τ given K weights has a deviation of about 1 / √(2 K); the distance of the nodes is less for
#: a deviation of up to 2 a priori.
_FINE = 0.5
#: Distance of the scales over which answers are integrated.
_SCALE_STEP = 0.25


class LogNormalScale(NamedTuple):
    """Weights that share a scale with log τ ~ N(0, s²): data are very easy or hard if s is large.

    Integrals over log τ are sums over equal distances.

    Attributes:
        log_deviation: s, up to 2.
        shared: (Q,) bool, which weights have the scale.

    >>> narrow = LogNormalScale(1e-3, np.array([True, True]))
    >>> narrow.log_marginal(np.array([4.0]), 2, 2).round(3).tolist()  # nearly those of a Gaussian
    [-3.838]
    """

    log_deviation: Any
    shared: Any

    @classmethod
    def of(cls, of_weights: npt.ArrayLike | None) -> LogNormalScale | None:
        """Return the scale that `of_weights` describes; None without one."""
        if of_weights is None:
            return None
        values = np.asarray(of_weights, np.float64)
        return cls(float(values.max()), values > 0)

    @property
    def of_weights(self) -> Float64:
        """(Q,) s of each weight, 0 of those without the scale, as posteriors and files record it.

        >>> LogNormalScale(1.5, np.array([True, False])).of_weights
        array([1.5, 0. ])
        """
        return np.where(self.shared, self.log_deviation, 0.0)

    @property
    def log_scales(self) -> Float64:
        """(n,) values of log τ in equal distances that have nearly all of the probability."""
        reach = math.ceil(4 * self.log_deviation / _SCALE_STEP) * _SCALE_STEP
        return np.arange(-reach, reach + _SCALE_STEP / 2, _SCALE_STEP)

    def log_density(self, log_scale: float | Float64) -> Any:
        """Return log p(log τ)."""
        unit = np.asarray(log_scale) / self.log_deviation
        return -(unit**2) / 2 - math.log(self.log_deviation * math.sqrt(2 * math.pi))

    def log_marginal(self, squared: Any, count: Any, most: int) -> Any:
        """Return the log density of values τ x with x ~ N(0, I), integrated over τ.

        It depends on their squared distance from 0 and their count, at most `most` for JAX.
        """
        joint, _ = self._log_joint(squared, count, most)
        return normalise(joint)[0][..., 0]

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw values of τ."""
        return np.asarray(np.exp(self.log_deviation * rng.normal(size=shape)))

    def draw_by_key(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draw values of τ in JAX."""
        import jax.numpy as jnp
        from jax import random

        return jnp.exp(self.log_deviation * random.normal(key, shape))

    def draw_given(self, rng: np.random.Generator, squared: Float64, count: int) -> Float64:
        """Draw τ given the squared distance of values τ x from 0."""
        joint, unit = self._log_joint(squared, count, count)
        below = np.cumsum(normalise(joint)[1], axis=-1)
        place = (below < rng.random((*squared.shape, 1))).sum(axis=-1).clip(0, len(unit) - 1)
        within = (unit[1] - unit[0]) * rng.uniform(-0.5, 0.5, squared.shape)
        return np.asarray(np.exp(self.log_deviation * (unit[place] + within)))

    def mean_precision(self, squared: Float64, count: int) -> Float64:
        """Return the mean of 1 / τ² given the squared distance of values τ x from 0."""
        joint, unit = self._log_joint(squared, count, count)
        return np.asarray(normalise(joint)[1] @ np.exp(-2 * self.log_deviation * unit))

    def precision(self) -> dist.Distribution:
        """Return the distribution of 1 / τ²."""
        import numpyro.distributions as dist

        return dist.LogNormal(0.0, 2 * self.log_deviation)

    def _log_joint(self, squared: Any, count: Any, most: int) -> tuple[Any, Float64]:
        """Return the log density of values and log τ / s, and nodes of the latter.

        Args:
            squared: as for `log_marginal`.
            count: as for `log_marginal`.
            most: as for `log_marginal`.

        Returns:
            (…, nodes), with the distance of the nodes as a factor; and the nodes.
        """
        arrays = squared.__array_namespace__()
        number = 2 * math.ceil(_REACH * math.sqrt(2 * most + 1) / _FINE) + 1
        unit = np.linspace(-_REACH, _REACH, number)
        nodes = np.reshape(unit, (1,) * squared.ndim + unit.shape)
        log_scale = self.log_deviation * nodes
        log_p = np.log((unit[1] - unit[0]) / math.sqrt(2 * math.pi)) - nodes**2 / 2
        log_p = log_p - count * (log_scale + math.log(2 * math.pi) / 2)
        return log_p - squared[..., None] * arrays.exp(-2 * log_scale) / 2, unit


def in_floats(scale: LogNormalScale | None) -> LogNormalScale | None:
    """Return a scale in numbers of Python and an array of NumPy."""
    if scale is None:
        return None
    return LogNormalScale(float(scale.log_deviation), np.asarray(scale.shared))
