"""Models that cannot be sampled are refused in one sentence; weights with a support are sampled."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions.constraints import positive, real_vector
from scipy.special import log_expit
from scipy.stats import halfnorm, norm
from support import reference_model
from support.moment_checks import assert_moments
from support.raising import raises
from support.targets import integrated, moments_of

from bpa_ppl import UsageError, adapt, log_density
from bpa_ppl.errors import BpaWarning
from bpa_ppl.posterior.adapter import as_draws

SENTENCES, NAMES = 14, ["LM0", "TM0"]
DIFFERENCES = np.random.default_rng(8).normal(-0.3, 1.5, size=(SENTENCES, 2))
ORACLE = reference_model.given(*[0] * SENTENCES)
CANONICAL = {"LM0": 0.6, "TM0": 0.4}


def density_of(model: Any, canonical: dict[str, float] = CANONICAL, **extras: Any) -> Any:
    lists = reference_model.pairs(DIFFERENCES[:, : len(canonical)], NAMES[: len(canonical)])
    lists = lists.with_sentence_extras(**extras) if extras else lists
    return log_density(lists, canonical, model=model, gain=ORACLE, likelihood="oracle")


def observe(lists: Any, likelihood: Any, weights: Any, **plate: Any) -> None:
    with numpyro.plate("sentence", len(lists.oracle), **plate):
        likelihood.observe(lists, weights)


def three_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    observe(lists, likelihood, weights)


def one_number(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("weights", dist.Normal(0.0, 1.0)))


def no_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("lambda", prior.distribution()))


def deterministic_of_another_shape(lists: Any, prior: Any, likelihood: Any) -> None:
    raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
    observe(lists, likelihood, numpyro.deterministic("weights", raw * jnp.ones(3))[:2])


def observed_weights_of_another_shape(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution())[:1])


def improper_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    flat = dist.ImproperUniform(real_vector, (), (2,))
    observe(lists, likelihood, numpyro.sample("weights", flat))


def improper_scale(lists: Any, prior: Any, likelihood: Any) -> None:
    scale = numpyro.sample("scale", dist.ImproperUniform(positive, (), ()))
    observe(lists, likelihood, numpyro.sample("weights", dist.Normal(jnp.zeros(2), scale)))


def subsampled(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()), subsample_size=5)


def plate_of_another_size(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    with numpyro.plate("sentence", len(lists.oracle) + 1):
        likelihood.observe(lists, weights)


def discrete_of_each_sentence(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    with numpyro.plate("sentence", len(lists.oracle)):
        numpyro.sample("group", dist.Bernoulli(0.5))
        likelihood.observe(lists, weights)


def not_a_number(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    numpyro.factor("bound", jnp.log(-1.0 - weights[0] ** 2))
    observe(lists, likelihood, weights)


def with_a_parameter(lists: Any, prior: Any, likelihood: Any) -> None:
    mean = numpyro.param("mean", 0.0)
    observe(lists, likelihood, numpyro.sample("weights", dist.Normal(mean, jnp.ones(2))))


def with_a_mutable_state(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.primitives.mutable("count", {"calls": jnp.zeros(())})
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()))


def with_a_branch(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    if weights[0] > 0:
        numpyro.sample("more", dist.Normal(0.0, 1.0))
    observe(lists, likelihood, weights)


def two_sites_of_a_name(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("weights", prior.distribution())
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()))


def two_arguments(lists: Any, prior: Any) -> None:
    numpyro.sample("weights", prior.distribution())


def with_an_error(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("weights", dist.Normal(prior.average, 1.0))


@pytest.mark.parametrize(
    ("model", "code", "named"),
    [
        (three_weights, "bad-usage", r"\(3,\)"),
        (one_number, "bad-usage", r"\(\)"),
        (no_weights, "bad-usage", "weights"),
        (deterministic_of_another_shape, "bad-usage", r"\(3,\)"),
        (observed_weights_of_another_shape, "mismatch", r"\(1,\)"),
        (improper_weights, "not-supported", "weights"),
        (improper_scale, "not-supported", "scale"),
        (subsampled, "not-supported", "subsample_size"),
        (plate_of_another_size, "mismatch", "sentence"),
        (discrete_of_each_sentence, "not-supported", "group"),
        (not_a_number, "bad-number", None),
        (with_a_parameter, "not-supported", "mean"),
        (with_a_mutable_state, "not-supported", "count"),
        (with_a_branch, "not-supported", "with_a_branch"),
        (two_sites_of_a_name, "duplicate", "weights"),
        (two_arguments, "not-supported", "two_arguments"),
        (with_an_error, "not-supported", "average"),
    ],
)
def test_a_model_that_cannot_be_sampled_is_refused(model: Any, code: str, named: str) -> None:
    with raises(UsageError, code, parameter="model", match=named):
        density_of(model)


def of_two_domains(lists: Any, prior: Any, likelihood: Any) -> None:
    own = numpyro.sample("own", dist.Normal(jnp.zeros((2, 2)), 1.0).to_event(2))
    numpyro.deterministic("weights", own[0])
    observe(lists, likelihood, own)


def test_a_domain_without_weights_is_refused() -> None:
    assert density_of(of_two_domains, domain=["a", "b"] * 7).dimension == 4
    with raises(UsageError, "mismatch", parameter="model", match="3"):
        density_of(of_two_domains, domain=["a", "b"] * 6 + ["c"] * 2)


def without_observations(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("weights", prior.distribution())


def test_a_model_that_observes_nothing_warns() -> None:
    with pytest.warns(BpaWarning, match="without_observations"):
        density_of(without_observations)


def half_normal(lists: Any, prior: Any, likelihood: Any) -> None:
    shape = prior.mean.shape
    weights = numpyro.sample("weights", dist.HalfNormal(1.0).expand(shape).to_event(1))
    observe(lists, likelihood, weights)


def truncated(lists: Any, prior: Any, likelihood: Any) -> None:
    """N(½, 1) above 0.2, through another site."""
    shape = prior.mean.shape
    normal = dist.TruncatedNormal(0.5, 1.0, low=0.2).expand(shape).to_event(1)
    raw = numpyro.sample("raw", normal)
    observe(lists, likelihood, numpyro.deterministic("weights", raw))


def simplex(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(prior.mean.shape, 2.0)))
    observe(lists, likelihood, weights)


def ordered(lists: Any, prior: Any, likelihood: Any) -> None:
    normal = dist.Normal(jnp.zeros(prior.mean.shape), 1.0).to_event(1)
    increasing = dist.transforms.OrderedTransform()
    weights = numpyro.sample("weights", dist.TransformedDistribution(normal, increasing))
    observe(lists, likelihood, weights)


def log_likelihood(weights: np.ndarray) -> np.ndarray:
    return np.asarray(log_expit(-weights @ DIFFERENCES[:, : weights.shape[1]].T).sum(axis=1))


def log_p_of_half_normal(x: np.ndarray) -> np.ndarray:
    return log_likelihood(x) + halfnorm.logpdf(x[:, 0])


def log_p_of_truncated(x: np.ndarray) -> np.ndarray:
    normal = np.where(x[:, 0] > 0.2, norm.logpdf(x[:, 0], 0.5), -np.inf)
    return log_likelihood(x) + normal


def log_p_of_simplex(x: np.ndarray) -> np.ndarray:
    both = np.concatenate([x, 1 - x], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_prior = np.log(both).sum(axis=1)  # Dirichlet(2, 2)
    inside = np.where((x[:, 0] > 0) & (x[:, 0] < 1), log_prior, -np.inf)
    return log_likelihood(both) + inside


ON_A_SUPPORT: dict[str, Any] = {
    "half-normal": (half_normal, log_p_of_half_normal, ["LM0"]),
    "truncated": (truncated, log_p_of_truncated, ["LM0"]),
    "simplex": (simplex, log_p_of_simplex, NAMES),
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("nuts", "rwm")]


@pytest.mark.parametrize("sampler", ["auto", *SLOW])
@pytest.mark.parametrize("canonical", [[0.6, 0.4], [-0.5, 0.3]], ids=["inside", "outside"])
@pytest.mark.parametrize("name", ON_A_SUPPORT)
def test_weights_with_a_support_are_sampled_as_quadrature_says(
    name: str, canonical: list[float], sampler: str
) -> None:
    model, log_p, names = ON_A_SUPPORT[name]
    lists = reference_model.pairs(DIFFERENCES[:, : len(names)], names)
    weights = dict(zip(names, canonical, strict=False))
    options: dict[str, Any] = {"gain": ORACLE, "likelihood": "oracle", "seed": 1}
    posterior = adapt(lists, weights, model=model, sampler=sampler, draws=4000, **options)
    draws = as_draws(posterior).weights
    mean, covariance = moments_of(*integrated(log_p, [3.0], 3.0, 6001))
    assert_moments(draws[..., :1], mean, covariance)
    if name == "simplex":
        np.testing.assert_allclose(draws.sum(axis=-1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "inside", "outside"),
    [
        (half_normal, [0.6, 0.4], [-0.5, 0.3]),
        (half_normal, [0.6, 0.4], [0.0, 0.0]),
        (simplex, [0.6, 0.4], [0.5, 0.3]),
        (ordered, [0.4, 0.6], [0.6, 0.4]),
    ],
)
def test_chains_start_at_the_canonical_weights_if_the_support_has_them(
    model: Any, inside: list[float], outside: list[float]
) -> None:
    density = density_of(model, dict(zip(NAMES, inside, strict=True)))
    np.testing.assert_allclose(density.constrain(density.initial_position)["weights"], inside)
    density = density_of(model, dict(zip(NAMES, outside, strict=True)))
    start = np.asarray(density.constrain(density.initial_position)["weights"])
    assert np.isfinite(start).all()
    assert np.abs(start - outside).max() > 0.01
