"""The parameters φ of a weighted mixture by maximum likelihood, or at the mode of a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bpa_ppl.errors import DataError, checked_seed
from bpa_ppl.models.instance_weighting.mixture import (
    Phi,
    PhiPrior,
    Variant,
    constrained,
    evaluate_mixture,
    log_likelihood,
)
from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.nbest import Float64

#: Unconstrained values beyond which the likelihood is constant in double precision.
_LIMIT = 30.0
_ITERATIONS = 1000
_PILOT = 50


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
            raise DataError(f"features {problem.names} are not those of the fit, {self.names}")
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
        raise DataError(
            "no phrase pair of dev is in one of the tables: check that all three have the same "
            "languages in the same order, and the same tokenisation and case"
        )

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

    # A few steps show which start is best; only that one is continued to the end.
    pilots = [optimise(start, _PILOT) for start in _starts(variant, problem, starts, seed)]
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


def _starts(variant: Variant, problem: Problem, count: int, seed: int) -> Iterator[Float64]:
    size = variant.size(problem)
    first = np.zeros(size)
    first[0] = 2.0 if variant.mixture == "linear" else 0.0
    yield first
    if variant.smoothed:
        large = first.copy()
        large[1] = 3.0
        yield large
    rng = np.random.default_rng(checked_seed(seed))
    for _ in range(count):
        yield first + rng.normal(size=size)
