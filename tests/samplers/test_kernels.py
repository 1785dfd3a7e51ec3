"""Samplers have one shape and refuse settings that make no sense; kernels, and the random walk."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import numpy as np
import pytest
from numpyro.infer import HMC
from support import reference_model, targets
from support.moment_checks import assert_moments
from support.raising import raises
from support.targets import plane

from bpa_ppl import Isotropic, UsageError, adapt, check, from_lists
from bpa_ppl.extending import Sampled, Sampler, Target
from bpa_ppl.samplers.kernels import KERNELS, NumpyroKernel
from bpa_ppl.samplers.rwm import random_walk
from bpa_ppl.samplers.sampler import SAMPLERS

TARGET = targets.plane()


@pytest.mark.slow
def test_chains_of_nuts_that_reject_every_step_are_drawn_with_a_tuned_one() -> None:
    """As those that start in the tail of a skewed posterior; here the known step is too long."""
    posterior = TARGET.adapt("nuts", {"step_size": 1000.0, "draws": 1000, "chains": 2})
    weights = posterior["posterior"]["weights"].values
    assert_moments(weights, TARGET.mean, TARGET.covariance, ess=300)


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


#: Settings that are not numbers: what is sampled from, not how.
LISTS = ("lists", "references", "visited", "options")


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_settings_and_sample(name: str) -> None:
    sampler = SAMPLERS.resolve(name)
    assert isinstance(sampler, Sampler)
    assert sampler == SAMPLERS[name]()
    assert hash(sampler) == hash(SAMPLERS[name]())
    assert SAMPLERS.name_of(sampler).partition(":")[0] == name
    assert SAMPLERS.resolve(SAMPLERS.name_of(sampler)) == sampler
    signature = inspect.signature(type(sampler).sample, eval_str=True)
    assert list(signature.parameters) == ["self", "target", "seed", "progress"]
    assert signature.parameters["target"].annotation is Target
    assert signature.return_annotation is Sampled
    for field in set(sampler.__struct_fields__).difference(LISTS):  # numbers are positive
        with raises(UsageError, "invalid-setting", parameter=field):
            SAMPLERS.resolve(name, {field: -1})


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"sampler": "gibbs"}, "unknown-name", "sampler"),
        ({"sampler": "map:draws=10"}, "unknown-setting", "draws"),
        ({"sampler": "nuts:chains=nan"}, "invalid-setting", "chains"),
        ({"sampler": "nuts:target_accept=5"}, "invalid-setting", "target_accept"),
        ({"sampler": "imh:draws=10.5"}, "invalid-setting", "draws"),
        ({"sampler": "map", "prior": "isotropic:variance=0.0"}, "bad-number", "variance"),
        ({"sampler": "map", "prior": Isotropic(variance=[0.1, 0.2])}, "wrong-length", "variance"),
        ({"sampler": "map", "likelihood": "hinge"}, "unknown-name", "likelihood"),
        ({"sampler": "map", "prior": "flat"}, "unknown-name", "prior"),
        ({"sampler": "map", "preset": "printed"}, "unknown-name", "preset"),
    ],
)
def test_invalid_settings_are_refused(arguments: dict[str, Any], code: str, parameter: str) -> None:
    pool = reference_model.pairs([[1.0]], ["LM0"])
    with raises(UsageError, code, parameter=parameter):
        adapt(pool, {"LM0": 0.5}, gain=reference_model.given(0), **arguments)


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("imh", {"draws": 2**63}),
        ("rwm", {"thinning": 2**63}),
        ("rwm", {"warmup": 2**63}),
        ("auto", {"chains": 2**63}),
        ("imh", {"draws": 10**8, "chains": 100}),
    ],
)
def test_more_steps_than_anybody_can_wait_for_are_refused(
    sampler: str, settings: dict[str, int]
) -> None:
    with raises(UsageError, parameter="draws"):
        SAMPLERS.resolve(sampler, settings)


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("laplace", {"draws": 1}),
        ("imh", {"draws": 1, "warmup": 0}),
        ("rwm", {"draws": 32, "scale": 1e300}),
        ("heuristic", {"draws": 128, "delta": 1e-300}),
    ],
)
def test_draws_of_no_worth_are_refused_without_a_fuss(
    sampler: str, settings: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert not check(TARGET.adapt(sampler, settings))
    assert "arviz" not in capfd.readouterr().err


WALKS = 5_000


@jax.jit
def move(target: Target, variance: float, metric: Any, keys: jax.Array, start: Any) -> Any:
    """Return the walks after one step."""
    state, step, collect = random_walk(target, variance, metric, keys, start)
    return collect(step(state))


def moved(target: Target, variance: float, metric: Any = None) -> tuple[Any, np.ndarray]:
    """Return the walks after one step from the initial position, and this position."""
    start = np.broadcast_to(np.asarray(target.initial_position), (WALKS, 2))
    keys = jax.random.split(jax.random.key(0), WALKS)
    return move(target, variance, metric, keys, {"weights": start}), start


@pytest.mark.parametrize("covariance", [None, [[1.0, 0.9], [0.9, 1.0]]])
def test_steps_have_the_variance_and_the_covariance(covariance: list[list[float]] | None) -> None:
    target = plane().density(prior="isotropic:variance=1e6")  # steps of 0.01 are all accepted
    found, start = moved(target, 1e-12, None if covariance is None else np.array(covariance))
    assert np.asarray(found["accept_prob"]).min() > 0.999
    steps = (np.asarray(found["z"]["weights"]) - start) * 1e6
    assert_moments(steps[None], np.zeros(2), np.eye(2) if covariance is None else covariance)


def test_a_proposal_without_a_density_is_rejected() -> None:
    found, start = moved(plane().density(), np.inf)
    assert not np.asarray(found["accept_prob"]).any()
    np.testing.assert_array_equal(found["z"]["weights"], start)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")  # the canonical weights are as good
@pytest.mark.parametrize(("features", "thinning"), [(2, 10), (14, 21)])
def test_so_many_steps_are_enough(features: int, thinning: int) -> None:
    """Ten steps a draw failed R-hat in a quarter of the runs with 14 weights."""
    rng, names = np.random.default_rng(1), [f"F{k}" for k in range(features)]
    values, texts = rng.normal(size=(20, 4, features)), [list("abcd")] * 20
    gain = values.sum(axis=2) + 0.1 * rng.normal(size=(20, 4))
    lists = from_lists(texts, values, names, extras={"gain": gain.tolist()})
    options = {"gain": "gain", "likelihood": "oracle", "sampler": "rwm"}
    canonical = dict.fromkeys(names, 0.1)
    posterior = adapt(lists, canonical, **options)
    assert (posterior["sample_stats"]["n_steps"].values == thinning).all()
    report = check(posterior)
    assert report, str(report)
    assert {one.name: one.value for one in report.rows}["bulk ESS"] > 1000
    if features == 2:
        few = adapt(lists, canonical, **{**options, "sampler": "rwm:thinning=3,draws=100"})
        assert (few["sample_stats"]["n_steps"].values == 3).all()
