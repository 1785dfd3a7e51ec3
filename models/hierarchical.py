"""The full hierarchical model of several domains: shared weights, and their differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular

from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.priors.base import Prior

#: The values of the site `own` in whitened coordinates, and the log determinant of the change.
WHITENED, LOG_SLOPE = "own_whitened", "own_log_slope"


#: The likelihood of each of D domains as a Gaussian: its precision, (D, Q, Q), positive
#: semi-definite, and its centre, (D, Q).
Information = tuple[Any, Any]


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
    #: The dimensions of the sites; the last of `domain_or_new` is the domain without sentences.
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "shared": ("feature",),
        "scale": ("feature",),
        "correlation": ("feature", "other_feature"),
        "own": ("domain_or_new", "feature"),
        "by_domain": ("domain", "feature"),
    }
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

    def __call__(
        self,
        lists: Lists,
        prior: Prior,
        likelihood: Likelihood,
        information: Information | None = None,
    ) -> None:
        """Run the model.

        Args:
            lists: with the number of each sentence's domain.
            prior: of the shared weights.
            likelihood: of the choices.
            information: changes the coordinates in which `own` is sampled, for a sampler; None
                samples z itself.
        """
        base = prior.distribution()
        shared = numpyro.sample("shared", base)
        size, deviation = base.event_shape[0], base.variance**0.5
        scale = numpyro.sample("scale", dist.HalfNormal(self.spread * deviation).to_event(1))
        root = scale[:, None]  # diag(τ) L
        if size > 1:
            correlation = dist.LKJCholesky(size, self.concentration)
            root = root * numpyro.sample("correlation", correlation)
        shape = (self.domains + 1, size)
        standard = dist.Normal(0.0, 1.0).expand(shape).to_event(2)
        unit = numpyro.sample("own", standard)
        if information is not None:
            moved, log_slope = _from_standard(information, unit, shared, root)
            numpyro.factor(
                "own_change", standard.log_prob(moved) - standard.log_prob(unit) + log_slope
            )
            unit = numpyro.deterministic(WHITENED, moved)
            numpyro.deterministic(LOG_SLOPE, log_slope)
        weights = shared[None] + unit @ root.T
        numpyro.deterministic("weights", weights[-1])
        by_domain = numpyro.deterministic("by_domain", weights[:-1])
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, by_domain)


def _from_standard(
    information: Information, unit: jax.Array, shared: jax.Array, root: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return z of each domain from whitened values, (D + 1, Q), and the log determinant, ().

    The last domain has no sentences, so its z is standard normal.
    """
    size = unit.shape[-1]

    def of_domain(precision: jax.Array, centre: jax.Array, value: jax.Array) -> Any:
        projected = root.T @ precision
        factor = jnp.linalg.cholesky(jnp.eye(size) + projected @ root)
        # C⁻ᵀ(C⁻¹RᵀH(λ̂ − μ) + ε) is the mean plus C⁻ᵀε.
        mean = solve_triangular(factor, projected @ (centre - shared), lower=True)
        moved = solve_triangular(factor, mean + value, lower=True, trans="T")
        return moved, -jnp.log(jnp.diagonal(factor)).sum()

    moved, log_slopes = jax.vmap(of_domain)(*information, unit[:-1])
    return jnp.concatenate([moved, unit[-1:]]), log_slopes.sum()
