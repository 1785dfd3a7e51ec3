"""What `sample` returns, compared with ArviZ's own conversion of NumPyro's draws."""

from __future__ import annotations

import re
from typing import Any

import arviz as az
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro.infer import MCMC, NUTS
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, UsageError

ROWS = pd.DataFrame(
    {
        "school": ["Choate", "Deerfield", "Phillips"],
        "effect": [1.8, 0.3, -0.4],
        "error": [3, 4, 3],
    }
)
COORDS = {"school": ROWS["school"], "row": [10, 20, 30]}
DIMS = {"theta": ["school"], "z": ["school"]}


def schools(error: Any, effect: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    theta = numpyro.deterministic("theta", mu + z)
    numpyro.factor("near", -0.5 * theta.mean() ** 2)
    with numpyro.plate("row", 3):
        numpyro.sample("effect", dist.Normal(theta, error), obs=effect)


@pytest.fixture(scope="module")
def data() -> Any:
    arguments = (ROWS["error"], ROWS["effect"])
    options: dict[str, Any] = {"coords": COORDS, "dims": DIMS, "predict": True}
    return bpa.sample(schools, arguments, sampler="auto", seed=1, **options)


@pytest.mark.slow
def test_dimensions_and_labels_are_those_of_arviz(data: Any) -> None:
    options: dict[str, Any] = {"num_warmup": 1, "num_samples": 5, "progress_bar": False}
    mcmc = MCMC(NUTS(schools), **options)
    mcmc.run(jax.random.key(0), ROWS["error"].to_numpy(), ROWS["effect"].to_numpy())
    of_plate = {"effect": ["row"]}  # which ArviZ does not know
    expected = az.from_numpyro(mcmc, coords=COORDS, dims={**DIMS, **of_plate})
    for group in ("posterior", "log_likelihood", "observed_data"):
        for name in {*expected[group].data_vars} - {"near"}:
            ours, theirs = data[group][name], expected[group][name]
            assert ours.dims == theirs.dims
            for dim in {*ours.dims} - {"chain", "draw"}:
                np.testing.assert_array_equal(ours[dim], theirs[dim])


def test_labels_are_in_the_report_and_in_files(data: Any, tmp_path: Any) -> None:
    bpa.write_posterior(data, tmp_path / "posterior.nc")
    for one in (data, str(tmp_path / "posterior.nc")):
        table = str(bpa.check(one, var_names=["z[Deerfield]"]))
        assert "z[Deerfield]" in table
        assert not re.search(r"\[\d", str(bpa.check(one)))  # as `auto` checked it


def test_the_prior_has_the_variables_of_the_posterior(data: Any) -> None:
    prior = data["prior"]
    assert {*prior.data_vars} == {*data["posterior"].data_vars}
    np.testing.assert_allclose(prior["theta"], prior["mu"] + prior["z"])


def test_the_log_likelihood_is_that_of_observed_sites(data: Any) -> None:
    """With the priors, and the factor, it is the joint density; ArviZ needs no name for LOO."""
    assert list(data["log_likelihood"].data_vars) == ["effect"]
    assert az.loo(data) is not None
    assert {*data["log_prior"].data_vars} == {"mu", "z", "near"}
    assert "near" not in data["observed_data"]
    parts = [data["log_likelihood"]["effect"].sum("row"), *data["log_prior"].data_vars.values()]
    np.testing.assert_allclose(sum(parts), data["sample_stats"]["lp"], atol=1e-4)


def test_predictions_have_the_moments_of_the_closed_form(data: Any) -> None:
    """Of normal data with independent errors: those of theta, and the variances of the errors."""
    predicted, theta = data["posterior_predictive"]["effect"], data["posterior"]["theta"]
    assert predicted.dims == ("chain", "draw", "row")
    variance = theta.var(("chain", "draw")).values + ROWS["error"].to_numpy() ** 2
    tolerance = 5 * np.sqrt(variance / theta[..., 0].size)
    difference = predicted.mean(("chain", "draw")).values - theta.mean(("chain", "draw")).values
    assert (abs(difference) < tolerance).all()
    np.testing.assert_allclose(predicted.var(("chain", "draw")), variance, rtol=0.12)
    with raises(UsageError, "no-data", parameter="predict", match="nothing_observed"):
        bpa.sample(nothing_observed, predict=True)


def nothing_observed() -> None:
    numpyro.sample("x", dist.Normal(0.0, 1.0))


@pytest.mark.parametrize(
    ("options", "parameter", "code", "names"),
    [
        ({"coords": {"scool": ["a"]}, "dims": DIMS}, "coords", "unknown-name", "scool.* school"),
        ({"coords": {"school": ["a"]}, "dims": DIMS}, "coords", "mismatch", "school.* 1 .* 3 "),
        ({"coords": {"row": [["a"]]}}, "coords", "wrong-type", "row"),
        ({"coords": 3}, "coords", "wrong-type", "3"),
        ({"dims": {"theta": "school"}}, "dims", "wrong-type", "theta.*'school'"),
        ({"dims": {"tehta": ["school"]}}, "dims", "unknown-name", "tehta.*theta"),
        ({"dims": {"theta": ["school", "row"]}}, "dims", "mismatch", r"theta.*\(3,\)"),
        ({"dims": {"mu": ["a"]}}, "dims", "mismatch", r"mu.*\(\)"),
        ({"dims": {"theta": ["mu"]}}, "dims", "bad-name", "mu"),
        ({"coords": {"row": ["a", "a", "b"]}}, "coords", "duplicate", "a of row"),
    ],
)
def test_wrong_names_and_lengths_are_refused_before_sampling(
    options: dict[str, Any], parameter: str, code: str, names: str
) -> None:
    error = DataError if code == "duplicate" else UsageError
    with raises(error, code, parameter=parameter, match=names):
        bpa.sample(schools, (ROWS["error"], ROWS["effect"]), **options)


@pytest.mark.parametrize(
    ("argument", "names"),
    [
        (ROWS["school"], "column school .* argument error .* str"),
        (pd.Series(pd.to_datetime(["2024-01-01"] * 3)), "column .* argument error .* datetime"),
        (ROWS[["error", "school"]], "column school .* argument error"),
    ],
)
def test_columns_without_numbers_are_named(argument: Any, names: str) -> None:
    with raises(UsageError, "bad-number", parameter="args", match=names):
        bpa.sample(schools, (argument, ROWS["effect"]))


def test_a_data_frame_is_a_matrix() -> None:
    def regression(x: Any, y: Any) -> None:
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)

    table = ROWS[["error", "effect"]]
    found = bpa.sample(regression, (), {"x": table, "y": table["effect"]}, sampler="map")
    x, y = table.to_numpy(), table["effect"].to_numpy()
    expected = np.linalg.solve(x.T @ x + np.eye(2), x.T @ y)
    np.testing.assert_allclose(found["posterior"]["slopes"][0, 0], expected, rtol=1e-6)
