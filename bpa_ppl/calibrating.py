"""Simulation-based calibration of samplers on the n-best model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from numpyro import handlers

from bpa_ppl.jax_cache import keep_compiled
from bpa_ppl.diagnostics.calibration.calibration import Calibration, Replication, calibrate
from bpa_ppl.models import Adaptation, log_linear, tabulate
from bpa_ppl.nbest import NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.density import Model, constrained_draws, evaluate, starting_point
from bpa_ppl.sampling.draws import Problem
from bpa_ppl.sampling.registry import configure, load
from bpa_ppl.weights import match

#: Quantity beside the weights whose ranks calibration looks at: it sees the data, which makes
#: it find faults that the weights hide (Modrák et al. 2023).
LOG_LIKELIHOOD = "log p(A|λ)"
#: Samplers whose draws, weighted if they weigh them, follow the posterior.
EXACT = ("imh", "laplace", "nuts", "rwm", "rwm-isotropic")

#: Given data and a seed, draws of the weights and of log p(A|λ), (chains, draws, Q + 1), and the
#: logarithm of their importance weights or None.
Sample = Callable[[Adaptation, int], tuple[Any, Any]]


def calibrate_sampler(
    nbest: NBest,
    prior: Mapping[str, float],
    sampler: str | Sample,
    *,
    replications: int = 200,
    prior_variance: float = 0.1,
    seed: int = 0,
    jobs: int = 1,
    model: Model = log_linear,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Calibration:
    """Calibrate a sampler by simulation on given lists.

    Weights are drawn from the prior, oracles from the model given the weights, and the ranks of
    the weights among the sampler's draws are held against uniform ones.

    Args:
        nbest: lists; references are not needed, because oracles are simulated.
        prior: the canonical weights λ_T.
        sampler: a name, or a function of your own from data and a seed to draws.
        replications: simulated data sets.
        prior_variance: σ_T, a variance.
        seed: of everything.
        jobs: threads side by side.
        model: a NumPyro model over `Adaptation` with a site `weights`.
        progress: True draws a bar on standard error.
        settings: of the sampler.

    Raises:
        DataError: if lists and weights do not fit together.
        UsageError: if there is no such sampler or setting.
    """
    name = sampler if isinstance(sampler, str) else getattr(sampler, "__name__", "sampler")
    draw = sampler_by_name(sampler, model, **settings) if isinstance(sampler, str) else sampler
    matched = match(prior, nbest)
    first = np.zeros(len(nbest), np.int64)
    keep_compiled()
    with jax.enable_x64(True):
        data = jax.device_put(tabulate(nbest, matched, first, prior_variance))
    return calibrate(
        partial(_replicated, draw, model, data, seed),
        [*matched.free_names, LOG_LIKELIHOOD],
        replications=replications,
        sampler=name,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )


def sampler_by_name(name: str, model: Model = log_linear, **settings: Any) -> Sample:
    """Return a sampler as a function from data and a seed to draws, for calibration.

    Raises:
        UsageError: if there is no such sampler or setting.
    """
    configuration = configure(name, settings)

    def sample(data: Adaptation, seed: int) -> tuple[Any, Any]:
        problem = Problem(model, data, starting_point(model, data), seed, lambda *_: None)
        draws = load(name).sample(problem, configuration)
        each = draws.log_likelihood
        if each is None:
            each = evaluate(model, data, draws.z)[1]
        weights = constrained_draws(model, data, draws.z)["weights"]
        likelihood = each.sum(axis=-1, dtype=np.float64)
        return np.concatenate([weights, likelihood[..., None]], -1), draws.stats.get("log_weight")

    return sample


def _replicated(draw: Sample, model: Model, data: Adaptation, seed: int, i: int) -> Replication:
    # The width of numbers is each thread's own affair.
    with jax.enable_x64(True):
        weights, oracle, likelihood = simulated(model, data, _key(seed, i))
        draws, log_weight = draw(data._replace(oracle=oracle), seed + i)
        return Replication(np.append(weights, likelihood), draws, log_weight)


def _key(seed: int, i: int) -> jax.Array:
    """Return a key of the simulation alone: samplers make theirs of a number."""
    return jax.random.fold_in(jax.random.key(seed), i)


@partial(jax.jit, static_argnums=0)
def simulated(
    model: Model, data: Adaptation, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return weights from the prior, oracles from the model given them, and log p(A|λ)."""
    program = handlers.trace(handlers.uncondition(handlers.seed(model, key)))
    sites = program.get_trace(data)
    oracle = sites["oracle"]
    likelihood = oracle["fn"].log_prob(oracle["value"]).sum()
    return sites["weights"]["value"], oracle["value"].astype(data.oracle.dtype), likelihood
