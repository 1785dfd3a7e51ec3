"""The posterior of instance weights, around its mode."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import checked_seed
from bpa_ppl.models.instance_weighting.fitting import fit
from bpa_ppl.models.instance_weighting.mixture import (
    Phi,
    PhiPrior,
    Variant,
    constrained,
    evaluate_mixture,
    log_likelihood,
    unconstrained,
)
from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws, to_arviz
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import pareto_smoothed

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

_STEP = 1e-4  # of differences of the gradient, in units of the prior or of the posterior
_DEGREES = 20.0  # of freedom, of Student's t around the mode


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

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture; it must have weights of features.
        prior: of φ; None is `PhiPrior()`.
        draws: how many.
        seed: of the draws.

    Returns:
        InferenceData: in `posterior` the `weights` (feature), `alpha` or `beta`, and `gamma`.

    Raises:
        DataError: if none of the dev pairs has support, or there are no features.
    """
    problem, prior = variant.apply(problem), prior or PhiPrior()
    mode = unconstrained(variant, fit(problem, variant, prior=prior).phi)

    def gradient(z: Float64) -> Float64:
        return log_likelihood(problem, variant, z)[1] + prior.log_density(variant, z)[1]

    def log_likelihoods(z: Float64) -> Float64:
        used = problem.supported & (problem.weight > 0)
        probability = evaluate_mixture(problem, variant, constrained(variant, z)).probability
        return np.asarray(problem.weight[used] * np.log(np.maximum(probability[used], 1e-300)))

    # A root of the Laplace covariance, by differences of the exact gradient.
    steps = _STEP * np.eye(len(mode))
    hessian = np.array([gradient(mode - step) - gradient(mode + step) for step in steps])
    values, vectors = np.linalg.eigh((hessian + hessian.T) / (4 * _STEP))
    # A flat direction is at most as wide as the prior.
    floor = 1 / max(prior.weight_deviation, prior.scale_deviation) ** 2
    root = vectors / np.sqrt(np.maximum(values, floor))
    rng = np.random.default_rng(checked_seed(seed))
    normal = rng.normal(size=(draws, len(mode)))
    student = normal * np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=(draws, 1)))
    z = mode + student @ root.T
    terms = np.array([log_likelihoods(row) for row in z])
    log_density = terms.sum(axis=1) + [prior.log_density(variant, row)[0] for row in z]
    log_q = -0.5 * (_DEGREES + len(mode)) * np.log1p((student**2).sum(axis=1) / _DEGREES)
    log_weight, k_hat = pareto_smoothed((log_density - log_q)[None])
    sites = [_sites(variant, constrained(variant, row)) for row in z]
    size = len(problem.names)
    return to_arviz(
        Draws(
            values={name: np.array([[site[name] for site in sites]]) for name in sites[0]},
            features=problem.names,
            kind="weighted",
            sites=tuple(sites[0]),
            log_weight=log_weight,
            log_density=log_density[None],
            log_likelihood={"dev": terms[None].astype(np.float32)},
            constants={"mode": mode[len(mode) - size :], "prior_mean": np.zeros(size)},
            attrs={
                "sampler": "laplace",
                "pareto_k": k_hat,
                "seed": seed,
                "model": "weighted_mixture",
                "variant": asdict(variant),
                "prior": asdict(prior),
            },
        )
    )


def mean_probabilities(
    posterior: Any, problem: Problem, variant: Variant, *, draws: int = 100
) -> Float64:
    """Return the posterior mean of p(x | y; φ) of the queried pairs of a problem, (D,).

    Args:
        posterior: from `laplace`.
        problem: the pairs, with the same features.
        variant: the form of the mixture of the posterior.
        draws: the number of draws to use, resampled in proportion to their weights.
    """
    sample, problem = as_draws(posterior), variant.apply(problem)
    chains, per_chain = sample.shape
    rng = np.random.default_rng(0)
    chosen = rng.choice(chains * per_chain, size=draws, p=sample.importance)
    total = np.zeros(len(problem.weight))
    for number, times in zip(*np.unique(chosen, return_counts=True), strict=True):
        index = divmod(int(number), per_chain)
        site = {name: values[index] for name, values in sample.values.items()}
        weights = np.asarray(site[WEIGHTS], np.float64)
        phi = Phi(float(site[variant.mixing_name]), float(site.get("gamma", 0.0)), weights)
        total += times * evaluate_mixture(problem, variant, phi).probability
    return total / draws


def _sites(variant: Variant, phi: Phi) -> dict[str, Any]:
    smoothing = {"gamma": phi.gamma} if variant.smoothed else {}
    return {variant.mixing_name: phi.mixing, **smoothing, WEIGHTS: phi.weights}
