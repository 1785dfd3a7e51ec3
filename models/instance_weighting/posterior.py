"""The posterior of the parameters φ of a weighted mixture: importance sampling, or NUTS."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import UsageError, checked_seed
from bpa_ppl.models.instance_weighting.density import (
    evaluate,
    hessian,
    log_densities,
    placed,
    probabilities,
)
from bpa_ppl.models.instance_weighting.fitting import fit
from bpa_ppl.models.instance_weighting.mixture import Phi, PhiPrior, Problem, Variant
from bpa_ppl.notes import log_info
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import POOR_PARETO_K, pareto_smoothed

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

_DEGREES = 20.0  # of freedom, of Student's t around the mode
#: The Laplace covariance is up to seven times too narrow in some of its axes: the warm-up adapts
#: their scales, which needs a few hundred steps.
_CHAINS, _WARMUP = 4, 300
#: NUTS has about a fifth as many effective draws for the worst weight, and the check demands 400.
_NUTS_DRAWS = 3000


def sample(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> InferenceData:
    """Return draws of φ: from `laplace`, or from `nuts` where its weights are not reliable.

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture; it must have weights of features.
        prior: of φ; None is `PhiPrior()`.
        draws: how many; of NUTS at least 3000, which the check needs, as a multiple of four.
        seed: of the draws.

    Returns:
        InferenceData: in `posterior` the `weights` (feature), `alpha` or `beta`, and `gamma`.

    Raises:
        DataError: if none of the dev pairs has support, or there are no features.
        UsageError: if there are no draws.
    """
    weighted = laplace(problem, variant, prior=prior, draws=draws, seed=seed)
    k_hat = float(weighted.attrs["pareto_k"])
    if k_hat <= POOR_PARETO_K or not np.isfinite(k_hat):  # too few draws to tell
        return weighted
    log_info(f"importance weights are not reliable (Pareto k̂ {k_hat:.2f}): running NUTS instead")
    return nuts(problem, variant, prior=prior, draws=max(draws, _NUTS_DRAWS), seed=seed)


def laplace(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> InferenceData:
    """Return draws around the mode, with Pareto-smoothed importance weights.

    They are from a multivariate t whose scale is the inverse Hessian of the negative log posterior
    density of the unconstrained values: logit α or log β, log γ, λ. The weights are reliable if
    the attribute `pareto_k` is below 0.7 (Vehtari et al. 2024).

    Arguments, result and errors are those of `sample`.
    """
    problem, prior = variant.apply(problem), prior or PhiPrior()
    mode, root = _approximation(problem, variant, prior, draws)
    rng = np.random.default_rng(checked_seed(seed))
    normal = rng.normal(size=(draws, len(mode)))
    student = normal * np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=(draws, 1)))
    drawn = _drawn(problem, variant, prior, mode, (mode + student @ root.T)[None])
    log_q = -0.5 * (_DEGREES + len(mode)) * np.log1p((student**2).sum(axis=1) / _DEGREES)
    log_weight, k_hat = pareto_smoothed(drawn.log_density - log_q)
    attrs = {**drawn.attrs, "sampler": "laplace", "pareto_k": k_hat, "seed": seed}
    return to_arviz(replace(drawn, kind="weighted", log_weight=log_weight, attrs=attrs))


def nuts(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> InferenceData:
    """Return draws of four chains of NUTS (Hoffman & Gelman 2014).

    The metric is diagonal in the axes of the Laplace covariance.

    Arguments, result and errors are those of `sample`.
    """
    from numpyro.infer import MCMC, NUTS

    problem, prior = variant.apply(problem), prior or PhiPrior()
    mode, root = _approximation(problem, variant, prior, draws)
    rng = np.random.default_rng(checked_seed(seed))
    start = rng.normal(size=(_CHAINS, len(mode)))
    with placed(problem) as data:

        def potential_energy(u: jax.Array) -> jax.Array:
            density: jax.Array = log_densities(data, variant, prior, mode + root @ u)[0]
            return -density

        kernel = NUTS(potential_fn=potential_energy)
        runner = MCMC(
            kernel,
            num_warmup=_WARMUP,
            num_samples=-(-draws // _CHAINS),
            num_chains=_CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        names = {
            "accept_prob": "acceptance_rate",
            "diverging": "diverging",
            "energy": "energy",
            "num_steps": "n_steps",
        }
        keys = jax.random.key(checked_seed(seed))
        runner.run(keys, init_params=jnp.asarray(start), extra_fields=tuple(names))
        u = np.asarray(runner.get_samples(group_by_chain=True))
        fields = jax.device_get(runner.get_extra_fields(group_by_chain=True))
    drawn = _drawn(problem, variant, prior, mode, mode + u @ root.T)
    statistics = {names[name]: np.asarray(values) for name, values in fields.items()}
    attrs = {**drawn.attrs, "sampler": "nuts", "seed": seed}
    return to_arviz(replace(drawn, statistics=statistics, attrs=attrs))


def mean_probabilities(
    posterior: Any, problem: Problem, variant: Variant, *, draws: int = 100
) -> Float64:
    """Return the posterior mean of p(x | y; φ) of the queried pairs of a problem, (D,).

    Args:
        posterior: from `sample`.
        problem: the pairs, with the same features.
        variant: the form of the mixture of the posterior.
        draws: the number of draws to use, resampled in proportion to their weights.
    """
    sample, problem = as_draws(posterior), variant.apply(problem)
    importance, total = sample.importance, np.zeros(len(problem.weight))
    sites = {name: values.reshape(-1, *values.shape[2:]) for name, values in sample.values.items()}
    chosen = np.random.default_rng(0).choice(len(importance), size=draws, p=importance)
    with placed(problem) as data:
        for draw, times in zip(*np.unique(chosen, return_counts=True), strict=True):
            site = {name: np.asarray(values[draw], np.float64) for name, values in sites.items()}
            phi = Phi(site[variant.mixing_name], site.get("gamma", np.zeros(())), site[WEIGHTS])
            total += times * np.asarray(probabilities(data, variant, phi))
    return total / draws


def _approximation(
    problem: Problem, variant: Variant, prior: PhiPrior, draws: int
) -> tuple[Float64, Float64]:
    """Return the mode of z and a root of its Laplace covariance."""
    if draws < 1:
        message = f"the number of draws must be at least 1, not {draws}"
        raise UsageError(message, parameter="draws")
    mode = fit(problem, variant, prior=prior).z
    with placed(problem) as data:
        precision = -np.asarray(hessian(data, variant, prior, mode))
    values, vectors = np.linalg.eigh((precision + precision.T) / 2)
    # A flat direction is at most as wide as the prior.
    floor = 1 / max(prior.weight_deviation, prior.scale_deviation) ** 2
    return mode, vectors / np.sqrt(np.maximum(values, floor))


def _drawn(problem: Problem, variant: Variant, prior: PhiPrior, mode: Float64, z: Float64) -> Draws:
    """Return draws (C, D, d) of unconstrained values as those of φ, with their densities."""
    flat = z.reshape(-1, len(mode))
    with placed(problem) as data:
        values = jax.device_get(evaluate(data, variant, prior, flat))
    phi, log_density, terms = jax.tree.map(lambda x: x.reshape(*z.shape[:2], *x.shape[1:]), values)
    sites = {variant.mixing_name: phi.mixing}
    if variant.smoothed:
        sites["gamma"] = phi.gamma
    sites[WEIGHTS] = phi.weights
    size = len(problem.names)
    used = problem.supported & (problem.weight > 0)
    return Draws(
        values=sites,
        features=problem.names,
        sites=tuple(sites),
        log_density=log_density,
        log_likelihood={"dev": terms[..., used].astype(np.float32)},
        constants={"mode": mode[len(mode) - size :], "prior_mean": np.zeros(size)},
        attrs={"model": "weighted_mixture", "variant": asdict(variant), "prior": asdict(prior)},
    )
