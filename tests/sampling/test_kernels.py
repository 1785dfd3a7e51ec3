"""Kernels of NumPyro on our programs: moments, settings and their record, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import targets
from moment_checks import assert_moments
from numpyro.infer import AIES, ESS, HMC, NUTS, BarkerMH, HMCGibbs, init_to_median
from raising import raises

from bpa_ppl import UsageError
from bpa_ppl.models import log_linear
from bpa_ppl.posterior import as_draws
from bpa_ppl.sampling import SAMPLERS
from bpa_ppl.sampling.kernels import KERNELS, NumpyroKernel
from bpa_ppl.sampling.options import AdaptOptions

TARGET = targets.plane()
#: Settings with which a few thousand draws suffice; NUTS is among the samplers of the other tests.
SETTINGS: dict[str, dict[str, Any]] = {
    "numpyro:ESS": {"draws": 600, "warmup": 50},
    "numpyro:HMC": {"draws": 1500, "trajectory_length": 1.5},
}


@pytest.mark.parametrize("sampler", SETTINGS)
def test_moments_are_those_of_quadrature(sampler: str) -> None:
    posterior = TARGET.adapt(sampler, **SETTINGS[sampler])
    weights = posterior["posterior"]["weights"].values
    assert_moments(weights, TARGET.mean, TARGET.covariance, ess=300)
    draws = as_draws(posterior)
    centre = np.array(list(TARGET.canonical.values()))
    log_prior = -0.5 * ((weights - centre) ** 2).sum(axis=-1) / TARGET.variance
    constant = draws.log_density - draws.pointwise.sum(axis=-1) - log_prior
    np.testing.assert_allclose(constant, constant.mean(), atol=1e-4)
    steps = draws.statistics.get("n_steps")
    assert (steps is not None) == (sampler == "numpyro:HMC")  # else they are unknown
    # The same seed and settings give the same draws, from the record too.
    again = SAMPLERS.recorded(draws.attrs["sampler"], draws.attrs["settings"])
    assert again == SAMPLERS.resolve(sampler, SETTINGS[sampler])
    assert hash(again) == hash(SAMPLERS.resolve(sampler, SETTINGS[sampler]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_parameters_of_a_kernel_are_settings(kernel: str) -> None:
    sampler = SAMPLERS.resolve(f"numpyro:{kernel}")
    assert SAMPLERS.name_of(sampler) == f"numpyro:{kernel}"
    assert {"model", "potential_fn", "init_strategy"}.isdisjoint(sampler.settings())
    with raises(UsageError, "unknown-setting", parameter="no_such"):
        SAMPLERS.resolve(f"numpyro:{kernel}", {"no_such": 1})


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        (HMC, {}),
        (partial(HMC, num_steps=5), {"num_steps": 5}),
        (partial(partial(HMC, num_steps=5), num_steps=6, dense_mass=True), None),
    ],
)
def test_a_class_with_settings_is_the_kernel_of_that_name(
    made: Any, settings: dict[str, Any] | None
) -> None:
    settings = {"num_steps": 6, "dense_mass": True} if settings is None else settings
    options = AdaptOptions(sampler=made, settings={"draws": 50})
    expected = SAMPLERS.resolve("numpyro:HMC", {**settings, "draws": 50})
    assert options.resolved_sampler() == expected


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        (HMC(log_linear, trajectory_length=None, num_steps=3), "numpyro:HMC"),
        (partial(AIES, moves={AIES.StretchMove(): 1.0}), "numpyro:AIES"),
    ],
)
def test_kernels_made_in_python_run_and_are_described(sampler: Any, name: str) -> None:
    draws = as_draws(TARGET.adapt(sampler, draws=20, warmup=20, thinning=4))
    assert draws.attrs["sampler"] == name
    assert np.isfinite(draws.weights).all()
    assert name != "numpyro:HMC" or (draws.statistics["n_steps"] == 12).all()
    assert np.ptp(draws.weights[:, :, 0], axis=1).min() > 0
    assert " at 0x" not in str(draws.attrs["settings"])  # the same in each process
    with raises(UsageError, "invalid-setting", parameter="factory"):
        SAMPLERS.recorded(name, draws.attrs["settings"])


def _function(made: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda model: made(model)


def other_model(lists: Any, prior: Any, likelihood: Any) -> None:
    log_linear(lists, prior, likelihood)


@pytest.mark.parametrize(
    ("sampler", "settings", "code", "parameter"),
    [
        ("numpyro:Nuts", {}, "unknown-name", "kernel"),
        ("nuts:HMC", {}, "unknown-name", "sampler"),
        (HMCGibbs, {}, "unknown-name", "kernel"),
        ("numpyro:BarkerMH", {"step_size": float("inf")}, "invalid-setting", "step_size"),
        ("numpyro:NUTS", {"inverse_mass_matrix": np.eye(2)}, "invalid-setting", None),
        ("numpyro:HMC", {"trajectory_length": None}, "invalid-setting", "sampler"),
        ("numpyro:BarkerMH", {"step_size": "a"}, "invalid-setting", "sampler"),
        ("numpyro:AIES", {"chains": 7}, "invalid-setting", "chains"),
        ("numpyro:ESS", {"chains": 2}, "invalid-setting", "chains"),
        (partial(ESS, randomize_split=True), {}, "conflict", "sampler"),
        (partial(NUTS, init_strategy=init_to_median), {}, "conflict", "sampler"),
        (_function(ESS), {}, "not-supported", "sampler"),
        (BarkerMH(log_linear), {}, "not-supported", "sampler"),
        (NUTS(other_model), {}, "not-supported", "sampler"),
        (_function(str), {}, "wrong-type", "sampler"),
        ("numpyro:HMC", {"rank": 2}, "unknown-setting", "rank"),
        (3, {}, "wrong-type", None),
        (NumpyroKernel, {}, "wrong-type", None),
    ],
)
def test_what_cannot_run_is_refused(
    sampler: Any, settings: dict[str, Any], code: str, parameter: str | None
) -> None:
    with raises(UsageError, code, parameter=parameter or next(iter(settings), None)):
        TARGET.adapt(sampler, **settings)
