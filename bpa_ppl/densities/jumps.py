"""Where a density jumps, as where a program compares parameters, or a bound depends on one."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from bpa_ppl.densities.target import RUN_ONCE, Sites, Target, potential, unflatten, without_start

#: Lines through pairs of draws, parts of each, and how often the worst part is divided again. Then
#: it is so short that only a jump changes the density.
_LINES, _PARTS, _ROUNDS = 16, 48, 7
#: The line goes on at both sides by so many distances of the two draws.
_BEYOND = 1.0
#: Of the log density, in nats; and how far below that of all draws a jump matters.
_LEAST_JUMP, _DEPTH = 0.01, 20.0


def find_jumps(target: Target, z: Sites, seed: int) -> tuple[int, tuple[str, ...]]:
    """Return on how many of 16 lines through pairs of draws a density jumps, and at which sites.

    On each line, the part is divided again where the change of the density differs most from what
    its gradient says. At a jump it differs in however short a part. The sites are those whose own
    change, from one end of the part to the other, makes it jump.

    Args:
        target: the posterior.
        z: its draws, with leading dimensions (chains, draws).
        seed: of the choice of the pairs.
    """
    count = np.prod(np.shape(next(iter(z.values())))[:2])
    flat = np.concatenate([np.reshape(z[name], (count, -1)) for name in sorted(z)], axis=1)
    rng = np.random.default_rng([seed, 11])
    first, second = flat[rng.integers(len(flat), size=(2, _LINES))]
    step = second - first
    begin, end = first - _BEYOND * step, second + _BEYOND * step
    share, line = np.linspace(0, 1, _PARTS + 1)[:, None, None], np.arange(_LINES)
    limit = np.inf
    for number in range(_ROUNDS):
        points = begin + share * (end - begin)
        sites = unflatten(points.reshape(-1, points.shape[2]), target.start)
        values, slopes = jax.device_get(_evaluate(without_start(target), sites))
        values, slopes = values.reshape(points.shape[:2]), slopes.reshape(points.shape)
        if not number:
            at_draws = values[:: _PARTS // 3]
            limit = np.nanmax(at_draws[1:3]) + _DEPTH
        with np.errstate(invalid="ignore"):
            expected = ((slopes[1:] + slopes[:-1]) / 2 * np.diff(points, axis=0)).sum(axis=2)
            error = np.abs(np.diff(values, axis=0) - expected)
            # A part where the density ends differs infinitely; one without a density does not.
            ends = np.isposinf(values[1:]) != np.isposinf(values[:-1])
        error = np.where(ends, np.inf, np.nan_to_num(error, nan=0.0, posinf=0.0))
        error[np.fmin(values[1:], values[:-1]) > limit] = 0.0
        worst = error.argmax(axis=0)
        begin, end = points[worst, line], points[worst + 1, line]
    jumps = error.max(axis=0) > _LEAST_JUMP
    return int(jumps.sum()), _find_sites(target, begin[jumps], end[jumps])


def _find_sites(target: Target, begin: np.ndarray, end: np.ndarray) -> tuple[str, ...]:
    """Return the sites whose change makes a density jump, between two points of n lines, (n, d)."""
    if not len(begin):
        return ()
    first, second = unflatten(begin, target.start), unflatten(end, target.start)
    names = sorted(target.start)
    changes = [{**first, name: second[name]} for name in names]
    points = {n: np.concatenate([of[n] for of in (first, *changes)]) for n in names}
    values = np.asarray(_evaluate(without_start(target), points)[0]).reshape(-1, len(begin))
    with np.errstate(invalid="ignore"):
        jumps = ~(np.abs(values[1:] - values[0]) <= _LEAST_JUMP).all(axis=1)
    # The points are at both sides of the jump, but none of the sites may have crossed it alone.
    return tuple(np.array(names)[jumps].tolist()) or tuple(names)


@partial(jax.jit, compiler_options=RUN_ONCE)
def _evaluate(target: Target, z: Sites) -> tuple[jax.Array, jax.Array]:
    """Return the potential at n values of z, (n,), and its gradients, (n, d)."""

    def one(z: Sites) -> tuple[jax.Array, jax.Array]:
        value, slope = jax.value_and_grad(lambda sites: potential(target, sites))(z)
        return value, ravel_pytree(slope)[0]

    return jax.vmap(one)(z)
