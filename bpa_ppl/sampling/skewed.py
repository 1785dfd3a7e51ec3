"""A skewed Gaussian with the third derivatives of a posterior: Laplace's approximation with skew.

With x in the standard deviations of the Laplace approximation, log p ≈ −½|x|² + ⅙ T(x, x, x). To
first order in T the conditional density of each value given those before it has a mean that is
quadratic in them, a log scale that is linear, and the skewness T_iii. So the values are drawn one
after the other, and the density of a draw is known exactly.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.sampling.base import Target
from bpa_ppl.sampling.density import gradients, unflatten
from bpa_ppl.sampling.mode import Mode

#: Up to this many values all third derivatives are estimated, from d + d²/4 directions; and up to
#: this many only those along the axes with one other value, from d directions.
_ALL, _AXES = 24, 100
#: Distance of the gradients from the mode, in standard deviations: where most draws are.
_REACH = 1.5
#: Bounds where the expansion is not valid: of the distance from the mode at which it is evaluated,
#: and of the angle of a skew.
_MAX_DISTANCE, _MAX_ANGLE = 4.0, 0.5
#: Correlation ρ of a draw with its antithetic partner: stronger is better for means, and worse for
#: standard deviations.
ANTITHETIC_CORRELATION = -0.5
#: E √(1 + u²) and E (u² − 1) √(1 + u²) / 2 of a standard normal u.
_CENTRE, _CURVE = 1.3545308170952626, 0.28244541178805527
#: E u √(1 + u²) vanishes; Var √(1 + u²) is 2 − E².
_ROOT_VARIANCE = 2 - _CENTRE**2


class Skewed(NamedTuple):
    """The skewed Gaussian, in standard deviations of the Laplace approximation (d values).

    Attributes:
        cubic: (d, d, d) T, symmetric; None is the Gaussian itself.
    """

    cubic: Float64 | None = None

    def from_standard_normal(self, u: Float64) -> Float64:
        """Transform standard normal draws, (n, d), into draws of this distribution.

        >>> skewed = Skewed(np.full((1, 1, 1), 0.3))
        >>> skewed.from_standard_normal(np.array([[-2.0], [0.0], [2.0]])).round(2).tolist()
        [[-1.69], [0.09], [2.3]]
        """
        if self.cubic is None:
            return u
        x = np.zeros_like(u)
        for i, (sinh, cosh, deviation) in enumerate(self._angles()):
            mean, log_scale = self._conditional(x, i)
            value = u[:, i] * cosh + (np.sqrt(1 + u[:, i] ** 2) - _CENTRE) * sinh
            x[:, i] = mean + np.exp(log_scale) * value / deviation
        return x

    def to_standard_normal(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the standard normal draws of some draws, (n, d), and log |du / dx|, (n,)."""
        log_slope = np.zeros(len(x))
        if self.cubic is None:
            return x, log_slope
        u = np.zeros_like(x)
        for i, (sinh, cosh, deviation) in enumerate(self._angles()):
            mean, log_scale = self._conditional(x, i)
            with np.errstate(all="ignore"):  # draws may be infinitely far
                value = (x[:, i] - mean) * np.exp(-log_scale) * deviation + _CENTRE * sinh
                # The inverse of u cosh + √(1 + u²) sinh has the same form.
                root = np.sqrt(1 + value**2)
                u[:, i] = value * cosh - root * sinh
                log_slope += np.log(np.sqrt(1 + u[:, i] ** 2) / root * deviation) - log_scale
        return u, log_slope

    def log_density(self, x: Float64) -> Float64:
        """Return log q of draws, (n, d) ↦ (n,)."""
        u, log_slope = self.to_standard_normal(x)
        return np.asarray(log_slope - 0.5 * ((u**2).sum(axis=1) + u.shape[1] * np.log(2 * np.pi)))

    def antithetic(self, rng: np.random.Generator, x: Float64) -> Float64:
        """Return a partner of each draw, (…, d), which tends to be on the other side of the mode.

        With v from N(0, I), the map of (u, v) to (ρu + σv, σu − ρv), σ² = 1 − ρ², is its own
        inverse and preserves their density. So a step from a draw to its partner, or back, is
        accepted with the ratio of p / q, where q is this distribution alone.
        """
        u = self.to_standard_normal(x.reshape(-1, x.shape[-1]))[0]
        rho = ANTITHETIC_CORRELATION
        with np.errstate(all="ignore"):
            partner = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=u.shape)
            return self.from_standard_normal(partner).reshape(x.shape)

    def _angles(self) -> list[tuple[float, float, float]]:
        """Return sinh and cosh of each value's skew angle, and the resulting deviation."""
        assert self.cubic is not None  # checked by the callers
        angle = np.clip(np.einsum("iii->i", self.cubic) / (6 * _CURVE), -_MAX_ANGLE, _MAX_ANGLE)
        sinh, cosh = np.sinh(angle), np.cosh(angle)
        deviation = np.sqrt(cosh**2 + _ROOT_VARIANCE * sinh**2)
        return list(zip(sinh.tolist(), cosh.tolist(), deviation.tolist(), strict=True))

    def _conditional(self, x: Float64, i: int) -> tuple[Float64, Float64]:
        """Return mean and log scale of one value given those before it, (n,) each."""
        assert self.cubic is not None  # checked by the callers
        cubic = self.cubic[i]
        previous = np.clip(x[:, :i], -_MAX_DISTANCE, _MAX_DISTANCE)
        later = np.trace(cubic[i + 1 :, i + 1 :])
        force = 0.5 * (((previous @ cubic[:i, :i]) * previous).sum(axis=1) + later + cubic[i, i])
        slope = np.tanh(previous @ cubic[i, :i])
        return np.clip(force, -_MAX_DISTANCE, _MAX_DISTANCE) * np.exp(slope), slope / 2


def fit_skewed(target: Target, mode: Mode) -> Skewed:
    """Return the skewed Gaussian of a posterior, from gradients on both sides of its mode.

    The sum of the gradients at x and −x is T(x, x, ·), up to fifth derivatives.
    """
    size = len(mode.position)
    if size > _AXES:
        return Skewed()
    directions, pairs = third_derivative_directions(size)
    factor = np.linalg.cholesky(mode.covariance)
    steps = _REACH * np.concatenate([directions, -directions])
    z = unflatten(mode.position + steps @ factor.T, target.start)
    slopes = np.asarray(gradients(target.program, target.data, z)) @ factor
    count = len(directions)
    sums = -(slopes[:count] + slopes[count:]) / _REACH**2
    if not np.isfinite(sums).all():
        return Skewed()
    # Rounded, so that the last bits of sums, which differ between machines, do not change draws.
    return Skewed(np.round(third_derivatives(sums, pairs), 6))


def third_derivative_directions(size: int) -> tuple[Float64, list[tuple[int, int]]]:
    """Return unit vectors along the axes and between pairs of axes, and these pairs.

    Of any three axes two belong to the same half, so that pairs within the halves are enough.
    """
    halves = np.array_split(np.arange(size), 2) if size <= _ALL else []
    pairs = [pair for half in halves for pair in combinations(half.tolist(), 2)]
    axes = np.eye(size)
    between = [(axes[a] + axes[b]) / np.sqrt(2) for a, b in pairs]
    return np.stack([*axes, *between]), pairs


def third_derivatives(values: Float64, pairs: list[tuple[int, int]]) -> Float64:
    """Return T from T(v, v, ·) for all directions v; entries that none determines are 0.

    >>> cubic = np.array([[[0.3, 0.1], [0.1, -0.2]], [[0.1, -0.2], [-0.2, 0.4]]])
    >>> directions, pairs = third_derivative_directions(2)
    >>> values = np.einsum("va,vb,abc->vc", directions, directions, cubic)
    >>> bool(np.allclose(third_derivatives(values, pairs), cubic))
    True
    """
    size = values.shape[1]
    tensor = np.zeros((size, size, size))  # T of each determined pair with all others
    determined = np.eye(size)
    axis = np.arange(size)
    tensor[axis, axis] = values[:size]
    for between, (a, b) in zip(values[size:], pairs, strict=True):
        tensor[a, b] = tensor[b, a] = between - (values[a] + values[b]) / 2
        determined[a, b] = determined[b, a] = 1.0
    # An entry belongs to three pairs, and is the mean of its determined ones.
    total = tensor + tensor.transpose(0, 2, 1) + tensor.transpose(2, 1, 0)
    count = determined[:, :, None] + determined[:, None, :] + determined[None, :, :]
    return np.asarray(total / np.maximum(count, 1.0))
