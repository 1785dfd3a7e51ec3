"""The mode of a posterior by Newton's method, and the Laplace covariance there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bpa_ppl.errors import DataError
from bpa_ppl.sampling.base import Data, Program, Sites, Target
from bpa_ppl.sampling.density import potential, unraveller

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

    position: Any
    potential_energy: Any
    covariance: Any
    decrement: Any
    iterations: Any
    converged: Any

    def attrs(self) -> dict[str, float]:
        """Return how the search ended, for a posterior's attributes."""
        return {
            "newton_iterations": int(self.iterations),
            "newton_decrement": float(self.decrement),
        }


class _Search(NamedTuple):
    position: jax.Array
    potential_energy: jax.Array
    hessian: jax.Array
    definite: jax.Array
    decrement: jax.Array
    iteration: jax.Array


@partial(jax.jit, static_argnums=0)
def find_mode(program: Program, data: Data, start: Sites) -> Mode:
    """Find the mode from a starting point on, with an exact gradient and Hessian.

    The default model is log-concave, so that damped Newton steps converge from anywhere
    (Boyd & Vandenberghe 2004, §9.5); of another model it finds a local mode.
    """
    unravel = unraveller(start)
    potential_at = lambda flat: potential(program, data, unravel(flat))  # noqa: E731
    # Forward over reverse, for the gradient of the likelihood is a rule of its own.
    hessian = jax.jacfwd(jax.grad(potential_at))

    def step(search: _Search) -> _Search:
        value, gradient = jax.value_and_grad(potential_at)(search.position)
        curvature, definite = _definite(hessian(search.position))
        direction = jnp.linalg.solve(curvature, -gradient)
        decrement = -gradient @ direction
        position, value = _backtrack(potential_at, search.position, value, direction, decrement)
        return _Search(position, value, curvature, definite, decrement, search.iteration + 1)

    def unfinished(search: _Search) -> jax.Array:
        return (search.decrement > TOLERANCE) & (search.iteration < MAX_ITERATIONS)

    origin = ravel_pytree(start)[0]
    infinite = jnp.full((), jnp.inf, origin.dtype)
    first = _Search(
        origin, infinite, jnp.eye(len(origin)), jnp.array(False), infinite, jnp.zeros((), int)
    )
    last = jax.lax.while_loop(unfinished, step, first)
    # The curvature where the last step began: that step was shorter than the tolerance.
    covariance = jnp.linalg.inv(last.hessian)
    covariance = (covariance + covariance.T) / 2
    converged = (last.decrement <= TOLERANCE) & last.definite
    return Mode(
        last.position, last.potential_energy, covariance, last.decrement, last.iteration, converged
    )


def _definite(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a symmetric matrix with its eigenvalues made positive, and whether they were.

    So it gives a direction of descent in any case.
    """
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    largest = jnp.max(jnp.abs(values))
    made = (vectors * jnp.maximum(jnp.abs(values), 1e-10 * largest)[None, :]) @ vectors.T
    return made, jnp.min(values) > _SINGULAR * largest


def _backtrack(
    potential_at: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    value: jax.Array,
    direction: jax.Array,
    decrement: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Halve the step until the potential falls as Armijo's rule asks, rounding allowed for."""
    slack = 1e-6 * (1 + jnp.abs(value))

    def too_high(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        scale, reached, halvings = state
        wanted = value - 1e-4 * scale * decrement + slack
        return ~(reached <= wanted) & (halvings < _HALVINGS)

    def halve(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        scale = state[0] / 2
        return scale, potential_at(position + scale * direction), state[2] + 1

    # Starts above the whole step, so that the potential is compiled in one place only.
    first = (jnp.full((), 2.0), jnp.full((), jnp.inf, value.dtype), jnp.zeros((), int))
    scale, reached, _ = jax.lax.while_loop(too_high, halve, first)
    return position + scale * direction, reached


def require_mode(target: Target) -> Mode:
    """Return the mode of a posterior.

    Raises:
        DataError: if the search did not converge.
    """
    mode = find_mode(target.program, target.data, target.start)
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
    return jax.vmap(unraveller(target.start))(jnp.asarray(spread))
