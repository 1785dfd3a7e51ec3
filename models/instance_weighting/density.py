"""The density of the parameters φ of a weighted mixture in JAX, which gradients come from.

It equals `log_likelihood` of `mixture` plus the log density of the prior.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bpa_ppl.models.instance_weighting.mixture import BOUND, PhiPrior, Problem, Variant


@partial(jax.jit, static_argnums=1)  # compiled as a whole, because single operations take long
def log_likelihoods(
    problem: Problem, variant: Variant, mixing: Any, gamma: Any, weights: Any
) -> jax.Array:
    """Return n(x, y) log p(x | y; φ) of each dev pair (D,), differentiable by JAX.

    Args:
        problem: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        mixing: () α or β.
        gamma: () γ.
        weights: (Q,) λ.
    """
    groups, group, at = len(problem.missing), problem.query_group, problem.query_row
    eta = jnp.clip(jnp.asarray(problem.features, weights.dtype) @ weights, -BOUND, BOUND)
    factor = jax.nn.sigmoid(eta) if variant.link == "logistic" else jnp.exp(eta)
    weighted = problem.count * factor
    total = jax.ops.segment_sum(weighted, problem.group, groups, indices_are_sorted=True)
    rows, in_out = problem.starts[1:] - problem.starts[:-1], problem.outside
    divisor = jnp.where(in_out, problem.missing * total + gamma, 1.0)
    uniform = in_out / jnp.maximum(problem.missing * rows, 1.0)
    if variant.mixture == "map":
        share = problem.in_total / (problem.in_total + mixing)
    else:
        share = jnp.full(groups, mixing)
    if variant.complete:
        share = jnp.where(in_out, jnp.where(problem.in_total > 0, share, 0.0), 1.0)
    count = jnp.append(weighted, 0.0)[at]
    outer = jnp.where(at < 0, 0.0, (count + gamma * uniform[group]) / divisor[group])
    probability = share[group] * problem.query_in + (1 - share[group]) * outer
    used = problem.supported & (problem.weight > 0)
    result: jax.Array = problem.weight * jnp.log(jnp.where(used, probability, 1.0))
    return result


def log_density(problem: Problem, variant: Variant, prior: PhiPrior, z: Any) -> jax.Array:
    """Return the log posterior density of the unconstrained values z (d,), up to a constant.

    Args:
        problem: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        prior: of φ.
        z: (d,) logit α or log β, log γ if it is fitted, and λ.
    """
    linear, free = variant.mixture == "linear", 1 + variant.smoothed
    mixing = jax.nn.sigmoid(z[0]) if linear else jnp.exp(z[0])
    gamma = jnp.exp(z[1]) if variant.smoothed else jnp.zeros(())
    total: jax.Array = log_likelihoods(problem, variant, mixing, gamma, z[free:]).sum()
    scales, weights = z[int(linear) : free] / prior.scale_deviation, z[free:]
    log_prior = -0.5 * ((scales**2).sum() + (weights**2).sum() / prior.weight_deviation**2)
    if linear:
        a, b = prior.alpha
        log_prior += a * jax.nn.log_sigmoid(z[0]) + b * jax.nn.log_sigmoid(-z[0])
    log_density: jax.Array = total + log_prior
    return log_density
