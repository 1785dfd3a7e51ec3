"""Runs of samplers in rounds: order, times by an injected clock, and samplers that fail."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bpa_ppl import Draws, NBest, UsageError, Weights
from bpa_ppl.component import Count
from bpa_ppl.experiments.comparison.efficiency import efficiency, with_fixed_cost
from bpa_ppl.experiments.comparison.page import comparison_page
from bpa_ppl.experiments.estimates import runs_together
from bpa_ppl.experiments.samplers import SamplerRuns, compare_samplers, run_samplers
from bpa_ppl.posterior import as_draws
from bpa_ppl.registry import SAMPLERS, Registry
from bpa_ppl.sampling import Sampled, Sampler, Target

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


class LongOnly(Sleeper, frozen=True):
    """It cannot take few draws, so that its fixed cost stays unknown."""

    def sample(self, target: Target) -> Sampled:
        if self.draws < 400:
            raise ValueError("too few")
        return super().sample(target)


@pytest.fixture(autouse=True)
def samplers(registries: list[Registry]) -> None:
    CLOCK.now = 0.0
    CLOCK.runs.clear()
    for one in (Sleeper, Other, Raising, Missing, LongOnly):
        SAMPLERS.register(one.__name__, one)


def timed(toy: NBest, *names: str, **options: Any) -> dict[str, SamplerRuns]:
    return run_samplers(toy, WEIGHTS, names, clock=CLOCK, **options)


def test_each_round_has_a_run_of_each_sampler_in_random_order(toy: NBest) -> None:
    timed(toy, "Sleeper", "Other", "LongOnly", runs=5, seed=3)
    first, rest = CLOCK.runs[:5], CLOCK.runs[5:]
    assert sorted(first) == sorted(
        [(n, 3, d) for n in ("Sleeper", "Other") for d in (400, 100)] + [("LongOnly", 3, 400)]
    )
    sizes, orders = [5, 5, 3, 3, 3], []
    for turn, size in enumerate(sizes):
        this, rest = rest[:size], rest[size:]
        assert {seed for _, seed, _ in this} == {3 + turn}
        orders.append(tuple(name for name, _, draws in this if draws == 400))
        assert sorted(orders[-1]) == ["LongOnly", "Other", "Sleeper"]
        assert sum(draws == 100 for _, _, draws in this) == size - 3
    assert rest == []
    assert len(set(orders)) > 1
    before = list(CLOCK.runs)
    CLOCK.runs.clear()
    timed(toy, "Sleeper", "Other", "LongOnly", runs=5, seed=3)
    assert CLOCK.runs == before


def test_fixed_cost_and_cost_per_draw_are_found(toy: NBest) -> None:
    runs = timed(toy, "Sleeper", "LongOnly", runs=2)
    seconds = FIXED + PER_DRAW * CHAINS * 400
    assert [r.attrs["sampling_time"] for r in runs["Sleeper"].full] == pytest.approx([seconds] * 2)
    assert [r.shape for r in runs["Sleeper"].short] == [(CHAINS, 100)] * 2
    cost = efficiency(runs["Sleeper"].full, runs_together(runs["Sleeper"].full))
    cost = with_fixed_cost(cost, [*runs["Sleeper"].full, *runs["Sleeper"].short])
    assert cost.fixed_seconds == pytest.approx(FIXED)
    assert cost.seconds_per_draw == pytest.approx(PER_DRAW)
    assert cost.ess is not None
    assert cost.seconds_to_enough == pytest.approx(FIXED + PER_DRAW * 400 * 800 / cost.ess)
    assert [run.seed for run in cost.per_run] == [0, 1]
    assert runs["LongOnly"].error is None
    assert (len(runs["LongOnly"].full), runs["LongOnly"].short) == (2, [])


def test_a_sampler_that_fails_does_not_stop_the_others(toy: NBest) -> None:
    messages = []
    found = compare_samplers(
        toy,
        WEIGHTS,
        ["imh", "Missing", "Raising", "map"],
        runs=2,
        reference="imh",
        reference_draws=2000,
        settings={"imh": {"draws": 500}},
        progress=lambda done, total, note: messages.append(note),
        prior_variance=1.0,
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
    html = comparison_page(found)
    assert "failed: Missing, Raising, map" in html
    assert "install the extra compare" in html
    assert found["imh"].efficiency.seconds_to_enough is not None


def test_runs_made_elsewhere_have_a_rate(toy: NBest) -> None:
    """With the same data as those made here, and `sampling_time` where PyMC writes it."""
    runs = timed(toy, "Sleeper", runs=2)["Sleeper"].full
    theirs = [Draws({"weights": r.weights}, r.features, attrs={"sampling_time": 4}) for r in runs]
    found = compare_samplers(
        toy, WEIGHTS, ["imh"], runs=1, reference="imh", others={"theirs": theirs}
    )
    cost = found["theirs"].efficiency
    assert cost.ess is not None
    assert cost.ess_per_second == pytest.approx(cost.ess / 4, rel=0.1)
    assert cost.ess_per_second_interval is not None
    assert found["imh"].efficiency.ess_per_second_interval is None
    assert as_draws(theirs[0]).attrs["sampling_time"] == 4
