"""Priors learned from other domains: the hierarchical Gaussian of their weights.

λ_d ~ N(μ, Σ) for each domain d, μ ~ N(m, diag v), Σ ~ inverse Wishart: the weights of the domains
are draws from one distribution, and so are those of the next domain. The likelihood of each domain
is approximated by a Gaussian, so that everything but Σ has a closed form, and Σ is found by EM
(Dempster, Laird & Rubin 1977; Gelman et al. 2013, ch. 5 and 13). Pure NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_table, warn_user
from bpa_ppl._runtime.names import find_positions
from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.errors import (
    BpaError,
    DataError,
    UsageError,
    list_names,
    suggest_name,
    wrong_type,
    wrong_value,
)
from bpa_ppl.lists.labels import matches, with_labels
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.weight_draws import WeightDraws, as_weight_draws, read_weight_draws

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

    #: Posteriors by the labels of their domains, or without labels; paths are read.
    Posteriors = Mapping[str, Posterior | str | Path] | Iterable[Posterior | str | Path]

#: The weight of a domain is specific if it is this many posterior standard deviations from μ.
_MIN_Z = 2.0
#: A weight is shared if that interval, for every domain, is within this many standard deviations of
#: the prior from μ.
_SHARED_DEVIATIONS = 1.0
_ITERATIONS = 2000
_ADAPT = "adapt again with the sampler imh"
#: Largest change of a variance or covariance, in units of μ's prior variance.
_VARIANCE_TOLERANCE = 1e-6
#: Default shrinkage and strength of Σ, see `fit_hierarchy`.
_WITH_CANONICAL = 0.05, 10.0
#: The same where no feature has a canonical weight. For six domains of neural systems with 19
#: features, strength 10 puts the common part of the weights into Σ if their priors are narrow
#: (headroom won with no judgement 0.48 for τ = 0.03; 0.61 with strength 100).
_WITHOUT_CANONICAL = 1.0, 100.0


def learn_prior(
    posteriors: Posteriors,
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
    without: Iterable[str] = (),
    unchecked: bool = False,
) -> Prior:
    """Learn a Gaussian prior for a new domain from the posteriors of other domains.

    The weights of a domain are a draw from N(μ, Σ), and the prior is N(μ, Σ + the uncertainty of
    μ). Features are matched by name.

    Args:
        posteriors: one or more, by label or as a list; paths are read.
        shrinkage: the value that Σ is shrunk to, as a share of the variance of the priors; None is
            0.05, and 1 if no feature has a canonical weight.
        strength: the number of domains that the shrinkage counts as; None is 10, or 100 if no
            feature has a canonical weight.
        without: features, or labels of features, that the lists of the new domain lack.
        unchecked: use posteriors although they fail their check.

    Raises:
        DataError: if a posterior does not record a Gaussian prior, is a single point, or has no
            feature in common with the others.
        NotConverged: if a posterior fails `check` and `unchecked` is false.
        UsageError: if there is no posterior.

    >>> from bpa_ppl import Draws
    >>> constants = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> from bpa_ppl.weight_draws import name_weights
    >>> def domain(mean):
    ...     weights = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return name_weights(weights, ("LM0",), constants=constants)
    >>> prior = learn_prior([domain(0.3), domain(0.7)])
    >>> prior.names, prior.mean.round(1).tolist(), bool(prior.covariance[0, 0] < 0.1)
    (('LM0',), [0.5], True)
    """
    return learn_hierarchy(
        posteriors, shrinkage=shrinkage, strength=strength, without=without, unchecked=unchecked
    ).prior()


def learn_hierarchy(
    posteriors: Posteriors,
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
    without: Iterable[str] = (),
    unchecked: bool = False,
) -> Hierarchy:
    """Learn what the weights of several domains have in common, and how they differ.

    Arguments and errors are those of `learn_prior`.

    Returns:
        μ, Σ and the weights of each domain; `.prior()` is the result of `learn_prior`.

    >>> from bpa_ppl import Draws
    >>> constants = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> from bpa_ppl.weight_draws import name_weights
    >>> def domain(mean):
    ...     weights = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return name_weights(weights, ("LM0",), constants=constants)
    >>> hierarchy = learn_hierarchy({"talks": domain(0.3), "news": domain(0.7)})
    >>> hierarchy.prior().names
    ('LM0',)
    """
    draws = draws_by_label(posteriors)
    if not draws:
        raise UsageError(
            "a learned prior needs a posterior", parameter="posteriors", code="no-data"
        )
    _require_common_features(draws)
    for label, one in () if unchecked else draws.items():
        refuse_unconverged(one, label)
    _warn_different(draws)
    domains: dict[str, Evidence] = {}
    for label, posterior in draws.items():
        try:
            domains[label] = Evidence.of(posterior)
        except BpaError as error:
            problem = f"the posterior {label}: {error}"
            raise DataError(problem, parameter="posteriors", code=error.code) from error
    domains = _fix_at_zero(domains, tuple(without))
    names = dict.fromkeys(name for domain in domains.values() for name in domain.names)
    of_domains = [set(domain.names) for domain in domains.values()]
    partial = [name for name in names if any(name not in of for of in of_domains)]
    if partial:
        warn_user(
            f"only some of the domains have {list_names(partial)}, and with such a "
            "feature the other weights differ: adapt all domains to lists with the same features, "
            "or leave out (without) features that the lists of the new domain lack"
        )
    return fit_hierarchy(domains, shrinkage=shrinkage, strength=strength)


def draws_by_label(posteriors: Posteriors) -> dict[str, WeightDraws]:
    """Return posteriors by the label of their domain: as given, the stem of the file, or a number.

    Raises:
        DataError: if a file is not a posterior.
        UsageError: if it is a single posterior and not a list.
    """
    if isinstance(posteriors, str | Path | WeightDraws) or not isinstance(posteriors, Iterable):
        rule = "learn_prior takes posteriors by label or a list of them, even of one"
        raise wrong_type(rule, posteriors, "posteriors")

    def load(posterior: Any) -> WeightDraws:
        is_file = isinstance(posterior, str | Path)
        return read_weight_draws(posterior) if is_file else as_weight_draws(posterior)

    if isinstance(posteriors, Mapping) and not hasattr(posteriors, "groups"):
        return {str(label): load(item) for label, item in posteriors.items()}
    draws: dict[str, WeightDraws] = {}
    for number, item in enumerate(posteriors, 1):
        label = Path(item).stem if isinstance(item, str | Path) else f"domain {number}"
        draws[label if label not in draws else f"{label} ({number})"] = load(item)
    return draws


def _require_common_features(draws: Mapping[str, WeightDraws]) -> None:
    """Refuse posteriors that share no features, directly or through other posteriors."""
    (first, posterior), *others = draws.items()
    connected, rest = set(posterior.features), dict(others)
    while linked := [label for label in rest if not connected.isdisjoint(rest[label].features)]:
        connected.update(*(rest.pop(label).features for label in linked))
    if rest:
        label, other = next(iter(rest.items()))
        features = "; ".join(", ".join(d.features[:3]) for d in (posterior, other))
        raise DataError(
            f"the posteriors {first} and {label} have no feature in common ({features}): adapt to "
            "lists whose features have the same names, or leave one of them out",
            parameter="posteriors",
            code="mismatch",
        )


def _warn_different(draws: Mapping[str, WeightDraws]) -> None:
    """Warn if posteriors differ in what makes their weights comparable."""
    shared: dict[str, dict[str, object]] = {
        "likelihoods": {label: d.adaptation.likelihood for label, d in draws.items()},
        "metrics": {label: d.adaptation.observed.gain for label, d in draws.items()},
    }
    for setting, records in shared.items():
        values = {label: str(value) for label, value in records.items() if value is not None}
        if len(set(values.values())) > 1:
            described = "; ".join(f"{label}: {value}" for label, value in values.items())
            warn_user(
                f"the posteriors were adapted with different {setting} ({described}), so the scale "
                "of their weights may differ: adapt all with the same"
            )


def _fix_at_zero(domains: dict[str, Evidence], without: Sequence[str]) -> dict[str, Evidence]:
    """Return the evidence of domains given that the weights of some features are 0.

    Raises:
        DataError: if no domain has such a feature, or a domain has no other.
    """
    names = with_labels(name for domain in domains.values() for name in domain.names)
    for name in without:
        if name not in names:
            message = (
                f"no feature of a domain {name}{suggest_name(name, names)}: choose from "
                f"{list_names(names) or 'none'}"
            )
            raise DataError(message, parameter="without", code="missing-feature")
    remaining = {
        label: domain.over([name for name in domain.names if not matches(name, without)])
        for label, domain in domains.items()
    }
    for label, domain in remaining.items():
        if not domain.names:
            message = f"no feature of the posterior {label} that is not left out: keep at least one"
            raise DataError(message, parameter="without", code="no-data")
    return remaining


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

    @classmethod
    def of(cls, draws: WeightDraws) -> Evidence:
        """Return the likelihood of a posterior's sentences, without its own prior.

        The posterior is approximated by a Gaussian with the mean and the covariance of its draws.
        Its precision minus that of the prior is the precision of the likelihood; directions in
        which the noise of the draws makes this negative have no evidence.

        Args:
            draws: a posterior with a Gaussian prior, which is not checked here.

        Raises:
            DataError: if it is a point, has too few draws or draws of a subspace, or does not
                record a Gaussian prior.
        """
        prior, size = Prior.recorded(draws, unchecked=True), len(draws.features)
        if draws.draws.kind == "point":
            message = f"it holds only its mode: {_ADAPT}"
            raise DataError(message, parameter="posteriors", code="not-supported")
        if (count := len(draws.flat)) < 10 * size:
            message = f"it holds {count} draws of {size} weights: adapt with at least {10 * size}"
            raise DataError(message, parameter="posteriors", code="no-data")
        covariance = prior.full_covariance
        # In units of the prior: u = F⁻¹(λ − m) is N(0, I) a priori.
        factor = np.linalg.cholesky(covariance)
        units = np.linalg.solve(factor, (draws.flat - prior.mean).T)
        posterior = np.atleast_2d(np.cov(units, aweights=draws.importance))
        if np.linalg.matrix_rank(posterior, hermitian=True) < size:
            message = f"its draws do not vary in all directions: {_ADAPT}"
            raise DataError(message, parameter="posteriors", code="not-supported")
        precision, axes = np.linalg.eigh(np.linalg.inv(posterior))
        centre = axes.T @ np.average(units, axis=1, weights=draws.importance)
        gained = np.maximum(precision - 1.0, 0.0)
        shift = np.where(gained > 0, precision * centre, 0.0)
        rotated = np.linalg.solve(factor.T, axes)
        likelihood = (rotated * gained) @ rotated.T
        spread = draws.adaptation.prior.spread if draws.adaptation.prior else {}
        return cls(
            draws.features,
            likelihood,
            rotated @ shift + likelihood @ prior.mean,
            prior.mean,
            np.diag(covariance),
            np.array([spread.get(name, np.nan) for name in draws.features]) if spread else None,
        )

    def over(self, names: Sequence[str]) -> Evidence:
        """Return the evidence on some features, given that the other weights are 0.

        >>> both = Evidence(("a", "b"), np.array([[2.0, 1], [1, 3]]), np.ones(2), *np.zeros((2, 2)))
        >>> one = both.over(["b"])
        >>> one.names, one.precision.tolist(), one.shift.tolist()
        (('b',), [[3.0]], [1.0])
        """
        index = find_positions(names, self.names)
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

    def record(self, draws: Mapping[str, WeightDraws]) -> dict[str, Any]:
        """Return the provenance of a learned prior for its file.

        It includes the canonical weights, so that the prior can be compared with them.

        Args:
            draws: the posteriors of the domains, by label.
        """
        canonical: dict[str, float] = {}
        for one in draws.values():
            if one.canonical is not None:
                canonical |= dict(zip(one.features, one.canonical.tolist(), strict=True))
            canonical |= dict(one.fixed)
        domains = {
            label: {
                "features": list(one.features),
                "likelihood": one.adaptation.likelihood and one.adaptation.likelihood.plain,
                "oracle_metric": one.adaptation.observed.gain,
                "sentences": one.adaptation.observed.sentences,
            }
            for label, one in draws.items()
        }
        between = np.sqrt(np.diag(self.between)).tolist()
        return {
            "canonical": canonical,
            "domains": domains,
            "between_domains": dict(zip(self.names, between, strict=True)),
        }

    def table(self, posteriors: Iterable[WeightDraws] = ()) -> str:
        """Return the verdict on each weight as a text, one line a weight, the least shared first.

        Numbers are for one standard deviation of the feature within lists, the geometric mean over
        the domains, or in raw units where a posterior does not record it.

        Args:
            posteriors: of the domains.
        """
        scales = [draws.adaptation.feature_scales for draws in posteriors]
        spreads = [[s[name].spread for s in scales if name in s] for name in self.names]
        comparable = all(scales) and all(spreads) and all(min(of, default=0) > 0 for of in spreads)
        size = [np.exp(np.log(of).mean()) if comparable else 1.0 for of in spreads]
        unit = np.sqrt(self.prior_variance)  # the standard deviation of the prior
        between = np.sqrt(np.diagonal(self.between))
        rows = []
        for k in np.argsort(-between / unit, kind="stable"):
            domains = {label: domain for label, domain in self.domains.items() if domain.has[k]}
            z = {label: d.offset[k] / d.offset_deviation[k] for label, d in domains.items()}
            different = [f"{label} ({of:+.1f} sd)" for label, of in z.items() if abs(of) > _MIN_Z]
            furthest = max(
                abs(d.offset[k]) + _MIN_Z * d.offset_deviation[k] for d in domains.values()
            )
            verdict = "shared" if furthest <= _SHARED_DEVIATIONS * unit[k] else "unknown"
            if len(domains) == 1:
                verdict = f"of {next(iter(domains))} alone"
            elif different:
                verdict = f"own: {', '.join(different)}"
            numbers = f"{self.mean[k] * size[k]:.3f}", f"{between[k] * size[k]:.3f}"
            rows.append((self.names[k], *numbers, verdict))
        title = "weight × standard deviation within lists" if comparable else "weight, raw units"
        return format_table(rows, (title, "mean", "between", ""), align="lrrl")


def fit_hierarchy(
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
    default = _WITH_CANONICAL if canonical else _WITHOUT_CANONICAL
    shrinkage = default[0] if shrinkage is None else shrinkage
    strength = default[1] if strength is None else strength
    for name, value in (("shrinkage", shrinkage), ("strength", strength)):
        if not value > 0:
            raise wrong_value(f"{name} must be a positive number", value, name)
    names, start, variance, precisions, shifts = match_domains(domains)
    # In units of √v, so that the units of features do not matter.
    scale = np.sqrt(variance)
    outer = np.outer(scale, scale)
    terms = precisions * outer, scale * (shifts - precisions @ start)
    between, change, iterations = 0.5 * np.eye(len(names)), np.inf, 0
    while change > _VARIANCE_TOLERANCE and iterations < _ITERATIONS:
        *_, offset, offset_covariance = _compute_expectation(*terms, between)
        scatter = offset.T @ offset + offset_covariance.sum(axis=0)
        scatter += strength * shrinkage * np.eye(len(names))
        new = (scatter + scatter.T) / (2 * (len(domains) + strength))
        between, change, iterations = new, float(np.abs(new - between).max()), iterations + 1
    mean, mean_covariance, covariance, offset, offset_covariance = _compute_expectation(
        *terms, between
    )
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
        index = find_positions(domain.names, names)
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


def _compute_expectation(
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
