"""Modes by Newton's method, and Laplace's approximation there.

Newton's method runs in NumPy: a handful of steps is not worth the compilation of its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.posterior.record import Figures

#: Squared length of the last step, in posterior standard deviations, that ends the search.
_STEP_TOLERANCE = 1e-6
MAX_ITERATIONS = 50
HALVINGS = 30
_SINGULAR = 1e-14  # of the largest eigenvalue of a Hessian
_SIMILAR = 1e-6  # ratio of curvatures down to which units are not changed
#: Of larger matrices the eigenvalues are computed only if one is not positive.
_MANY = 100

#: A log density of d values at a point: its value; its gradient, (d,); its Hessian, (d, d), that is
#: minus the second derivative; and a positive definite matrix that steps use in place of the
#: Hessian. Without one, None, they use the absolute eigenvalues of the Hessian.
Derivatives = tuple[float, Float64, Float64, Float64 | None]


class Mode(NamedTuple):
    """The maximum of the posterior density, and the curvature there (d unconstrained values).

    Attributes:
        position: (d,) the mode.
        potential_energy: () −log p(z, data) there.
        covariance: (d, d) the inverse Hessian of the potential: the Laplace covariance.
        decrement: the squared length of the last step in posterior standard deviations.
        iterations: Newton steps taken.
        converged: whether `decrement` fell to the tolerance where the Hessian is positive
            definite. On an unbounded slope, such as a funnel, steps may also become short.
    """

    position: Float64
    potential_energy: float
    covariance: Float64
    decrement: float
    iterations: int
    converged: bool

    @property
    def log_evidence(self) -> float:
        """The evidence by Laplace's approximation, log p(A, z*) + ½ log |2π Σ| (MacKay 1992).

        z* is the mode in unconstrained space and Σ the inverse of the negative Hessian there.

        >>> standard_normal = Mode(np.zeros(1), np.log(2 * np.pi) / 2, np.eye(1), 0.0, 1, True)
        >>> bool(abs(standard_normal.log_evidence) < 1e-12)
        True
        """
        return laplace_evidence(-self.potential_energy, self.covariance)

    @property
    def figures(self) -> Figures:
        """The evidence and how the search ended, for a posterior's record."""
        return Figures(
            log_evidence=self.log_evidence if self.converged else None,
            newton_iterations=self.iterations,
            newton_decrement=self.decrement,
        )


def maximise(
    density: Callable[[Float64], Derivatives],
    start: Float64,
    *,
    tolerance: float = _STEP_TOLERANCE,
    iterations: int = MAX_ITERATIONS,
    last_step: bool = True,
) -> tuple[Mode, Float64]:
    """Find the maximum of a log density by damped Newton steps.

    The search converges from anywhere if the density is log-concave
    (Boyd & Vandenberghe 2004, §9.5); otherwise it finds a local maximum.

    Args:
        density: returns the log density at a position, with its derivatives.
        start: (d,) where the search begins.
        tolerance: of the squared length of a step, in posterior standard deviations.
        iterations: the largest number of steps.
        last_step: whether the step that is within the tolerance is taken too.

    Returns:
        the mode, whose covariance is that where the last step began; and the Hessian there.

    >>> def normal(x):
    ...     return -float(x @ x) / 2, -x, np.eye(1), None
    >>> mode, hessian = maximise(normal, np.array([3.0]))
    >>> mode.position.tolist(), mode.converged, mode.iterations
    ([0.0], True, 2)
    """
    position, (value, gradient, hessian, metric) = start, density(start)
    curvature, definite = hessian, False
    decrement, iteration = np.inf, 0
    while decrement > tolerance and iteration < iterations:
        if metric is None:
            curvature, definite = make_positive_definite(hessian)
        else:
            curvature, definite = metric, True
        step = solve(curvature, gradient)
        with np.errstate(over="ignore"):  # of extreme features
            decrement = float(gradient @ step)
        if decrement <= tolerance and not last_step:
            break
        # Halve the step until Armijo's rule holds, up to rounding.
        slack = 1e-6 * (1 + abs(value))
        for halvings in range(HALVINGS):
            scale = 0.5**halvings
            reached = density(position + scale * step)
            if reached[0] >= value + 1e-4 * scale * decrement - slack:
                break
        position, (value, gradient, hessian, metric) = position + scale * step, reached
        iteration += 1
    converged = decrement <= tolerance and definite
    covariance = laplace_covariance(curvature)
    return Mode(position, -value, covariance, decrement, iteration, converged), hessian


def make_positive_definite(matrix: Float64) -> tuple[Float64, bool]:
    """Return a symmetric matrix with positive eigenvalues, and whether they were positive before.

    This makes every step an ascent. A matrix with NaN or infinities becomes NaN, which ends the
    search.

    >>> make_positive_definite(np.array([[2.0, 0.0], [0.0, -1.0]]))[0].tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, np.nan), False
    if len(matrix) > _MANY:
        with suppress(np.linalg.LinAlgError):
            np.linalg.cholesky(matrix)
            return (matrix + matrix.T) / 2, True
    # Weights of features in very different units have very different curvatures.
    diagonal = np.abs(np.diag(matrix))
    differ = diagonal.min() < _SIMILAR * diagonal.max()
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0)) if differ else np.ones(len(matrix))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2 / np.outer(unit, unit))
    largest = np.abs(values).max()
    positive = (vectors * np.maximum(np.abs(values), 1e-10 * largest)) @ vectors.T
    return positive * np.outer(unit, unit), bool(values.min() > _SINGULAR * largest)


def solve(matrix: Float64, right: Float64) -> Float64:
    """Solve a system of equations; NaN where it has no unique solution."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def laplace_covariance(curvature: Float64) -> Float64:
    """Return the covariance of Laplace's approximation, the inverse of the curvature, (d, d)."""
    covariance = solve(curvature, np.eye(len(curvature)))
    return (covariance + covariance.T) / 2


def laplace_evidence(value: float, covariance: Float64) -> float:
    """Return log p(z*) + ½ log |2π Σ|, Laplace's approximation of the log integral of a density.

    >>> round(laplace_evidence(0.0, np.eye(1)), 3)  # log √(2π)
    0.919
    """
    return float(np.linalg.slogdet(2 * np.pi * covariance)[1] / 2 + value)


def combine_components(
    log_p: Float64, means: Float64, covariances: Float64
) -> tuple[Float64, Float64, Float64]:
    """Return the shares (n,) of the components of a mixture, its mean (d,) and covariance (d, d).

    >>> means, covariances = np.array([[-1.0], [1.0]]), np.ones((2, 1, 1))
    >>> share, mean, covariance = combine_components(np.zeros(2), means, covariances)
    >>> share.tolist(), mean.tolist(), covariance.tolist()
    ([0.5, 0.5], [0.0], [[2.0]])
    """
    share = np.asarray(softmax(log_p))
    mean = share @ means
    between = (means - mean).T * share @ (means - mean)
    return share, mean, np.tensordot(share, covariances, 1) + between
