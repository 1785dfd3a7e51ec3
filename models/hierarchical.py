"""The full hierarchical model of several domains: what they share, and how they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
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
    correlations are those of Lewandowski, Kurowicka & Joe (2009). What is adapted, `weights`, is
    the vector of a domain that no sentence is of: its posterior is the prior for the next domain.

    Sites: `shared` (Q,) is μ, `scale` (Q,) τ, `correlation` (Q, Q) L, `own` (domains + 1, Q) z;
    `by_domain` (domains, Q) λ_d and `weights` (Q,) are functions of them. To be given to `adapt`
    with lists whose extra `domain` says of which domain each sentence is.

    Args:
        domains: how many there are in the lists.
        spread: the scale of τ_q, in standard deviations of the prior of λ_q.
        concentration: of the LKJ distribution; 1 is uniform over correlation matrices, more is
            nearer to none.

    >>> model = Hierarchical(domains=2)
    >>> model.__name__
    'Hierarchical(domains=2, spread=0.5, concentration=2.0)'
    >>> numpyro.handlers.seed(model.root, 0)(Prior.isotropic({"LM0": 0.5})).shape
    (1, 1)
    """

    #: Sites that the sentences make depend on one another, for the metric of a sampler.
    together = ("shared", "own")
    domains: int
    spread: float = 0.5
    concentration: float = 2.0

    def __post_init__(self) -> None:
        if self.domains < 1 or not (self.spread > 0 and self.concentration > 0):
            raise UsageError(
                "a hierarchical model is of one domain or more, and its spread and concentration "
                "are positive numbers"
            )

    @property
    def __name__(self) -> str:
        """What a posterior records as its model."""
        return str(self)

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        """Run the model."""
        before = prior.distribution()
        size = before.event_shape[0]
        shared = numpyro.sample("shared", before)
        root = self.root(prior)
        shape = (self.domains + 1, size)
        own = numpyro.sample("own", dist.Normal(0.0, 1.0).expand(shape).to_event(2))
        weights = shared[None] + own @ root.T
        numpyro.deterministic("weights", weights[-1])
        by_domain = numpyro.deterministic("by_domain", weights[:-1])
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, by_domain)

    def root(self, prior: Prior) -> Any:
        """State the sites `scale` and `correlation`, and return diag(τ) L, (Q, Q)."""
        before = prior.distribution()
        scale = numpyro.sample(
            "scale", dist.HalfNormal(self.spread * before.variance**0.5).to_event(1)
        )
        return scale[:, None] * _correlation(before.event_shape[0], self.concentration)


def _correlation(size: int, concentration: float) -> Any:
    """Return the Cholesky factor of the correlations; of one weight there are none."""
    if size == 1:
        return jnp.ones((1, 1))
    return numpyro.sample("correlation", dist.LKJCholesky(size, concentration))
