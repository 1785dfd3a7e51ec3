"""Learning a prior for a new domain from the posteriors of other domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import BpaError, DataError, UsageError, listed
from bpa_ppl.labels import matches, with_labels
from bpa_ppl.models.priors.base import Prior
from bpa_ppl.models.priors.learned import Evidence, Hierarchy, evidence, hierarchy
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.files import read_draws

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

    #: Posteriors by the labels of their domains, or without labels; paths are read.
    Posteriors = Mapping[str, Posterior | str | Path] | Iterable[Posterior | str | Path]

#: Attributes that posteriors should share, so that their weights are comparable.
_SHARED = {"likelihood": "likelihoods", "oracle_metric": "metrics"}
_COUNT = "adaptation_sentences"


def learn_prior(
    posteriors: Posteriors,
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
    without: Iterable[str] = (),
) -> Prior:
    """Learn a prior for a new domain from the posteriors of other domains.

    The weights of a domain are a draw from N(μ, Σ); the learned prior is the distribution of the
    weights of one more domain, N(μ, Σ + the uncertainty of μ). Features are matched by name: a
    domain has no evidence on features that it lacks. See `learn_hierarchy`.

    Args:
        posteriors: one per domain, by label or as a list; paths are read. One domain is enough, and
            then Σ is the value that it is shrunk to.
        shrinkage: the value that Σ is shrunk to, as a share of the variance of the posteriors' own
            priors; None is 0.05 (of σ_T = 0.1 that is 0.005 I), and 1 if no feature has a canonical
            weight.
        strength: the number of domains that the shrinkage counts as; None is 10, and 100 if no
            feature has a canonical weight.
        without: features, or labels of features, that the lists of the new domain lack. The
            evidence of a domain that has them is then conditioned on weights of 0, because the
            other weights differ with and without them.

    Returns:
        a Gaussian, for `adapt(…, prior=…)`; `prior.write("prior.json")` saves it.

    Raises:
        DataError: if a posterior does not record a Gaussian prior, or is a single point; or if some
            posteriors have no feature in common with the others.
        UsageError: if there is no posterior.

    >>> from bpa_ppl import Draws
    >>> constants = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> def domain(mean):
    ...     weights = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return Draws({"weights": weights}, ("LM0",), constants=constants)
    >>> prior = learn_prior([domain(0.3), domain(0.7)])
    >>> prior.names, prior.mean.round(1).tolist(), bool(prior.covariance[0, 0] < 0.1)
    (('LM0',), [0.5], True)
    """
    return learn_hierarchy(
        posteriors, shrinkage=shrinkage, strength=strength, without=without
    ).prior()


def learn_hierarchy(
    posteriors: Posteriors,
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
    without: Iterable[str] = (),
) -> Hierarchy:
    """Learn what the weights of several domains have in common, and how they differ.

    Arguments and errors are those of `learn_prior`.

    Returns:
        μ, Σ and the weights of each domain; `.prior()` is the result of `learn_prior`.

    >>> from bpa_ppl import Draws
    >>> constants = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> def domain(mean):
    ...     weights = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return Draws({"weights": weights}, ("LM0",), constants=constants)
    >>> hierarchy = learn_hierarchy({"talks": domain(0.3), "news": domain(0.7)})
    >>> hierarchy.prior().names
    ('LM0',)
    """
    draws = labelled(posteriors)
    if not draws:
        problem = "a prior is learned from the posterior of at least one domain"
        raise UsageError(problem, parameter="posteriors", code="no-data")
    _require_common_features(draws)
    _warn_different(draws)
    domains: dict[str, Evidence] = {}
    for label, posterior in draws.items():
        try:
            domains[label] = evidence(posterior)
        except BpaError as error:
            problem = f"the posterior {label}: {error}"
            raise DataError(problem, parameter="posteriors", code=error.code) from error
    domains = _without(domains, tuple(without))
    names = dict.fromkeys(name for domain in domains.values() for name in domain.names)
    of_domains = [set(domain.names) for domain in domains.values()]
    partial = [name for name in names if any(name not in of for of in of_domains)]
    if partial:
        warn_user(
            f"only some of the domains have {listed(partial)}, and with such a "
            "feature the other weights differ: adapt all domains to lists with the same features, "
            "or leave out (without) features that the lists of the new domain lack"
        )
    return hierarchy(domains, shrinkage=shrinkage, strength=strength)


def labelled(posteriors: Posteriors) -> dict[str, Draws]:
    """Return posteriors by the label of their domain: as given, the stem of the file, or a number.

    Raises:
        DataError: if a file is not a posterior.
        UsageError: if it is a single posterior and not a list.
    """
    if isinstance(posteriors, str | Path | Draws) or not isinstance(posteriors, Iterable):
        problem = "learn_prior takes posteriors by label or a list of them, even of one"
        raise UsageError(problem, parameter="posteriors", code="wrong-type")

    def load(posterior: Any) -> Draws:
        return read_draws(posterior) if isinstance(posterior, str | Path) else as_draws(posterior)

    if isinstance(posteriors, Mapping) and not hasattr(posteriors, "groups"):
        return {str(label): load(item) for label, item in posteriors.items()}
    draws: dict[str, Draws] = {}
    for number, item in enumerate(posteriors, 1):
        label = Path(item).stem if isinstance(item, str | Path) else f"domain {number}"
        draws[label if label not in draws else f"{label} ({number})"] = load(item)
    return draws


def _require_common_features(draws: Mapping[str, Draws]) -> None:
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


def _warn_different(draws: Mapping[str, Draws]) -> None:
    """Warn if posteriors differ in an attribute that makes their weights comparable."""
    for name, setting in _SHARED.items():
        values = {label: str(d.attrs[name]) for label, d in draws.items() if name in d.attrs}
        if len(set(values.values())) > 1:
            described = "; ".join(f"{label}: {value}" for label, value in values.items())
            warn_user(
                f"the posteriors were adapted with different {setting} ({described}), so the scale "
                "of their weights may differ: adapt all with the same"
            )


def _without(domains: dict[str, Evidence], without: Sequence[str]) -> dict[str, Evidence]:
    """Return the evidence of domains given that the weights of some features are 0.

    Raises:
        DataError: if no domain has such a feature, or a domain has no other.
    """
    known = with_labels(name for domain in domains.values() for name in domain.names)
    for name in without:
        if name not in known:
            problem = f"no domain has the feature {name} that is left out"
            raise DataError(problem, parameter="without", code="missing-feature")
    remaining = {
        label: domain.over([name for name in domain.names if not matches(name, without)])
        for label, domain in domains.items()
    }
    for label, domain in remaining.items():
        if not domain.names:
            problem = f"all features of the posterior {label} are left out: keep at least one"
            raise DataError(problem, parameter="without", code="no-data")
    return remaining


def record(hierarchy: Hierarchy, draws: Mapping[str, Draws]) -> dict[str, Any]:
    """Return the provenance of a learned prior for its file.

    It includes the canonical weights, so that the prior can be compared with them.
    """
    canonical: dict[str, float] = {}
    for posterior in draws.values():
        if posterior.canonical is not None:
            canonical |= dict(zip(posterior.features, posterior.canonical.tolist(), strict=True))
        canonical |= dict(posterior.fixed)
    domains = {
        label: {
            "features": list(posterior.features),
            **{name: posterior.attrs[name] for name in _SHARED if name in posterior.attrs},
            **({"sentences": int(posterior.attrs[_COUNT])} if _COUNT in posterior.attrs else {}),
        }
        for label, posterior in draws.items()
    }
    between = np.sqrt(np.diag(hierarchy.between)).tolist()
    return {
        "canonical": canonical,
        "domains": domains,
        "between_domains": dict(zip(hierarchy.names, between, strict=True)),
    }
