"""The prior of weights with an unknown common scale, compared with SciPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, kstest, multivariate_normal, multivariate_t, norm
from scipy.stats import t as student
from support.raising import raises

from bpa_ppl import Draws, UsageError, from_lists
from bpa_ppl.models.priors.isotropic import with_shared_scale
from bpa_ppl.models.priors.prior import Prior, log_density_of_scale
from bpa_ppl.sampling.prior_choice import correlate_within

NAMES = ("a", "b", "c", "d")
MEAN = np.array([0.3, 0.0, -1.0, 0.5])
#: The first and the third weight have the scale.
COVARIANCE = np.array(
    [[0.5, 0.0, 0.2, 0.0], [0.0, 0.3, 0.0, 0.1], [0.2, 0.0, 1.0, 0.0], [0.0, 0.1, 0.0, 0.7]]
)
SHARED, REST, DEGREES = [0, 2], [1, 3], 3.0


def prior() -> Prior:
    gaussian = Prior.gaussian(dict(zip(NAMES, MEAN.tolist(), strict=True)), COVARIANCE)
    return gaussian._replace(degrees=np.array([DEGREES, 0.0, DEGREES, 0.0]))


def test_the_density_is_the_integral_over_the_scale() -> None:
    """And the product of SciPy's Student t and normal distributions."""
    for value in np.random.default_rng(0).normal(size=(3, 4)):

        def integrand(log_scale: float, value: np.ndarray = value) -> float:
            given = prior().with_scale(float(np.exp(log_scale))).full_covariance
            chi_squared = DEGREES * np.exp(-2 * log_scale)
            density = chi2.pdf(chi_squared, DEGREES) * 2 * chi_squared
            expected = np.exp(log_density_of_scale(DEGREES, log_scale))
            assert density == pytest.approx(expected, rel=1e-9)
            return float(density * multivariate_normal.pdf(value, MEAN, given))

        log_p = float(prior().distribution().log_prob(value))
        assert log_p == pytest.approx(np.log(quad(integrand, -2, 8)[0]), abs=1e-6)
        blocks = [np.ix_(block, block) for block in (SHARED, REST)]
        expected = multivariate_t.logpdf(value[SHARED], MEAN[SHARED], COVARIANCE[blocks[0]], 3)
        expected += multivariate_normal.logpdf(value[REST], MEAN[REST], COVARIANCE[blocks[1]])
        assert log_p == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("library", ["numpy", "numpyro"])
def test_draws(library: str) -> None:
    """Single weights, and the ratio of two, in which their common scale cancels."""
    if library == "numpy":
        draws = prior().sample(np.random.default_rng(1), 4000)
    else:
        draws = np.asarray(prior().distribution().sample(jax.random.key(1), (4000,)))
    units = (draws - MEAN) / np.sqrt(np.diag(COVARIANCE))
    for k in range(4):
        cdf = student(DEGREES).cdf if k in SHARED else norm.cdf
        assert kstest(units[:, k], cdf).pvalue > 1e-3
    # Given the first weight of a bivariate Student t, the other one has 4 degrees of freedom.
    rho = 0.2 / np.sqrt(0.5)
    given = (DEGREES + units[:, 0] ** 2) / (DEGREES + 1) * (1 - rho**2)
    rest = (units[:, 2] - rho * units[:, 0]) / np.sqrt(given)
    assert kstest(rest, student(DEGREES + 1).cdf).pvalue > 1e-3


def test_a_record_is_the_gaussian_with_the_mean_precision() -> None:
    """Of draws of a narrow posterior, whose scale given the weights is χ² with 5 degrees."""
    student_prior, weights = prior(), MEAN + np.array([2.0, 0.0, 1.0, 0.0])
    draws = weights + 1e-4 * np.random.default_rng(2).normal(size=(4, 100, 4))
    constants = {
        "prior_mean": MEAN,
        "prior_covariance": COVARIANCE,
        "prior_degrees": student_prior.degrees,
    }
    recorded = Prior.recorded(Draws({"weights": draws}, NAMES, constants=constants))
    part = np.array([2.0, 1.0])
    distance = part @ np.linalg.solve(COVARIANCE[np.ix_(SHARED, SHARED)], part)
    precision = (DEGREES + 2) / (DEGREES + distance)
    expected = np.array(COVARIANCE)
    expected[np.ix_(SHARED, SHARED)] /= precision
    assert recorded.is_gaussian
    np.testing.assert_allclose(recorded.covariance, expected, rtol=1e-3)


def test_it_is_written_and_read_and_cannot_be_restricted() -> None:
    again = Prior.from_dict(prior().as_dict())
    np.testing.assert_array_equal(again.degrees, prior().degrees)
    np.testing.assert_array_equal(again.covariance, COVARIANCE)
    assert again.matched(NAMES) is again
    with raises(UsageError, "not-supported", parameter="prior"):
        again.conditioned({"a": 0.0})


def test_weights_of_features_that_agree_are_correlated() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(50, 4, 3))
    features[..., 1] = 3 * features[..., 0] + rng.normal(size=(50, 4))
    features += 100 * rng.normal(size=(50, 1, 3))  # differences between lists do not count
    lists = from_lists([["w", "x", "y", "z"]] * 50, features, NAMES[:3])
    correlation = correlate_within(lists, NAMES[:2])
    centred = lists.features.reshape(50, 4, 3).astype(np.float64)
    centred -= centred.mean(axis=1, keepdims=True)
    expected = np.corrcoef(centred.reshape(-1, 3)[:, :2].T)[0, 1]
    assert correlation["a", "b"] == pytest.approx(expected, abs=1e-3)
    gaussian = Prior.isotropic(dict.fromkeys(NAMES[:3], 0.0), [1.0, 4.0, 9.0])
    built = with_shared_scale(gaussian, correlation)
    np.testing.assert_allclose(built.full_covariance[0, 1], expected, rtol=1e-3)
    np.testing.assert_array_equal(np.diag(built.covariance), [1.0, 4.0, 9.0])
    assert built.degrees.tolist() == [8.0, 8.0, 0.0]
