"""Priors: densities compared with SciPy, unknown scales, matching by name, files, the horseshoe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import quad
from scipy.special import log_expit
from scipy.stats import halfcauchy, invgamma, kstest, laplace, multivariate_normal, norm
from support import reference_model
from support.posteriors import autoregressive, external_posterior, name_weights
from support.raising import raises

import bpa_ppl
from bpa_ppl import BpaWarning, DataError, Isotropic, Prior, UsageError, adapt, as_weight_draws
from bpa_ppl.extending import Match, StartingWeights, WeightsTarget, match, tabulate
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.priors.isotropic import complete_prior, with_shared_scale
from bpa_ppl.models.priors.scale import LogNormalScale
from bpa_ppl.models.priors.sparse import Horseshoe

CANONICAL = {"LM0": 0.5, "WP0": -1.0}
COVARIANCE = np.array([[0.5, 0.3], [0.3, 0.4]])
LISTS = reference_model.pairs([[1.0, -2.0], [0.5, 0.3]], ["LM0", "WP0"])
ORACLE = reference_model.given(0, 0)
NO_CENTRE = dist.HalfCauchy(np.ones(2)).to_event(1)  # neither a mean nor a loc
HEAVY = Prior.named(CANONICAL, dist.Laplace(np.zeros(2), 0.3).to_event(1))


@jax.jit
def compiled_log_density(prior: Prior, at: jax.Array) -> jax.Array:
    log_p: jax.Array = prior.distribution().log_prob(at)
    return log_p


def log_density(prior: Prior, at: npt.ArrayLike) -> float:
    return float(compiled_log_density(prior._replace(names=None), np.asarray(at)))


def test_densities_agree_with_scipy() -> None:
    at = [0.1, 0.4]
    isotropic = Prior.isotropic(CANONICAL, [0.1, 2.0])
    expected = reference_model.log_prior(at, list(CANONICAL.values()), [0.1, 2.0])
    assert log_density(isotropic, at) == pytest.approx(expected)
    full = Prior.gaussian(CANONICAL, COVARIANCE)
    expected = multivariate_normal(list(CANONICAL.values()), COVARIANCE).logpdf(at)
    assert log_density(full, at) == pytest.approx(expected)
    assert log_density(HEAVY, at) == pytest.approx(laplace.logpdf(at, scale=0.3).sum())


def test_features_are_matched_by_name() -> None:
    full = Prior.gaussian(CANONICAL, COVARIANCE)
    reordered = full.matched(["WP0", "LM0"])
    assert reordered.mean.tolist() == [-1.0, 0.5]
    assert reordered.covariance.tolist() == COVARIANCE[::-1, ::-1].tolist()
    # Without LM0 in the lists its weight is 0: the Gaussian is conditioned on it.
    alone, precision = full.matched(["WP0"]), np.linalg.inv(COVARIANCE)
    np.testing.assert_allclose(alone.covariance, [[1 / precision[1, 1]]])
    np.testing.assert_allclose(alone.mean, [-1.0 + precision[1, 0] / precision[1, 1] * 0.5])
    assert full.matched(["LM0", "WP0"]) is full
    with raises(DataError, "missing-feature", parameter="prior", match="TM0"):
        full.matched(["LM0", "TM0"])
    with raises(UsageError, "mismatch", parameter="prior"):
        HEAVY.matched(["WP0", "LM0"])


def test_new_features_have_independent_isotropic_priors() -> None:
    """The density is the product of the densities of known and new features.

    The density of the known features is conditional on the weights of the others: 0 where the
    lists have no such feature, and the fixed weight where it is fixed.
    """
    names = {"WP0": -0.7, "other": 3.0, "LM0": 0.4, "fixed": 0.0}
    whole = np.diag([0.4, 9, 0.5, 0.7]) + 0.1
    learned = Prior.gaussian(names, whole)
    match = Match(
        ("LM0", "new", "WP0", "TM0", "fixed"),
        np.array([0.5, 0.0, -1.0, 0.2, 2.0]),
        np.array([True, True, True, True, False]),
        np.array([np.nan, 3.0, np.nan, np.nan, np.nan]),
    )
    with pytest.warns(BpaWarning, match=r"new \(0 ± 0.236\), TM0 \(0.2 ± 0.316\)"):
        prior, new = complete_prior(learned, match)
    assert (prior.names, new) == (match.free_names, ["new", "TM0"])
    at = [0.1, 0.3, -0.2, 0.9]
    mean = list(names.values())
    known_density = multivariate_normal(mean, whole).logpdf([-0.2, 0.0, 0.1, 2.0])
    known_density -= multivariate_normal([3.0, 0.0], whole[1::2, 1::2]).logpdf([0.0, 2.0])
    expected = known_density + reference_model.log_prior([0.3, 0.9], [0.0, 0.2], [1 / 18, 0.1])
    assert log_density(prior, at) == pytest.approx(expected)
    with raises(DataError, "missing-feature", parameter="prior", match="a, b, c, d"):
        complete_prior(learned, match._replace(names=("a", "b", "c", "d", "fixed")))
    with raises(DataError, "missing-feature", parameter="prior", match="new, TM0"):
        complete_prior(HEAVY, match)


@pytest.mark.parametrize(
    "prior", [Prior.isotropic(CANONICAL, [0.1, 0.7]), Prior.gaussian(CANONICAL, COVARIANCE)]
)
def test_file_round_trip(prior: Prior, tmp_path: Path) -> None:
    prior.write(tmp_path / "prior.json")
    again = Prior.read(tmp_path / "prior.json")
    assert again.names == prior.names
    for reread, original in zip(again[:3], prior[:3], strict=True):
        np.testing.assert_array_equal(reread, original)


@pytest.mark.parametrize(
    "content",
    [
        "not JSON",
        "[]",
        '{"mean": {"a": 1}}',
        '{"mean": {"a": 1%s}, "variance": {"a": 1}}' % ("0" * 400),
        '{"mean": {"a": "x"}, "variance": {"a": 1}}',
        '{"mean": {"a": 1}, "variance": {"a": -1}}',
        '{"mean": {"a": NaN}, "variance": {"a": 1}}',
        '{"mean": {"a": 1, "b": 2}, "covariance": [[1, 2], [2, 1]]}',
    ],
)
def test_rejects_invalid_prior_files(content: str, tmp_path: Path) -> None:
    (tmp_path / "prior.json").write_text(content)
    with raises(DataError, "unknown-format", match=r"prior\.json"):
        Prior.read(tmp_path / "prior.json")


def test_rejects_other_distributions(tmp_path: Path) -> None:
    with raises(UsageError, "not-supported", parameter="prior"):
        HEAVY.write(tmp_path / "prior.json")


@pytest.mark.parametrize(
    ("make", "arguments", "code", "parameter"),
    [
        (Prior.isotropic, ([0.5],), "wrong-type", "weights"),
        (Prior.isotropic, ({"a": 0.5}, "wide"), "wrong-type", "variance"),
        (Prior.isotropic, ({"a": 0.5}, 0.0), "bad-number", "variance"),
        (Prior.gaussian, ([0.5], [[1.0]]), "wrong-type", "weights"),
        (Prior.gaussian, (CANONICAL, "wide"), "wrong-type", "covariance"),
        (Prior.gaussian, (CANONICAL, [[1.0]]), "wrong-length", "covariance"),
        (Prior.gaussian, (CANONICAL, [[1.0, 0.5], [0.4, 1.0]]), "bad-number", "covariance"),
        (Prior.gaussian, (CANONICAL, [[1.0, 2.0], [2.0, 1.0]]), "bad-number", "covariance"),
        (Prior.gaussian, (CANONICAL, np.zeros((2, 2))), "bad-number", "covariance"),
        (Prior.gaussian, (CANONICAL, [[np.inf, 0.1], [0.1, 1]]), "bad-number", "covariance"),
        (Prior.named, (["a"], "normal"), "wrong-type", "prior"),
        (Prior.named, ("a", dist.Normal(np.zeros(1)).to_event(1)), "wrong-type", "names"),
        (Prior.named, (CANONICAL, dist.Normal(np.zeros(2), 1.0)), "wrong-length", "prior"),
        (Prior.named, (CANONICAL, NO_CENTRE), "bad-number", "prior"),
    ],
)
def test_rejects_what_is_no_prior(make: Any, arguments: Any, code: str, parameter: str) -> None:
    with raises(UsageError, code, parameter=parameter):
        make(*arguments)


def test_prior_of_posterior() -> None:
    draws = autoregressive(0.0, 4, 2000, 2, seed=3) @ np.linalg.cholesky(COVARIANCE).T
    prior = Prior.of(external_posterior(draws, list(CANONICAL)))
    np.testing.assert_allclose(prior.mean, draws.mean(axis=(0, 1)))
    np.testing.assert_allclose(prior.covariance, np.cov(draws.reshape(-1, 2).T), rtol=1e-3)
    result = as_weight_draws(adapt(LISTS, CANONICAL, prior=prior, sampler="map", gain=ORACLE))
    assert result.canonical is not None
    assert result.draws.constants["prior_covariance"].shape == (2, 2)
    with raises(UsageError, "not-supported", parameter="prior"):
        Prior.of(result)


class TestScales:
    """Variances of features without canonical weight, and of single features."""

    match = Match(
        ("LM0", "TM0[0]", "TM0[1]", "comet", "constant"),
        np.array([0.5, 1.0, 2.0, 0.0, 0.0]),
        np.ones(5, dtype=bool),
        np.array([np.nan, np.nan, np.nan, 0.5, 0.0]),
    )

    def test_variance_depends_on_spread_without_canonical_weight(self) -> None:
        built = Isotropic().build(self.match)  # one such feature: τ² = 1/2
        np.testing.assert_allclose(built.variance, [0.1, 0.1, 0.1, 0.5 / 0.5**2, 0.1])
        built = Isotropic(variance=0.2).build(self.match)
        np.testing.assert_allclose(built.variance, [0.2, 0.2, 0.2, 0.2 / 0.5**2, 0.2])
        narrow = Isotropic(variance=0.2, scale=0.1).build(self.match)
        np.testing.assert_allclose(narrow.variance, [0.2, 0.2, 0.2, (0.1 / 0.5) ** 2, 0.2])
        assert Isotropic().scaled(self.match) == {"comet": 0.5}
        values = [1.0, 2.0, 3.0, 4.0, 5.0]
        assert Isotropic(variance=values).build(self.match).variance.tolist() == values
        free = Isotropic().build(self.match._replace(free=np.arange(5) == 1))
        assert (free.names, free.variance.tolist()) == (("TM0[0]",), [0.1])

    def test_variance_of_single_features_and_labels(self) -> None:
        for prior in (Isotropic(single={"TM0": 3, "comet": 7}), Isotropic({"TM0": 3, "comet": 7})):
            assert prior.build(self.match).variance.tolist() == [0.1, 3.0, 3.0, 7.0, 0.1]
        with raises(DataError, "missing-feature", parameter="variance", match="LM1"):
            Isotropic(single={"LM1": 3.0}).build(self.match)
        with raises(UsageError, "bad-number", parameter="variance", match="-1"):
            Isotropic(single={"comet": -1.0})

    @pytest.mark.parametrize("variance", ["much", {"LM0": "much"}, [[1.0], [1.0, 2.0]], object()])
    def test_rejects_invalid_variance(self, variance: object) -> None:
        with raises(UsageError, "wrong-type", parameter="variance"):
            Isotropic(variance=variance)


LETTERS = ("a", "b", "c", "d")
MEAN = np.array([0.3, 0.0, -1.0, 0.5])
#: The first and the third weight have the scale.
OF_LETTERS = np.array(
    [[0.5, 0.0, 0.2, 0.0], [0.0, 0.3, 0.0, 0.1], [0.2, 0.0, 1.0, 0.0], [0.0, 0.1, 0.0, 0.7]]
)
SHARED, REST = [0, 2], [1, 3]
LOG_DEVIATION = 1.25


def log_normal_prior() -> Prior:
    gaussian = Prior.gaussian(dict(zip(LETTERS, MEAN.tolist(), strict=True)), OF_LETTERS)
    return gaussian._replace(scale=LogNormalScale(LOG_DEVIATION, np.isin(np.arange(4), SHARED)))


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_the_density_is_the_integral_over_a_log_normal_scale(size: float) -> None:
    value = MEAN + size * np.random.default_rng(0).normal(size=4)

    def integrand(log_scale: float, power: int = 0) -> float:
        given = log_normal_prior().with_scale(float(np.exp(log_scale))).full_covariance
        log_p = multivariate_normal.logpdf(value, MEAN, given)
        log_p += norm.logpdf(log_scale, 0.0, LOG_DEVIATION) - 2 * power * log_scale
        return float(np.exp(log_p))

    total = quad(integrand, -6, 8, epsabs=0, limit=200)[0]
    assert log_density(log_normal_prior(), value) == pytest.approx(np.log(total), abs=1e-4)
    in_units = np.linalg.solve(np.linalg.cholesky(OF_LETTERS), value - MEAN)
    scale, squared = log_normal_prior().scale, np.square(in_units[SHARED]).sum()
    assert scale is not None
    precision = quad(integrand, -6, 8, args=(1,), epsabs=0, limit=200)[0] / total
    assert scale.mean_precision(squared[None], 2)[0] == pytest.approx(precision, rel=1e-3)
    scales = scale.draw_given(np.random.default_rng(1), np.full(40_000, squared), 2)
    assert np.mean(scales**-2) == pytest.approx(precision, rel=0.05)


@pytest.mark.parametrize("library", ["numpy", "numpyro"])
def test_draws_of_a_log_normal_scale(library: str) -> None:
    """Single weights, and the ratio of two, in which their common scale cancels."""
    prior = log_normal_prior()
    if library == "numpy":
        draws = prior.sample(np.random.default_rng(1), 4000)
    else:
        sample = jax.jit(lambda prior, key: prior.distribution().sample(key, (4000,)))
        draws = np.asarray(sample(prior._replace(names=None), jax.random.key(1)))
    units = np.linalg.solve(np.linalg.cholesky(OF_LETTERS), (draws - MEAN).T)
    grid = np.linspace(-5, 5, 201)

    def cdf(values: np.ndarray) -> np.ndarray:
        return norm.cdf(np.outer(values, np.exp(-LOG_DEVIATION * grid))) @ weights

    weights = norm.pdf(grid) / norm.pdf(grid).sum()
    assert kstest(units[0], cdf).pvalue > 1e-3
    for k in REST:
        assert kstest(units[k], norm.cdf).pvalue > 1e-3
    assert kstest(units[0] / units[2], "cauchy").pvalue > 1e-3


def test_a_record_is_the_gaussian_with_the_mean_precision() -> None:
    """Of draws of a narrow posterior, whose scale is known given the weights."""
    prior, weights = log_normal_prior(), MEAN + np.array([2.0, 0.0, 1.0, 0.0])
    draws = weights + 1e-4 * np.random.default_rng(2).normal(size=(4, 1000, 4))
    constants = {"prior_mean": MEAN, "prior_covariance": OF_LETTERS}
    assert prior.scale is not None
    constants |= {"prior_log_deviation": prior.scale.of_weights}
    recorded = Prior.recorded(name_weights(draws, LETTERS, constants=constants))
    part = np.array([2.0, 1.0])
    distance = part @ np.linalg.solve(OF_LETTERS[np.ix_(SHARED, SHARED)], part)
    log_scales = np.linspace(-8, 8, 2001)
    log_p = norm.logpdf(log_scales, 0.0, LOG_DEVIATION) - 2 * log_scales
    p = np.exp(log_p - distance * np.exp(-2 * log_scales) / 2)
    precision = p @ np.exp(-2 * log_scales) / p.sum()
    expected = np.array(OF_LETTERS)
    expected[np.ix_(SHARED, SHARED)] /= precision
    assert recorded.is_gaussian
    np.testing.assert_allclose(recorded.covariance, expected, rtol=1e-3)


def test_it_is_written_and_read_and_cannot_be_restricted() -> None:
    again = Prior.from_dict(log_normal_prior().as_dict())
    assert again.scale is not None
    assert again.scale.log_deviation == LOG_DEVIATION
    assert np.flatnonzero(again.scale.shared).tolist() == SHARED
    np.testing.assert_array_equal(again.covariance, OF_LETTERS)
    assert again.matched(LETTERS) is again
    with raises(UsageError, "not-supported", parameter="prior"):
        again.conditioned({"a": 0.0})


def test_weights_without_a_canonical_one_are_correlated_and_share_a_scale() -> None:
    correlation = np.array([[1.0, 0.9], [0.9, 1.0]])
    gaussian = Prior.isotropic(dict.fromkeys(LETTERS[:3], 0.0), [1.0, 4.0, 9.0])
    built = with_shared_scale(gaussian, LETTERS[:2], correlation)
    np.testing.assert_allclose(built.full_covariance[0, 1], 1 * 2 * 0.9 / 2)
    np.testing.assert_array_equal(np.diag(built.covariance), [1.0, 4.0, 9.0])
    assert built.scale is not None
    assert built.scale.of_weights.tolist() == [1.25, 1.25, 0.0]


#: A dense weight and three sparse ones.
NAMES = ("LM0", "a", "b", "c")
SPREAD = np.array([np.nan, 6.0, 3.0, 6.0])
MATCH = Match(NAMES, np.array([0.5, 0.0, 0.0, 0.0]), np.ones(4, dtype=bool), SPREAD)


def test_horseshoe_density_agrees_with_scipy() -> None:
    lists = reference_model.pairs(np.random.default_rng(0).normal(size=(5, 4)), NAMES)
    family = Horseshoe(relevant=1.0)
    table = tabulate(lists, match(dict.fromkeys(NAMES, 0.0), lists), np.zeros(5))
    model, prior = family.model(MATCH), family.build(MATCH)._replace(names=None)
    z = {
        "unit": jnp.array([0.3, -1.0, 0.5, 2.0]),
        "local": jnp.array([0.2, -0.4, 1.5]),
        "overall": jnp.array(-0.7),
        "slab": jnp.array(0.4),
    }
    data = bpa_ppl.log_density(lists, dict.fromkeys(NAMES, 0.0), likelihood="none").data
    data = data._replace(lists=table, prior=prior)
    target = WeightsTarget(model=model, data=data, start=z, likelihood=Oracle())
    local, overall, slab = (np.exp(np.asarray(z[n])) for n in ("local", "overall", "slab"))
    kappa = np.sqrt(slab * local**2 / (slab + overall**2 * local**2))
    factor = np.append(1.0, overall * kappa)
    spread = np.sqrt(0.1) * np.array([1.0, 1.0, 2.0, 1.0])  # 6 over the spread within lists
    weights = np.array([0.5, 0, 0, 0]) + spread * factor * np.asarray(z["unit"])
    expected = norm.logpdf(np.asarray(z["unit"])).sum()
    expected += (halfcauchy.logpdf(local) + np.log(local)).sum()
    expected += halfcauchy.logpdf(overall, scale=0.5) + np.log(overall)
    expected += invgamma.logpdf(slab, 2.0, scale=2.0) + np.log(slab)
    expected += reference_model.log_likelihood(lists, np.zeros(5, int), weights).sum()
    with jax.enable_x64(True):
        assert float(target(ravel_pytree(z)[0])) == pytest.approx(expected, abs=1e-4)


def test_all_shifts_are_sparse_if_all_weights_are_canonical() -> None:
    every = Match(("LM0", "WP0"), np.array([0.5, -1.0]), np.ones(2, dtype=bool))
    assert Horseshoe(relevant=0.5).model(every).sparse == (True, True)
    assert Horseshoe(relevant=0.5).model(every).scale == pytest.approx(1 / 3)
    with raises(UsageError, "invalid-setting", parameter="relevant"):
        Horseshoe(relevant=0.0)


def by_brute_force(rows: np.ndarray, draws: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and variances of two sparse weights of unit σ = √0.1 · 6 / spread.

    The horseshoe of relevant = 1 is drawn from, and each draw is weighted by the likelihood.
    """
    rng = np.random.default_rng(0)
    local, overall = np.abs(rng.standard_cauchy((draws, 2))), np.abs(rng.standard_cauchy(draws))
    slab = 2.0 / rng.gamma(2.0, size=draws)
    wide = overall[:, None] * local
    factor = wide / np.sqrt(1 + wide**2 / slab[:, None])
    # The deviation within lists of two is half of their difference.
    spread = np.sqrt(np.mean((rows / 2) ** 2, axis=0))
    weights = np.sqrt(0.1) * 6 / spread * factor * rng.normal(size=(draws, 2))
    log_weight = log_expit(-weights @ rows.T).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / (weight**2).sum() > 20_000
    mean = np.average(weights, axis=0, weights=weight)
    return mean, np.average((weights - mean) ** 2, axis=0, weights=weight)


@pytest.mark.slow
def test_the_horseshoe_is_sampled_as_brute_force_says() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 2)) * [1.5, 0.7]
    rows[:, 0] = -np.abs(rows[:, 0]) * np.where(rng.uniform(size=30) < 0.85, 1, -1)
    lists = reference_model.pairs(rows, ["a", "b"])
    options = {"sampler": "nuts:target_accept=0.95,draws=1500", "likelihood": "oracle"}
    options |= {"prior": Horseshoe(relevant=1.0), "gain": reference_model.given(*[0] * 30)}
    start = StartingWeights({}, defaults={"a": 0.0, "b": 0.0})
    draws = as_weight_draws(adapt(lists, start, **options))
    mean, variance = by_brute_force(lists.features[1::2].astype(np.float64))
    np.testing.assert_allclose(draws.mean, mean, atol=0.1 * np.sqrt(variance).max())
    np.testing.assert_allclose(draws.deviation**2, variance, rtol=0.2)
