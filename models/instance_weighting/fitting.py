"""Fitting the parameters φ of a weighted mixture: the maximum of the likelihood of dev."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.models.instance_weighting.density import (
    constrained,
    placed,
    probabilities,
    value_and_gradient,
)
from bpa_ppl.models.instance_weighting.mixture import MixtureData, Phi, Variant
from bpa_ppl.notes import warn_user

#: Unconstrained values beyond which the likelihood is constant in double precision.
_LIMIT = 30.0
_ITERATIONS = 1000
_PILOT = 50
#: Unconstrained values beyond which α, β or γ is practically 0, 1 or infinite.
_EXTREME = 12.0
#: A larger weight of a feature with the variance 1 makes the factor of a count 0 or 1.
_HUGE = 20.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A weighted mixture with fitted parameters.

    Attributes:
        variant: its form.
        names: (Q,) of the features.
        phi: the parameters.
        z: (d,) their unconstrained values: logit α or log β, log γ if it is fitted, and λ.
        log_likelihood: mean log p(x | y; φ) of the dev pairs with support, in nats per occurrence.
        support: the share of the dev pairs' mass that has a probability.
        iterations: of L-BFGS, from the best start.
        converged: whether L-BFGS converged.
    """

    variant: Variant
    names: tuple[str, ...]
    phi: Phi
    z: Float64
    log_likelihood: float
    support: float
    iterations: int
    converged: bool

    def problems(self) -> tuple[str, ...]:
        """Return what makes the fit doubtful, in words; empty if nothing does.

        A weight above 20 makes the factor of a count 0 or 1, and α, β or γ is practically 0, 1 or
        infinite if its logit or logarithm is beyond ± 12: the dev pairs do not determine it.

        >>> phi, z = Phi(1.0, 1.0, np.array([0.5, -843.0])), np.array([0.0, 0.0, 0.5, -843.0])
        >>> Fitted(Variant(), ("one", "two"), phi, z, -0.8, 0.6, 12, True).problems()
        ('the weight of two is -843',)
        """
        result = [] if self.converged else [f"no convergence after {self.iterations} iterations"]
        scales = (self.variant.mixing_name, "gamma")[: 1 + self.variant.smoothed]
        for name, value, z in zip(scales, self.phi, self.z, strict=False):
            result += [f"{name} is at its bound, {value:.2g}"] if abs(z) > _EXTREME else []
        weights = zip(self.names, self.phi.weights, strict=True)
        result += [f"the weight of {name} is {w:.0f}" for name, w in weights if abs(w) > _HUGE]
        return tuple(result)

    def describe(self, name: str) -> str:
        """Return the parameters and the likelihood of dev in one line, as commands print it.

        Args:
            name: the probability: `p(t|s)`.
        """
        gamma = f", gamma = {self.phi.gamma:.3g}" if self.variant.smoothed else ""
        state = "converged" if self.converged else "not converged"
        return (
            f"{name}: {self.variant.mixing_name} = {self.phi.mixing:.4g}{gamma}, log-likelihood "
            f"per pair {self.log_likelihood:.4f}, {self.support:.1%} of the pairs have support; "
            f"{state} after {self.iterations} iterations"
        )

    def probabilities(self, data: MixtureData) -> Float64:
        """Return p(x | y; φ) of the queried pairs of some data, (D,); 0 without support.

        Args:
            data: with the features of the fit.
        """
        data = self.variant.apply(data)
        with placed(data) as arrays:
            return np.asarray(probabilities(arrays, self.variant, self.phi))


def fit(data: MixtureData, variant: Variant, *, prior_deviation: float | None = None) -> Fitted:
    """Return the φ that maximises Σ p̃(x, y) log p(x | y; φ) (Eq. 7), by L-BFGS.

    The likelihood is not concave: the search starts with all weights 0, once with a small and once
    with a large γ, and only the better of these is continued.

    Args:
        data: IN, OUT and the dev pairs.
        variant: the form of the mixture.
        prior_deviation: the standard deviation of a normal prior of each weight, with mean 0:
            features have the standard deviation 1. α is then uniform, and log β and log γ are
            normal with a standard deviation of 2; the result is the mode of the posterior of the
            unconstrained values. None is maximum likelihood, as published, which overfits a small
            dev: then it warns.

    Raises:
        DataError: if none of the dev pairs is in one of the tables.

    OUT has b and c as translations of s. In dev b is more frequent, so its feature has a positive
    weight:

    >>> from bpa_ppl.models.instance_weighting.mixture import mixture_data
    >>> from bpa_ppl.phrases.tables import PhraseCounts
    >>> inside = PhraseCounts.of(["s", "s"], ["a", "b"], [3, 1])
    >>> outside = PhraseCounts.of(["s", "s"], ["b", "c"], [2, 2])
    >>> dev = PhraseCounts.of(["s", "s", "s"], ["a", "b", "c"], [4, 3, 1])
    >>> features = np.array([[1.0], [-1.0]], np.float32)
    >>> data = mixture_data(inside, outside, dev, features, ("like-IN",))
    >>> fitted = fit(data, Variant("linear", smoothed=False), prior_deviation=1.0)
    >>> fitted.converged, bool(fitted.phi.weights[0] > 0)
    (True, True)
    """
    data = variant.apply(data)
    mass = float(data.weight[data.supported].sum())
    if mass <= 0:
        message = "no phrase pair of dev is in one of the tables: check languages and tokenisation"
        raise DataError(message, code="mismatch")

    bounds = [(-_LIMIT, _LIMIT)] * (1 + variant.smoothed) + [(None, None)] * len(data.names)

    def optimise(start: Float64, iterations: int) -> OptimizeResult:
        options = {"maxiter": iterations, "maxcor": len(start) + 5, "ftol": 1e-10, "gtol": 1e-7}
        return minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    first = np.zeros(len(bounds))
    first[0] = 2.0 if variant.mixture == "linear" else 0.0
    points = [first]
    if variant.smoothed:
        points.append(np.concatenate([first[:1], [3.0], first[2:]]))
    with placed(data) as arrays:

        def minus(z: Float64) -> tuple[float, Float64]:
            (value, _), gradient = jax.device_get(
                value_and_gradient(arrays, variant, prior_deviation, z)
            )
            return -value / mass, -gradient / mass

        # A few steps show which start is best; only that one is continued to the end.
        pilots = [optimise(point, _PILOT) for point in points]
        best = min(pilots, key=lambda result: result.fun)
        steps = int(best.nit)
        if not best.success:
            best = optimise(best.x, _ITERATIONS)
            steps += int(best.nit)
        (_, log_likelihood), _ = value_and_gradient(arrays, variant, prior_deviation, best.x)
        phi = jax.device_get(constrained(variant, best.x))
    fitted = Fitted(
        variant=variant,
        names=data.names,
        phi=Phi(float(phi.mixing), float(phi.gamma), phi.weights),
        z=best.x,
        log_likelihood=float(log_likelihood) / mass,
        support=data.support,
        iterations=steps,
        converged=bool(best.success),
    )
    if prior_deviation is None:
        warn_user(
            "the weights of features are fitted without a prior, as published, which overfits a "
            "small development set: a prior (--prior-deviation 1) is safer"
        )
    if problems := fitted.problems():
        remedy = "a prior" if prior_deviation is None else "more development text"
        warn_user(f"the fit is doubtful: {', and '.join(problems)}; {remedy} helps")
    return fitted
