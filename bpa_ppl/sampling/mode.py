"""The mode of a posterior by Newton's method, and the Laplace covariance there."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.sampling.base import Data, Program, Sites, Target
from bpa_ppl.sampling.density import potential, shaped

#: Squared length of the last Newton step, in posterior standard deviations, that ends the search.
TOLERANCE = 1e-6
MAX_ITERATIONS = 50
_HALVINGS = 30
_SINGULAR = 1e-14  # of the largest eigenvalue of a Hessian


class Mode(NamedTuple):
    """Where the posterior is highest, and its curvature there (d unconstrained values).

    Attributes:
        position: (d,) the mode.
        potential_energy: () −log p(z, data) there.
        covariance: (d, d) the inverse Hessian of the potential: the Laplace covariance.
        decrement: the squared length of the last step in posterior standard deviations.
        iterations: Newton steps taken.
        converged: whether `decrement` fell below `TOLERANCE` where the Hessian is positive
            definite: on a slope that never ends, as of a funnel, steps may become short too.
    """

    position: Float64
    potential_energy: float
    covariance: Float64
    decrement: float
    iterations: int
    converged: bool

    def attrs(self) -> dict[str, float]:
        """Return how the search ended, for a posterior's attributes."""
        return {
            "newton_iterations": self.iterations,
            "newton_decrement": self.decrement,
        }


class _Point(NamedTuple):
    """The potential at a flat position, with its gradient, (d,), and Hessian, (d, d)."""

    position: Float64
    value: float
    gradient: Float64
    hessian: Float64


class _Surface(NamedTuple):
    """The potential as a function of the flat position; JAX compiles what it is made of."""

    program: Program
    data: Data
    like: Sites

    def value(self, position: Float64) -> float:
        """Return the potential at a position."""
        return float(potential(self.program, self.data, shaped(position, self.like)))

    def at(self, position: Float64) -> _Point:
        """Return all that is known of a position."""
        found = jax.device_get(_curved(self.program, self.data, self.like, position))
        return _Point(position, float(found[0]), *map(np.asarray, found[1:]))


@partial(jax.jit, static_argnums=0)
def _curved(
    program: Program, data: Data, like: Sites, position: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    def slope(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        at = jax.value_and_grad(lambda x: potential(program, data, shaped(x, like)))(flat)
        return at[1], at

    # Forward over reverse, for the gradient of the likelihood is a rule of its own.
    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(position)
    return value, gradient, hessian


def find_mode(program: Program, data: Data, start: Sites) -> Mode:
    """Find the mode from a starting point on, with an exact gradient and Hessian.

    The default model is log-concave, so that damped Newton steps converge from anywhere
    (Boyd & Vandenberghe 2004, §9.5); of another model it finds a local mode. The search is NumPy's:
    a handful of steps is not worth the compilation of its loops.
    """
    surface = _Surface(program, data, start)
    point = surface.at(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(start)]))
    curvature, definite = np.full((), np.nan), False
    decrement, iteration = np.inf, 0
    while decrement > TOLERANCE and iteration < MAX_ITERATIONS:
        curvature, definite = _definite(point.hessian)
        direction = -_solved(curvature, point.gradient)
        decrement = float(-point.gradient @ direction)
        point = _backtrack(surface, point, direction, decrement)
        iteration += 1
    # The curvature where the last step began: that step was shorter than the tolerance.
    covariance = _solved(curvature, np.eye(len(point.position)))
    return Mode(
        position=point.position,
        potential_energy=point.value,
        covariance=(covariance + covariance.T) / 2,
        decrement=decrement,
        iterations=iteration,
        converged=decrement <= TOLERANCE and definite,
    )


def _definite(matrix: Float64) -> tuple[Float64, bool]:
    """Return a symmetric matrix with its eigenvalues made positive, and whether they were.

    So it gives a direction of descent in any case. What is not finite stays so, and ends a search.
    """
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, np.nan), False
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    largest = np.abs(values).max()
    made = (vectors * np.maximum(np.abs(values), 1e-10 * largest)) @ vectors.T
    return made, bool(values.min() > _SINGULAR * largest)


def _solved(matrix: Float64, right: Float64) -> Float64:
    """Solve a system of equations; NaN where it has no one solution."""
    if not np.isfinite(matrix).all() or not matrix.any():
        return np.full_like(right, np.nan)
    return np.asarray(np.linalg.solve(matrix, right), np.float64)


def _backtrack(surface: _Surface, point: _Point, direction: Float64, decrement: float) -> _Point:
    """Halve the step until the potential falls as Armijo's rule asks, rounding allowed for."""
    slack = 1e-6 * (1 + abs(point.value))

    def enough(scale: float, value: float) -> bool:
        return value <= point.value - 1e-4 * scale * decrement + slack

    # Most steps are taken whole, and the next one needs the curvature where they end.
    whole = surface.at(point.position + direction)
    if enough(1.0, whole.value):
        return whole
    for halvings in range(1, _HALVINGS):
        scale = 0.5**halvings
        if enough(scale, surface.value(point.position + scale * direction)):
            break
    return surface.at(point.position + scale * direction)


#: Modes by the posterior that they are of.
_FOUND: WeakKeyDictionary[Target, Mode] = WeakKeyDictionary()


def mode_of(target: Target) -> Mode:
    """Return the mode of a posterior, which is searched once."""
    if target not in _FOUND:
        _FOUND[target] = find_mode(target.program, target.data, target.start)
    return _FOUND[target]


def require_mode(target: Target) -> Mode:
    """Return the mode of a posterior.

    Raises:
        DataError: if the search did not converge.
    """
    mode = mode_of(target)
    if not mode.converged:
        raise DataError(
            f"the posterior of this model has no mode that {MAX_ITERATIONS} Newton steps find: "
            "use the sampler nuts, which needs none"
        )
    return mode


def around(target: Target, mode: Mode, chains: int) -> Sites:
    """Return z of a start for each chain, drawn from N(mode, 2 × Laplace).

    Wider than the posterior, so that chains that have not forgotten their start disagree.
    """
    rng = np.random.default_rng([target.seed, 2])
    spread = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=chains)
    return shaped(spread, target.start)
