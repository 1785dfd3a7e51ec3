"""A Gaussian bent to the third derivatives of a posterior: the Laplace approximation with skew.

With x in the standard deviations of the Laplace approximation, log p is −½|x|² + ⅙ T(x, x, x) and
little else. To first order in T the conditional density of each value given those before it has a
mean that is quadratic in them, a logarithm of the scale that is linear, and a skewness T_iii: so
the values are drawn one after the other, and the density of what is drawn is known exactly.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.sampling.base import Target
from bpa_ppl.sampling.density import gradients, shaped
from bpa_ppl.sampling.mode import Mode

#: Values up to which all third derivatives are found, d + d²/4 directions; and those along the axes
#: with one other, d directions.
_ALL, _AXES = 24, 100
#: How far from the mode the gradients are taken, in standard deviations: where most draws are.
_REACH = 1.5
#: Bounds of what the expansion says far out, where it says nothing: of the distance from the mode
#: that it is followed to, and of the angle of a skew.
_FAR, _BENT = 4.0, 0.5
#: Correlation ρ of a draw with its partner: the more, the better are means and the worse spreads.
OPPOSED = -0.5
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

    def bent(self, u: Float64) -> Float64:
        """Return draws, (n, d), made of standard normal ones.

        >>> Skewed(np.full((1, 1, 1), 0.3)).bent(np.array([[-2.0], [0.0], [2.0]])).round(2).tolist()
        [[-1.69], [0.09], [2.3]]
        """
        if self.cubic is None:
            return u
        x = np.zeros_like(u)
        for i, (sinh, cosh, spread) in enumerate(self._angles()):
            mean, log_scale = self._given(x, i)
            own = u[:, i] * cosh + (np.sqrt(1 + u[:, i] ** 2) - _CENTRE) * sinh
            x[:, i] = mean + np.exp(log_scale) * own / spread
        return x

    def log_density(self, x: Float64) -> Float64:
        """Return log q of draws, (n, d) ↦ (n,)."""
        u, log_slope = self.straight(x)
        return np.asarray(log_slope - 0.5 * ((u**2).sum(axis=1) + u.shape[1] * np.log(2 * np.pi)))

    def straight(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the standard normal draws that x was made of, (n, d), and log |du / dx|, (n,)."""
        log_slope = np.zeros(len(x))
        if self.cubic is None:
            return x, log_slope
        u = np.zeros_like(x)
        for i, (sinh, cosh, spread) in enumerate(self._angles()):
            mean, log_scale = self._given(x, i)
            with np.errstate(all="ignore"):  # of draws that are infinitely far
                own = (x[:, i] - mean) * np.exp(-log_scale) * spread + _CENTRE * sinh
                # The inverse of u cosh + √(1 + u²) sinh is of the same form.
                root = np.sqrt(1 + own**2)
                u[:, i] = own * cosh - root * sinh
                log_slope += np.log(np.sqrt(1 + u[:, i] ** 2) / root * spread) - log_scale
        return u, log_slope

    def partners(self, rng: np.random.Generator, x: Float64) -> Float64:
        """Return a partner of each draw, (…, d), which lies rather on the other side of the mode.

        With v from N(0, I), the map of (u, v) to (ρu + σv, σu − ρv), σ² = 1 − ρ², is its own
        inverse and keeps their density: so that a step from a draw to its partner, and back, is
        accepted with the ratio of p / q, by q this Gaussian alone.
        """
        u = self.straight(x.reshape(-1, x.shape[-1]))[0]
        with np.errstate(all="ignore"):
            other = OPPOSED * u + np.sqrt(1 - OPPOSED**2) * rng.normal(size=u.shape)
            return self.bent(other).reshape(x.shape)

    def _angles(self) -> list[tuple[float, float, float]]:
        """Return sinh and cosh of each value's own skew, and the spread that it gives."""
        assert self.cubic is not None  # the callers looked
        own = np.einsum("iii->i", self.cubic)
        angle = np.clip(own / (6 * _CURVE), -_BENT, _BENT)
        sinh, cosh = np.sinh(angle), np.cosh(angle)
        spread = np.sqrt(cosh**2 + _ROOT_VARIANCE * sinh**2)
        return list(zip(sinh.tolist(), cosh.tolist(), spread.tolist(), strict=True))

    def _given(self, x: Float64, i: int) -> tuple[Float64, Float64]:
        """Return mean and logarithm of the scale of one value given those before it, (n,) each."""
        assert self.cubic is not None  # the callers looked
        own = self.cubic[i]
        before = np.clip(x[:, :i], -_FAR, _FAR)
        later = np.trace(own[i + 1 :, i + 1 :])
        force = 0.5 * (((before @ own[:i, :i]) * before).sum(axis=1) + later + own[i, i])
        slope = np.tanh(before @ own[i, :i])
        return np.clip(force, -_FAR, _FAR) * np.exp(slope), slope / 2


def skewed(target: Target, mode: Mode) -> Skewed:
    """Return the skewed Gaussian of a posterior, from gradients on both sides of its mode.

    The sum of the gradients at x and −x is T(x, x, ·), but for fifth derivatives.
    """
    size = len(mode.position)
    if size > _AXES:
        return Skewed()
    along, pairs = _directions(size)
    factor = np.linalg.cholesky(mode.covariance)
    steps = _REACH * np.concatenate([along, -along])
    z = shaped(mode.position + steps @ factor.T, target.start)
    slopes = np.asarray(gradients(target.program, target.data, z)) @ factor
    bends = -(slopes[: len(along)] + slopes[len(along) :]) / _REACH**2
    if not np.isfinite(bends).all():
        return Skewed()
    # Rounded, so that the last bits of sums, which differ between machines, make no other draws.
    return Skewed(np.round(_tensor(bends, pairs), 6))


def _directions(size: int) -> tuple[Float64, list[tuple[int, int]]]:
    """Return unit vectors along the axes and between some of them, and which of them those are.

    Of any three axes two belong to the same half, so that pairs within the halves are enough.
    """
    halves = np.array_split(np.arange(size), 2) if size <= _ALL else []
    pairs = [pair for half in halves for pair in combinations(half.tolist(), 2)]
    axes = np.eye(size)
    between = [(axes[a] + axes[b]) / np.sqrt(2) for a, b in pairs]
    return np.stack([*axes, *between]), pairs


def _tensor(bends: Float64, pairs: list[tuple[int, int]]) -> Float64:
    """Return T from T(v, v, ·) of the directions; what none of them tells is 0.

    >>> known = np.array([[[0.3, 0.1], [0.1, -0.2]], [[0.1, -0.2], [-0.2, 0.4]]])
    >>> along, pairs = _directions(2)
    >>> bool(np.allclose(_tensor(np.einsum("va,vb,abc->vc", along, along, known), pairs), known))
    True
    """
    size = bends.shape[1]
    told = np.zeros((size, size, size))  # T of each known pair with all others
    known = np.eye(size)
    axis = np.arange(size)
    told[axis, axis] = bends[:size]
    for between, (a, b) in zip(bends[size:], pairs, strict=True):
        told[a, b] = told[b, a] = between - (bends[a] + bends[b]) / 2
        known[a, b] = known[b, a] = 1.0
    # An entry belongs to three pairs, and is the mean of what those of them that are known tell.
    total = told + told.transpose(0, 2, 1) + told.transpose(2, 1, 0)
    times = known[:, :, None] + known[:, None, :] + known[None, :, :]
    return np.asarray(total / np.maximum(times, 1.0))
