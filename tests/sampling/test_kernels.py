"""Kernels of NumPyro on our programs: moments, settings and their record, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpyro.infer import HMC
from support import targets
from support.moment_checks import assert_moments
from support.raising import raises

from bpa_ppl import UsageError
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.kernels import KERNELS, NumpyroKernel
from bpa_ppl.sampling.sampler import SAMPLERS

TARGET = targets.plane()
#: Settings with which a few thousand draws suffice; NUTS is among the samplers of the other tests.
SETTINGS: dict[str, dict[str, Any]] = {
    "numpyro:ESS": {"draws": 600, "warmup": 50},
    "numpyro:HMC": {"draws": 1500, "trajectory_length": 1.5},
}


@pytest.mark.parametrize("sampler", SETTINGS)
def test_moments_are_those_of_quadrature(sampler: str) -> None:
    posterior = TARGET.adapt(sampler, SETTINGS[sampler])
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
    again = SAMPLERS.restore(draws.record.sampler.name, draws.record.sampler.settings)
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
    ("sampler", "settings", "code", "parameter"),
    [
        ("numpyro:Nuts", {}, "unknown-name", "kernel"),
        ("nuts:HMC", {}, "invalid-setting", None),
        ("numpyro:BarkerMH", {"step_size": float("inf")}, "invalid-setting", "step_size"),
        ("numpyro:NUTS", {"inverse_mass_matrix": np.eye(2)}, "invalid-setting", None),
        ("numpyro:HMC", {"trajectory_length": None}, "invalid-setting", "sampler"),
        ("numpyro:BarkerMH", {"step_size": "a"}, "invalid-setting", "sampler"),
        ("numpyro:AIES", {"chains": 7}, "invalid-setting", "chains"),
        ("numpyro:ESS", {"chains": 2}, "invalid-setting", "chains"),
        ("numpyro:HMC", {"rank": 2}, "unknown-setting", "rank"),
        (3, {}, "wrong-type", None),
        (HMC, {}, "wrong-type", None),
        (NumpyroKernel, {}, "wrong-type", None),
    ],
)
def test_what_cannot_run_is_refused(
    sampler: Any, settings: dict[str, Any], code: str, parameter: str | None
) -> None:
    with raises(UsageError, code, parameter=parameter or next(iter(settings), None)):
        TARGET.adapt(sampler, settings)
