"""Improper priors: against a closed form, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy.stats import chi2

import bpa_ppl as bpa

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X @ [1.0, -0.5] + 0.7 * RNG.normal(size=30)


def regression(x: np.ndarray, y: np.ndarray) -> None:
    slopes = numpyro.sample("slopes", dist.ImproperUniform(constraints.real, (), (2,)))
    with numpyro.plate("noise", 1):
        sigma = numpyro.sample("sigma", dist.ImproperUniform(constraints.positive, (), ()))
    numpyro.sample("y", dist.Normal(x @ slopes, sigma), obs=y)


def test_a_regression_with_flat_priors_has_its_closed_form(tmp_path: Path) -> None:
    """The slopes have a Student t around least squares, and residuals² / sigma² a chi-squared."""
    data = bpa.sample(regression, (X, Y), sampler="imh", seed=1)
    report = bpa.check(data)
    assert report, str(report)
    assert report.left_out == (
        "slopes, sigma: an improper prior, so that there are no draws of the prior, and no check "
        "of draws can show that the posterior is proper",
    )
    bpa.write_posterior(data, tmp_path / "posterior.nc")
    assert bpa.check(bpa.read_posterior(tmp_path / "posterior.nc")).left_out == report.left_out
    assert "prior" not in data
    assert data["posterior"]["sigma"].dims == ("chain", "draw", "noise")
    (mean, squares, _, _), degrees = np.linalg.lstsq(X, Y, rcond=None), len(Y) - 3
    covariance = np.linalg.inv(X.T @ X) * squares / (degrees - 2)
    drawn = data["posterior"]["slopes"].values.reshape(-1, 2)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.08 * deviation.min())
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1 * covariance.max())
    ratio = squares / data["posterior"]["sigma"].values ** 2
    for share in (0.1, 0.5, 0.9):
        below = (ratio < chi2(degrees).ppf(share)).mean()
        assert below == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 1000))
    np.testing.assert_array_equal(data["log_prior"]["slopes"], 0)


def only_the_sum() -> None:
    one = numpyro.sample("one", dist.ImproperUniform(constraints.real, (), ()))
    other = numpyro.sample("other", dist.ImproperUniform(constraints.real, (), ()))
    numpyro.sample("y", dist.Normal(one + other, 1.0), obs=0.5)


@pytest.mark.slow
def test_an_improper_posterior_does_not_pass() -> None:
    report = bpa.check(bpa.sample(only_the_sum, seed=1))
    assert not report
    assert "R-hat" in {finding.name for finding in report.failures}
    assert "one, other: an improper prior" in str(report)
