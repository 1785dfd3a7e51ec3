"""Calibration: exact samplers pass, a wrong accept ratio fails, the bands have their level."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from scipy.stats import kstest
from support.raising import raises

from bpa_ppl import UsageError, calibrate
from bpa_ppl.diagnostics.samplers import calibration
from bpa_ppl.diagnostics.samplers.calibration import (
    RANKED,
    Calibration,
    Replication,
    SimulatedData,
    Simulation,
    make_program_simulation,
    run_calibration,
)
from bpa_ppl.diagnostics.samplers.uniformity import (
    compute_power,
    find_detected_shift,
    uniform_bands,
    uniformity_test,
)


def gaussian(i: int, shift: float = 0.0, width: float = 1.0) -> Replication:
    """A standard normal truth, one measurement of it, and the posterior, perhaps a wrong one."""
    rng = np.random.default_rng(i)
    truth = rng.normal()
    measured = truth + rng.normal()
    draws = measured / 2 + np.sqrt(0.5) * (shift + width * rng.normal(size=(2, 200, 1)))
    return Replication([truth], draws)


def test_the_bands_cover_uniform_values_at_their_level() -> None:
    points, lower, upper = uniform_bands(80, 0.9)
    values = np.sort(np.random.default_rng(1).uniform(size=(4000, 80)), axis=1)
    reached = (values[:, :, None] <= points).mean(axis=1)
    covered = ((reached >= lower - 1e-9) & (reached <= upper + 1e-9)).all(axis=1).mean()
    # Counts are integers, so the level can be reached only approximately.
    assert abs(covered - 0.9) < 0.02


def test_p_values_of_uniform_values_are_uniform() -> None:
    rng = np.random.default_rng(2)
    p_values = [uniformity_test(rng.uniform(size=100)) for _ in range(40)]
    assert kstest(p_values, "uniform").pvalue > 0.001


@pytest.fixture(scope="module")
def exact() -> Calibration:
    return run_calibration(gaussian, ["x"])


def test_an_exact_sampler_is_calibrated(exact: Calibration) -> None:
    assert exact
    assert "calibrated" in str(exact)
    assert kstest(exact.ranks[:, 0], "uniform").pvalue > 0.01
    assert (exact.as_dict()["passed"], len(exact.as_dict()["ranks"]["x"])) == (True, 200)


@pytest.mark.slow
def test_a_pass_says_what_would_have_been_found() -> None:
    """Of simulated runs with draws that are shifted so far."""
    rng = np.random.default_rng(3)
    shift = find_detected_shift(50, RANKED, 0.01)
    assert f"shifted by {shift:.2f} posterior sd" in str(
        Calibration("nuts", ("x",), rng.uniform(size=(50, 1)), np.array([1.0]), 400.0)
    )
    found = 0
    for _ in range(100):
        truth, draws = rng.normal(size=50), rng.normal(shift, 1.0, (RANKED, 50))
        ranks = ((draws < truth).sum(axis=0) + rng.uniform(size=50)) / (RANKED + 1)
        found += uniformity_test(ranks) < 0.01
    assert 88 <= found <= 99
    assert compute_power(50, RANKED, 0.01, 0.0) == pytest.approx(0.01, abs=1e-3)
    assert find_detected_shift(50, RANKED, 0.01 / 15) > shift


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"shift": 0.4}, "too large"),
        ({"shift": -0.4}, "too small"),
        ({"width": 0.6}, "too narrow"),
        ({"width": 1.6}, "too wide"),
    ],
)
def test_the_fault_is_named(fault: dict[str, Any], message: str) -> None:
    found = run_calibration(partial(gaussian, **fault), ["x"])
    assert not found
    assert message in str(found)


def test_weighted_draws_are_ranked_by_their_weights() -> None:
    def weighted(i: int) -> Replication:
        rng = np.random.default_rng(i)
        truth = rng.normal()
        centre = (truth + rng.normal()) / 2
        draws = centre + rng.normal(size=(1, 2000, 1))
        return Replication([truth], draws, -0.5 * (draws[..., 0] - centre) ** 2)

    assert run_calibration(weighted, ["x"])
    assert not run_calibration(lambda i: weighted(i)._replace(log_weight=None), ["x"])


def test_a_chain_that_never_moves_is_not_an_error() -> None:
    still = run_calibration(lambda i: Replication([0.0], np.zeros((1, 50, 1))), ["x"])
    assert still.ess == 0
    assert "effective draws" in str(still)
    assert kstest(still.ranks[:, 0], "uniform").pvalue > 0.001


def test_threads_change_nothing() -> None:
    steps: list[int] = []
    alone = run_calibration(
        gaussian, ["x"], replications=40, progress=lambda n, *_: steps.append(n)
    )
    together = run_calibration(gaussian, ["x"], replications=40, jobs=3)
    np.testing.assert_array_equal(alone.ranks, together.ranks)
    assert steps == list(range(1, 41))
    with raises(UsageError, parameter="replications"):
        run_calibration(gaussian, ["x"], replications=5)


class OtherProcesses(ThreadingBackend):
    """A backend whose calls do not share memory, as that of Dask; it counts them."""

    supports_sharedmem = False
    calls = 0

    def submit(self, func: Any, callback: Any = None) -> Any:
        self.calls += 1
        return super().submit(func, callback)


def test_each_worker_without_shared_memory_receives_the_program_once() -> None:
    backend = OtherProcesses()
    with parallel_config(backend, n_jobs=3):
        elsewhere = run_calibration(gaussian, ["x"], replications=40)
    here = run_calibration(gaussian, ["x"], replications=40)
    np.testing.assert_array_equal(elsewhere.ranks, here.ranks)
    assert backend.calls == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_replication_begins_after_max_seconds(
    jobs: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = 0.0

    def replicate(i: int) -> Replication:
        nonlocal seconds
        seconds += 1
        return gaussian(i)

    monkeypatch.setattr(calibration, "time", lambda: seconds)
    caplog.set_level(logging.INFO)
    options: dict[str, Any] = {"sampler": "mine", "replications": 80, "jobs": jobs}
    complete = run_calibration(replicate, ["x"], **options)
    stopped = run_calibration(replicate, ["x"], max_seconds=30, **options)
    np.testing.assert_array_equal(stopped.ranks, complete.ranks[: len(stopped.ranks)])
    assert 30 < len(stopped.ranks) <= 30 + jobs
    assert "calibrate mine: 20 of 80 replications, about 60 s left" in caplog.messages or jobs > 1
    with raises(UsageError, "no-data", parameter="max_seconds"):
        run_calibration(replicate, ["x"], max_seconds=10, **options)


def normal(y: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def test_a_simulation_of_ones_own_is_calibrated() -> None:
    """One is that of a program, and one says that all true means are smaller than they are."""
    right = make_program_simulation(normal, (np.zeros(5),))

    def simulate(key: jax.Array) -> SimulatedData:
        truth, data, likelihood = right.simulate(key)
        return SimulatedData(truth - 1, data, likelihood)

    wrong = Simulation(right.labels, simulate, right.given)
    options: dict[str, Any] = {"samplers": ["laplace:draws=200"], "replications": 40}
    passed, failed = (calibrate(one, **options)[0] for one in (right, wrong))
    assert passed.names == failed.names == ("mean", "log likelihood")
    assert passed
    assert failed.p_values[0] < 0.01 <= failed.p_values[1]


def test_a_simulation_has_no_arguments_and_a_density_is_none() -> None:
    simulation = make_program_simulation(normal, (np.zeros(5),))
    for arguments in ({"args": (np.zeros(5),)}, {"kwargs": {"y": np.zeros(5)}}):
        with raises(UsageError, "conflict", parameter="args"):
            calibrate(simulation, samplers=["imh"], **arguments)
    density = simulation.given({"y": np.zeros(5)})
    with raises(UsageError, "wrong-type", parameter="model"):
        calibrate(density, samplers=["imh"])


@pytest.mark.slow
def test_an_autoregression_is_calibrated_as_a_regression_on_observed_values() -> None:
    def model(y: Any) -> None:
        level, slope = (numpyro.sample(name, dist.Normal(0.0, 1.0)) for name in ("level", "slope"))
        numpyro.sample("y", dist.Normal(level + slope * y[:-1], 1.0), obs=y[1:])

    series = np.random.default_rng(0).normal(size=40).cumsum() / 3
    (result,) = calibrate(model, (series,), samplers=["imh"], replications=200)
    assert result.passed, result.p_values


@pytest.mark.parametrize(("p", "passed"), [(0.0101, True), (0.0099, False)])
def test_ranks_fail_at_a_level_of_one_percent(p: float, passed: bool) -> None:
    ranks = np.linspace(0.005, 0.995, 100)[:, None]
    assert Calibration("imh", ("x",), ranks, np.array([p]), 400.0).passed == passed
