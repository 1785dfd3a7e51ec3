"""Runs of samplers in rounds: order, times by an injected clock, and samplers that fail."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bpa_ppl import NBest, UsageError, Weights
from bpa_ppl.adapting import build_problem
from bpa_ppl.components import Count, Registry
from bpa_ppl.experiments.comparison.page import render_comparison
from bpa_ppl.experiments.comparison.samplers import compare_samplers, run_samplers
from bpa_ppl.sampling.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.target import Sampled, Target

WEIGHTS = Weights({"LM0": 1.0, "TM0[0]": 0.5, "TM0[1]": 0.5})
FIXED, PER_DRAW, CHAINS = 0.75, 0.002, 2


class Clock:
    """A clock that only the samplers below move; it records who ran, and how long."""

    def __init__(self) -> None:
        self.now = 0.0
        self.runs: list[tuple[str, int, int]] = []

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


class Sleeper(Sampler, frozen=True):
    """Normal draws that take 0.75 seconds and 2 milliseconds for each draw."""

    draws: Count = 400

    def sample(self, target: Target) -> Sampled:
        CLOCK.runs.append((type(self).__name__, target.seed, self.draws))
        CLOCK.now += FIXED + PER_DRAW * CHAINS * self.draws
        key = jax.random.key(target.seed)
        draws = jax.random.normal(key, (CHAINS, self.draws, *target.start["weights"].shape))
        return Sampled({"weights": np.asarray(draws)})


class Other(Sleeper, frozen=True):
    """Another one."""


class Raising(Sleeper, frozen=True):
    """A kernel of another package that fails in its second run."""

    def sample(self, target: Target) -> Sampled:
        if CLOCK.runs and target.seed % 2:
            raise FloatingPointError("the kernel\ndiverged \x1b[2J")
        return super().sample(target)


class Missing(Sleeper, frozen=True):
    """A package that is not installed."""

    def sample(self, target: Target) -> Sampled:
        raise UsageError("install the extra compare", parameter="sampler")


@pytest.fixture(autouse=True)
def samplers(registries: list[Registry]) -> None:
    CLOCK.now = 0.0
    CLOCK.runs.clear()
    for one in (Sleeper, Other, Raising, Missing):
        SAMPLERS.register(one.__name__, one)


def timed(toy: NBest, *names: str, **options: Any) -> Any:
    problem = build_problem(toy, WEIGHTS, sampler="map")
    return run_samplers(problem, names, clock=CLOCK, **options)


def test_each_round_has_a_run_of_each_sampler_in_random_order(toy: NBest) -> None:
    runs = timed(toy, "Sleeper", "Other", runs=5, seed=3)
    rounds = [CLOCK.runs[k : k + 2] for k in range(0, 12, 2)]  # the first one is not kept
    for seed, one in zip([3, *range(3, 8)], rounds, strict=True):
        assert sorted(one) == [("Other", seed, 400), ("Sleeper", seed, 400)]
    assert len({one[0][0] for one in rounds}) == 2
    seconds = [run.record.sampler.seconds for run in runs["Sleeper"]]
    assert seconds == pytest.approx([FIXED + PER_DRAW * CHAINS * 400] * 5)
    before = list(CLOCK.runs)
    CLOCK.runs.clear()
    timed(toy, "Sleeper", "Other", runs=5, seed=3)
    assert CLOCK.runs == before


def test_a_sampler_that_fails_does_not_stop_the_others(toy: NBest) -> None:
    messages = []
    found = compare_samplers(
        toy,
        WEIGHTS,
        ["imh", "Missing", "Raising", "map"],
        runs=2,
        reference="imh",
        reference_draws=500,
        settings={"imh": {"draws": 500}},
        progress=lambda done, total, note: messages.append(note),
        prior="isotropic:variance=1.0",
    )
    verdicts = {result.sampler: result.verdict for result in found.samplers}
    assert list(verdicts) == ["imh", "Missing", "Raising", "map"]
    assert verdicts.pop("imh") != "failed"
    assert set(verdicts.values()) == {"failed"}
    assert found["Missing"].reason == "install the extra compare"
    assert found["Raising"].reason == "FloatingPointError: the kernel"
    assert "1 draws per chain" in found["map"].reason
    assert not found
    assert "imh, round 2 of 2" in messages
    assert "Raising, round 2 of 2" in messages
    assert "Missing, round 1 of 2" not in messages
    html = render_comparison(found)
    assert "failed: Missing, Raising, map" in html
    assert "install the extra compare" in html
