"""Runs of samplers in rounds: order, times by an injected clock, and samplers that fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from support.raising import raises
from support.registries import SAMPLERS, Registry

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, UsageError, Weights, compare_samplers, log_density
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison
from bpa_ppl.diagnostics.samplers.running import run_samplers
from bpa_ppl.extending import Sampled, Sampler, Target

WEIGHTS = Weights({"LM0": 1.0, "TM0[0]": 0.5, "TM0[1]": 0.5})
SECONDS, FIRST, SHAPE = 2.35, 7.0, (2, 400)
COMPILED = "/jax/core/compile/backend_compile_duration"
#: A clock that only the samplers below move, and who ran.
CLOCK = SimpleNamespace(now=0.0, runs=[])


class Sleeper(Sampler, frozen=True):
    """Normal draws that take 2.35 seconds, and at first compilation."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        if type(self).__name__ not in [name for name, _ in CLOCK.runs]:
            CLOCK.now += FIRST
            jax.monitoring.record_event_duration_secs(COMPILED, FIRST)
        CLOCK.runs.append((type(self).__name__, seed))
        CLOCK.now += SECONDS
        shape = (*SHAPE, *target.start["weights"].shape)
        draws = jax.random.normal(jax.random.key(seed), shape)
        return Sampled({"weights": np.asarray(draws)})


class Other(Sleeper, frozen=True):
    """Another one."""


class Slow(Sleeper, frozen=True):
    """One that takes four times as long."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        CLOCK.now += 3 * SECONDS
        return super().sample(target, seed, progress)


class Raising(Sleeper, frozen=True):
    """A kernel of another package that fails in its second run."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        if CLOCK.runs and seed % 2:
            raise FloatingPointError("the kernel\ndiverged \x1b[2J")
        return super().sample(target, seed, progress)


class Missing(Sleeper, frozen=True):
    """A package that is not installed."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        raise UsageError("install the extra compare", parameter="sampler")


@pytest.fixture(autouse=True)
def samplers(registries: list[Registry]) -> None:
    CLOCK.now = 0.0
    CLOCK.runs.clear()
    for one in (Sleeper, Other, Slow, Raising, Missing):
        SAMPLERS.register(one.__name__, one)


def timed(toy: NBest, *names: str, **options: Any) -> Any:
    problem = log_density(toy, WEIGHTS, sampler="map")
    engines = {name: SAMPLERS.resolve(name) for name in names}
    return run_samplers(problem, engines, clock=lambda: CLOCK.now, **options).timed


def test_each_round_has_a_run_of_each_sampler_in_random_order(toy: NBest) -> None:
    runs = timed(toy, "Sleeper", "Other", runs=5, seed=3)
    rounds = [CLOCK.runs[k : k + 2] for k in range(0, 12, 2)]  # the first one is not kept
    for seed, one in zip([3, *range(3, 8)], rounds, strict=True):
        assert sorted(one) == [("Other", seed), ("Sleeper", seed)]
    assert len({one[0][0] for one in rounds}) == 2
    seconds = [run.record.sampler.seconds for run in runs["Sleeper"]]
    assert seconds == pytest.approx([SECONDS] * 5)
    before = list(CLOCK.runs)
    CLOCK.runs.clear()
    timed(toy, "Sleeper", "Other", runs=5, seed=3)
    assert CLOCK.runs == before


class Interrupted(Sleeper, frozen=True):
    """One in whose second run Ctrl-C comes."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        if ("Interrupted", seed) in CLOCK.runs:
            raise SystemError from KeyboardInterrupt()
        return super().sample(target, seed, progress)


@pytest.mark.parametrize(
    ("names", "options", "counts", "stopped"),
    [
        (("Sleeper", "Slow"), {"deadline": 2 * FIRST}, {"Sleeper": 1, "Slow": 1}, "over after 2"),
        (("Sleeper", "Slow"), {"deadline": -1.0}, {"Sleeper": 0, "Slow": 0}, "over after 0 of 8"),
        (("Interrupted",), {}, {"Interrupted": 1}, "interrupted after 1 of 4"),
    ],
)
def test_runs_that_have_ended_are_kept(
    toy: NBest, names: tuple[str, ...], options: Any, counts: dict[str, int], stopped: str
) -> None:
    """The names and their order do not depend on how far the runs came."""
    SAMPLERS.register("Interrupted", Interrupted)
    problem = log_density(toy, WEIGHTS, sampler="map")
    engines = {name: SAMPLERS.resolve(name) for name in names}
    runs = run_samplers(problem, engines, runs=3, clock=lambda: CLOCK.now, **options)
    assert {name: len(of) for name, of in runs.timed.items()} == counts
    assert stopped in runs.stopped


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_posteriors_of_other_data_are_refused_before_the_runs(toy: NBest) -> None:
    program = log_density(toy, WEIGHTS)
    other = bpa.adapt(toy[:1], WEIGHTS, sampler="laplace")
    with raises(DataError, "mismatch", match="theirs"):
        compare_samplers(
            program,
            samplers=["Sleeper"],
            reference="imh",
            reference_draws=500,
            others={"theirs": [other]},
        )
    assert not CLOCK.runs


def test_a_comparison_within_a_time_has_a_row_for_each_sampler(toy: NBest) -> None:
    def clock() -> float:
        CLOCK.now += 1.0
        return CLOCK.now

    options: dict[str, Any] = {"reference": "imh", "reference_draws": 500, "clock": clock}
    options |= {"runs": 2}
    density = log_density(toy, WEIGHTS, prior="isotropic:variance=1.0")
    found = compare_samplers(density, samplers=["imh", "laplace"], max_seconds=2, **options)
    verdicts = [(one.sampler, one.verdict == "not run") for one in found.samplers]
    assert sorted(verdicts, key=lambda one: one[1]) != sorted(verdicts, key=lambda one: not one[1])
    assert [name for name, _ in verdicts] == ["imh", "laplace"]
    assert "the time was over after 1 of 6 runs" in str(found)
    assert not found
    with raises(UsageError, "no-data", parameter="max_seconds"):
        compare_samplers(density, samplers=["imh"], max_seconds=0.5, **options)
    with raises(UsageError, parameter="max_seconds"):
        compare_samplers(density, samplers=["imh"], max_seconds=0, **options)


def test_settings_of_a_sampler_that_is_not_run_are_refused(toy: NBest) -> None:
    with raises(UsageError, "conflict", parameter="settings"):
        compare_samplers(
            log_density(toy, WEIGHTS), samplers=["imh"], settings={"rwm": {"draws": 500}}
        )


def test_a_sampler_that_fails_does_not_stop_the_others(toy: NBest) -> None:
    messages = []
    found = compare_samplers(
        log_density(toy, WEIGHTS, prior="isotropic:variance=1.0"),
        samplers=["imh", "Missing", "Raising", "map"],
        runs=2,
        reference="imh",
        reference_draws=500,
        settings={"imh": {"draws": 500}},
        progress=lambda done, total, note: messages.append(note),
    )
    verdicts = {result.sampler: result.verdict for result in found.samplers}
    assert list(verdicts) == ["imh", "Missing", "Raising", "map"]
    assert verdicts.pop("imh") != "failed"
    assert set(verdicts.values()) == {"failed"}
    assert found["Missing"].reason == "install the extra compare"
    assert found["Raising"].reason == "FloatingPointError: the kernel"
    assert "1 draws per chain" in found["map"].reason
    assert not found
    started = [message.split(", about")[0] for message in messages]
    assert "imh, round 2 of 2" in started
    assert "Raising, round 2 of 2" in started
    assert "Missing, round 1 of 2" not in started
    html = render_comparison(found)
    assert "failed: Missing, Raising, map" in html
    assert "install the extra compare" in html
