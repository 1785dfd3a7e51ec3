"""Improper priors: against a closed form, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy.stats import chi2

import bpa_ppl as bpa
from bpa_ppl.densities.mode import modes_of
from bpa_ppl.densities.model_target import make_model_target, require_simulated
from bpa_ppl.densities.target import inspect_model

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
        "slopes, sigma: an improper prior (or a masked or scaled one, or one whose own draws are "
        "all the same), so that there is no group prior, and no check of draws can show that the "
        "posterior is proper",
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


def log_density(x: Any) -> Any:
    """Two modes of the same mass, around −4 and 5."""
    return jnp.logaddexp(dist.Normal(-4.0, 1.0).log_prob(x), dist.Normal(5.0, 1.0).log_prob(x))


class TwoModes(dist.Distribution):
    """It has no draws of its density: they are where chains should start."""

    support = constraints.real

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return jnp.zeros(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return log_density(value)


class NearZero(TwoModes):
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return 0.01 * jax.random.normal(key, sample_shape)


class WithoutDraws(TwoModes):
    sample = dist.Distribution.sample


def masked() -> None:
    numpyro.factor("mass", log_density(numpyro.sample("x", dist.Normal(0.0, 0.1).mask(False))))


def scaled() -> None:
    with numpyro.handlers.scale(scale=1e-6):
        x = numpyro.sample("x", dist.Normal(-4.0, 1.0))
    numpyro.factor("mass", log_density(x))


def of_own(distribution: dist.Distribution) -> Callable[[], None]:
    return partial(numpyro.sample, "x", distribution)


@pytest.mark.parametrize(
    ("program", "has_prior"),
    [
        pytest.param(of_own(TwoModes()), False, marks=pytest.mark.slow),
        (of_own(WithoutDraws()), False),
        (of_own(NearZero()), True),
        (masked, False),
        pytest.param(scaled, False, marks=pytest.mark.slow),
        pytest.param(numpyro.handlers.mask(masked, mask=True), False, marks=pytest.mark.slow),
    ],
    ids=["same draws", "without draws", "near zero", "masked", "scaled", "masked twice"],
)
def test_modes_are_found_that_draws_of_the_prior_do_not_lead_to(
    program: Callable[[], None], has_prior: bool
) -> None:
    target = make_model_target(program)
    with jax.enable_x64(True):
        found = sorted(float(mode.position[0]) for mode in modes_of(target))
    np.testing.assert_allclose(found, [-4, 5], atol=1e-3)
    assert (inspect_model(target).improper == ()) == has_prior
    if not has_prior:
        with pytest.raises(bpa.UsageError, match=r"site x .* has no draws|factor"):
            require_simulated(target)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["auto", "nuts", "rwm"])
def test_one_of_two_modes_does_not_pass(sampler: str) -> None:
    data = bpa.sample(masked, sampler=sampler, seed=1)
    assert 0 < (data["posterior"]["x"] > 0).mean() < 1
    report = bpa.check(data)
    assert not report
    assert "x: an improper prior (or a masked or scaled one" in str(report)


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
    cause, note = (line for line in str(report).splitlines() if line.startswith("- "))
    assert cause.startswith("- the posterior may be improper, as draws reach ")
    assert "an improper prior" in note
