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
from bpa_ppl.diagnostics.calibration import Calibration, Replication, calibrate
from bpa_ppl.errors import UsageError, checked_seed
from bpa_ppl.models import Likelihood, Prior, log_linear
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.draws import WEIGHTS, total
from bpa_ppl.progress import Reporter
from bpa_ppl.quality import Metric, gains
from bpa_ppl.registry import LIKELIHOODS, SAMPLERS
from bpa_ppl.sampling.adapting import target_of
from bpa_ppl.sampling.base import Data, Model, Program, Sampler, Target
from bpa_ppl.sampling.density import constrained, constrained_draws, evaluate, model_info
from bpa_ppl.sampling.sentences import preference_sentences
from bpa_ppl.weights import AnyWeights, match

#: Calibrated next to the weights: a quantity that depends on the data, and so detects errors that
#: the weights do not show (Modrák et al. 2023).
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
    """Run simulation-based calibration of a sampler on given lists.

    Weights and other parameters are drawn from the prior, and oracles from the model given them;
    the ranks of the true values among the draws of the sampler are tested for uniformity.

    Args:
        nbest: lists; references are needed only for a likelihood that uses gains, because oracles
            are simulated. For `preference` the preferences of the lists say which candidates are
            compared, and the answers are simulated.
        weights: the canonical weights λ_T.
        sampler: a name, or a sampler with its settings, such as one of your own.
        replications: the number of simulated data sets.
        prior_variance: σ_T, a variance.
        seed: of all random numbers.
        jobs: the number of threads.
        likelihood: one that is a distribution of the observations: `oracle` or `preference`.
        metric: of the gains, if the likelihood uses them.
        model: a NumPyro model with the sites `weights` and `oracle`.
        progress: True draws a bar on standard error.
        settings: of the sampler.

    Raises:
        DataError: if lists and weights do not fit together.
        UsageError: if there is no such sampler or setting, or the likelihood cannot be simulated.
    """
    engine, matched = SAMPLERS.resolve(sampler, settings), match(weights, nbest)
    resolved = LIKELIHOODS.resolve(likelihood)
    if not resolved.generative:
        raise UsageError(
            f"the likelihood {LIKELIHOODS.name_of(resolved)} is not a distribution of the oracle, "
            "so nothing can be simulated from it: choose oracle or preference, or compare samplers",
            parameter="likelihood",
            code="not-supported",
        )
    seed = checked_seed(seed)
    if resolved.observes == "preferences":
        choices = preference_sentences(nbest, matched, resolved)
        nbest, gain = choices.nbest, choices.gains
    else:
        gain = gains(nbest, metric) if resolved.observes == "gains" else None
    free = dict(zip(matched.free_names, matched.free_values.tolist(), strict=True))
    enable_jax_cache()
    with jax.enable_x64(True):
        prior = Prior.isotropic(free, prior_variance)
        target = target_of(nbest, matched, prior, likelihood=resolved, gains=gain, model=model)
        labels = _labels(target)
    return calibrate(
        partial(_replicated, engine, target, seed),
        [*free, *labels, LOG_LIKELIHOOD],
        replications=replications,
        sampler=SAMPLERS.name_of(engine),
        seed=seed,
        jobs=jobs,
        progress=progress,
    )


def _replicated(engine: Sampler, target: Target, seed: int, i: int) -> Replication:
    """Simulate data, and draw from the posterior given the data."""
    program, data = target.program, target.data
    # The setting is local to a thread.
    with jax.enable_x64(True):
        names = _parameters(target)
        key = jax.random.fold_in(jax.random.key(seed), i)
        truth, oracle, likelihood = simulated(program, data, names, key)
        data = data._replace(lists=data.lists._replace(oracle=oracle))
        sampled = engine.sample(replace(target, data=data, seed=seed + i))
        log_likelihood = sampled.log_likelihood
        if log_likelihood is None:
            log_likelihood = evaluate(program, data, sampled.z)[1]
        values = constrained_draws(program, data, sampled.z)
        shape = np.shape(values[WEIGHTS])[:2]
        parts = [np.reshape(values[name], (*shape, -1)) for name in names]
        draws = np.concatenate([*parts, total(log_likelihood, shape)[..., None]], -1)
        return Replication(np.append(truth, likelihood), draws, sampled.log_weight)


def _parameters(target: Target) -> tuple[str, ...]:
    """Return the sites whose true values are compared with draws: the weights come first."""
    latent = model_info(target.program, target.data).latent
    return (WEIGHTS, *(name for name in latent if name != WEIGHTS))


def _labels(target: Target) -> list[str]:
    """Return a name for each component of the parameters other than the weights."""
    values = constrained(target.program, target.data, target.start)
    return [
        name if np.size(values[name]) == 1 else f"{name}[{k}]"
        for name in _parameters(target)[1:]
        for k in range(np.size(values[name]))
    ]


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
