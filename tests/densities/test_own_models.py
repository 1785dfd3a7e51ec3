"""Own models: what cannot be sampled is refused, all else is sampled as quadrature says."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions.constraints import real_vector
from scipy.special import log_expit, logsumexp
from scipy.stats import halfnorm, lognorm, multivariate_normal, norm
from support import reference_model
from support.moment_checks import assert_moments
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import SENTENCES, TARGETS, integrated, moments_of, starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, as_weight_draws

NAMES = ["LM0", "TM0"]
DIFFERENCES = np.random.default_rng(8).normal(-0.3, 1.5, size=(14, 2))
ORACLE = reference_model.given(*[0] * 14)
CANONICAL = {"LM0": 0.6, "TM0": 0.4}


def density_of(model: Any, canonical: dict[str, float] = CANONICAL, **extras: Any) -> Any:
    lists = reference_model.pairs(DIFFERENCES[:, : len(canonical)], NAMES[: len(canonical)])
    lists = lists.with_sentence_extras(**extras) if extras else lists
    return bpa.log_density(lists, canonical, model=model, gain=ORACLE, likelihood="oracle")


def observe(lists: Any, likelihood: Any, weights: Any, **plate: Any) -> None:
    with numpyro.plate("sentence", len(lists.oracle), **plate):
        likelihood.observe(lists, weights)


def three_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    observe(lists, likelihood, weights)


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


def zero_below(bound: float) -> Any:
    """Return a model whose density is 0 below a bound of the first weight."""

    def model(lists: Any, prior: Any, likelihood: Any) -> None:
        weights = numpyro.sample("weights", prior.distribution())
        numpyro.factor("bound", jnp.where(weights[0] > bound, 0.0, -jnp.inf))
        observe(lists, likelihood, weights)

    return model


def negative_scale(lists: Any, prior: Any, likelihood: Any) -> None:
    offset = numpyro.sample("offset", dist.Normal(0.0, 1.0))
    raw = numpyro.sample("raw", dist.Normal(jnp.zeros(2), offset - 9.0).to_event(1))
    observe(lists, likelihood, numpyro.deterministic("weights", raw))


def no_gradient(lists: Any, prior: Any, likelihood: Any) -> None:
    """A square root of 0, whose derivative is infinite."""
    weights = numpyro.sample("weights", prior.distribution())
    observe(lists, likelihood, weights + jnp.sqrt(0.0 * weights))


def without_latent_sites(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.deterministic("weights", jnp.ones(2)))


def constant_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    observe(lists, likelihood, scale * numpyro.deterministic("weights", jnp.ones(2)))


def delta(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("weights", dist.Delta(jnp.ones(2)).to_event(1)))


def a_site_for_each_weight(lists: Any, prior: Any, likelihood: Any) -> None:
    both = [numpyro.sample(name, dist.Normal(0.0, 1.0)) for name in ("lm", "tm")]
    observe(lists, likelihood, jnp.stack(both))


def with_a_parameter(lists: Any, prior: Any, likelihood: Any) -> None:
    mean = numpyro.param("mean", 0.0)
    observe(lists, likelihood, numpyro.sample("weights", dist.Normal(mean, jnp.ones(2))))


def with_a_branch(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    if weights[0] > 0:
        numpyro.sample("more", dist.Normal(0.0, 1.0))
    observe(lists, likelihood, weights)


def two_sites_of_a_name(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("weights", prior.distribution())
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()))


def a_site_called_feature(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("feature", dist.Normal(0.0, 1.0))
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()))


def two_arguments(lists: Any, prior: Any) -> None:
    numpyro.sample("weights", prior.distribution())


@pytest.mark.parametrize(
    ("model", "code", "named"),
    [
        (three_weights, "bad-usage", r"\(3,\)"),
        (no_weights, "bad-usage", "weights"),
        (deterministic_of_another_shape, "bad-usage", r"\(3,\)"),
        (observed_weights_of_another_shape, "mismatch", r"\(1,\)"),
        (improper_weights, "not-supported", "weights"),
        (subsampled, "not-supported", "subsample_size"),
        (plate_of_another_size, "mismatch", "sentence"),
        (discrete_of_each_sentence, "not-supported", "group"),
        (a_site_for_each_weight, "bad-usage", r'sites lm, tm.*numpyro\.deterministic\("weights"'),
        (not_a_number, "bad-number", "log density of the site bound .* not a number .*weights = "),
        (zero_below(0.9), "bad-number", "density of the site bound of the model is 0 .*weights = "),
        (negative_scale, "bad-number", "site raw .*offset = "),
        (no_gradient, "bad-number", "gradient of the site oracle by weights"),
        (without_latent_sites, "not-supported", "weights of the model is a constant"),
        (constant_weights, "not-supported", "weights of the model is a constant"),
        (delta, "not-supported", "weights of the model"),
        (with_a_parameter, "not-supported", "mean"),
        (with_a_branch, "not-supported", "with_a_branch"),
        (two_sites_of_a_name, "duplicate", "weights"),
        (a_site_called_feature, "bad-name", "feature of the model .*: rename it"),
        (two_arguments, "not-supported", "two_arguments"),
    ],
)
def test_a_model_that_cannot_be_sampled_is_refused(model: Any, code: str, named: str) -> None:
    with raises(bpa.UsageError, code, parameter="model", match=named):
        density_of(model)


def of_two_domains(lists: Any, prior: Any, likelihood: Any) -> None:
    own = numpyro.sample("own", dist.Normal(jnp.zeros((2, 2)), 1.0).to_event(2))
    numpyro.deterministic("weights", own[0])
    observe(lists, likelihood, own)


def test_a_domain_without_weights_is_refused() -> None:
    with starting_at_zero():
        assert density_of(of_two_domains, domain=["a", "b"] * 7).dimension == 4
        with raises(bpa.UsageError, "mismatch", parameter="model", match="3"):
            density_of(of_two_domains, domain=["a", "b"] * 6 + ["c"] * 2)


@pytest.mark.slow
def test_what_an_error_suggests_gives_a_model_that_can_be_sampled() -> None:
    """Other canonical weights, a truncated distribution, and a small number in a square root."""

    def bounded(lists: Any, prior: Any, likelihood: Any) -> None:
        normal = dist.TruncatedNormal(prior.mean, 0.3, low=0.9).to_event(1)
        observe(lists, likelihood, numpyro.sample("weights", normal))

    def with_a_gradient(lists: Any, prior: Any, likelihood: Any) -> None:
        weights = numpyro.sample("weights", prior.distribution())
        observe(lists, likelihood, weights + jnp.sqrt(0.0 * weights + 1e-6))

    def stacked(lists: Any, prior: Any, likelihood: Any) -> None:
        both = [numpyro.sample(name, dist.Normal(0.0, 1.0)) for name in ("lm", "tm")]
        observe(lists, likelihood, numpyro.deterministic("weights", jnp.stack(both)))

    assert density_of(zero_below(0.9), {"LM0": 1.0, "TM0": 0.4}).dimension == 2
    for model in (bounded, with_a_gradient, stacked):  # they and their gradients are finite
        assert density_of(model).dimension == 2


def normalised(lists: Any, prior: Any, likelihood: Any) -> None:
    """No density at 0, where weights without canonical ones start."""
    weights = numpyro.sample("weights", prior.distribution())
    observe(lists, likelihood, weights / jnp.linalg.norm(weights))


def test_weights_start_at_their_median_where_the_mean_has_no_density() -> None:
    at_mean = density_of(normalised).initial_position
    np.testing.assert_allclose(at_mean, list(CANONICAL.values()))
    density = density_of(normalised, {"LM0": 0.0, "TM0": 0.0})
    start = np.asarray(density.initial_position)
    assert np.abs(start).min() > 0
    assert np.isfinite(density.value_and_gradient(start)[0])


def without_observations(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("weights", prior.distribution())


def of_another_site(lists: Any, prior: Any, likelihood: Any) -> None:
    """The site `unused` depends on the weights, and is not observed."""
    weights = numpyro.sample("weights", prior.distribution())
    other = numpyro.sample("other", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    numpyro.sample("unused", dist.Normal(weights + other, 1.0).to_event(1))
    observe(lists, likelihood, other)


def masked(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    with numpyro.handlers.mask(mask=False):
        observe(lists, likelihood, weights)


def of_no_lists(lists: Any, prior: Any, likelihood: Any) -> None:
    weights = numpyro.sample("weights", prior.distribution())
    numpyro.factor("ridge", -jnp.sum(weights**2))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (without_observations, "without_observations observes nothing, so its posterior equals"),
        (of_another_site, "nothing that depends on its weights, so their posterior equals"),
        (masked, "nothing that depends on its weights, so their posterior equals"),
        (of_no_lists, "nothing that depends on its weights and the lists, so the lists change"),
    ],
)
def test_a_model_whose_posterior_does_not_depend_on_the_lists_warns(
    model: Any, message: str
) -> None:
    with starting_at_zero(), pytest.warns(BpaWarning, match=message):
        density_of(model)


def around_shared_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    """The weights are not observed, but the sites that are depend on them."""
    shared = numpyro.sample("weights", prior.distribution())
    own = numpyro.sample("own", dist.Normal(shared, 0.4).to_event(1))
    observe(lists, likelihood, own)


def weights_of_a_new_domain(lists: Any, prior: Any, likelihood: Any) -> None:
    """The weights and what is observed depend on a shared site."""
    shared = numpyro.sample("shared", prior.distribution())
    own = numpyro.sample("own", dist.Normal(shared, 0.4).to_event(1))
    numpyro.sample("weights", dist.Normal(shared, 0.4).to_event(1))
    observe(lists, likelihood, own)


def factor_of_lists(lists: Any, prior: Any, likelihood: Any) -> None:
    with numpyro.plate("feature", 2):
        raw = numpyro.sample("raw", dist.StudentT(4.0, 0.0, 1.0))
    weights = numpyro.deterministic("weights", jnp.exp(raw))
    scores = [jnp.einsum("bsqn,q->bsn", b["features"], weights) for b in lists.buckets]
    numpyro.factor("scores", -sum(jnp.sum(jnp.tanh(score)) for score in scores))


@pytest.mark.parametrize(
    "model", [of_two_domains, around_shared_weights, weights_of_a_new_domain, factor_of_lists]
)
def test_a_model_whose_posterior_depends_on_the_lists_does_not_warn(model: Any) -> None:
    with starting_at_zero():
        assert density_of(model, **({"domain": ["a", "b"] * 7} if model is of_two_domains else {}))


def the_default_model(lists: Any, prior: Any, likelihood: Any) -> None:
    observe(lists, likelihood, numpyro.sample("weights", prior.distribution()))


def test_no_likelihood_is_asked_for_without_a_warning() -> None:
    lists = reference_model.pairs(DIFFERENCES, NAMES)
    with starting_at_zero():
        posterior = bpa.adapt(
            lists, CANONICAL, model=the_default_model, likelihood="none", sampler="map"
        )
    np.testing.assert_allclose(as_weight_draws(posterior).mean, list(CANONICAL.values()), atol=1e-6)


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
@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("simplex", [0.6, 0.4]),
        *(
            pytest.param(n, [0.6, 0.4], marks=pytest.mark.slow)
            for n in ("half-normal", "truncated")
        ),
        *(pytest.param(n, [-0.5, 0.3], marks=pytest.mark.slow) for n in ON_A_SUPPORT),  # outside
    ],
)
def test_weights_with_a_support_are_sampled_as_quadrature_says(
    name: str, canonical: list[float], sampler: str
) -> None:
    model, log_p, names = ON_A_SUPPORT[name]
    lists = reference_model.pairs(DIFFERENCES[:, : len(names)], names)
    weights = dict(zip(names, canonical, strict=False))
    options: dict[str, Any] = {"gain": ORACLE, "likelihood": "oracle", "seed": 1}
    options["sampler"] = SAMPLERS.resolve(sampler, {"draws": 2000})
    posterior = bpa.adapt(lists, weights, model=model, **options)
    draws = as_weight_draws(posterior).weights
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


def ordered_by_a_factor(lists: Any, prior: Any, likelihood: Any) -> None:
    """Its density is 0 where samplers may be: at weights that are not ordered."""
    weights = numpyro.sample("weights", prior.distribution())
    numpyro.factor("ordered", jnp.where((jnp.diff(weights) > 0).all(), 0.0, -jnp.inf))
    observe(lists, likelihood, weights)


def test_weights_where_the_density_is_0_have_no_weight() -> None:
    """Warnings are errors here. The other importance weights are those of SciPy's densities."""
    lists = reference_model.pairs(DIFFERENCES, NAMES)
    options = {"gain": ORACLE, "likelihood": "oracle", "model": ordered_by_a_factor}
    found = as_weight_draws(
        bpa.adapt(lists, [0.4, 0.6], sampler="heuristic:draws=200,delta=2", **options)
    )
    inside = found.flat[:, 0] < found.flat[:, 1]
    assert 20 < inside.sum() < 180
    np.testing.assert_array_equal(np.isneginf(found.draws.log_weight[0]), ~inside)
    expected = log_likelihood(found.flat) / 2
    expected += norm.logpdf(found.flat, [0.4, 0.6], np.sqrt(0.1)).sum(axis=1)
    expected = np.exp(expected - expected.max()) * inside
    np.testing.assert_allclose(found.importance, expected / expected.sum(), atol=1e-6)
    outside = bpa.check(bpa.adapt(lists, [0.4, 0.6], sampler="map", **options))
    assert outside.failures[0].name == "log density"


LENGTHS = np.array([0.3, -0.2, 0.9, 0.1, 0.4])
GIVEN = reference_model.given(*[0] * SENTENCES)
SLOW_SAMPLERS = [pytest.param(n, marks=pytest.mark.slow) for n in ("nuts", "rwm", "rwm-isotropic")]


def with_factor_and_lengths(lists: Any, prior: Any, likelihood: Any) -> None:
    """A factor that is a second prior, N(0, 1), and sites that share nothing with the weights."""
    weights = numpyro.sample("weights", prior.distribution())
    numpyro.factor("towards_zero", -0.5 * (weights**2).sum())
    observe(lists, likelihood, weights)
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    with numpyro.plate("text", len(LENGTHS)):
        numpyro.sample("length", dist.Normal(centre, 0.5), obs=LENGTHS)


def of_its_own(lists: Any, prior: Any, likelihood: Any) -> None:
    """A prior that has nothing to do with σ_T."""
    weights = numpyro.sample("weights", dist.Normal(prior.mean, 2.0).to_event(1))
    observe(lists, likelihood, weights)


of_its_own.uses_prior = False


@cache
def draws_of(model: Any) -> Any:
    with starting_at_zero():
        return TARGETS["plane"]().adapt("map", model=model)


def test_a_factor_counts_as_the_density_that_it_is() -> None:
    target = TARGETS["plane"]()
    mean, variance = np.array(list(target.canonical.values())), np.asarray(target.variance)
    joint = 1 / (1 / variance + 1)
    canonical = dict(zip(target.canonical, mean * joint / variance, strict=True))
    same = bpa.adapt(
        target.pool, canonical, gain=GIVEN, prior=bpa.Isotropic(variance=joint), sampler="map"
    )
    ours = draws_of(with_factor_and_lengths)
    np.testing.assert_allclose(as_weight_draws(ours).mean, as_weight_draws(same).mean, atol=1e-5)
    assert as_weight_draws(ours).draws.log_likelihood["towards_zero"].shape == (1, 1)


def test_prior_and_likelihood_are_recorded() -> None:
    """A model may say that its weights do not have the prior; no Gaussian is then learned from."""
    used, other = (
        as_weight_draws(draws_of(model)) for model in (with_factor_and_lengths, of_its_own)
    )
    recorded = [{n for n in d.draws.constants if n.startswith("prior")} for d in (used, other)]
    assert recorded == [{"prior_mean", "prior_variance"}, set()]
    assert [d.adaptation.prior is None for d in (used, other)] == [False, True]
    assert [d.adaptation.likelihood is None for d in (used, other)] == [False, False]
    assert (
        bpa.Prior.recorded(used).variance.tolist()
        == used.draws.constants["prior_variance"].tolist()
    )
    with raises(bpa.DataError, "not-supported", parameter="posterior"):
        bpa.Prior.recorded(other)


MEDIAN, SPREAD = 0.8, 0.4


def learned_scale(lists: Any, prior: Any, likelihood: Any) -> None:
    scale = numpyro.sample("scale", dist.LogNormal(np.log(MEDIAN), SPREAD))
    weights = numpyro.sample("weights", dist.Normal(prior.mean, scale).to_event(1))
    numpyro.deterministic("twice", 2 * scale)
    observe(lists, likelihood, weights)


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


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [*SLOW_SAMPLERS, "imh"])
def test_a_prior_with_a_learned_scale_is_sampled_as_quadrature_says(sampler: str) -> None:
    target = TARGETS["balanced"]()
    draws = 2000 if sampler == "imh" else 5000
    prior = "isotropic:variance=0.1"
    posterior = target.adapt(sampler, {"draws": draws}, model=learned_scale, prior=prior)
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
    assert len(bpa.rerank(target.pool, posterior, unchecked=True).choice) == SENTENCES
    assert list(bpa.point_weights(posterior)) == ["LM0"]


BETWEEN = 0.4  # standard deviation of the weights of a domain around what domains share


def by_domain(lists: Any, prior: Any, likelihood: Any) -> None:
    """λ_d ~ N(μ, 0.4²), μ ~ p(λ|T): what is adapted is the first domain's weights."""
    shared = numpyro.sample("shared", prior.distribution())
    own = numpyro.sample("own", dist.Normal(jnp.stack([shared, shared]), BETWEEN).to_event(2))
    observe(lists, likelihood, own)
    numpyro.deterministic("weights", own[0])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [*SLOW_SAMPLERS[:2], "imh"])
def test_domains_that_share_weights_are_sampled_as_quadrature_says(sampler: str) -> None:
    rng = np.random.default_rng(8)
    differences = rng.normal(0.5, 1.5, size=(14, 1))
    domain = np.arange(14) % 2
    lists = reference_model.pairs(differences, ["LM0"])
    lists = lists.with_sentence_extras(domain=tuple(np.array(["talks", "leaflets"] * 7)))
    options: dict[str, Any] = {"prior": "isotropic:variance=0.7", "gain": ORACLE}
    options["sampler"] = SAMPLERS.resolve(sampler, {"draws": 2000})
    found = as_weight_draws(bpa.adapt(lists, {"LM0": 0.5}, model=by_domain, **options))
    features, number = differences[:, 0], 1 - domain  # leaflets, then talks: in order of names
    covariance = 0.7 + BETWEEN**2 * np.eye(2)

    def log_p_of(own: reference_model.Array) -> reference_model.Array:
        log_p = log_expit(-own[:, number] * features).sum(axis=1)
        return np.asarray(log_p + multivariate_normal([0.5, 0.5], covariance).logpdf(own))

    grid, p = integrated(log_p_of, [0.0, 0.0], 6.0, 201)
    assert_moments(found.draws.values["own"][..., 0], *moments_of(grid, p))
    np.testing.assert_array_equal(found.weights, found.draws.values["own"][:, :, 0])
    weights = found.draws.values["own"][0, 0, :, 0]
    expected = log_expit(-weights[number] * features)
    np.testing.assert_allclose(found.pointwise[0, 0], expected, rtol=1e-5, atol=1e-6)
    assert bpa.rerank(lists, found, unchecked=True).choice.shape == (14,)
