"""A user's own NumPyro models: several sites, several observations, factors and domains."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import log_expit, logsumexp
from scipy.stats import lognorm, multivariate_normal, norm
from support import reference_model
from support.moment_checks import assert_moments
from support.raising import raises
from support.targets import SENTENCES, TARGETS, integrated, moments_of

from bpa_ppl import DataError, Isotropic, Prior, adapt, check, log_density, point_weights, rerank
from bpa_ppl.diagnostics.report import posterior_page
from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.nuts import Nuts

LENGTHS = np.array([0.3, -0.2, 0.9, 0.1, 0.4])
GIVEN = reference_model.given(*[0] * SENTENCES)
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in ("nuts", "rwm", "rwm-isotropic")]


def observe(lists: Any, weights: Any) -> None:
    with numpyro.plate("sentence", len(lists.oracle)):
        numpyro.sample("oracle", OracleChoice(lists, weights), obs=lists.oracle)


def with_lengths(lists: Any, prior: Any, likelihood: Any) -> None:
    """The published model beside a second one that shares nothing with it."""
    log_linear(lists, prior, likelihood)
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    with numpyro.plate("text", len(LENGTHS)):
        numpyro.sample("length", dist.Normal(centre, 0.5), obs=LENGTHS)


def with_factor(lists: Any, prior: Any, likelihood: Any) -> None:
    """A factor that is a second Gaussian prior, N(0, 1)."""
    weights = numpyro.sample("weights", prior.distribution())
    numpyro.factor("towards_zero", -0.5 * (weights**2).sum())
    observe(lists, weights)


def of_its_own(lists: Any, prior: Any, likelihood: Any) -> None:
    """A prior that has nothing to do with σ_T."""
    weights = numpyro.sample("weights", dist.Normal(prior.mean, 2.0).to_event(1))
    observe(lists, weights)


of_its_own.uses_prior = False


@cache
def draws_of(model: Any, sampler: str = "imh", **options: Any) -> Any:
    return TARGETS["plane"]().adapt(sampler, model=model, **options)


def test_a_factor_counts_as_the_density_that_it_is() -> None:
    target = TARGETS["plane"]()
    mean, variance = np.array(list(target.canonical.values())), np.asarray(target.variance)
    joint = 1 / (1 / variance + 1)
    canonical = dict(zip(target.canonical, mean * joint / variance, strict=True))
    same = adapt(target.pool, canonical, gain=GIVEN, prior=Isotropic(variance=joint), sampler="map")
    ours = draws_of(with_factor, sampler="map")
    np.testing.assert_allclose(as_draws(ours).mean, as_draws(same).mean, atol=1e-5)
    assert as_draws(ours).log_likelihood["towards_zero"].shape == (1, 1)


def test_prior_and_likelihood_are_recorded() -> None:
    """A model may say that its weights do not have the prior; no Gaussian is then learned from."""
    used = as_draws(draws_of(with_lengths, draws=500))
    other = as_draws(draws_of(of_its_own, "map"))
    recorded = [{n for n in d.constants if n.startswith("prior")} for d in (used, other)]
    assert recorded == [{"prior_mean", "prior_variance"}, set()]
    assert used.record.prior is not None
    assert used.record.likelihood is not None
    assert other.record.prior is None
    assert other.record.likelihood is not None
    assert Prior.recorded(used).variance.tolist() == used.constants["prior_variance"].tolist()
    with raises(DataError, "not-supported", parameter="posterior"):
        Prior.recorded(other)


@pytest.mark.usefixtures("without_drawing")
def test_other_functions_accept_a_posterior_with_several_sites() -> None:
    posterior = draws_of(with_lengths, draws=500)
    assert check(posterior), str(check(posterior))
    assert "centre" in posterior_page(posterior)
    assert len(rerank(TARGETS["plane"]().pool, posterior).choice) == SENTENCES
    assert "centre" in posterior["prior"]
    centre = posterior["posterior"]["centre"].values
    np.testing.assert_allclose(posterior["log_prior"]["centre"].values, norm.logpdf(centre))


BETWEEN = 0.4  # standard deviation of the weights of a domain around what domains share


def by_domain(lists: Any, prior: Any, likelihood: Any) -> None:
    """λ_d ~ N(μ, 0.4²), μ ~ p(λ|T): what is adapted is the first domain's weights."""
    shared = numpyro.sample("shared", prior.distribution())
    own = numpyro.sample("own", dist.Normal(jnp.stack([shared, shared]), BETWEEN).to_event(2))
    numpyro.deterministic("weights", own[0])
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, own)


@pytest.mark.parametrize("sampler", [*SLOW[:2], "imh"])
def test_domains_that_share_weights_are_sampled_as_quadrature_says(sampler: str) -> None:
    rng = np.random.default_rng(8)
    differences = rng.normal(0.5, 1.5, size=(14, 1))
    domain = np.arange(14) % 2
    lists = reference_model.pairs(differences, ["LM0"]).with_sentence_extras(
        domain=tuple(np.array(["talks", "leaflets"])[domain])
    )
    options = {
        "prior": "isotropic:variance=0.7",
        "gain": reference_model.given(*[0] * 14),
        "draws": 4000,
    }
    found = as_draws(adapt(lists, {"LM0": 0.5}, sampler=sampler, model=by_domain, **options))
    features = lists.features[1::2, 0].astype(np.float64)
    number = 1 - domain  # leaflets, then talks: in the order of their names
    covariance = 0.7 + BETWEEN**2 * np.eye(2)

    def log_p_of(own: reference_model.Array) -> reference_model.Array:
        log_p = log_expit(-own[:, number] * features).sum(axis=1)
        return np.asarray(log_p + multivariate_normal([0.5, 0.5], covariance).logpdf(own))

    grid, p = integrated(log_p_of, [0.0, 0.0], 6.0, 201)
    assert_moments(found.values["own"][..., 0], *moments_of(grid, p))
    np.testing.assert_array_equal(found.weights, found.values["own"][:, :, 0])
    weights = found.values["own"][0, 0, :, 0]
    expected = log_expit(-weights[number] * features)
    np.testing.assert_allclose(found.pointwise[0, 0], expected, rtol=1e-5, atol=1e-6)
    assert rerank(lists, found, unchecked=True).choice.shape == (14,)


MEDIAN, SPREAD = 0.8, 0.4


def learned_scale(lists: Any, prior: Any, likelihood: Any) -> None:
    scale = numpyro.sample("scale", dist.LogNormal(np.log(MEDIAN), SPREAD))
    weights = numpyro.sample("weights", dist.Normal(prior.mean, scale).to_event(1))
    numpyro.deterministic("twice", 2 * scale)
    observe(lists, weights)


def moments() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (weight, scale) by quadrature over (weight, log scale)."""
    target = TARGETS["balanced"]()
    differences = target.pool.features[1::2, 0].astype(np.float64)
    weight = np.linspace(-8, 8, 601)
    scale = np.exp(np.linspace(-3.5, 2.5, 201))
    log_p = (
        log_expit(-np.outer(weight, differences)).sum(axis=1)[:, None]
        + norm.logpdf(weight[:, None], target.canonical["LM0"], scale)
        + lognorm.logpdf(scale, SPREAD, scale=MEDIAN)
        + np.log(scale)
    )
    p = np.exp(log_p - logsumexp(log_p)).reshape(-1)
    grid = np.stack(np.meshgrid(weight, scale, indexing="ij"), axis=-1).reshape(-1, 2)
    return moments_of(grid, p)


@pytest.mark.parametrize("sampler", [*SLOW, "imh"])
def test_a_prior_with_a_learned_scale_is_sampled_as_quadrature_says(sampler: str) -> None:
    target = TARGETS["balanced"]()
    draws = 2000 if sampler == "imh" else 5000
    options: dict[str, Any] = {"draws": draws, "prior": "isotropic:variance=0.1"}
    posterior = target.adapt(sampler, model=learned_scale, **options)
    sites = posterior["posterior"]
    drawn = np.stack([sites["weights"].values[..., 0], sites["scale"].values], axis=-1)
    assert_moments(drawn, *moments())
    np.testing.assert_allclose(sites["twice"].values, 2 * sites["scale"].values)
    weight, scale = drawn[..., 0], drawn[..., 1]
    known = {
        "scale": lognorm.logpdf(scale, SPREAD, scale=MEDIAN),
        "weights": norm.logpdf(weight, target.canonical["LM0"], scale),
    }
    assert set(posterior["log_prior"].data_vars) == set(known)
    for name, expected in known.items():
        np.testing.assert_allclose(posterior["log_prior"][name].values, expected, atol=1e-9)
    # The density that is sampled is of the logarithm of the scale.
    likelihood = posterior["log_likelihood"]["oracle"].values.sum(axis=-1)
    density = sum(known.values()) + likelihood + np.log(scale)
    np.testing.assert_allclose(posterior["sample_stats"]["lp"].values, density, atol=1e-4)
    assert posterior.attrs["model"] == "learned_scale"
    assert len(rerank(target.pool, posterior, unchecked=True).choice) == SENTENCES
    assert list(point_weights(posterior)) == ["LM0"]


def noncentred(lists: Any, prior: Any, likelihood: Any) -> None:
    """λ_d = μ + τ z_d of three domains, and of a domain without sentences."""
    base = prior.distribution()
    shared = numpyro.sample("mu", base)
    scale = numpyro.sample("tau", dist.HalfNormal(0.5 * base.variance**0.5).to_event(1))
    shape = (4, *base.event_shape)
    unit = numpyro.sample("z", dist.Normal(0.0, 1.0).expand(shape).to_event(2))
    domains = shared[None] + scale[None] * unit
    numpyro.deterministic("weights", domains[-1])
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, domains[:-1])


def test_nuts_ends_for_an_own_hierarchy_of_54_values() -> None:
    """Its warm-up calls no LAPACK: the metric of so many values is diagonal."""
    rng, names = np.random.default_rng(3), [f"F{k}" for k in range(9)]
    lists = reference_model.pairs(rng.normal(size=(30, 9)), names)
    lists = lists.with_sentence_extras(domain=list("abc") * 10)
    oracle = reference_model.given(*[0] * 30)
    density = log_density(lists, dict.fromkeys(names, 0.1), model=noncentred, gain=oracle)
    assert density.dimension == 54
    sampled = Nuts(draws=20, warmup=20, chains=1).sample(density)
    assert np.isfinite(sampled.log_density).all()
