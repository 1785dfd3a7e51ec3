"""Independent proposals around the mode, evaluated side by side."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import MultivariateStudentT

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sites, Target, require_memory
from bpa_ppl.sampling.density import anatomy, evaluate, unraveller
from bpa_ppl.sampling.mode import Mode, find_mode

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024).
POOR_PARETO_K = 0.7
#: Unconstrained values beyond which no mode of a hierarchy is looked for: its Hessian is dear, and
#: what is typical in so many dimensions lies far from the mode.
MAX_SEARCHED = 200
_PILOT, _PILOT_DEGREES = 1000, 20.0
_APART = 1_000_003
#: The posterior is skewed: a little wider than the Laplace approximation fits it best.
_WIDER = 1.1


class Proposals(NamedTuple):
    """Draws of a multivariate Student t around the mode (C chains, D draws).

    Attributes:
        z: the unconstrained values of the sites, (C, D, …) each.
        log_density: (C, D) log p(z, data).
        log_ratio: (C, D) log p(z, data) − log q(z), up to a constant.
        log_likelihood: of each observed site (C, D, …) float32.
    """

    z: Sites
    log_density: Float64
    log_ratio: Float64
    log_likelihood: dict[str, np.ndarray]


class Fit(NamedTuple):
    """How well proposals around the mode fit a posterior.

    Attributes:
        mode: where it was found.
        pareto_k: k̂ of the importance ratios of a pilot sample; infinite without a mode.
        because: what was found, in words.
    """

    mode: Mode | None
    pareto_k: float
    because: str


def fitted(target: Target) -> Fit:
    """Say how well proposals around the mode fit a posterior, by a pilot sample."""
    latent, size = anatomy(target.program, target.data).latent, values_of(target)
    if latent != (WEIGHTS,) and size > MAX_SEARCHED:
        return Fit(None, np.inf, f"a hierarchy of {size} values has no typical mode")
    mode = find_mode(target.program, target.data, target.start)
    if not mode.converged:
        return Fit(None, np.inf, "the search for the mode did not converge")
    # A seed of its own: what the pilot finds shall not be part of what it judges.
    apart = replace(target, seed=target.seed + _APART)
    pilot = propose(apart, mode, 1, _PILOT, _PILOT_DEGREES)
    k_hat = pareto_smoothed(pilot.log_ratio)[1]
    return Fit(mode, k_hat, f"Pareto k̂ {k_hat:.2f} of proposals around the mode")


def values_of(target: Target) -> int:
    """Return how many unconstrained values a posterior is of."""
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(target.start))


def propose(
    target: Target, mode: Mode, chains: int, draws: int, degrees_of_freedom: float
) -> Proposals:
    """Draw around the mode, a little wider than Laplace, and evaluate all draws together.

    A few wide matrix products cost a fraction of as many steps of a chain one by one.
    """
    require_memory(target, chains * draws)
    key = jax.random.key(target.seed)
    flat, log_q = _drawn(mode, (chains, draws), degrees_of_freedom, key)
    z = jax.vmap(jax.vmap(unraveller(target.start)))(flat)
    log_density, log_likelihood = evaluate(target.program, target.data, z)
    return Proposals(z, log_density, log_density - np.asarray(log_q), log_likelihood)


@partial(jax.jit, static_argnums=(1, 2))
def _drawn(
    mode: Mode, shape: tuple[int, int], degrees_of_freedom: float, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return draws of the Student t, (chains, draws, d), and their log densities."""
    factor = jnp.linalg.cholesky(_WIDER * mode.covariance)
    student = MultivariateStudentT(degrees_of_freedom, mode.position, factor)
    flat = jax.vmap(student.sample)(jax.random.split(key, shape[0] * shape[1]))
    return flat.reshape(*shape, -1), jax.vmap(student.log_prob)(flat).reshape(shape)
