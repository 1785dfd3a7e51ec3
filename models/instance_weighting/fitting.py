"""The parameters φ of a weighted mixture by maximum likelihood, or at the mode of a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bpa_ppl.errors import DataError, checked_seed
from bpa_ppl.models.instance_weighting.objective import log_likelihood, mixed
from bpa_ppl.models.instance_weighting.priors import PhiPrior
from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.models.instance_weighting.variants import (
    Phi,
    Variant,
    constrained,
    prepared,
    unconstrained,
)
from bpa_ppl.nbest import Float64

#: Unconstrained values beyond which a likelihood changes no more, in units of double precision.
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
        log_likelihood: mean log p(x | y; φ) of the dev pairs with support, in nats a pair, each
            pair as often as it was seen.
        support: the share of the dev pairs' mass that has a probability at all.
        iterations: of L-BFGS, from the best start.
        converged: whether L-BFGS stopped because nothing is to be gained.
    """

    variant: Variant
    names: tuple[str, ...]
    phi: Phi
    log_likelihood: float
    support: float
    iterations: int
    converged: bool

    def describe(self, what: str) -> str:
        """Return the parameters and how likely dev is, in a line, as commands print it.

        Args:
            what: the probability in words: `p(t|s)`.
        """
        mixing = "alpha" if self.variant.mixture == "linear" else "beta"
        gamma = f", gamma = {self.phi.gamma:.3g}" if self.variant.smoothed else ""
        return (
            f"{what}: {mixing} = {self.phi.mixing:.4g}{gamma}, log-likelihood per pair "
            f"{self.log_likelihood:.4f}, {self.support:.1%} of the pairs have support"
        )

    def probabilities(self, problem: Problem) -> Float64:
        """Return p(x | y; φ) of the asked pairs of a problem, (D,); 0 without support.

        Raises:
            DataError: if its features are not those that were fitted.
        """
        ready = prepared(problem, self.variant)
        if self.variant.weighted and ready.names != self.names:
            raise DataError(f"features {ready.names} are not those of the fit, {self.names}")
        return mixed(ready, self.variant, self.phi).probability

    def mean_log_likelihood(self, problem: Problem) -> float:
        """Return the mean log p(x | y; φ) of the asked pairs with support; NaN of none."""
        value = log_likelihood(
            prepared(problem, self.variant), self.variant, unconstrained(self.variant, self.phi)
        )[0]
        return _mean(problem, value)


def fit(
    problem: Problem,
    variant: Variant,
    *,
    prior: PhiPrior | None = None,
    starts: int = 0,
    seed: int = 0,
) -> Fitted:
    """Return the φ that maximises Σ p̃(x, y) log p(x | y; φ) (Eq. 7), by L-BFGS.

    The likelihood is not concave: the search begins at all weights 0, once with a small and once
    with a large γ, and, on top of that, at some random places; the best of these is followed.

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture.
        prior: where given, its log density is added to Σ n(x, y) log p(x | y; φ): the mode of the
            posterior, as density of the unconstrained values. None is plain maximum likelihood.
        starts: how many random starts there are, besides.
        seed: of them.

    Raises:
        DataError: if none of the dev pairs is in one of the tables.
    """
    ready = prepared(problem, variant)
    mass = float(ready.weight[ready.supported].sum())
    if mass <= 0:
        raise DataError(
            "no phrase pair of dev is in one of the tables: are the three of the same languages, "
            "in the same order, and tokenised and cased alike?"
        )

    def minus(z: Float64) -> tuple[float, Float64]:
        value, gradient = log_likelihood(ready, variant, z)
        if prior is not None:
            before, change = prior.log_density(variant, z)
            value, gradient = value + before, gradient + change
        return -value / mass, -gradient / mass

    bounds = [(-_LIMIT, _LIMIT)] * (1 + variant.smoothed) + [(None, None)] * len(ready.names)

    def climbed(start: Float64, iterations: int) -> OptimizeResult:
        settings = {"maxiter": iterations, "maxcor": len(start) + 5, "ftol": 1e-10, "gtol": 1e-7}
        return minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=settings)

    # A few steps tell which start is best; only that one is followed to the end.
    begun = [climbed(start, _PILOT) for start in _starts(variant, ready, starts, seed)]
    best = min(begun, key=lambda end: end.fun)
    steps = int(best.nit)
    if not best.success:
        best = climbed(best.x, _ITERATIONS)
        steps += int(best.nit)
    return Fitted(
        variant=variant,
        names=ready.names,
        phi=constrained(variant, best.x),
        log_likelihood=_mean(ready, log_likelihood(ready, variant, best.x)[0]),
        support=ready.support,
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


def _mean(problem: Problem, value: float) -> float:
    mass = float(problem.weight[problem.supported].sum())
    return value / mass if mass else float("nan")


def held_out(
    problem: Problem,
    variant: Variant,
    fold: Float64,
    *,
    prior: PhiPrior | None = None,
    starts: int = 0,
) -> Float64:
    """Return log p(x | y) of each dev pair under a fit that has not seen it, (D,).

    Args:
        problem: IN, OUT and the dev pairs.
        variant: the form of the mixture.
        fold: (D,) the number of the fold that each pair is left out of.
        prior: as in `fit`.
        starts: as in `fit`.

    Returns:
        −∞ for pairs without support.
    """
    probability = np.zeros(len(problem.weight))
    for number in np.unique(fold):
        seen = problem.weighted(np.where(fold == number, 0.0, problem.weight))
        fitted = fit(seen, variant, prior=prior, starts=starts)
        out = fold == number
        probability[out] = fitted.probabilities(problem)[out]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
