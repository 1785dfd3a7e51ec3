"""Priors learned from other domains: the hierarchical Gaussian of their weights.

λ_d ~ N(μ, Σ) for each domain d, μ ~ N(m, diag v), Σ ~ inverse Wishart: the weights of the domains
are draws of one distribution, and the next domain is another draw of it. What a domain says of its
weights is a Gaussian term, so that everything but Σ has a closed form, and Σ is found by EM
(Dempster, Laird & Rubin 1977; Gelman et al. 2013, ch. 5 and 13). Pure NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models.priors.base import Prior
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws

_ITERATIONS = 2000
#: Largest change of a variance or covariance, in units of μ's prior variance.
_TOLERANCE = 1e-6


class Shrinking(NamedTuple):
    """How Σ is shrunk: see `hierarchy`."""

    shrinkage: float
    strength: float


WITH_CANONICAL = Shrinking(0.05, 10.0)
#: Of six domains of neural systems, 19 features: with strength 10 Σ takes what the domains share,
#: if their priors were narrow (headroom won with no judgement 0.48 where τ = 0.03; 0.61 with 100).
WITHOUT_CANONICAL = Shrinking(1.0, 100.0)


class Evidence(NamedTuple):
    """What the sentences of one domain say of its weights: exp(shift·λ − λ·precision·λ / 2).

    Attributes:
        names: (q,) its features.
        precision: (q, q) of the likelihood alone, positive semi-definite.
        shift: (q,) precision times the weights that the likelihood is highest at.
        prior_mean: (q,) of the prior that the domain was adapted with.
        prior_variance: (q,) of that prior.
        spread: (q,) standard deviation within the lists of each feature whose prior variance was
            scaled by it, nan for the others; None where none was.
    """

    names: tuple[str, ...]
    precision: Float64
    shift: Float64
    prior_mean: Float64
    prior_variance: Float64
    spread: Float64 | None = None

    def over(self, names: Sequence[str]) -> Evidence:
        """Return what the sentences say of some features where the other weights are 0.

        >>> both = Evidence(("a", "b"), np.array([[2.0, 1], [1, 3]]), np.ones(2), *np.zeros((2, 2)))
        >>> one = both.over(["b"])
        >>> one.names, one.precision.tolist(), one.shift.tolist()
        (('b',), [[3.0]], [1.0])
        """
        at = [self.names.index(name) for name in names]
        return Evidence(
            tuple(names),
            self.precision[np.ix_(at, at)],
            self.shift[at],
            self.prior_mean[at],
            self.prior_variance[at],
            None if self.spread is None else self.spread[at],
        )


class Domain(NamedTuple):
    """The weights of one domain, given all domains.

    Attributes:
        mean: (Q,) of its weights.
        covariance: (Q, Q).
        apart: (Q,) the mean of λ_d − μ.
        apart_deviation: (Q,) its standard deviation.
        has: (Q,) bool, whether the domain has the feature itself.
    """

    mean: Float64
    covariance: Float64
    apart: Float64
    apart_deviation: Float64
    has: npt.NDArray[np.bool_]


class Hierarchy(NamedTuple):
    """What several domains have in common, and what is their own.

    Attributes:
        names: (Q,) every feature that some domain has.
        mean: (Q,) μ.
        mean_covariance: (Q, Q) how uncertain μ is.
        between: (Q, Q) Σ, the covariance of the weights of domains around μ.
        domains: by label.
        prior_variance: (Q,) v, the variance of μ before any domain is seen.
        iterations: of EM.
    """

    names: tuple[str, ...]
    mean: Float64
    mean_covariance: Float64
    between: Float64
    domains: dict[str, Domain]
    prior_variance: Float64
    iterations: int

    def prior(self) -> Prior:
        """Return the prior for another domain: N(μ, Σ + the uncertainty of μ)."""
        mean = dict(zip(self.names, self.mean.tolist(), strict=True))
        return Prior.gaussian(mean, self.between + self.mean_covariance)


def evidence(draws: Draws) -> Evidence:
    """Return what the sentences of a posterior say, without its own prior.

    The posterior is taken as a Gaussian with the mean and the covariance of its draws. Its
    precision less that of the prior is the precision of the likelihood; directions in which the
    noise of the draws makes that negative count as unseen.

    Args:
        draws: a posterior with a Gaussian prior.

    Raises:
        DataError: if it is a point, has too few draws, or does not record a Gaussian prior.
    """
    before, size = Prior.recorded(draws), len(draws.features)
    if draws.kind == "point":
        raise DataError(
            "it holds only its mode, and a prior is learned from how certain weights are too: "
            "adapt again with the sampler imh"
        )
    if len(draws.flat) < 10 * size:
        raise DataError(
            f"it holds {len(draws.flat)} draws of {size} weights: adapt with at least {10 * size}"
        )
    covariance = before.covariance
    if covariance is None:
        covariance = np.diag(before.variance)
    # In units of the prior: u = F⁻¹(λ − m) is N(0, I) a priori.
    factor = np.linalg.cholesky(covariance)
    units = np.linalg.solve(factor, (draws.flat - before.mean).T)
    spread = np.atleast_2d(np.cov(units, aweights=draws.importance))
    precision, axes = np.linalg.eigh(np.linalg.inv(spread))
    middle = axes.T @ np.average(units, axis=1, weights=draws.importance)
    gained = np.maximum(precision - 1.0, 0.0)
    shift = np.where(gained > 0, precision * middle, 0.0)
    turned = np.linalg.solve(factor.T, axes)
    own = (turned * gained) @ turned.T
    return Evidence(
        draws.features,
        own,
        turned @ shift + own @ before.mean,
        before.mean,
        np.diag(covariance),
        _spread(draws),
    )


def _spread(draws: Draws) -> Float64 | None:
    """Return the spreads that a posterior records, (q,), nan for features without one."""
    recorded = draws.attrs.get("prior")
    spread = recorded.get("spread") if isinstance(recorded, dict) else None
    if not spread:
        return None
    return np.array([float(spread.get(name, np.nan)) for name in draws.features])


def hierarchy(
    found: Mapping[str, Evidence],
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
) -> Hierarchy:
    """Return what domains share, by EM over Σ; μ and the weights of the domains are integrated out.

    Σ = (Σ_d E[(λ_d − μ)(λ_d − μ)ᵀ] + strength · shrinkage · diag v) / (domains + strength), at
    the fixed point: the mode of Σ under an inverse Wishart prior, which few domains need. From one
    domain Σ is known by that prior alone.

    Args:
        found: what each domain says, by its label. A domain says nothing of features that it has
            not.
        shrinkage: what Σ is shrunk to, as a share of the prior variance v of μ (`laid_out`). None
            is 0.05, and 1 where no feature has a canonical weight: 0.05 of σ_T = 0.1 is 0.005 I.
        strength: how many domains that counts as. None is 10, and 100 where no feature has a
            canonical weight, so that Σ is nearly fixed. Of 1, 2.5, 5, 10 and 20, 10 and 20 are the
            best on Moses lists without any sentence of the next domain (on sentences held out, with
            two domains to learn from: 0.2 to 0.7 TER, a third of the spread); with sentences all
            are equal.

    Raises:
        UsageError: if there is no domain, or a setting is not positive.
    """
    if not found:
        raise UsageError("a prior is learned from the posterior of at least one domain")
    bare = all(one.spread is not None and np.isfinite(one.spread).all() for one in found.values())
    default = WITHOUT_CANONICAL if bare else WITH_CANONICAL
    shrinkage = default.shrinkage if shrinkage is None else shrinkage
    strength = default.strength if strength is None else strength
    if not (shrinkage > 0 and strength > 0):
        raise UsageError("shrinkage and strength of a learned prior are positive numbers")
    names, start, variance, terms = laid_out(found)
    # In units of √v, so that the unit of a feature makes no difference.
    scale = np.sqrt(variance)
    scaled = [
        (precision * np.outer(scale, scale), scale * (shift - precision @ start))
        for precision, shift in terms
    ]
    between, iterations = _fitted(scaled, shrinkage, strength)
    step = _expected(scaled, between)
    outer = np.outer(scale, scale)
    domains = {
        label: Domain(
            start + scale * (step.mean + one.apart),
            outer * one.covariance,
            scale * one.apart,
            scale * np.sqrt(np.diag(one.apart_covariance)),
            np.isin(names, found[label].names),
        )
        for label, one in zip(found, step.domains, strict=True)
    }
    return Hierarchy(
        names,
        start + scale * step.mean,
        outer * step.mean_covariance,
        outer * between,
        domains,
        variance,
        iterations,
    )


class LaidOut(NamedTuple):
    """What several domains say, over all of their Q features.

    Attributes:
        names: (Q,) every feature that some domain has.
        mean: (Q,) of the priors that they were adapted with: the mean over the domains.
        variance: (Q,) v, the prior variance of μ; √v is the unit of a feature.
        terms: of each domain (Q, Q) precision and (Q,) shift; 0 for what it has not.
    """

    names: tuple[str, ...]
    mean: Float64
    variance: Float64
    terms: list[tuple[Float64, Float64]]


def laid_out(found: Mapping[str, Evidence]) -> LaidOut:
    """Match the features of several domains by name.

    v is the mean prior variance over the domains that have a feature. Where prior variances were
    scaled, τ² / spread², v is of that form too: with the geometric means over the domains, of the
    spread for each feature and of τ for all features. So a domain with a much wider prior does not
    set the unit of the features that it alone has.
    """
    names = tuple(dict.fromkeys(name for one in found.values() for name in one.names))
    return LaidOut(
        names,
        _average(names, found.values(), "prior_mean"),
        _variance(names, found.values()),
        [_over(names, one) for one in found.values()],
    )


class _Own(NamedTuple):
    """Moments of one λ_d, and of λ_d − μ."""

    covariance: Float64
    apart: Float64
    apart_covariance: Float64


class _Step(NamedTuple):
    """The E-step: moments of μ and of each domain."""

    mean: Float64
    mean_covariance: Float64
    domains: list[_Own]

    @property
    def scatter(self) -> Float64:
        """Σ_d E[(λ_d − μ)(λ_d − μ)ᵀ]."""
        return np.asarray(
            sum(np.outer(own.apart, own.apart) + own.apart_covariance for own in self.domains)
        )


def _expected(terms: Sequence[tuple[Float64, Float64]], between: Float64) -> _Step:
    """Return the moments given Σ, for μ ~ N(0, I)."""
    identity, precision = np.eye(len(between)), np.linalg.inv(between)
    own = [np.linalg.inv(seen + precision) for seen, _ in terms]
    pulled = [one @ precision for one in own]  # λ_d = pulled μ + centre, given μ
    centres = [one @ shift for one, (_, shift) in zip(own, terms, strict=True)]
    of_mean = identity + sum(precision @ (identity - pull) for pull in pulled)
    mean_covariance = np.linalg.inv((of_mean + of_mean.T) / 2)
    mean = mean_covariance @ sum(precision @ centre for centre in centres)
    domains = [
        _Own(
            one + pull @ mean_covariance @ pull.T,
            centre + (pull - identity) @ mean,
            one + (pull - identity) @ mean_covariance @ (pull - identity).T,
        )
        for one, pull, centre in zip(own, pulled, centres, strict=True)
    ]
    return _Step(np.asarray(mean), np.asarray(mean_covariance), domains)


def _fitted(
    terms: Sequence[tuple[Float64, Float64]], shrinkage: float, strength: float
) -> tuple[Float64, int]:
    """Return Σ at the fixed point of EM, and how many steps it took."""
    size, count = len(terms[0][1]), len(terms)
    between, change, iterations = 0.5 * np.eye(size), np.inf, 0
    while change > _TOLERANCE and iterations < _ITERATIONS:
        scatter = _expected(terms, between).scatter + strength * shrinkage * np.eye(size)
        new = (scatter + scatter.T) / (2 * (count + strength))
        between, change, iterations = new, float(np.abs(new - between).max()), iterations + 1
    return between, iterations


def _over(names: Sequence[str], one: Evidence) -> tuple[Float64, Float64]:
    """Lay what a domain says over all features: nothing of those that it has not."""
    at = [names.index(name) for name in one.names]
    precision, shift = np.zeros((len(names), len(names))), np.zeros(len(names))
    precision[np.ix_(at, at)], shift[at] = one.precision, one.shift
    return precision, shift


def _variance(names: Sequence[str], found: Iterable[Evidence]) -> Float64:
    """Return v, (Q,): see `laid_out`."""
    variance = _average(names, found, "prior_variance")
    log_spread: dict[str, list[float]] = {}
    log_tau = []
    for one in found:
        if one.spread is None or np.isnan(one.spread).all():
            continue
        scaled = np.isfinite(one.spread)
        each = np.log(one.spread[scaled])
        log_tau.append(np.mean(np.log(one.prior_variance[scaled]) / 2 + each))
        for name, value in zip(np.array(one.names)[scaled], each, strict=True):
            log_spread.setdefault(str(name), []).append(float(value))
    for name, values in log_spread.items():
        variance[names.index(name)] = np.exp(2 * (np.mean(log_tau) - np.mean(values)))
    return variance


def _average(names: Sequence[str], found: Iterable[Evidence], field: str) -> Float64:
    """Return the mean over the domains that have a feature, of what they say in one field."""
    total, count = np.zeros(len(names)), np.zeros(len(names))
    for one in found:
        at = [names.index(name) for name in one.names]
        total[at] += getattr(one, field)
        count[at] += 1
    return np.asarray(total / count)
