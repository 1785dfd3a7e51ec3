"""The full hierarchical model of several domains: shared weights, and their differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpyro
import numpyro.distributions as dist

from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.priors.base import Prior


@dataclass(frozen=True)
class Hierarchical:
    """λ_d = μ + diag(τ) L z_d, with μ ~ p(λ | T), τ half-normal, L Lᵀ ~ LKJ, z_d ~ N(0, I).

    The non-centred form of λ_d ~ N(μ, diag(τ) L Lᵀ diag(τ)) (Betancourt & Girolami 2015); the
    correlations are those of Lewandowski, Kurowicka & Joe (2009). The adapted `weights` are those
    of a domain without sentences: their posterior is the prior for the next domain.

    Sites: `shared` (Q,) is μ, `scale` (Q,) τ, `correlation` (Q, Q) L, `own` (domains + 1, Q) z;
    `by_domain` (domains, Q) λ_d and `weights` (Q,) are functions of them. `adapt` takes this model
    with lists whose sentence extra `domain` names the domain of each sentence.

    Args:
        domains: the number of domains in the lists.
        spread: the scale of τ_q, in standard deviations of the prior of λ_q.
        concentration: of the LKJ distribution; 1 is uniform over correlation matrices, larger
            values favour small correlations.

    >>> model = Hierarchical(domains=2)
    >>> model.__name__
    'Hierarchical(domains=2, spread=0.5, concentration=2.0)'
    """

    #: Sites that are correlated in the posterior, for the metric of a sampler.
    together = ("shared", "own")
    domains: int
    spread: float = 0.5
    concentration: float = 2.0

    def __post_init__(self) -> None:
        for name in ("domains", "spread", "concentration"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} of a hierarchical model must be > 0", parameter=name)

    @property
    def __name__(self) -> str:
        """The name of the model that a posterior records."""
        return str(self)

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        """Run the model."""
        base = prior.distribution()
        shared = numpyro.sample("shared", base)
        size, deviation = base.event_shape[0], base.variance**0.5
        scale = numpyro.sample("scale", dist.HalfNormal(self.spread * deviation).to_event(1))
        root = scale[:, None]  # diag(τ) L
        if size > 1:
            correlation = dist.LKJCholesky(size, self.concentration)
            root = root * numpyro.sample("correlation", correlation)
        shape = (self.domains + 1, size)
        unit = numpyro.sample("own", dist.Normal(0.0, 1.0).expand(shape).to_event(2))
        weights = shared[None] + unit @ root.T
        numpyro.deterministic("weights", weights[-1])
        by_domain = numpyro.deterministic("by_domain", weights[:-1])
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, by_domain)
