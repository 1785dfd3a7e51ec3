"""The variants of instance weighting, by name, and the values of their parameters φ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.pair_features import GENERAL, SIMILARITY, SVM

#: How IN and OUT are mixed (Eq. 4): one α, or α_y = c_I(y) / (c_I(y) + β).
MIXTURES = ("linear", "map")


@dataclass(frozen=True)
class Variant:
    """One form of the weighted mixture p(x | y; φ).

    Attributes:
        mixture: `linear`, with one α for all, or `map`, α_y = c_I(y) / (c_I(y) + β) (Eq. 4).
        smoothed: whether γ is fitted; else it is 0 (Eq. 5).
        link: of the weighted features to the factor of a count: `logistic` (Eq. 6), or
            `exponential`.
        flat: whether each count c_o that is not 0 is replaced by 1.
        weighted: whether there are weights of features at all; without, p_o is as counted.
        features: the names of those that have a weight; None takes all there are.
        complete: whether a table that alone knows y has all the weight, so that p(· | y) sums to
            one; else, as the equations are written, the share of the other one is lost.
    """

    mixture: Literal["linear", "map"] = "map"
    smoothed: bool = True
    link: Literal["logistic", "exponential"] = "logistic"
    flat: bool = False
    weighted: bool = True
    features: tuple[str, ...] | None = None
    complete: bool = True

    def size(self, problem: Problem) -> int:
        """Return how many unconstrained numbers φ is."""
        return 1 + self.smoothed + len(prepared(problem, self).names)


#: The forms of a mixture, by name; each is linear or MAP.
FORMS: dict[str, dict[str, Any]] = {
    "plain": {"weighted": False, "smoothed": False},
    "weighted": {},
    "gamma-0": {"smoothed": False},
    "flat": {"flat": True},
    "exponential": {"link": "exponential"},
    "general": {"features": GENERAL},
    "similarity": {"features": SIMILARITY},
    "svm": {"features": (SVM,)},
}


def variant_named(form: str, mixture: str = "map") -> Variant:
    """Return a form of mixture by name.

    Args:
        form: `plain`, with no weights of features; `weighted`, with all that there is; without
            smoothing, `gamma-0`; `flat`; `exponential`; with the `general` features alone, those
            of `similarity`, or the one of the `svm`.
        mixture: `linear` or `map`.

    Raises:
        UsageError: if there is no such form or mixture.

    >>> variant_named("gamma-0").smoothed
    False
    """
    settings = FORMS[one_of(form, FORMS, "form of instance weighting")]
    return Variant(mixture=one_of(mixture, MIXTURES, "mixture"), **settings)  # type: ignore[arg-type]


class Phi(NamedTuple):
    """φ: what is fitted.

    Attributes:
        mixing: α of a linear mixture, β of a MAP one.
        gamma: γ, how much the uniform distribution weighs in p_o, in counts.
        weights: (Q,) λ, of the features; none where counts are not weighted.
    """

    mixing: float
    gamma: float
    weights: Float64


def constrained(variant: Variant, z: Float64) -> Phi:
    """Return φ of its unconstrained values: logit α or log β, log γ if there is one, and λ.

    >>> constrained(Variant("linear"), np.array([0.0, 0.0, 2.0]))
    Phi(mixing=0.5, gamma=1.0, weights=array([2.]))
    """
    first = float(z[0])
    mixing = 1 / (1 + np.exp(-first)) if variant.mixture == "linear" else np.exp(first)
    gamma = float(np.exp(z[1])) if variant.smoothed else 0.0
    return Phi(float(mixing), gamma, np.asarray(z[1 + variant.smoothed :], np.float64))


def unconstrained(variant: Variant, phi: Phi) -> Float64:
    """Return the unconstrained values of φ, the inverse of `constrained`.

    Raises:
        UsageError: if a value is not inside its bounds.

    >>> unconstrained(Variant("map"), Phi(1.0, 1.0, np.array([2.0])))
    array([0., 0., 2.])
    """
    most = 1.0 if variant.mixture == "linear" else np.inf
    if not 0 < phi.mixing < most or (variant.smoothed and not phi.gamma > 0):
        raise UsageError(f"φ is outside its bounds: mixing {phi.mixing:g}, γ {phi.gamma:g}")
    linear = variant.mixture == "linear"
    first = np.log(phi.mixing / (1 - phi.mixing)) if linear else np.log(phi.mixing)
    smoothing = [np.log(phi.gamma)] if variant.smoothed else []
    return np.array([first, *smoothing, *phi.weights], np.float64)


def prepared(problem: Problem, variant: Variant) -> Problem:
    """Return a problem as a variant sees it: flat, with its features or none.

    Raises:
        DataError: if a feature is not there, or there is none at all.
    """
    if not variant.weighted:
        problem = problem.only(())
    elif variant.features is not None:
        problem = problem.only(variant.features)
    if variant.weighted and not problem.names:
        raise DataError("instance weights need features of phrase pairs: there are none")
    return problem.flat() if variant.flat else problem
