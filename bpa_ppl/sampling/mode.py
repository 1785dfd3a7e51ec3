"""The mode of a posterior by Newton's method, with the Laplace covariance; the sampler `map`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors.base import Prior
from bpa_ppl.posterior.record import Figures
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.sampling.target import (
    Model,
    Sampled,
    Sites,
    Target,
    model_info,
    potential,
    starting_point,
    unflatten,
)
from bpa_ppl.weights import Match

#: Squared length of the last Newton step, in posterior standard deviations, that ends the search.
TOLERANCE = 1e-6
MAX_ITERATIONS = 50
_HALVINGS = 30
_SINGULAR = 1e-14  # of the largest eigenvalue of a Hessian
_SIMILAR = 1e-6  # ratio of curvatures down to which units are not changed


class Mode(NamedTuple):
    """The maximum of the posterior density, and the curvature there (d unconstrained values).

    Attributes:
        position: (d,) the mode.
        potential_energy: () −log p(z, data) there.
        covariance: (d, d) the inverse Hessian of the potential: the Laplace covariance.
        decrement: the squared length of the last step in posterior standard deviations.
        iterations: Newton steps taken.
        converged: whether `decrement` fell below `TOLERANCE` where the Hessian is positive
            definite. On an endless slope, such as a funnel, steps may become short too.
    """

    position: Float64
    potential_energy: float
    covariance: Float64
    decrement: float
    iterations: int
    converged: bool

    @property
    def log_evidence(self) -> float:
        """The evidence, log p(A), by Laplace's approximation, log p(A, z*) + ½ log |2π Σ|.

        z* is the mode of the posterior in unconstrained space and Σ the inverse of the negative
        Hessian there (Tierney & Kadane 1986; MacKay 1992).

        >>> standard_normal = Mode(np.zeros(1), np.log(2 * np.pi) / 2, np.eye(1), 0.0, 1, True)
        >>> bool(abs(standard_normal.log_evidence) < 1e-12)
        True
        """
        return float(np.linalg.slogdet(2 * np.pi * self.covariance)[1] / 2 - self.potential_energy)

    @property
    def figures(self) -> Figures:
        """The evidence and how the search ended, for a posterior's record."""
        return Figures(
            log_evidence=self.log_evidence if self.converged else None,
            newton_iterations=self.iterations,
            newton_decrement=self.decrement,
        )


#: A flat position, the potential there, its gradient, (d,), and its Hessian, (d, d).
_Point = tuple[Float64, float, Float64, Float64]


@jax.jit
def _derivatives(target: Target, position: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the potential at a flat position, its gradient and its Hessian."""

    def slope(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        result = jax.value_and_grad(lambda x: potential(target, unflatten(x, target.start)))(flat)
        return result[1], result

    # Forward over reverse, because the gradient of the likelihood is a custom rule.
    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(position)
    return value, gradient, hessian


def find_mode(target: Target) -> Mode:
    """Find the mode from the starting point, with an exact gradient and Hessian.

    The default model is log-concave, so that damped Newton steps converge from anywhere
    (Boyd & Vandenberghe 2004, §9.5); for other models this finds a local mode. The search runs in
    NumPy: a handful of steps is not worth the compilation of its loops.
    """

    def evaluate(position: Float64) -> _Point:
        value, gradient, hessian = jax.device_get(_derivatives(target, position))
        return position, float(value), gradient, hessian

    def line_search(point: _Point, direction: Float64, decrement: float) -> _Point:
        """Halve the step until Armijo's rule holds, up to rounding."""
        position, value = point[:2]
        slack = 1e-6 * (1 + abs(value))

        def accepted(scale: float, new: float) -> bool:
            return new <= value - 1e-4 * scale * decrement + slack

        # Most steps are full steps, and the next one needs the curvature where they end.
        full = evaluate(position + direction)
        if accepted(1.0, full[1]):
            return full
        for halvings in range(1, _HALVINGS):
            scale = 0.5**halvings
            trial = unflatten(position + scale * direction, target.start)
            if accepted(scale, float(potential(target, trial))):
                break
        return evaluate(position + scale * direction)

    target.progress(0, 1, "search for the mode")
    point = evaluate(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(target.start)]))
    curvature, definite = np.full((), np.nan), False
    decrement, iteration = np.inf, 0
    while decrement > TOLERANCE and iteration < MAX_ITERATIONS:
        *_, gradient, hessian = point
        curvature, definite = _positive_definite(hessian)
        direction = -_solve(curvature, gradient)
        decrement = float(-gradient @ direction)
        point = line_search(point, direction, decrement)
        iteration += 1
    position, potential_energy, *_ = point
    # The curvature where the last step began: that step was shorter than the tolerance.
    covariance = _solve(curvature, np.eye(len(position)))
    return Mode(
        position=position,
        potential_energy=potential_energy,
        covariance=(covariance + covariance.T) / 2,
        decrement=decrement,
        iterations=iteration,
        converged=decrement <= TOLERANCE and definite,
    )


def _positive_definite(matrix: Float64) -> tuple[Float64, bool]:
    """Return a symmetric matrix with positive eigenvalues, and whether they were positive before.

    This makes every step a descent direction. A matrix with NaN or infinities becomes NaN, which
    ends the search.
    """
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, np.nan), False
    # Weights of features in very different units have very different curvatures.
    diagonal = np.abs(np.diag(matrix))
    differ = diagonal.min() < _SIMILAR * diagonal.max()
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0)) if differ else np.ones(len(matrix))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2 / np.outer(unit, unit))
    largest = np.abs(values).max()
    positive = (vectors * np.maximum(np.abs(values), 1e-10 * largest)) @ vectors.T
    return positive * np.outer(unit, unit), bool(values.min() > _SINGULAR * largest)


def _solve(matrix: Float64, right: Float64) -> Float64:
    """Solve a system of equations; NaN where it has no unique solution."""
    if not np.isfinite(matrix).all() or not matrix.any():
        return np.full_like(right, np.nan)
    return np.asarray(np.linalg.solve(matrix, right), np.float64)


#: The modes of posteriors, so that each is searched once.
_MODES: WeakKeyDictionary[Target, Mode] = WeakKeyDictionary()


def mode_of(target: Target) -> Mode:
    """Return the mode of a posterior; the search runs once for each target."""
    if target not in _MODES:
        _MODES[target] = find_mode(target)
    return _MODES[target]


def require_mode(target: Target) -> Mode:
    """Return the mode of a posterior.

    Raises:
        DataError: if the search did not converge.
    """
    mode = mode_of(target)
    if not mode.converged:
        raise DataError(
            f"no mode of this posterior was found in {MAX_ITERATIONS} Newton steps: use the "
            "sampler nuts, which needs no mode",
            parameter="sampler",
        )
    return mode


def posterior_target(
    lists: Lists,
    prior: Prior,
    match: Match,
    likelihood: Likelihood,
    model: Model = log_linear,
    seed: int = 0,
) -> Target:
    """Return the log density of a posterior, with x64 enabled: the third of the steps of `adapt`.

    It starts at the mean of the prior or, where the likelihood is not log-concave, at the mode of a
    similar one that is.

    Args:
        lists: the data.
        prior: of the free features.
        match: the weights, matched to the features.
        likelihood: with all its settings.
        model: the NumPyro program.
        seed: the only source of randomness.
    """

    def build(likelihood: Likelihood) -> Target:
        prepared, observing = likelihood.prepare(lists)
        arrays = prior._replace(names=None, posterior=None)
        on_device, arrays = jax.device_put((prepared, arrays))
        return Target(model, observing, on_device, arrays, {}, match, seed)

    target = build(likelihood)
    start, log_concave = starting_point(target), likelihood.log_concave_start()
    if log_concave is not None:
        simple = build(log_concave)
        common = {name: start[name] for name in model_info(simple).latent}
        mode = find_mode(replace(simple, start=common))
        if mode.converged:
            start = {**start, **unflatten(mode.position, common)}
    return replace(target, start=start)


def dispersed_starts(target: Target, mode: Mode, chains: int) -> Sites:
    """Return z of a start for each chain, drawn from N(mode, 2 × Laplace).

    They are wider than the posterior, so that chains that still depend on their start disagree.
    """
    rng = np.random.default_rng([target.seed, 2])
    draws = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=chains)
    return unflatten(draws, target.start)


class PosteriorMode(Sampler, frozen=True):
    """The mode of the posterior as its only draw; it has no settings.

    >>> PosteriorMode()
    PosteriorMode()
    """

    exact = False

    def sample(self, target: Target) -> Sampled:
        """Return the mode of the posterior."""
        mode = mode_of(target)
        target.progress(1, 1, f"{mode.iterations} Newton steps")
        z = unflatten(mode.position, target.start)
        return Sampled(
            z=jax.tree.map(lambda value: value[None, None], z),
            kind="point",
            log_density=np.full((1, 1), -mode.potential_energy),
            mode=mode.position,
            figures=mode.figures,
        )
