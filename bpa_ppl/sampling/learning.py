"""learn_prior: from posteriors of other domains to a prior for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import BpaError, DataError, UsageError
from bpa_ppl.labels import matches
from bpa_ppl.models import Prior
from bpa_ppl.models.hierarchical import Hierarchical
from bpa_ppl.models.priors.learned import Evidence, Hierarchy, evidence, hierarchy
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior import Draws, as_draws, read_draws
from bpa_ppl.sampling.adapting import adapt
from bpa_ppl.sampling.sentences import DOMAIN
from bpa_ppl.weights import AnyWeights

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

    #: Posteriors by the labels of their domains, or several of them; a path is read.
    Posteriors = Mapping[str, Posterior | str | Path] | Iterable[Posterior | str | Path]

#: What posteriors must agree in, for their weights to be of one kind.
_ALIKE = {"likelihood": "likelihoods", "oracle_metric": "metrics"}

_COUNT = "adaptation_sentences"
_NAMED = 5  # features in a message


def learn_prior(
    posteriors: Posteriors,
    *,
    shrinkage: float | None = None,
    strength: float | None = None,
    without: Iterable[str] = (),
) -> Prior:
    """Learn a prior for a new domain from the posteriors of other domains.

    The weights of a domain are a draw of N(μ, Σ); what is learned is the distribution of the
    weights of one more domain, N(μ, Σ + the uncertainty of μ). Features are matched by name: a
    domain says nothing of those that it has not. See `learn_hierarchy`.

    Args:
        posteriors: one a domain: by label, or one after the other; paths are read. One domain is
            enough, and then Σ is what it is shrunk to.
        shrinkage: what Σ is shrunk to, as a share of the variance of the posteriors' own priors;
            None is 0.05 (of σ_T = 0.1 that is 0.005 I), and 1 where no feature has a canonical
            weight.
        strength: how many domains that counts as; None is 10, and 100 where no feature has a
            canonical weight.
        without: features, or labels of features, that the lists of the new domain lack. The
            evidence of a domain that has them is then taken where their weights are 0, because
            other weights differ with and without them.

    Returns:
        a Gaussian, for `adapt(…, prior=…)`; `prior.write("prior.json")` keeps it.

    Raises:
        DataError: if a posterior does not record a Gaussian prior, or is a single point; or if some
            posteriors have no feature in common with the others.
        UsageError: if there is none.

    >>> from bpa_ppl import Draws
    >>> known = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> def domain(mean):
    ...     drawn = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return Draws({"weights": drawn}, ("LM0",), constants=known)
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
    """Learn what the weights of several domains share, and what is a domain's own.

    Arguments and errors are those of `learn_prior`.

    Returns:
        μ, Σ and the weights of each domain; `.prior()` is what `learn_prior` returns.

    >>> from bpa_ppl import Draws
    >>> known = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
    >>> def domain(mean):
    ...     drawn = np.random.default_rng(0).normal(mean, 0.1, size=(4, 500, 1))
    ...     return Draws({"weights": drawn}, ("LM0",), constants=known)
    >>> found = learn_hierarchy({"talks": domain(0.3), "news": domain(0.7)})
    >>> found.prior().names
    ('LM0',)
    """
    draws = labelled(posteriors)
    if not draws:
        raise UsageError("a prior is learned from the posterior of at least one domain")
    _refuse_strangers(draws)
    _warn_unlike(draws)
    found: dict[str, Evidence] = {}
    for label, one in draws.items():
        try:
            found[label] = evidence(one)
        except BpaError as error:
            raise DataError(f"the posterior {label}: {error}") from error
    found = _restricted(found, tuple(without))
    _warn_partial(found)
    return hierarchy(found, shrinkage=shrinkage, strength=strength)


def learn_prior_jointly(
    pools: Mapping[str, NBest],
    weights: AnyWeights,
    *,
    model: Hierarchical | None = None,
    **options: Any,
) -> InferenceData:
    """Sample the full hierarchical model over the lists of several domains at once.

    Its `weights` are those of one more domain: `Prior.of` makes a prior of them, and `rerank` may
    use them as they are.

    Args:
        pools: the lists of each domain, of one system: with the same features.
        weights: the canonical weights.
        model: None is `Hierarchical` with its defaults.
        options: of `adapt`. The sampler `auto` takes `nuts`, which looks at all lists in every
            step; its settings are `chains`, `draws` and `warmup`.

    Raises:
        UsageError: if there are fewer than two domains.
    """
    if len(pools) < 2:
        raise UsageError("a prior is learned from the lists of at least two domains")
    chosen = model or Hierarchical(domains=len(pools))
    if chosen.domains != len(pools):
        raise UsageError(f"the model is of {chosen.domains} domains, and there are {len(pools)}")
    tagged = [
        pool.with_sentence_extras(**{DOMAIN: (f"{number:06d}",) * len(pool)})
        for number, pool in enumerate(pools.values())
    ]
    return adapt(NBest.concatenate(tagged, renumber=True), weights, model=chosen, **options)


def labelled(posteriors: Posteriors) -> dict[str, Draws]:
    """Return posteriors by the label of their domain: given, the stem of the file, or a number.

    Raises:
        DataError: if a file is no posterior.
        UsageError: if it is a single posterior and no list.
    """
    if isinstance(posteriors, str | Path | Draws) or not isinstance(posteriors, Iterable):
        raise UsageError("learn_prior takes posteriors by label or a list of them, even of one")
    if isinstance(posteriors, Mapping) and not hasattr(posteriors, "groups"):
        return {str(label): _loaded(one) for label, one in posteriors.items()}
    found: dict[str, Draws] = {}
    for number, one in enumerate(posteriors, 1):
        label = Path(one).stem if isinstance(one, str | Path) else f"domain {number}"
        found[label if label not in found else f"{label} ({number})"] = _loaded(one)
    return found


def _loaded(one: Any) -> Draws:
    return read_draws(one) if isinstance(one, str | Path) else as_draws(one)


def _refuse_strangers(draws: Mapping[str, Draws]) -> None:
    """Refuse posteriors that say nothing of one another, directly or by way of a third one."""
    (first, one), *others = draws.items()
    reached, left = set(one.features), dict(others)
    while near := [label for label in left if not reached.isdisjoint(left[label].features)]:
        reached.update(*(left.pop(label).features for label in near))
    if left:
        label, other = next(iter(left.items()))
        raise DataError(
            f"the posteriors {first} and {label} have no feature in common "
            f"({_beginning(one)}; {_beginning(other)}), so that neither says anything of the "
            "other: adapt to lists whose features have the same names, or leave one of them out"
        )


def _beginning(draws: Draws, most: int = 3) -> str:
    """Return the names of the first features."""
    more = ", …" if len(draws.features) > most else ""
    return ", ".join(draws.features[:most]) + more


def _warn_unlike(draws: Mapping[str, Draws]) -> None:
    """Say what posteriors differ in that makes weights of one unlike those of another."""
    for name, what in _ALIKE.items():
        said = {label: str(one.attrs[name]) for label, one in draws.items() if name in one.attrs}
        if len(set(said.values())) > 1:
            each = "; ".join(f"{label}: {value}" for label, value in said.items())
            warn_user(
                f"the posteriors were adapted with different {what} ({each}), so that the scale of "
                "their weights may differ: adapt them alike"
            )


def _restricted(found: dict[str, Evidence], without: Sequence[str]) -> dict[str, Evidence]:
    """Return what domains say where the weights of some features are 0.

    Raises:
        DataError: if no domain has such a feature, or a domain has no other.
    """
    for name in without:
        if not any(matches(own, [name]) for one in found.values() for own in one.names):
            raise DataError(f"no domain has a feature {name} that could be left out")
    left = {
        label: one.over([name for name in one.names if not matches(name, without)])
        for label, one in found.items()
    }
    for label, one in left.items():
        if not one.names:
            raise DataError(f"the posterior {label} has no feature but those that are left out")
    return left


def _warn_partial(found: Mapping[str, Evidence]) -> None:
    """Warn of features that only some of the domains have."""
    every = dict.fromkeys(name for one in found.values() for name in one.names)
    partial = [n for n in every if any(n not in one.names for one in found.values())]
    if partial:
        more = f" and {len(partial) - _NAMED} more" if len(partial) > _NAMED else ""
        warn_user(
            f"only some of the domains have {', '.join(partial[:_NAMED])}{more}, and with such a "
            "feature the other weights differ: adapt all domains to lists with the same features, "
            "or leave out (without) what the lists of the new domain lack"
        )


def record(found: Hierarchy, draws: Mapping[str, Draws]) -> dict[str, Any]:
    """Return what a file of a prior says beside mean and covariance: where it was learned.

    The canonical weights are among it, so that it is known how far the prior is from them.
    """
    canonical: dict[str, float] = {}
    for one in draws.values():
        if one.canonical is not None:
            canonical |= dict(zip(one.features, one.canonical.tolist(), strict=True))
        canonical |= dict(one.fixed)
    domains = {
        label: {
            "features": list(one.features),
            **{name: one.attrs[name] for name in _ALIKE if name in one.attrs},
            **({"sentences": int(one.attrs[_COUNT])} if _COUNT in one.attrs else {}),
        }
        for label, one in draws.items()
    }
    between = np.sqrt(np.diag(found.between)).tolist()
    return {
        "canonical": canonical,
        "domains": domains,
        "between_domains": dict(zip(found.names, between, strict=True)),
    }
