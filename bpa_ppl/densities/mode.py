"""Where searches and chains start, and the modes of a posterior.

Chains and searches start at the medians of the prior, if the density is finite there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer import init_to_uniform
from scipy.optimize import minimize

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.improper_priors import RADIUS
from bpa_ppl.densities.newton import HALVINGS, MAX_ITERATIONS, Derivatives, Mode, maximise
from bpa_ppl.densities.own_models import model_error
from bpa_ppl.densities.target import (
    RUN_ONCE,
    SEARCH_SEED,
    Sites,
    Target,
    constrain,
    evaluate_gradients,
    inspect_model,
    potential,
    unconstrain_each,
    unconstrain_sites,
    unflatten,
    without_start,
)
from bpa_ppl.errors import DataError, UsageError, list_names

_NO_MODE = "use the sampler nuts, which needs no mode"
#: A site starts at the median of this many draws of its prior.
_START_DRAWS = 15
#: Step of central differences of gradients, relative to values above 1.
_DIFFERENCE = 1e-4
#: The mode of a program of more values is not searched: its Hessian is expensive.
_MOST_SEARCHED = 1000
#: Other modes of a program of at most so many values are searched from so many places.
_MAX_VALUES, _SEARCHES = 50, 8
#: Different modes are so many posterior standard deviations apart; less probable ones by this
#: factor, in nats, are left out.
_APART, _NEGLIGIBLE_NATS = 3.0, 7.0


@partial(jax.jit, compiler_options=RUN_ONCE)
def start_at_medians(target: Target, given: Sites) -> Sites:
    """Return z at the medians of the prior, or at given values that the supports contain."""
    seeded = handlers.seed(target.program, jax.random.key(0))
    start = partial(_initial_value, given)
    values = handlers.substitute(seeded, substitute_fn=start)
    return unconstrain_sites(handlers.trace(values).get_trace(*target.data))


def _initial_value(given: Sites, site: Any) -> Any:
    """Return the start of a site: a given value, else the median of draws of its prior.

    `partial(_initial_value, given)` is an initialisation strategy of NumPyro.
    """
    if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
        return init_to_uniform(site)
    prior, options = site["fn"], site["kwargs"]
    transform = biject_to(prior.support)

    def draw(key: jax.Array) -> Any:
        return transform.inv(prior(rng_key=key, sample_shape=options["sample_shape"]))

    draws = jax.vmap(draw)(jax.random.split(options["rng_key"], _START_DRAWS))
    median = transform(jnp.median(draws, axis=0))
    if (value := given.get(site["name"])) is None:
        return median
    # A value outside of the support, or at its edge, is not the value of any finite z.
    z = transform.inv(value)
    same = jnp.isfinite(z).all() & jnp.allclose(transform(z), value, rtol=1e-6, atol=1e-9)
    return jnp.where(same, value, median)


def is_usable_start(target: Target, z: Sites) -> bool:
    """Return whether the density and its gradient are finite numbers at a value of z."""
    leaves = jax.tree.leaves(value_and_slope(target, z))
    return all(np.isfinite(leaf).all() for leaf in leaves)


def value_and_slope(target: Target, z: Sites) -> tuple[jax.Array, Sites]:
    """Return the potential and its gradient, by one program before and after a start is found."""
    result: tuple[jax.Array, Sites] = _value_and_slope(without_start(target), z)
    return result


@partial(jax.jit, compiler_options=RUN_ONCE)
def _value_and_slope(target: Target, z: Sites) -> tuple[jax.Array, Sites]:
    return jax.value_and_grad(lambda sites: potential(target, sites))(z)


@partial(jax.jit, compiler_options=RUN_ONCE)
def _site_densities(target: Target, z: Sites) -> tuple[Sites, dict[str, Sites]]:
    """Return the log density of each site, and the sum of its gradient by each latent site."""

    def densities(z: Sites) -> Sites:
        seeded = handlers.seed(target.program, jax.random.key(0))
        values = handlers.substitute(seeded, data=constrain(target, z))
        sites = handlers.trace(values).get_trace(*target.data)
        sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
        return {name: site["fn"].log_prob(site["value"]).sum() for name, site in sampled.items()}

    return densities(z), jax.tree.map(jnp.sum, jax.jacrev(densities)(z))


def make_start_error(target: Target, z: Sites, remedy: str = "") -> UsageError:
    """Return the error of a model whose density cannot be sampled from a value of z.

    Args:
        target: the posterior.
        z: the start.
        remedy: what else the user may do where the density is 0.
    """
    values = {name: constrain(target, z)[name] for name in inspect_model(target).latent}
    densities, slopes, values = jax.device_get((*_site_densities(target, z), values))
    infinite = [name for name, density in densities.items() if not np.isfinite(density)]
    zero = [name for name in infinite if densities[name] == -np.inf]
    steep = [
        f"{n} by {by}" for n, of in slopes.items() for by, x in of.items() if not np.isfinite(x)
    ]
    if zero:
        problem = f"density of the site {zero[0]} of the model is 0"
        remedy = f"bound sites by distributions such as TruncatedNormal{remedy}"
    elif infinite:
        problem = f"log density of the site {infinite[0]} of the model is not a number"
        remedy = "logarithms, roots and scales need positive values, such as those of jnp.exp"
    else:
        problem = f"gradient of the site {' '.join(steep[:1])} of the model is not finite"
        remedy = "jnp.sqrt and jnp.linalg.norm have none at 0: add a small number to their argument"
    start = list_names(f"{name} = {np.round(x, 3)}" for name, x in values.items())
    return model_error(f"the {problem} where samplers start ({start}): {remedy}", "bad-number")


def is_too_large(target: Target) -> bool:
    """Return whether a program has too many values for Newton's method."""
    return not target.hints.log_concave and target.dimension > _MOST_SEARCHED


@jax.jit
def _differentiate(target: Target, position: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the potential at a flat position, its gradient and its Hessian."""

    def slope(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        result = jax.value_and_grad(lambda x: potential(target, unflatten(x, target.start)))(flat)
        return result[1], result

    # Forward over reverse, because the gradient of the likelihood is a custom rule.
    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(position)
    return value, gradient, hessian


def _has_hessian(target: Target, position: Float64) -> bool:
    """Return whether JAX can differentiate the gradient of a program.

    It cannot where a function has its own rule for the gradient, as `odeint`, or where JAX has no
    rule for the second derivative, as of `gammaincc`; JAX raises errors of several kinds.
    """
    try:
        jax.eval_shape(_differentiate, target, position)
    except (NotImplementedError, TypeError, ValueError):
        return False
    return True


def _difference_gradients(target: Target, position: Float64) -> tuple[float, Float64, Float64]:
    """Return what `_differentiate` does, with a Hessian by central differences."""
    value, gradient = target.value_and_gradient(position)
    width = _DIFFERENCE * np.maximum(np.abs(position), 1)
    moved = position + np.vstack([np.diag(width), -np.diag(width)])
    slopes = np.asarray(evaluate_gradients(target, unflatten(moved, target.start)))
    ahead, behind = np.split(slopes, 2)
    hessian = (ahead - behind) / (2 * width[:, None])
    return -value, -gradient, (hessian + hessian.T) / 2


def find_mode(target: Target, *, last_step: bool = True) -> Mode:
    """Find the mode from the starting point.

    Of a log-concave posterior the search converges from anywhere; of others this finds a local
    mode. Where a program has no second derivative, BFGS searches by gradients,
    and the Hessian at its end is that of their differences.

    Args:
        target: the posterior.
        last_step: as for `maximise`.

    Raises:
        DataError: if it is a program of more than 1000 values.
    """
    if is_too_large(target):
        message = f"to search the mode of {target.dimension:,} values takes too long: {_NO_MODE}"
        raise DataError(message, parameter="sampler", code="not-supported")

    start = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(target.start)])
    differentiate: Callable[..., Any] = _differentiate
    if not _has_hessian(target, start):
        differentiate = _difference_gradients
        slope = target.value_and_gradient
        start = minimize(lambda x: tuple(-part for part in slope(x)), start, jac=True).x

    def density(position: Float64) -> Derivatives:
        energy, gradient, hessian = jax.device_get(differentiate(target, position))
        return -float(energy), -gradient, hessian, None

    return maximise(density, start, last_step=last_step)[0]


def mode_of(target: Target) -> Mode:
    """Return the mode of a posterior, the most probable one; searched once for each target."""
    return modes_of(target)[0]


def modes_of(target: Target) -> list[Mode]:
    """Return the modes of a posterior that were found, the most probable first; searched once.

    Where a posterior may have several, and has at most 50 values, the search also starts at draws
    of the prior and at uniform places. Modes are three posterior standard
    deviations apart, and have at least a thousandth of the mass of the most probable one.
    """
    if not target.modes:
        first = find_mode(target)
        target.modes[:] = _find_others(target, first) if may_have_several(target) else [first]
    return target.modes


def may_have_several(target: Target) -> bool:
    """Return whether other modes of a posterior are searched."""
    return not target.hints.one_mode and target.dimension <= _MAX_VALUES


def has_several_modes(target: Target) -> bool:
    """Return whether the search finds several modes of a program."""
    return may_have_several(target) and len(modes_of(target)) > 1


def spread_over_modes(target: Target, positions: Float64, centre: Float64) -> Float64:
    """Return starts (chains, d) around all modes in turn; with one mode, the given ones.

    A chain that never leaves its mode is not noticed if all others are at the same one.
    """
    if not has_several_modes(target):
        return positions
    modes = modes_of(target)
    places = np.array([modes[k % len(modes)].position for k in range(len(positions))])
    return np.asarray(positions + places - centre)


def draw_places(target: Target, count: int, seed: int) -> Float64:
    """Return places in unconstrained space, (count, d), uniform in (−2, 2) as NumPyro's starts.

    Each value has one in each of `count` equal parts of this range (a Latin hypercube).
    """
    rng = np.random.default_rng([seed, 10])
    parts = rng.permuted(np.tile(np.arange(count), (target.dimension, 1)), axis=1).T
    return RADIUS * (2 * (parts + rng.uniform(size=parts.shape)) / count - 1)


def scatter_starts(target: Target, chains: int, seed: int) -> Float64:
    """Return a start for each chain, (chains, d), for samplers that adapt themselves.

    They are near all modes in turn, if several were found, and near the start of a posterior of one
    mode. Otherwise they are scattered around the medians of the prior, by up to 2: chains that all
    start at one place may all stay at the same mode.
    """
    centre = np.asarray(target.initial_position)
    if target.hints.one_mode or has_several_modes(target):
        near = target.initial_positions(chains, seed)
        return spread_over_modes(target, near, centre)
    starts = centre + draw_places(target, chains, seed)
    for start in starts:
        for _ in range(HALVINGS):
            if is_usable_start(target, unflatten(start, target.start)):
                break
            start += (centre - start) / 2
    return starts


def repeat_start(target: Target, chains: int) -> Sites:
    """Return the same start for each chain, or all modes in turn, if several were found."""
    centre = np.asarray(target.initial_position)
    same = np.tile(centre, (chains, 1))
    return unflatten(spread_over_modes(target, same, centre), target.start)


def _find_others(target: Target, first: Mode) -> list[Mode]:
    """Return the modes that searches from other places find, and the first one."""
    info, starts, of_prior = inspect_model(target), list[Sites](), _SEARCHES // 2
    if not info.improper:
        from_prior = target.draw_prior(SEARCH_SEED)
        drawn = {name: from_prior[name][:of_prior] for name in info.latent}
        drawn = jax.device_get(unconstrain_each(target, drawn))
        starts = [{name: values[k] for name, values in drawn.items()} for k in range(of_prior)]
    places = draw_places(target, _SEARCHES - len(starts), SEARCH_SEED)
    starts += [unflatten(place, target.start) for place in places]
    searched = [find_mode(replace(target, start=z)) for z in starts if is_usable_start(target, z)]
    converged = [mode for mode in (first, *searched) if mode.converged]
    result: list[Mode] = []
    for mode in sorted(converged, key=lambda mode: -mode.log_evidence):
        negligible = bool(result) and mode.log_evidence < result[0].log_evidence - _NEGLIGIBLE_NATS
        if not negligible and all(_measure_distance(mode, one) > _APART for one in result):
            result.append(mode)
    return result or [first]


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
        message = f"no mode of this posterior in {MAX_ITERATIONS} Newton steps: {_NO_MODE}"
        raise DataError(message, parameter="sampler", code="bad-data")
    return mode


def disperse_starts(target: Target, mode: Mode, chains: int, seed: int) -> Sites:
    """Return z of a start for each chain, drawn from N(mode, 2 × Laplace), of all modes in turn.

    They are wider than the posterior, so that chains that still depend on their start disagree.
    """
    rng = np.random.default_rng([seed, 2])
    # Rounding errors of features in very different units may be taken for negative variances.
    draws = rng.multivariate_normal(
        mode.position, 2 * mode.covariance, size=chains, check_valid="ignore"
    )
    return unflatten(spread_over_modes(target, draws, mode.position), target.start)
