"""Priors learned from other domains: the hierarchical Gaussian of their weights.

λ_d ~ N(μ, Σ) for each domain d, μ ~ N(m, diag v), Σ ~ inverse Wishart: the weights of the domains
are draws from one distribution, and so are those of the next domain. The likelihood of each domain
is approximated by a Gaussian, so that everything but Σ has a closed form, and Σ is found by EM
(Dempster, Laird & Rubin 1977; Gelman et al. 2013, ch. 5 and 13). Pure NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.labels import places_of
from bpa_ppl.models.priors.base import Prior
from bpa_ppl.posterior.draws import Draws

_ITERATIONS = 2000
#: Largest change of a variance or covariance, in units of μ's prior variance.
_TOLERANCE = 1e-6
#: Default shrinkage and strength of Σ, see `hierarchy`.
WITH_CANONICAL = 0.05, 10.0
#: The same where no feature has a canonical weight. For six domains of neural systems with 19
#: features, strength 10 puts the common part of the weights into Σ if their priors are narrow
#: (headroom won with no judgement 0.48 for τ = 0.03; 0.61 with strength 100).
WITHOUT_CANONICAL = 1.0, 100.0


class Evidence(NamedTuple):
    """The likelihood of the weights of one domain: exp(shift·λ − λ·precision·λ / 2).

    Attributes:
        names: (q,) its features.
        precision: (q, q) of the likelihood alone, positive semi-definite.
        shift: (q,) precision times the maximum of the likelihood.
        prior_mean: (q,) of the prior that the domain was adapted with.
        prior_variance: (q,) of that prior.
        spread: (q,) standard deviation within the lists of each feature whose prior variance was
            scaled by it, nan for the others; None if none was scaled.
    """

    names: tuple[str, ...]
    precision: Float64
    shift: Float64
    prior_mean: Float64
    prior_variance: Float64
    spread: Float64 | None = None

    def over(self, names: Sequence[str]) -> Evidence:
        """Return the evidence on some features, given that the other weights are 0.

        >>> both = Evidence(("a", "b"), np.array([[2.0, 1], [1, 3]]), np.ones(2), *np.zeros((2, 2)))
        >>> one = both.over(["b"])
        >>> one.names, one.precision.tolist(), one.shift.tolist()
        (('b',), [[3.0]], [1.0])
        """
        index = places_of(names, self.names)
        return Evidence(
            tuple(names),
            self.precision[np.ix_(index, index)],
            self.shift[index],
            self.prior_mean[index],
            self.prior_variance[index],
            None if self.spread is None else self.spread[index],
        )


class DomainWeights(NamedTuple):
    """The weights of one domain, given all domains.

    Attributes:
        mean: (Q,) of its weights.
        covariance: (Q, Q).
        offset: (Q,) the mean of λ_d − μ.
        offset_deviation: (Q,) its standard deviation.
        has: (Q,) bool, whether the domain itself has the feature.
    """

    mean: Float64
    covariance: Float64
    offset: Float64
    offset_deviation: Float64
    has: npt.NDArray[np.bool_]


class Hierarchy(NamedTuple):
    """The weights that several domains have in common, and their differences.

    Attributes:
        names: (Q,) every feature of any domain.
        mean: (Q,) μ.
        mean_covariance: (Q, Q) the posterior covariance of μ.
        between: (Q, Q) Σ, the covariance of the weights of domains around μ.
        domains: by label.
        prior_variance: (Q,) v, the prior variance of μ.
        iterations: of EM.
    """

    names: tuple[str, ...]
    mean: Float64
    mean_covariance: Float64
    between: Float64
    domains: dict[str, DomainWeights]
    prior_variance: Float64
    iterations: int

    def prior(self) -> Prior:
        """Return the prior for another domain: N(μ, Σ + the uncertainty of μ)."""
        mean = dict(zip(self.names, self.mean.tolist(), strict=True))
        return Prior.gaussian(mean, self.between + self.mean_covariance)


def evidence(draws: Draws) -> Evidence:
    """Return the likelihood of a posterior's sentences, without its own prior.

    The posterior is approximated by a Gaussian with the mean and the covariance of its draws. Its
    precision minus that of the prior is the precision of the likelihood; directions in which the
    noise of the draws makes this negative have no evidence.

    Args:
        draws: a posterior with a Gaussian prior.

    Raises:
        DataError: if it is a point, has too few draws, or does not record a Gaussian prior.
    """
    prior, size = Prior.recorded(draws), len(draws.features)
    if draws.kind == "point":
        problem = "it holds only its mode: adapt again with the sampler imh"
        raise DataError(problem, parameter="posteriors", code="not-supported")
    if (count := len(draws.flat)) < 10 * size:
        problem = f"it holds {count} draws of {size} weights: adapt with at least {10 * size}"
        raise DataError(problem, parameter="posteriors", code="no-data")
    covariance = prior.full_covariance
    # In units of the prior: u = F⁻¹(λ − m) is N(0, I) a priori.
    factor = np.linalg.cholesky(covariance)
    units = np.linalg.solve(factor, (draws.flat - prior.mean).T)
    posterior = np.atleast_2d(np.cov(units, aweights=draws.importance))
    precision, axes = np.linalg.eigh(np.linalg.inv(posterior))
    centre = axes.T @ np.average(units, axis=1, weights=draws.importance)
    gained = np.maximum(precision - 1.0, 0.0)
    shift = np.where(gained > 0, precision * centre, 0.0)
    rotated = np.linalg.solve(factor.T, axes)
    likelihood = (rotated * gained) @ rotated.T
    record = draws.attrs.get("prior")
    spread = record.get("spread") if isinstance(record, dict) else None
    return Evidence(
        draws.features,
        likelihood,
        rotated @ shift + likelihood @ prior.mean,
        prior.mean,
        np.diag(covariance),
        np.array([float(spread.get(n, np.nan)) for n in draws.features]) if spread else None,
    )


def hierarchy(
    domains: Mapping[str, Evidence],
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
) -> Hierarchy:
    """Learn the hierarchy by EM over Σ; μ and the weights of the domains are integrated out.

    Σ = (Σ_d E[(λ_d − μ)(λ_d − μ)ᵀ] + strength · shrinkage · diag v) / (domains + strength), at
    the fixed point: the mode of Σ under an inverse Wishart prior, which few domains need. With one
    domain Σ is determined by that prior alone.

    Args:
        domains: the evidence of each domain, at least one, by its label; there is none on features
            that a domain does not have.
        shrinkage: the value that Σ is shrunk to, as a share of the prior variance v of μ
            (`match_domains`). None is 0.05 (of σ_T = 0.1 that is 0.005 I), and 1 if no feature has
            a canonical weight.
        strength: the number of domains that the shrinkage counts as. None is 10, and 100 if no
            feature has a canonical weight, so that Σ is nearly fixed. Of 1, 2.5, 5, 10 and 20, 10
            and 20 are the best on Moses lists without any sentence of the next domain (on held-out
            sentences, with two domains to learn from: 0.2 to 0.7 TER, a third of the spread); with
            sentences all are equal.

    Raises:
        UsageError: if a setting is not positive.
    """
    canonical = any(
        domain.spread is None or not np.isfinite(domain.spread).all() for domain in domains.values()
    )
    default = WITH_CANONICAL if canonical else WITHOUT_CANONICAL
    shrinkage = default[0] if shrinkage is None else shrinkage
    strength = default[1] if strength is None else strength
    for name, value in (("shrinkage", shrinkage), ("strength", strength)):
        if not value > 0:
            raise UsageError(f"{name} must be a positive number, not {value}", parameter=name)
    names, start, variance, precisions, shifts = match_domains(domains)
    # In units of √v, so that the units of features do not matter.
    scale = np.sqrt(variance)
    outer = np.outer(scale, scale)
    terms = precisions * outer, scale * (shifts - precisions @ start)
    between, change, iterations = 0.5 * np.eye(len(names)), np.inf, 0
    while change > _TOLERANCE and iterations < _ITERATIONS:
        *_, offset, offset_covariance = _expectation(*terms, between)
        scatter = offset.T @ offset + offset_covariance.sum(axis=0)
        scatter += strength * shrinkage * np.eye(len(names))
        new = (scatter + scatter.T) / (2 * (len(domains) + strength))
        between, change, iterations = new, float(np.abs(new - between).max()), iterations + 1
    mean, mean_covariance, covariance, offset, offset_covariance = _expectation(*terms, between)
    weights = {
        label: DomainWeights(
            mean=start + scale * (mean + offset[d]),
            covariance=outer * covariance[d],
            offset=scale * offset[d],
            offset_deviation=scale * np.sqrt(np.diag(offset_covariance[d])),
            has=np.isin(names, domain.names),
        )
        for d, (label, domain) in enumerate(domains.items())
    }
    centre, spread = start + scale * mean, outer * mean_covariance
    return Hierarchy(names, centre, spread, outer * between, weights, variance, iterations)


def match_domains(
    domains: Mapping[str, Evidence],
) -> tuple[tuple[str, ...], Float64, Float64, Float64, Float64]:
    """Match the features of several domains by name.

    v is the mean prior variance over the domains that have a feature. If prior variances were
    scaled, τ² / spread², v has that form too, with the geometric means over the domains of the
    spread for each feature and of τ for all features. So a domain with a much wider prior does not
    set the unit of the features that only it has.

    Returns:
        the names of all Q features; the mean of the priors that the domains were adapted with, and
        the prior variance v of μ, (Q,) each; and the precision, (D, Q, Q), and the shift, (D, Q),
        of the evidence of each domain, 0 for features that it lacks.
    """
    names = tuple(dict.fromkeys(name for domain in domains.values() for name in domain.names))
    count, size = len(domains), len(names)
    precision, shift = np.zeros((count, size, size)), np.zeros((count, size))
    means, variances, log_spread = np.full((3, count, size), np.nan)
    for d, domain in enumerate(domains.values()):
        index = places_of(domain.names, names)
        precision[d][np.ix_(index, index)], shift[d, index] = domain.precision, domain.shift
        means[d, index], variances[d, index] = domain.prior_mean, domain.prior_variance
        if domain.spread is not None:
            log_spread[d, index] = np.log(domain.spread)
    variance, scaled = np.nanmean(variances, axis=0), np.isfinite(log_spread)
    if scaled.any():
        rows, some = scaled.any(axis=1), scaled.any(axis=0)
        log_tau = np.nanmean((np.log(variances) / 2 + log_spread)[rows], axis=1).mean()
        variance[some] = np.exp(2 * (log_tau - np.nanmean(log_spread[:, some], axis=0)))
    return names, np.nanmean(means, axis=0), variance, precision, shift


def _expectation(
    precisions: Float64, shifts: Float64, between: Float64
) -> tuple[Float64, Float64, Float64, Float64, Float64]:
    """Return moments given Σ, for μ ~ N(0, I).

    Returns:
        mean and covariance of μ, the covariance of each λ_d, and the mean and the covariance of
        each λ_d − μ.
    """
    identity, precision = np.eye(len(between)), np.linalg.inv(between)
    inverse = np.linalg.inv(precisions + precision)
    pull = inverse @ precision  # λ_d = pull μ + centre, given μ
    centre = (inverse @ shifts[..., None])[..., 0]
    of_mean = identity + (precision @ (identity - pull)).sum(axis=0)
    mean_covariance = np.linalg.inv((of_mean + of_mean.T) / 2)
    mean = mean_covariance @ (precision @ centre.sum(axis=0))
    apart = pull - identity
    covariance = inverse + pull @ mean_covariance @ pull.transpose(0, 2, 1)
    offset_covariance = inverse + apart @ mean_covariance @ apart.transpose(0, 2, 1)
    return mean, mean_covariance, covariance, centre + apart @ mean, offset_covariance
