"""Fitting the parameters φ of a weighted mixture, and the table that follows from them.

φ maximises the likelihood of dev, or is distributed as its posterior, around the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bpa_ppl.errors import DataError, checked_seed
from bpa_ppl.models.instance_weighting.mixture import (
    Phi,
    PhiPrior,
    Problem,
    Variant,
    constrained,
    evaluate_mixture,
    log_likelihood,
    problem_of,
    unconstrained,
)
from bpa_ppl.nbest import Float32, Float64
from bpa_ppl.phrases.mixtures import DIRECTIONS, pairs_of_both
from bpa_ppl.phrases.tables import PhraseCounts, PhrasePairs, PhraseTable
from bpa_ppl.posterior import Draws, as_draws, to_arviz
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import pareto_smoothed

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Unconstrained values beyond which the likelihood is constant in double precision.
_LIMIT = 30.0
_ITERATIONS = 1000
_PILOT = 50
_STEP = 1e-4  # of differences of the gradient, in units of the prior or of the posterior
_DEGREES = 20.0  # of freedom, of Student's t around the mode


@dataclass(frozen=True, eq=False)
class Fitted:
    """A weighted mixture with fitted parameters.

    Attributes:
        variant: its form.
        names: (Q,) of the features.
        phi: the parameters.
        log_likelihood: mean log p(x | y; φ) of the dev pairs with support, in nats per occurrence.
        support: the share of the dev pairs' mass that has a probability.
        iterations: of L-BFGS, from the best start.
        converged: whether L-BFGS converged.
    """

    variant: Variant
    names: tuple[str, ...]
    phi: Phi
    log_likelihood: float
    support: float
    iterations: int
    converged: bool

    def describe(self, name: str) -> str:
        """Return the parameters and the likelihood of dev in one line, as commands print it.

        Args:
            name: the probability: `p(t|s)`.
        """
        gamma = f", gamma = {self.phi.gamma:.3g}" if self.variant.smoothed else ""
        return (
            f"{name}: {self.variant.mixing_name} = {self.phi.mixing:.4g}{gamma}, log-likelihood "
            f"per pair {self.log_likelihood:.4f}, {self.support:.1%} of the pairs have support"
        )

    def probabilities(self, problem: Problem) -> Float64:
        """Return p(x | y; φ) of the queried pairs of a problem, (D,); 0 without support.

        Raises:
            DataError: if its features are not those of the fit.
        """
        problem = self.variant.apply(problem)
        if self.variant.weighted and problem.names != self.names:
            message = f"features {problem.names} are not those of the fit, {self.names}"
            raise DataError(message, code="mismatch")
        return evaluate_mixture(problem, self.variant, self.phi).probability


def fit(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    starts: int = 0,
    seed: int = 0,
) -> Fitted:
    """Return the φ that maximises Σ p̃(x, y) log p(x | y; φ) (Eq. 7), by L-BFGS.

    The likelihood is not concave: the search starts with all weights 0, once with a small and once
    with a large γ, and at some random points; only the best of these is continued.

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture.
        prior: its log density is added to Σ n(x, y) log p(x | y; φ): the result is the mode of the
            posterior of the unconstrained values. None is maximum likelihood.
        starts: the number of additional random starts.
        seed: of the random starts.

    Raises:
        DataError: if none of the dev pairs is in one of the tables.
    """
    problem = variant.apply(problem)
    mass = float(problem.weight[problem.supported].sum())
    if mass <= 0:
        message = "no phrase pair of dev is in one of the tables: check languages and tokenisation"
        raise DataError(message, code="mismatch")

    def minus(z: Float64) -> tuple[float, Float64]:
        value, gradient = log_likelihood(problem, variant, z)
        if prior is not None:
            log_prior, prior_gradient = prior.log_density(variant, z)
            value, gradient = value + log_prior, gradient + prior_gradient
        return -value / mass, -gradient / mass

    bounds = [(-_LIMIT, _LIMIT)] * (1 + variant.smoothed) + [(None, None)] * len(problem.names)

    def optimise(start: Float64, iterations: int) -> OptimizeResult:
        options = {"maxiter": iterations, "maxcor": len(start) + 5, "ftol": 1e-10, "gtol": 1e-7}
        return minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    first = np.zeros(variant.size(problem))
    first[0] = 2.0 if variant.mixture == "linear" else 0.0
    points = [first]
    if variant.smoothed:
        points.append(first.copy())
        points[1][1] = 3.0
    rng = np.random.default_rng(checked_seed(seed))
    points += [first + rng.normal(size=len(first)) for _ in range(starts)]
    # A few steps show which start is best; only that one is continued to the end.
    pilots = [optimise(point, _PILOT) for point in points]
    best = min(pilots, key=lambda result: result.fun)
    steps = int(best.nit)
    if not best.success:
        best = optimise(best.x, _ITERATIONS)
        steps += int(best.nit)
    return Fitted(
        variant=variant,
        names=problem.names,
        phi=constrained(variant, best.x),
        log_likelihood=log_likelihood(problem, variant, best.x)[0] / mass,
        support=problem.support,
        iterations=steps,
        converged=bool(best.success),
    )


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
    parameters = [constrained(variant, row) for row in z]
    sites: dict[str, list[Any]] = {variant.mixing_name: [phi.mixing for phi in parameters]}
    if variant.smoothed:
        sites["gamma"] = [phi.gamma for phi in parameters]
    sites[WEIGHTS] = [phi.weights for phi in parameters]
    size = len(problem.names)
    return to_arviz(
        Draws(
            values={name: np.array([draws]) for name, draws in sites.items()},
            features=problem.names,
            kind="weighted",
            sites=tuple(sites),
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
    importance, total = sample.importance, np.zeros(len(problem.weight))
    chosen = np.random.default_rng(0).choice(len(importance), size=draws, p=importance)
    for draw, times in zip(*np.unique(chosen, return_counts=True), strict=True):
        site = {k: np.asarray(values[0, draw], np.float64) for k, values in sample.values.items()}
        phi = Phi(float(site[variant.mixing_name]), float(site.get("gamma", 0.0)), site[WEIGHTS])
        total += times * evaluate_mixture(problem, variant, phi).probability
    return total / draws


class WeightedTable(NamedTuple):
    """A weighted table and the fits that it was computed from.

    Attributes:
        table: the pairs of IN and OUT, with the columns `direct`, p(t|s), and `inverse`, p(s|t).
        fits: the fitted mixture of each column.
        posteriors: the posterior of each column's φ, if draws were requested.
    """

    table: PhraseTable
    fits: Mapping[str, Fitted]
    posteriors: Mapping[str, InferenceData]


def weigh(
    inside: PhraseCounts,
    outside: PhraseCounts,
    dev: PhraseCounts,
    features: Float32,
    names: tuple[str, ...],
    variant: Variant | None = None,
    *,
    prior: PhiPrior | None = None,
    draws: int = 0,
    seed: int = 0,
    batch: int = 1 << 19,
) -> WeightedTable:
    """Return the table of p(t|s) and p(s|t) under a weighted mixture, each fitted to dev.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        dev: counts of other text of the domain, to fit φ on.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        variant: the form of the mixture; None is the weighted MAP one.
        prior: of φ; None is maximum likelihood, as published.
        draws: of the posterior, around its mode; the probabilities are then means over them.
        seed: of the draws.
        batch: pairs whose probabilities are computed at once; their features in OUT are copied.

    Raises:
        DataError: if the tables and features do not fit, or no pair of dev is in the tables.
    """
    variant, fitted, posteriors, columns = variant or Variant(), {}, {}, {}
    pairs = pairs_of_both(inside, outside)
    for name, side in DIRECTIONS.items():
        problem = problem_of(inside, outside, dev, features, names, side)
        fitted[name] = fit(problem, variant, prior=prior)
        if draws:
            posteriors[name] = laplace(problem, variant, prior=prior, draws=draws, seed=seed)
        columns[name] = np.zeros(len(pairs))
        for rows in _batches(pairs.number("source" if side == "target" else "target"), batch):
            part = PhrasePairs(pairs.sources, pairs.targets, pairs.source[rows], pairs.target[rows])
            query = problem_of(inside, outside, part, features, names, side)
            columns[name][rows] = (
                mean_probabilities(posteriors[name], query, variant)
                if draws
                else fitted[name].probabilities(query)
            )
    return WeightedTable(PhraseTable.on(pairs, columns), fitted, posteriors)


def _batches(condition: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the pairs in sorted batches of about this size; all pairs of one y are in one."""
    order = np.argsort(condition, kind="stable")
    starts = np.flatnonzero(np.diff(condition[order], prepend=-1))
    cuts = starts[np.searchsorted(starts, np.arange(size, len(order), size), side="right") - 1]
    return [np.sort(part) for part in np.split(order, np.unique(cuts)) if len(part)]
