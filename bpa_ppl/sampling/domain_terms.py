"""Hierarchies of several domains, sampled by what each says as a Gaussian term, and corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from msgspec import Meta
from numpyro.infer import NUTS
from numpyro.infer.util import constrain_fn

from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models import Hierarchical, Likelihood, Lists, Prior
from bpa_ppl.models.hierarchical import Conditional, Integrated, Terms, unit_of
from bpa_ppl.models.likelihoods import Oracle
from bpa_ppl.models.priors.learned import Domain, Evidence, Hierarchy, LaidOut, laid_out
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior.statistics import pareto_smoothed, r_hat
from bpa_ppl.sampling.base import Data, Program, Sampled, Sampler, Sites, Target
from bpa_ppl.sampling.chains import Plan, run_chains
from bpa_ppl.sampling.density import evaluate, starting_point
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.nuts import FIELDS, jittered
from bpa_ppl.weights import Match

#: Beyond them what NUTS found of scales and correlations is not to be used.
_R_HAT = 1.05


class DomainTerms(Sampler, frozen=True):
    """A sampler of `Hierarchical` that looks at the lists only to begin and to end.

    The likelihood of each domain is taken as a Gaussian term, from its Hessian at the mode of the
    domain's weights. Then μ and all λ_d are integrated out, and NUTS samples scales and
    correlations alone, whose density costs a few products of Q × Q matrices instead of all
    hypotheses; μ and λ_d are drawn from their Gaussian conditionals. Each draw is weighted by the
    likelihood over the terms, Pareto-smoothed: k̂ says whether the terms were near enough, and
    with the weights the draws follow the whole model.
    """

    warmup: CountOrNone = 500
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1
    target_accept: Annotated[float, Meta(gt=0, lt=1)] = 0.8

    def sample(self, target: Target) -> Sampled:
        """Sample scales and correlations, complete each draw, and weigh it by the likelihood."""
        model = target.program.model
        if not isinstance(model, Hierarchical):
            raise UsageError("this sampler is for models of the kind Hierarchical alone: use nuts")
        terms = domain_terms(target, model)
        found = self.of_terms(replace(target, data=_data(terms, target.data.prior)), model)
        by_terms = np.asarray(_log_terms(model, terms, target.data.prior, found.z))
        log_density, log_likelihood = evaluate(target.program, target.data, found.z)
        seen = sum(part.sum(axis=-1, dtype=np.float64) for part in log_likelihood.values())
        log_weight, k_hat = pareto_smoothed(seen - by_terms)
        attrs = {**found.attrs, "pareto_k": k_hat}
        return replace(
            found,
            kind="weighted",
            log_density=log_density,
            log_weight=log_weight,
            log_likelihood=log_likelihood,
            attrs=attrs,
        )

    def of_terms(self, target: Target, model: Hierarchical) -> Sampled:
        """Draw from the hierarchy over Gaussian terms, which stand in the place of lists."""
        program = Program(cast("Any", Integrated(model)), target.program.likelihood)
        start = starting_point(program, target.data)
        inner = replace(target, program=program, start=start)
        plan = Plan(_kernel, program, self, FIELDS)
        found = run_chains(plan, inner, None, jittered(inner, self.chains))
        keys = jax.random.split(jax.random.key(target.seed + 1), (self.chains, self.draws))
        rest = _completed(model, target.data.lists, target.data.prior, found.z, keys)
        flat = np.concatenate(
            [np.reshape(z, (*np.shape(z)[:2], -1)) for z in found.z.values()], axis=-1
        )
        attrs = {
            "r_hat": float(np.max(r_hat(flat))),
            "divergent": int(np.sum(found.statistics["diverging"])),
        }
        return replace(
            found, z={**found.z, **jax.device_get(rest)}, warmup={}, log_density=None, attrs=attrs
        )


@dataclass(frozen=True)
class _Apart:
    """Domains that know nothing of one another: λ_d = m + F u_d with F Fᵀ the prior's covariance.

    Args:
        domains: how many.
    """

    domains: int

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        """Run the model."""
        shape = (self.domains, lists.features)
        unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand(shape).to_event(2))
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, prior.mean[None] + unit @ unit_of(prior).T)


def domain_terms(target: Target, model: Hierarchical) -> Terms:
    """Return the Gaussian terms of the domains of a target, around the modes of their weights.

    Raises:
        DataError: if there is no mode.
    """
    program, before = Program(_Apart(model.domains), target.program.likelihood), target.data.prior
    shape = (model.domains, target.data.lists.features)
    mode = find_mode(program, target.data, {"unit": jnp.zeros(shape)})
    if not mode.converged:
        raise DataError("the posterior of a domain has no mode: use the sampler nuts")
    return _terms(np.asarray(mode.position).reshape(shape), np.asarray(mode.covariance), before)


def _terms(unit: Float64, covariance: Float64, before: Prior) -> Terms:
    """Take the prior out of a Laplace approximation, which is N(0, I) in units of the prior."""
    domains, size = unit.shape
    inside = np.linalg.inv(covariance).reshape(domains, size, domains, size)
    inside = np.stack([inside[d, :, d] for d in range(domains)])
    # From u to λ = m + F u.
    back = np.linalg.inv(np.asarray(unit_of(before)))
    precision = back.T @ (inside - np.eye(size)) @ back
    shift = np.einsum("dqr,dr->dq", inside, unit) @ back
    return Terms(precision, shift + precision @ np.asarray(before.mean))


def sampled_hierarchy(
    found: Mapping[str, Evidence],
    *,
    model: Hierarchical | None = None,
    sampler: DomainTerms | None = None,
    seed: int = 0,
) -> Hierarchy:
    """Return what domains share by the full hierarchical model, over what their posteriors say.

    As `hierarchy`, but Σ is not one value: scales are half-normal, correlations LKJ, and all that
    is returned is averaged over their posterior. See `Hierarchical`.

    Args:
        found: what each domain says, by its label.
        model: None is `Hierarchical` with its defaults.
        sampler: None is `DomainTerms` with its defaults.
        seed: the same seed gives the same draws.

    Raises:
        DataError: if the chains do not agree.
    """
    laid, engine = laid_out(found), sampler or DomainTerms()
    model = model or Hierarchical(len(found))
    prior = Prior(laid.mean, laid.variance)
    terms = Terms(*(np.stack(parts) for parts in zip(*laid.terms, strict=True)))
    with jax.enable_x64(True):
        data = jax.device_put(_data(terms, prior))
        none = Match(laid.names, laid.mean, np.ones(len(laid.names), bool))
        target = Target(Program(model, Oracle()), data, {}, seed, lambda *_: None, none)
        sampled = engine.of_terms(target, model)
        values = jax.device_get(_values(model, data.prior, sampled.z))
    if sampled.attrs["r_hat"] > _R_HAT:
        raise DataError(
            f"the chains of the hierarchical model disagree (R-hat {sampled.attrs['r_hat']:.2f}): "
            "raise the warm-up, or learn by EM"
        )
    shared, apart, between = (np.reshape(v, (-1, *v.shape[2:])) for v in values)
    return _summarised(found, laid, shared, apart, between.mean(axis=0))


def _summarised(
    found: Mapping[str, Evidence], laid: LaidOut, shared: Float64, apart: Float64, between: Float64
) -> Hierarchy:
    """Return means and covariances of draws: μ, (D, Q), and λ_d − μ, (D, domains, Q)."""
    domains = {}
    for k, (label, one) in enumerate(found.items()):
        weights, own = shared + apart[:, k], apart[:, k]
        has = np.isin(laid.names, one.names)
        domains[label] = Domain(
            weights.mean(axis=0), _covariance(weights), own.mean(axis=0), own.std(axis=0), has
        )
    return Hierarchy(
        laid.names, shared.mean(axis=0), _covariance(shared), between, domains, laid.variance, 0
    )


def _covariance(draws: Float64) -> Float64:
    return np.atleast_2d(np.cov(draws.T))


@partial(jax.jit, static_argnums=0)
def _values(model: Hierarchical, prior: Prior, z: Sites) -> tuple[Any, Any, Any]:
    """Return of each draw μ, λ_d − μ of each domain, and Σ."""

    def one(z: Sites) -> tuple[Any, Any, Any]:
        root = root_of(model, prior, z)
        return z["shared"], z["own"][:-1] @ root.T, root @ root.T

    return jax.vmap(jax.vmap(one))(z)


def _kernel(program: Program, settings: DomainTerms, covariance: None) -> NUTS:
    return NUTS(program, target_accept_prob=settings.target_accept)


@partial(jax.jit, static_argnums=0)
def _completed(model: Hierarchical, terms: Terms, prior: Prior, z: Sites, keys: Any) -> Sites:
    """Return z of `shared` and `own` for draws of the others."""

    def one(z: Sites, key: Any) -> Sites:
        root = root_of(model, prior, z)
        shared, own = Conditional.of(terms, prior, root).draw(prior, key)
        return {"shared": shared, "own": own}

    return jax.vmap(jax.vmap(one))(z, keys)


@partial(jax.jit, static_argnums=0)
def _log_terms(model: Hierarchical, terms: Terms, prior: Prior, z: Sites) -> Any:
    """Return the logarithm of all terms at each draw, (C, D)."""

    def one(z: Sites) -> Any:
        weights = z["shared"][None] + z["own"][:-1] @ root_of(model, prior, z).T
        return terms.log_term(weights).sum()

    return jax.vmap(jax.vmap(one))(z)


def root_of(model: Hierarchical, prior: Prior, z: Sites) -> Any:
    """Return R = diag(τ) L of unconstrained values, (Q, Q)."""
    inner = {name: z[name] for name in ("scale", "correlation") if name in z}
    values = constrain_fn(model.root, (prior,), {}, inner)
    return values["scale"][:, None] * values.get("correlation", jnp.ones((1, 1)))


def _data(terms: Terms, prior: Prior) -> Data:
    """Return what the program over terms is run on: they stand in the place of lists."""
    return Data(cast("Any", terms), prior)
