"""The weighted mixture of instance weighting as a NumPyro program, for reference."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bpa_ppl.models.instance_weighting import PhiPrior, Problem, Variant
from bpa_ppl.models.instance_weighting.mixture import BOUND


def weighted_mixture(problem: Problem, variant: Variant, prior: PhiPrior) -> None:
    """φ ~ p(φ); n(x, y) times log p(x | y; φ) is the log-likelihood of each dev pair.

    Up to a constant the counts of the x of one y are multinomial.

    Sites: `weights` (Q,), λ; `alpha` of a linear mixture, `beta` of a MAP one; `gamma` where it
    is fitted; `dev` (D,), observed, in a plate over pairs. Pairs without support or with count 0
    have log-likelihood 0.

    Args:
        problem: from `Variant.apply`.
        variant: the form of the mixture.
        prior: the prior of φ.
    """
    scale = dist.LogNormal(0.0, prior.scale_deviation)
    if variant.mixture == "linear":
        mixing = numpyro.sample("alpha", dist.Beta(*map(float, prior.alpha)))
    else:
        mixing = numpyro.sample("beta", scale)
    gamma = numpyro.sample("gamma", scale) if variant.smoothed else jnp.zeros(())
    wide = dist.Normal(0.0, prior.weight_deviation).expand([len(problem.names)])
    weights = numpyro.sample("weights", wide.to_event(1))
    each = log_likelihoods(problem._replace(names=()), variant, mixing, gamma, weights)
    with numpyro.plate("pair", len(problem.weight)):
        numpyro.factor("dev", each)


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
    return problem.weight * jnp.log(jnp.where(used, probability, 1.0))
