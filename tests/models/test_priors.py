"""Priors: built, matched by name, written and read, and equal to SciPy's densities."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import plain
import pytest
from foreign import autoregressive, foreign
from scipy.stats import laplace, multivariate_normal

from bpa_ppl import BpaWarning, DataError, UsageError, adapt
from bpa_ppl.models import Isotropic, Prior
from bpa_ppl.models.priors.isotropic import complete_prior, variances
from bpa_ppl.posterior import as_draws
from bpa_ppl.weights import Match, match

CANONICAL = {"LM0": 0.5, "WP0": -1.0}
COVARIANCE = np.array([[0.5, 0.3], [0.3, 0.4]])
LISTS = plain.pairs([[1.0, -2.0], [0.5, 0.3]], ["LM0", "WP0"])
GIVEN = plain.given(0, 0)


def log_density(prior: Prior, at: list[float]) -> float:
    return float(prior.distribution().log_prob(jnp.asarray(at)))


def test_densities_are_those_of_scipy() -> None:
    at = [0.1, 0.4]
    isotropic = Prior.isotropic(CANONICAL, [0.1, 2.0])
    expected = plain.log_prior(at, list(CANONICAL.values()), [0.1, 2.0])
    assert log_density(isotropic, at) == pytest.approx(expected)
    full = Prior.gaussian(CANONICAL, COVARIANCE)
    expected = multivariate_normal(list(CANONICAL.values()), COVARIANCE).logpdf(at)
    assert log_density(full, at) == pytest.approx(expected)
    heavy = Prior.named(CANONICAL, dist.Laplace(np.zeros(2), 0.3).to_event(1))
    assert log_density(heavy, at) == pytest.approx(laplace.logpdf(at, scale=0.3).sum())


def test_features_are_matched_by_name() -> None:
    full = Prior.gaussian(CANONICAL, COVARIANCE)
    turned = full.matched(["WP0", "LM0"])
    assert turned.mean.tolist() == [-1.0, 0.5]
    assert turned.covariance.tolist() == COVARIANCE[::-1, ::-1].tolist()
    # Lists without LM0 have the weight 0 there: the Gaussian is conditioned on it.
    alone, precision = full.matched(["WP0"]), np.linalg.inv(COVARIANCE)
    np.testing.assert_allclose(alone.covariance, [[1 / precision[1, 1]]])
    np.testing.assert_allclose(alone.mean, [-1.0 + precision[1, 0] / precision[1, 1] * 0.5])
    assert full.matched(["LM0", "WP0"]) is full
    with pytest.raises(DataError, match="no feature TM0"):
        full.matched(["LM0", "TM0"])
    heavy = Prior.named(CANONICAL, dist.Laplace(np.zeros(2), 0.3).to_event(1))
    with pytest.raises(UsageError, match="in this order"):
        heavy.matched(["WP0", "LM0"])


def test_what_a_prior_does_not_know_is_isotropic_and_independent() -> None:
    """The density is the product of SciPy's: of the known features and of new ones alone.

    That of the known features is given the weights of the others: 0 where the lists lack the
    feature, and the fixed weight where it is fixed.
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
    known = multivariate_normal(mean, whole).logpdf([-0.2, 0.0, 0.1, 2.0])
    known -= multivariate_normal([3.0, 0.0], whole[1::2, 1::2]).logpdf([0.0, 2.0])
    expected = known + plain.log_prior([0.3, 0.9], [0.0, 0.2], [1 / 18, 0.1])
    assert log_density(prior, at) == pytest.approx(expected)
    with pytest.raises(DataError, match="no feature a, b, c, d"):
        complete_prior(learned, match._replace(names=("a", "b", "c", "d", "fixed")))
    heavy = Prior.named(CANONICAL, dist.Laplace(np.zeros(2), 0.3).to_event(1))
    with pytest.raises(DataError, match="no feature new, TM0"):
        complete_prior(heavy, match)


@pytest.mark.parametrize(
    "prior", [Prior.isotropic(CANONICAL, [0.1, 0.7]), Prior.gaussian(CANONICAL, COVARIANCE)]
)
def test_a_prior_survives_its_file(prior: Prior, tmp_path: Path) -> None:
    prior.write(tmp_path / "prior.json")
    again = Prior.read(tmp_path / "prior.json")
    assert again.names == prior.names
    for ours, theirs in zip(again[:3], prior[:3], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "content",
    [
        "no JSON",
        "[]",
        '{"mean": {"a": 1}}',
        '{"mean": {"a": "x"}, "variance": {"a": 1}}',
        '{"mean": {"a": 1}, "variance": {"a": -1}}',
        '{"mean": {"a": 1, "b": 2}, "covariance": [[1, 2], [2, 1]]}',
    ],
)
def test_what_is_no_prior_is_refused_with_its_file(content: str, tmp_path: Path) -> None:
    (tmp_path / "prior.json").write_text(content)
    with pytest.raises(DataError, match=r"prior\.json: not a prior"):
        Prior.read(tmp_path / "prior.json")


def test_a_distribution_is_not_written(tmp_path: Path) -> None:
    heavy = Prior.named(CANONICAL, dist.Laplace(np.zeros(2), 0.3).to_event(1))
    with pytest.raises(UsageError, match="Gaussian"):
        heavy.write(tmp_path / "prior.json")


@pytest.mark.parametrize(
    "covariance", [[[1.0]], [[1.0, 0.5], [0.4, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[0.0] * 2] * 2]
)
def test_what_is_no_covariance_is_refused(covariance: list[list[float]]) -> None:
    with pytest.raises(UsageError, match="the prior covariance must be"):
        Prior.gaussian(CANONICAL, covariance)


def test_a_distribution_of_other_weights_is_refused() -> None:
    with pytest.raises(UsageError, match=r"event shape is \(\): use to_event"):
        Prior.named(CANONICAL, dist.Normal(np.zeros(2), 1.0))


def test_a_posterior_is_a_prior_for_the_next_domain() -> None:
    draws = autoregressive(0.0, 4, 2000, 2, seed=3) @ np.linalg.cholesky(COVARIANCE).T
    prior = Prior.of(foreign(draws, list(CANONICAL)))
    np.testing.assert_allclose(prior.mean, draws.mean(axis=(0, 1)))
    np.testing.assert_allclose(prior.covariance, np.cov(draws.reshape(-1, 2).T), rtol=1e-3)
    found = adapt(LISTS, CANONICAL, prior=prior, sampler="map", oracle=GIVEN)
    assert as_draws(found).canonical is not None
    assert as_draws(found).constants["prior_covariance"].shape == (2, 2)


@pytest.mark.parametrize("prior", [Prior.isotropic(CANONICAL, 0.3), Isotropic(variance=0.3)])
def test_one_prior_by_several_ways_gives_one_posterior(prior: Prior | Isotropic) -> None:
    by_name = adapt(LISTS, CANONICAL, prior_variance=0.3, sampler="map", oracle=GIVEN)
    other = adapt(LISTS, CANONICAL, prior=prior, sampler="map", oracle=GIVEN)
    np.testing.assert_array_equal(
        other["posterior"]["weights"].values, by_name["posterior"]["weights"].values
    )
    recorded = Prior.recorded(other)
    assert recorded.variance.tolist() == [0.3, 0.3]
    assert recorded.names == ("LM0", "WP0")


def test_the_mode_under_a_full_covariance_is_stationary() -> None:
    prior = Prior.gaussian(CANONICAL, COVARIANCE)
    found = as_draws(adapt(LISTS, CANONICAL, prior=prior, sampler="map", oracle=GIVEN)).mean
    gradient = np.linalg.solve(COVARIANCE, found - np.array(list(CANONICAL.values())))
    for sentence in range(2):
        features = LISTS.features[LISTS.rows(sentence)].astype(np.float64)
        gradient += np.exp(plain.log_choice(features, found)) @ features - features[0]
    np.testing.assert_allclose(gradient, 0.0, atol=2e-3)


def test_a_variance_goes_with_the_isotropic_prior_alone() -> None:
    prior = Prior.gaussian(CANONICAL, COVARIANCE)
    with pytest.raises(UsageError, match="isotropic"):
        adapt(LISTS, CANONICAL, prior=prior, prior_variance=0.1, oracle=GIVEN)


def test_the_family_follows_the_free_features() -> None:
    matched = match(CANONICAL, LISTS, fixed=["LM0"])
    assert Isotropic().build(matched).names == ("WP0",)


class TestScales:
    """Features without a canonical weight, and variances of single features."""

    match = Match(
        ("LM0", "TM0[0]", "TM0[1]", "comet", "constant"),
        np.array([0.5, 1.0, 2.0, 0.0, 0.0]),
        np.ones(5, dtype=bool),
        np.array([np.nan, np.nan, np.nan, 0.5, 0.0]),
    )

    def test_a_variance_goes_by_the_spread_where_no_weight_is_canonical(self) -> None:
        built = Isotropic(variance=0.2).build(self.match)  # one such feature: τ² = 1/2
        np.testing.assert_allclose(built.variance, [0.2, 0.2, 0.2, 0.5 / 0.5**2, 0.2])
        narrow = Isotropic(variance=0.2, scale=0.1).build(self.match)
        np.testing.assert_allclose(narrow.variance, [0.2, 0.2, 0.2, (0.1 / 0.5) ** 2, 0.2])
        assert Isotropic().scaled(self.match) == {"comet": 0.5}

    def test_one_a_feature_is_taken_as_it_is(self) -> None:
        values = [1.0, 2.0, 3.0, 4.0, 5.0]
        assert Isotropic(variance=values).build(self.match).variance.tolist() == values

    def test_single_features_and_labels(self) -> None:
        built = Isotropic(single={"TM0": 3.0, "comet": 7.0}).build(self.match)
        assert built.variance.tolist() == [0.1, 3.0, 3.0, 7.0, 0.1]
        with pytest.raises(DataError, match="prior variance of LM1"):
            Isotropic(single={"LM1": 3.0}).build(self.match)
        with pytest.raises(UsageError, match="positive and finite, not -1"):
            Isotropic(single={"comet": -1.0})

    @pytest.mark.parametrize("variance", ["much", {"LM0": "much"}, [[1.0], [1.0, 2.0]], object()])
    def test_what_is_no_number_is_refused(self, variance: object) -> None:
        with pytest.raises(UsageError, match="prior variance"):
            Isotropic(**variances(variance)).build(self.match)
