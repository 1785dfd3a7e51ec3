"""The mode of a posterior by Newton's method, with the Laplace covariance."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import jax
import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.newton import MAX_ITERATIONS, Derivatives, Mode, maximise
from bpa_ppl.densities.starts import is_usable_start
from bpa_ppl.densities.target import (
    Sites,
    Target,
    potential,
    unconstrain_each,
    unflatten,
)
from bpa_ppl.errors import DataError

#: The mode of a hierarchy of more values is not searched: its Hessian is expensive.
_MOST_SEARCHED = 1000
#: Other modes of a program of at most so many values are searched from so many draws of its prior.
_FEW, _SEARCHES, _SEED = 50, 8, 0
#: Different modes are so many posterior standard deviations apart; less probable ones by this
#: factor, in nats, are left out.
_APART, _NEGLIGIBLE = 3.0, 7.0


def is_large_hierarchy(target: Target) -> bool:
    """Return whether a model with several sites has too many values for Newton's method."""
    return not target.is_log_linear and target.dimension > _MOST_SEARCHED


@jax.jit
def _differentiate(target: Target, position: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the potential at a flat position, its gradient and its Hessian."""

    def slope(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        result = jax.value_and_grad(lambda x: potential(target, unflatten(x, target.start)))(flat)
        return result[1], result

    # Forward over reverse, because the gradient of the likelihood is a custom rule.
    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(position)
    return value, gradient, hessian


def find_mode(target: Target, *, last_step: bool = True) -> Mode:
    """Find the mode from the starting point, with an exact gradient and Hessian.

    The default model is log-concave, so that the search converges from anywhere; for other models
    this finds a local mode. The search runs in NumPy: a handful of steps is not worth the
    compilation of its loops.

    Args:
        target: the posterior.
        last_step: as for `maximise`.

    Raises:
        DataError: if it is a hierarchy of more than 1000 values.
    """
    if is_large_hierarchy(target):
        raise DataError(
            f"the mode of a hierarchy of {target.dimension:,} values is not searched, as it would "
            "take too long: use the sampler nuts, which needs no mode",
            parameter="sampler",
            code="not-supported",
        )

    def density(position: Float64) -> Derivatives:
        energy, gradient, hessian = jax.device_get(_differentiate(target, position))
        return -float(energy), -gradient, hessian, None

    target.progress(0, 1, "search for the mode")
    start = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(target.start)])
    return maximise(density, start, last_step=last_step)[0]


#: The modes of posteriors, so that each is searched once.
_MODES: WeakKeyDictionary[Target, tuple[Mode, ...]] = WeakKeyDictionary()


def mode_of(target: Target) -> Mode:
    """Return the mode of a posterior, the most probable one; searched once for each target."""
    return modes_of(target)[0]


def modes_of(target: Target) -> tuple[Mode, ...]:
    """Return the modes of a posterior that were found, the most probable first.

    The posterior of the weights of lists has one. Of another program with at most 50 values, the
    search also starts at draws of the prior. Modes are different if they are three posterior
    standard deviations apart, and those with less than a thousandth of the mass of the most
    probable one, by Laplace's approximation, are left out.
    """
    if target not in _MODES:
        first = find_mode(target)
        _MODES[target] = _find_others(target, first) if _may_have_several(target) else (first,)
    return _MODES[target]


def _may_have_several(target: Target) -> bool:
    return not target.has_lists and target.dimension <= _FEW


def spread_over_modes(target: Target, positions: Float64, centre: Float64) -> Float64:
    """Return starts around all modes in turn, if several were found; else the given ones.

    A chain that never leaves its mode is not noticed if all others are at the same one.

    Args:
        target: the posterior.
        positions: (chains, d) of the starts.
        centre: (d,) around which they are.
    """
    modes = modes_of(target) if _may_have_several(target) else ()
    if len(modes) < 2:
        return positions
    places = np.array([modes[k % len(modes)].position for k in range(len(positions))])
    return np.asarray(positions + places - centre)


def repeat_start(target: Target, chains: int) -> Sites:
    """Return the same start for each chain, or all modes in turn, if several were found."""
    centre = np.asarray(target.initial_position)
    same = np.tile(centre, (chains, 1))
    return unflatten(spread_over_modes(target, same, centre), target.start)


def _find_others(target: Target, first: Mode) -> tuple[Mode, ...]:
    """Return the modes that searches from draws of the prior find, and the first one."""
    drawn = jax.device_get(unconstrain_each(target, target.draw_prior(_SEARCHES, _SEED)))
    starts = [{name: values[k] for name, values in drawn.items()} for k in range(_SEARCHES)]
    searched = [find_mode(replace(target, start=z)) for z in starts if is_usable_start(target, z)]
    found = [mode for mode in (first, *searched) if mode.converged]
    result: list[Mode] = []
    for mode in sorted(found, key=lambda mode: -mode.log_evidence):
        negligible = bool(result) and mode.log_evidence < result[0].log_evidence - _NEGLIGIBLE
        if not negligible and all(_measure_distance(mode, one) > _APART for one in result):
            result.append(mode)
    return tuple(result) or (first,)


def _measure_distance(mode: Mode, other: Mode) -> float:
    """Return the distance of two modes in posterior standard deviations around the second."""
    step = mode.position - other.position
    return float(np.sqrt(step @ np.linalg.solve(other.covariance, step)))


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


def disperse_starts(target: Target, mode: Mode, chains: int) -> Sites:
    """Return z of a start for each chain, drawn from N(mode, 2 × Laplace), of all modes in turn.

    They are wider than the posterior, so that chains that still depend on their start disagree.
    """
    rng = np.random.default_rng([target.seed, 2])
    draws = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=chains)
    return unflatten(spread_over_modes(target, draws, mode.position), target.start)
