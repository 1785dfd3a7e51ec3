"""The full hierarchical model of several domains: what they share, and how they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
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


class Terms(NamedTuple):
    """What the sentences of each of D domains say of its weights, as a Gaussian term.

    Attributes:
        precision: (D, Q, Q) A, positive semi-definite.
        shift: (D, Q) b: the term is exp(b·λ − λ·A λ / 2).
    """

    precision: Any
    shift: Any

    def log_term(self, weights: Any) -> Any:
        """Return the logarithm of the term of each domain at its weights, (D, Q) ↦ (D,)."""
        return jnp.einsum("dq,dq->d", self.shift, weights) - 0.5 * jnp.einsum(
            "dq,dqr,dr->d", weights, self.precision, weights
        )


@dataclass(frozen=True)
class Integrated:
    """`Hierarchical` with Gaussian terms for the domains; μ and λ_d are integrated out.

    Only τ and L are left to be sampled, and what is left out has a Gaussian conditional: see
    `Conditional`. To be run on `Terms` in the place of lists.

    Args:
        model: the hierarchy.
    """

    model: Hierarchical

    def __call__(self, lists: Terms, prior: Prior, likelihood: Any) -> None:
        """Run the model."""
        given = Conditional.of(lists, prior, self.model.root(prior))
        numpyro.factor("domains", given.log_total)


class Conditional(NamedTuple):
    """μ and the domains' z given Σ = R Rᵀ, in units of the prior: μ = m + F v, F Fᵀ = Var(μ).

    v ~ N(P⁻¹p, P⁻¹), and z_d ~ N(M_d⁻¹ (r_d − C_dᵀ v), M_d⁻¹) given v.

    Attributes:
        log_total: () log ∫ of all terms over μ and z, up to a constant.
        mean: (Q,) P⁻¹p.
        factor: (Q, Q) the Cholesky factor of P.
        own_factor: (D, Q, Q) that of M_d.
        right: (D, Q) r_d.
        cross: (D, Q, Q) C_d.
    """

    log_total: Any
    mean: Any
    factor: Any
    own_factor: Any
    right: Any
    cross: Any

    @classmethod
    def of(cls, terms: Terms, prior: Prior, root: Any) -> Conditional:
        """Complete the squares, domain by domain.

        Args:
            terms: of the domains.
            prior: of μ, a Gaussian.
            root: (Q, Q) R.
        """
        unit, size = unit_of(prior), root.shape[0]
        root = _forward(unit, root)
        identity = jnp.eye(size)
        precision = jnp.einsum("qi,dqr,rj->dij", unit, terms.precision, unit)
        shift = (terms.shift - terms.precision @ prior.mean) @ unit
        cross = precision @ root
        own_factor = jax.vmap(_cholesky)(identity[None] + jnp.einsum("qi,dqj->dij", root, cross))
        right = shift @ root
        columns = jnp.concatenate([right[..., None], cross.mT], axis=-1)
        solved = jax.vmap(_solved)(own_factor, columns)
        seen = precision - cross @ solved[..., 1:]
        whole = identity + (seen + seen.mT).sum(axis=0) / 2
        factor = _cholesky(whole)
        pull = (shift - jnp.einsum("dqi,di->dq", cross, solved[..., 0])).sum(axis=0)
        mean = _solved(factor, pull[:, None])[:, 0]
        log_total = (
            0.5 * (right * solved[..., 0]).sum()
            + 0.5 * pull @ mean
            - _log_diagonal(own_factor)
            - _log_diagonal(factor)
        )
        return cls(log_total, mean, factor, own_factor, right, cross)

    def draw(self, prior: Prior, key: jax.Array) -> tuple[Any, Any]:
        """Return μ, (Q,), and z of each domain and of the next one, (D + 1, Q)."""
        noise = jax.random.normal(key, (len(self.right) + 2, len(self.mean)))
        v = self.mean + _backward(self.factor, noise[0][:, None])[:, 0]
        pulled = (self.right - v @ self.cross)[..., None]
        centre = jax.vmap(_solved)(self.own_factor, pulled)
        spread = jax.vmap(_backward)(self.own_factor, noise[1:-1, :, None])
        own = jnp.concatenate([(centre + spread)[..., 0], noise[-1:]])
        return prior.mean + unit_of(prior) @ v, own


def unit_of(prior: Prior) -> Any:
    """Return the Cholesky factor of a Gaussian prior's covariance, (Q, Q)."""
    if prior.covariance is not None:
        return _cholesky(jnp.asarray(prior.covariance))
    return jnp.diag(jnp.sqrt(jnp.asarray(prior.variance)))


# JAX's own solvers of batches of small systems wait for one another for ever, where two of them run
# in a pool of two threads (jaxlib 0.10.2, dtrsm). These are loops of products, which need no pool.


def _cholesky(matrix: Any) -> Any:
    """Return the Cholesky factor of a positive definite matrix, (Q, Q)."""
    places = jnp.arange(len(matrix))

    def step(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, factor = state
        column = jnp.where(places >= k, rest[:, k] / jnp.sqrt(rest[k, k]), 0.0)
        return rest - column[:, None] * column[None], factor.at[:, k].set(column)

    return jax.lax.fori_loop(0, len(matrix), step, (matrix, jnp.zeros_like(matrix)))[1]


def _forward(factor: Any, right: Any) -> Any:
    """Return L⁻¹ of some columns, (Q, Q), (Q, K)."""
    places = jnp.arange(len(factor))

    def step(k: Any, rest: Any) -> Any:
        found = rest[k] / factor[k, k]
        below = jnp.where(places > k, factor[:, k], 0.0)
        return (rest - below[:, None] * found[None]).at[k].set(found)

    return jax.lax.fori_loop(0, len(factor), step, right)


def _backward(factor: Any, right: Any) -> Any:
    """Return L⁻ᵀ of some columns, (Q, Q), (Q, K)."""
    return _forward(factor[::-1, ::-1].T, right[::-1])[::-1]


def _solved(factor: Any, right: Any) -> Any:
    """Return M⁻¹ of some columns, from the Cholesky factor of M."""
    return _backward(factor, _forward(factor, right))


def _log_diagonal(factor: Any) -> Any:
    """Return half the log determinant from Cholesky factors, all of them together."""
    return jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum()
