"""Simulation-based calibration of samplers on the n-best model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from bpa_ppl.caching import enable_jax_cache
from bpa_ppl.diagnostics.calibration.calibration import Calibration, Replication, calibrate
from bpa_ppl.errors import UsageError, checked_seed
from bpa_ppl.models import Likelihood, Prior, log_linear
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.draws import WEIGHTS, total
from bpa_ppl.progress import Reporter
from bpa_ppl.quality import Metric, gains
from bpa_ppl.registry import LIKELIHOODS, SAMPLERS
from bpa_ppl.sampling.adapting import target_of
from bpa_ppl.sampling.base import Data, Model, Program, Sampler, Target
from bpa_ppl.sampling.comparisons import compared
from bpa_ppl.sampling.density import anatomy, constrained, constrained_draws, evaluate
from bpa_ppl.weights import AnyWeights, match

#: Quantity next to the weights whose ranks calibration looks at: it sees the data, which makes
#: it find faults that the weights hide (Modrák et al. 2023).
LOG_LIKELIHOOD = "log p(A|λ)"
_OBSERVED = "oracle"


def calibrate_sampler(
    nbest: NBest,
    weights: AnyWeights,
    sampler: str | Sampler,
    *,
    replications: int = 200,
    prior_variance: float = 0.1,
    seed: int = 0,
    jobs: int = 1,
    likelihood: str | Likelihood = "oracle",
    metric: str | Metric = "ter",
    model: Model = log_linear,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Calibration:
    """Calibrate a sampler by simulation on given lists.

    Weights, and the other parameters of the model, are drawn from the prior, and oracles from the
    model given them; the ranks of the true values among the sampler's draws are compared with
    uniform ones.

    Args:
        nbest: lists; references are not needed, because oracles are simulated, but for a
            likelihood that looks at gains. For `preference` the lists carry preferences: they say
            which candidates are compared, and the answers are simulated.
        weights: the canonical weights λ_T.
        sampler: a name, or a sampler with its settings, such as one of your own.
        replications: simulated data sets.
        prior_variance: σ_T, a variance.
        seed: of everything.
        jobs: threads side by side.
        likelihood: one that is a distribution of what is observed: `oracle` or `preference`.
        metric: what gains are in, where the likelihood looks at them.
        model: a NumPyro model with the sites `weights` and `oracle`.
        progress: True draws a bar on standard error.
        settings: of the sampler.

    Raises:
        DataError: if lists and weights do not fit together.
        UsageError: if there is no such sampler or setting, or the likelihood cannot be simulated.
    """
    engine, matched = SAMPLERS.resolve(sampler, settings), match(weights, nbest)
    likely = LIKELIHOODS.resolve(likelihood)
    if not likely.generative:
        raise UsageError(
            f"nothing can be simulated from the likelihood {LIKELIHOODS.name_of(likely)}, which is "
            "no distribution of the oracle: choose oracle or preference, or compare two samplers"
        )
    seed = checked_seed(seed)
    if likely.compares:
        known = compared(nbest, matched, likely)
        nbest, worth = known.nbest, known.gains
    else:
        worth = gains(nbest, metric) if likely.needs_gains else None
    free = dict(zip(matched.free_names, matched.free_values.tolist(), strict=True))
    enable_jax_cache()
    with jax.enable_x64(True):
        prior = Prior.isotropic(free, prior_variance)
        target = target_of(nbest, matched, prior, likelihood=likely, gains=worth, model=model)
        more = _labels(target)
    return calibrate(
        partial(_replicated, engine, target, seed),
        [*free, *more, LOG_LIKELIHOOD],
        replications=replications,
        sampler=SAMPLERS.name_of(engine),
        seed=seed,
        jobs=jobs,
        progress=progress,
    )


def _replicated(engine: Sampler, target: Target, seed: int, i: int) -> Replication:
    """Simulate data, and draw from the posterior given them."""
    program, known = target.program, target.data
    # The width of numbers is each thread's own affair.
    with jax.enable_x64(True):
        names = _parameters(target)
        truth, oracle, likelihood = simulated(program, known, names, _key(seed, i))
        data = known._replace(lists=known.lists._replace(oracle=oracle))
        sampled = engine.sample(replace(target, data=data, seed=seed + i))
        each = sampled.log_likelihood
        if each is None:
            each = evaluate(program, data, sampled.z)[1]
        values = constrained_draws(program, data, sampled.z)
        shape = np.shape(values[WEIGHTS])[:2]
        parts = [np.reshape(values[name], (*shape, -1)) for name in names]
        draws = np.concatenate([*parts, total(each, shape)[..., None]], -1)
        return Replication(np.append(truth, likelihood), draws, sampled.log_weight)


def _parameters(target: Target) -> tuple[str, ...]:
    """Return the sites whose true values are compared with draws: the weights come first."""
    latent = anatomy(target.program, target.data).latent
    return (WEIGHTS, *(name for name in latent if name != WEIGHTS))


def _labels(target: Target) -> list[str]:
    """Return a name for each single number of the parameters other than the weights."""
    values = constrained(target.program, target.data, target.start)
    return [
        name if np.size(values[name]) == 1 else f"{name}[{k}]"
        for name in _parameters(target)[1:]
        for k in range(np.size(values[name]))
    ]


def _key(seed: int, i: int) -> jax.Array:
    """Return a key of the simulation alone: samplers make theirs of a number."""
    return jax.random.fold_in(jax.random.key(seed), i)


@partial(jax.jit, static_argnums=(0, 2))
def simulated(
    program: Program, data: Data, names: tuple[str, ...], key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return parameters from the prior, oracles from the model given them, and log p(A|λ)."""
    unconditioned = handlers.trace(handlers.uncondition(handlers.seed(program, key)))
    sites = unconditioned.get_trace(*data)
    oracle = sites[_OBSERVED]
    likelihood = oracle["fn"].log_prob(oracle["value"]).sum()
    chosen = oracle["value"].astype(data.lists.oracle.dtype)
    truth = jnp.concatenate([jnp.ravel(sites[name]["value"]) for name in names])
    return truth, chosen, likelihood
