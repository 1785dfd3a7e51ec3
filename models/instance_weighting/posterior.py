"""The posterior of instance weights: around its mode, or by NUTS."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS, init_to_value

from bpa_ppl.errors import checked_seed
from bpa_ppl.models.instance_weighting.fitting import fit
from bpa_ppl.models.instance_weighting.objective import log_likelihood, mixed
from bpa_ppl.models.instance_weighting.priors import PhiPrior
from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.models.instance_weighting.program import weighted_mixture
from bpa_ppl.models.instance_weighting.variants import (
    Phi,
    Variant,
    constrained,
    prepared,
    unconstrained,
)
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, to_arviz
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

    They are of a multivariate t whose scale is the inverse Hessian of the negative log posterior
    density of the unconstrained values: logit α or log β, log γ, λ. The attribute `pareto_k`
    tells whether the weights can be trusted (Vehtari et al. 2024): it should be below 0.7.

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
    ready, before = prepared(problem, variant), prior or PhiPrior()
    mode = unconstrained(variant, fit(problem, variant, prior=before).phi)
    root = _scale(ready, variant, before, mode)
    rng = np.random.default_rng(checked_seed(seed))
    normal = rng.normal(size=(draws, len(mode)))
    stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=(draws, 1)))
    z = mode + (normal * stretch) @ root.T
    each = np.array([_each(ready, variant, row) for row in z])
    density = each.sum(axis=1) + [before.log_density(variant, row)[0] for row in z]
    squares = ((normal * stretch) ** 2).sum(axis=1)
    proposed = -0.5 * (_DEGREES + len(mode)) * np.log1p(squares / _DEGREES)
    log_weight, k_hat = pareto_smoothed((density - proposed)[None])
    return to_arviz(
        Draws(
            kind="weighted",
            log_weight=log_weight,
            log_density=density[None],
            attrs={"sampler": "laplace", "pareto_k": k_hat, "seed": seed, **_made(variant, before)},
            **_values(ready, variant, z[None], each[None], mode),
        )
    )


def nuts(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    warmup: int = 300,
    draws: int = 500,
    chains: int = 4,
    seed: int = 0,
    progress: bool = False,
) -> InferenceData:
    """Return draws of NumPyro's NUTS, in the metric of the Laplace approximation.

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture; it must have weights of features.
        prior: of φ; None is `PhiPrior()`.
        warmup: draws of each chain that tune the step and are thrown away.
        draws: of each chain, kept.
        chains: side by side, each from a place of its own around the mode.
        seed: of everything.
        progress: draw a bar.

    Returns:
        As `laplace`, with the statistics of the sampler.

    Raises:
        DataError: as `laplace`.
    """
    ready, before = prepared(problem, variant), prior or PhiPrior()
    mode = unconstrained(variant, fit(problem, variant, prior=before).phi)
    root = _scale(ready, variant, before, mode)
    rng = np.random.default_rng(checked_seed(seed))
    starts = mode + rng.normal(size=(chains, len(mode))) @ root.T
    with jax.enable_x64(True):
        data = jax.tree.map(np.asarray, ready._replace(names=()))
        program = _Named(ready.names, variant, before)
        free = {name: np.asarray(z) for name, z in _split(variant, starts).items()}
        kernel = NUTS(
            program,
            dense_mass=True,
            inverse_mass_matrix=_by_site(variant, root @ root.T),
            adapt_mass_matrix=False,
            init_strategy=init_to_value(values=_sites(variant, constrained(variant, mode))),
        )
        sampler = MCMC(
            kernel,
            num_warmup=warmup,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=progress,
        )
        fields = ("accept_prob", "potential_energy", "energy", "num_steps", "diverging")
        sampler.run(
            jax.random.key(seed),
            data,
            init_params=free if chains > 1 else {name: z[0] for name, z in free.items()},
            extra_fields=fields,
        )
        values = jax.device_get(sampler.get_samples(group_by_chain=True))
        extra = jax.device_get(sampler.get_extra_fields(group_by_chain=True))
    z = np.array(
        [[_from_sites(variant, values, c, d) for d in range(draws)] for c in range(chains)]
    )
    each = np.array([[_each(ready, variant, row) for row in chain] for chain in z])
    statistics = {
        "acceptance_rate": extra["accept_prob"],
        "energy": extra["energy"],
        "n_steps": extra["num_steps"],
        "diverging": extra["diverging"],
    }
    return to_arviz(
        Draws(
            kind="chains",
            log_density=-extra["potential_energy"],
            statistics=statistics,
            attrs={"sampler": "nuts", "seed": seed, **_made(variant, before)},
            **_values(ready, variant, z, each, mode),
        )
    )


def mean_probabilities(
    posterior: Any, problem: Problem, variant: Variant, *, draws: int = 100
) -> Float64:
    """Return the posterior mean of p(x | y; φ) of the asked pairs of a problem, (D,).

    Args:
        posterior: as `laplace` and `nuts` return it.
        problem: the pairs, laid out with the same features.
        variant: the form of the mixture that the posterior is of.
        draws: how many draws are used, drawn in proportion to their weights.
    """
    from bpa_ppl.posterior import as_draws

    found, ready = as_draws(posterior), prepared(problem, variant)
    chains, kept = found.shape
    rng = np.random.default_rng(0)
    chosen = rng.choice(chains * kept, size=draws, p=found.importance)
    total = np.zeros(len(ready.weight))
    for number, times in zip(*np.unique(chosen, return_counts=True), strict=True):
        place = divmod(int(number), kept)
        site = {name: values[place] for name, values in found.values.items()}
        total += times * mixed(ready, variant, _phi(variant, site)).probability
    return total / draws


class _Named:
    """The program of one problem as a function of its arrays; names are no arrays."""

    def __init__(self, names: tuple[str, ...], variant: Variant, prior: PhiPrior):
        self._rest = names, variant, prior

    def __call__(self, data: Problem) -> None:
        names, variant, prior = self._rest
        weighted_mixture(data._replace(names=names), variant, prior)


def _scale(problem: Problem, variant: Variant, prior: PhiPrior, mode: Float64) -> Float64:
    """Return a root of the Laplace covariance, by differences of the exact gradient."""

    def gradient(z: Float64) -> Float64:
        return log_likelihood(problem, variant, z)[1] + prior.log_density(variant, z)[1]

    steps = _STEP * np.eye(len(mode))
    hessian = np.array([gradient(mode - step) - gradient(mode + step) for step in steps])
    values, vectors = np.linalg.eigh((hessian + hessian.T) / (4 * _STEP))
    # A flat direction is as wide as the prior at most.
    floor = 1 / max(prior.weight_deviation, prior.scale_deviation) ** 2
    return np.asarray(vectors / np.sqrt(np.maximum(values, floor)))


def _each(problem: Problem, variant: Variant, z: Float64) -> Float64:
    """Return n(x, y) log p(x | y; φ) of the dev pairs with support that were seen."""
    seen = problem.supported & (problem.weight > 0)
    found = mixed(problem, variant, constrained(variant, z)).probability
    result: Float64 = problem.weight[seen] * np.log(np.maximum(found[seen], 1e-300))
    return result


def _sites(variant: Variant, phi: Phi) -> dict[str, Any]:
    mixing = "alpha" if variant.mixture == "linear" else "beta"
    smoothing = {"gamma": phi.gamma} if variant.smoothed else {}
    return {mixing: phi.mixing, **smoothing, WEIGHTS: phi.weights}


def _phi(variant: Variant, site: dict[str, Any]) -> Phi:
    mixing = float(site["alpha" if variant.mixture == "linear" else "beta"])
    return Phi(mixing, float(site.get("gamma", 0.0)), np.asarray(site[WEIGHTS], np.float64))


def _from_sites(variant: Variant, values: dict[str, Any], chain: int, draw: int) -> Float64:
    one = {name: value[chain, draw] for name, value in values.items()}
    return unconstrained(variant, _phi(variant, one))


def _split(variant: Variant, z: Float64) -> dict[str, Float64]:
    """Return unconstrained values, (…, d), by site; NumPyro has the same, logit α and logs."""
    first = "alpha" if variant.mixture == "linear" else "beta"
    smoothing = {"gamma": z[..., 1]} if variant.smoothed else {}
    return {first: z[..., 0], **smoothing, WEIGHTS: z[..., 1 + variant.smoothed :]}


def _by_site(variant: Variant, covariance: Float64) -> dict[tuple[str, ...], Float64]:
    """Return a covariance as NumPyro takes it, the sites in the order of z."""
    return {tuple(_sites(variant, Phi(0.5, 1.0, np.zeros(0)))): covariance}


def _values(
    problem: Problem, variant: Variant, z: Float64, each: Float64, mode: Float64
) -> dict[str, Any]:
    """Return what draws hold, whatever sampled them: (chains, draws, …)."""
    phis = [[_sites(variant, constrained(variant, row)) for row in chain] for chain in z]
    names = list(phis[0][0])
    values = {name: np.array([[phi[name] for phi in row] for row in phis]) for name in names}
    size = len(problem.names)
    return {
        "values": values,
        "features": problem.names,
        "sites": tuple(names),
        "log_likelihood": {"dev": each.astype(np.float32)},
        "constants": {"mode": mode[len(mode) - size :], "prior_mean": np.zeros(size)},
    }


def _made(variant: Variant, prior: PhiPrior) -> dict[str, Any]:
    return {"model": weighted_mixture.__name__, "variant": asdict(variant), "prior": asdict(prior)}
