"""Guides of NumPyro: importance-weighted moments, the ELBO, fits that fail."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import targets
from moment_checks import assert_weighted_moments
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoLaplaceApproximation
from raising import raises
from scipy.special import expit
from scipy.stats import multivariate_normal

from bpa_ppl import NotConverged, check, read_posterior, write_posterior
from bpa_ppl.posterior import as_draws
from bpa_ppl.sampling import SAMPLERS
from bpa_ppl.sampling.guides import GUIDES

#: Nearly Gaussian, so that the guides fit.
TARGET = targets.logistic(np.random.default_rng(5).normal(size=(targets.SENTENCES, 2)), 0.3, 4.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "svi:AutoDiagonalNormal": {},
    "svi:AutoLaplaceApproximation": {"particles": 1},
    "svi:AutoLowRankMultivariateNormal": {"rank": 1},
    "svi:AutoMultivariateNormal": {},
    "svi:AutoNormal": {},
}
FLOWS = ("svi:AutoBNAFNormal", "svi:AutoIAFNormal")
#: Each guide compiles another program.
QUICK = ("svi:AutoMultivariateNormal",)


@cache
def fitted(sampler: str) -> Any:
    return TARGET.adapt(sampler, steps=500, **SETTINGS.get(sampler, {}))


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in (*SETTINGS, *FLOWS)
    ],
)
def test_weighted_moments_are_those_of_quadrature(sampler: str) -> None:
    posterior = fitted(sampler)
    draws = as_draws(posterior)
    assert draws.kind == "weighted"
    assert draws.log_weight is not None
    assert_weighted_moments(draws.flat, draws.log_weight[0], TARGET.mean, TARGET.covariance)
    assert check(posterior), str(check(posterior))
    again = SAMPLERS.recorded(draws.attrs["sampler"], draws.attrs["settings"])
    assert again == SAMPLERS.resolve(sampler, {"steps": 500, **SETTINGS.get(sampler, {})})


def test_every_guide_is_tested() -> None:
    assert {f"svi:{name}" for name in GUIDES} == {*SETTINGS, *FLOWS}


def test_the_elbo_is_below_the_evidence_and_is_stored(tmp_path: Path) -> None:
    """The evidence by quadrature; the density has all constants of prior and likelihood."""
    posterior = fitted("svi:AutoMultivariateNormal")
    write_posterior(posterior, tmp_path / "p.nc")
    elbo = as_draws(read_posterior(tmp_path / "p.nc")).constants["elbo"]
    assert elbo.shape == (500,)
    mean = np.array(list(TARGET.canonical.values()))
    features = TARGET.pool.features.astype(np.float64).reshape(targets.SENTENCES, 2, 2)
    rows = features[:, 1] - features[:, 0]

    def log_joint(weights: Any) -> Any:
        prior = multivariate_normal(mean, TARGET.variance * np.eye(2)).logpdf(weights)
        return np.log(expit(-weights @ rows.T)).sum(axis=1) + prior

    axis = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    evidence = np.logaddexp.reduce(log_joint(grid)) + 2 * np.log(axis[1] - axis[0])
    end, error = elbo[-100:].mean(), elbo[-100:].std() / 10
    assert evidence - 0.1 < end < evidence + 5 * error
    assert elbo[:10].mean() < end - 1


@pytest.mark.slow
def test_a_guide_that_does_not_fit_fails_its_check() -> None:
    report = check(targets.skewed().adapt("svi:AutoMultivariateNormal", steps=500))
    assert [finding.name for finding in report.failures] == ["Pareto k̂"]


@pytest.mark.parametrize("rate", [pytest.param(1e5, marks=pytest.mark.slow), 1e300])
def test_a_fit_that_diverges_is_one_error(rate: float) -> None:
    with raises(NotConverged, "not-converged", parameter="sampler"):
        TARGET.adapt("svi", learning_rate=rate, steps=50)


def test_guides_of_python() -> None:
    def hessian(function: Any, point: Any) -> Any:
        return jax.hessian(function)(point)

    named = SAMPLERS.resolve(partial(AutoDiagonalNormal, init_scale=0.2), {"steps": 30})
    settings = {"init_scale": 0.2, "steps": 30}
    assert named == SAMPLERS.resolve("svi:AutoDiagonalNormal", settings)
    own = partial(AutoLaplaceApproximation, hessian_fn=hessian)
    attrs = as_draws(TARGET.adapt(own, steps=30)).attrs
    assert attrs["sampler"] == "svi:AutoLaplaceApproximation"
    assert "hessian_fn=…" in attrs["settings"]["factory"]
