"""Diagnostics and the advice of samplers as components: each by itself, and those of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import run_command
from support.posteriors import (
    Figures,
    Finding,
    FromPrior,
    Record,
    SamplerRecord,
    autoregressive,
    name_weights,
    with_parts,
    with_record,
)
from support.raising import raises
from support.registries import Registry

import bpa_ppl as bpa
from bpa_ppl import Draws, NotConverged, UsageError, check
from bpa_ppl.diagnostics.check.advice import ADVICE
from bpa_ppl.diagnostics.check.diagnostic import DIAGNOSTICS
from bpa_ppl.diagnostics.check.report import check_and_record, read_report
from bpa_ppl.extending import Advice, Diagnostic, Run

NAMES = ("LM0", "TM0")
CHAINS, DRAWS = 4, 1000
GOOD = autoregressive(0.2, CHAINS, DRAWS, len(NAMES), seed=3)
ENERGY = np.random.default_rng(5).normal(size=(CHAINS, DRAWS))
WEIGHTS = np.random.default_rng(6).normal(0.0, 0.3, size=(CHAINS, DRAWS))


def chains(change: Any = None, **parts: Any) -> Draws:
    """Good chains; `change` alters a copy of the draws of the weights."""
    values = GOOD.copy()
    if change is not None:
        change(values)
    return name_weights(values, NAMES, **parts)


def point(decrement: float) -> Draws:
    record = Record(figures=Figures(newton_decrement=decrement))
    return name_weights(np.zeros((1, 1, 2)), NAMES, kind="point", record=record)


def compared_with_prior(p_value: float) -> Draws:
    compared = FromPrior(effective=900.0, p_value=p_value, where="TM0", mean=4.0, deviation=4.0)
    return chains(record=Record(from_prior=compared))


def weighted(log_weight: np.ndarray) -> Draws:
    return chains(kind="weighted", log_weight=log_weight)


def shifted(chain: slice, draws: slice, by: Any) -> Draws:
    def change(values: np.ndarray) -> None:
        values[chain, draws, 1] += by

    return chains(change)


def repeat(values: np.ndarray) -> None:
    values[1, 300:500] = values[1, 300]


def make_constant(values: np.ndarray) -> None:
    values[..., 1] = 3.0


def copy(values: np.ndarray) -> None:
    values[3] = values[1]


def widen(values: np.ndarray) -> None:
    values[..., 1] = np.random.default_rng(3).standard_cauchy(size=(CHAINS, DRAWS))


FEW = name_weights(GOOD[:, :40], NAMES)
APART = shifted(slice(2, 3), slice(None), 2.0)
WALK = {"acceptance_rate": np.full((CHAINS, DRAWS), 0.05)}
DIVERGED = {"diverging": np.ones((CHAINS, DRAWS), bool)}
#: name of a diagnostic -> draws that fail it, and draws that do not.
CASES: dict[str, tuple[Draws, Draws]] = {
    "draws-per-chain": (name_weights(GOOD[:, :3], NAMES), chains()),
    "not-finite": (shifted(slice(1, 2), slice(7, 8), np.nan), chains()),
    "constant": (chains(make_constant), chains()),
    "independent-chains": (chains(copy), chains()),
    "log-density": (chains(log_density=np.full((CHAINS, DRAWS), np.inf)), chains()),
    "divergences": (
        chains(statistics=DIVERGED),
        chains(statistics={"diverging": np.zeros((CHAINS, DRAWS), bool)}),
    ),
    "bfmi": (
        chains(statistics={"energy": np.cumsum(ENERGY, axis=1)}),
        chains(statistics={"energy": ENERGY}),
    ),
    "acceptance": (
        chains(statistics=WALK),
        chains(statistics={"acceptance_rate": np.full((CHAINS, DRAWS), 0.3)}),
    ),
    "burn-in": (shifted(slice(None), slice(0, 100), 1.0), chains()),
    "r-hat": (APART, chains()),
    "bulk-ess": (FEW, chains()),
    "tail-ess": (FEW, chains()),
    "mcse": (name_weights(GOOD[:, :10], NAMES), chains()),
    "chain-means": (APART, chains()),
    "tails": (chains(widen), chains()),
    "equal-draws": (chains(repeat), chains()),
    "prior-draws": (compared_with_prior(1e-4), compared_with_prior(0.5)),
    "importance-ess": (weighted(30 * WEIGHTS), weighted(WEIGHTS)),
    "pareto-k": (weighted(30 * WEIGHTS), weighted(WEIGHTS)),
    "newton-decrement": (point(0.1), point(1e-9)),
}


def measured(name: str, draws: Draws, **settings: Any) -> Finding | None:
    diagnostic = DIAGNOSTICS.resolve(name, settings)
    run = Run(draws.draws, [kind() for _, kind in DIAGNOSTICS.load()])
    return diagnostic.measure(run) if diagnostic.applies(run) else None


def test_each_diagnostic_fails_by_itself() -> None:
    """So no diagnostic depends on another one having been measured before."""
    assert {*CASES, "tree-depth"} == set(DIAGNOSTICS)
    for name, (poor, good) in CASES.items():
        failed, passed = measured(name, poor), measured(name, good)
        assert failed is not None, name
        assert not failed.passed, name
        assert failed.advice, name
        assert failed.name == DIAGNOSTICS[name].title, name
        assert failed in check(poor).failures, name
        assert passed is None or passed.passed, name


@pytest.mark.parametrize("limits", [{"r-hat": 1.5}, {"bulk-ess": 50}, {"tail-ess": 50}])
def test_a_limit_replaces_one_default(limits: dict[str, float]) -> None:
    titles = {DIAGNOSTICS[name].title for name in limits}
    default = {finding.name for finding in check(FEW).failures}
    assert titles <= default
    assert {finding.name for finding in check(FEW, limits).failures} == default - titles


@pytest.mark.parametrize(
    ("limits", "code", "mention"),
    [
        ({"ess": 100}, "unknown-name", "bulk-ess"),
        ({"divergences": 3}, "unknown-setting", "setting 'limit' of the diagnostic divergences"),
        ({"r-hat": 0.9}, "invalid-setting", "limit must be a number > 1"),
    ],
)
def test_limits_that_make_no_sense_raise(
    limits: Mapping[str, Any], code: str, mention: str
) -> None:
    parameter = "limits" if code == "unknown-name" else "limit"
    with raises(UsageError, code, parameter=parameter, match=mention):
        check(FEW, limits)


class LongestSteps(Diagnostic, frozen=True):
    """The largest number of steps of a draw."""

    title = "steps"
    limit: float = 10.0

    def applies(self, run: Run) -> bool:
        """Return whether steps are recorded."""
        return "n_steps" in run.draws.statistics

    def measure(self, run: Run) -> Finding:
        """Return the largest number of steps of each chain."""
        steps = np.asarray(run.draws.statistics["n_steps"], np.float64).max(axis=1)
        advice = "{where} takes {value:.0f} steps: raise the step size"
        return self.find_worst(steps, run.chain_labels, self.limit, advice)


STEPS = chains(statistics={"n_steps": np.full((CHAINS, DRAWS), 31)})


def test_a_diagnostic_from_outside_is_in_table_verdict_and_exit_code(
    registries: list[Registry], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded, report = check_and_record(STEPS.draws)
    assert report
    bpa.write_posterior(recorded, tmp_path / "posterior.nc")
    run_command(["check", str(tmp_path / "posterior.nc")])
    DIAGNOSTICS.register("steps", LongestSteps)
    assert read_report(recorded) is None, "the recorded verdict lacks a diagnostic"
    report = check(STEPS)
    assert [finding.name for finding in report.failures] == ["steps"]
    assert report.rows[-1].name == "steps"
    assert "chain 0 takes 31 steps" in str(report)
    assert check(STEPS, {"steps": 31})
    assert check(chains()), "it does not apply"
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        run_command(["check", str(tmp_path / "posterior.nc")])
    assert caught.value.code == NotConverged.exit_code
    assert "steps" in capsys.readouterr().out
    with raises(NotConverged, parameter="unchecked"):
        bpa.point_weights(recorded)
    again = check_and_record(STEPS.draws)[0]
    assert read_report(again) == report


MODULE = """
from bpa_ppl.extending import Diagnostic

class Theirs(Diagnostic, frozen=True):
    title = "theirs"

    def measure(self, run):
        return self.finding(1.0, "reported", True, "")
"""


def test_another_version_of_a_package_makes_a_recorded_verdict_stale(
    install_package: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package("theirs", MODULE, "[bpa_ppl.diagnostics]\ntheirs = theirs:Theirs\n")
    assert (DIAGNOSTICS.version_of("theirs"), DIAGNOSTICS.version_of("r-hat")) == ("1.0", "")
    recorded, report = check_and_record(chains().draws)
    assert report.rows[-1].name == "theirs"
    assert read_report(recorded) == report
    monkeypatch.setattr(Registry, "version_of", lambda *_: "1.1")
    assert read_report(recorded) is None


@pytest.mark.parametrize(
    ("figures", "stored", "stale"),
    [((), True, False), (("log_evidence",), True, True), ((), False, False)],
)
def test_a_stored_diagnostic_sees_what_the_checksum_covers(
    registries: list[Registry], figures: tuple[str, ...], stored: bool, stale: bool
) -> None:
    seen: list[float | None] = []

    class Evidence(LongestSteps, frozen=True):
        def measure(self, run: Run) -> Finding:
            seen.append(run.draws.record.figures.log_evidence)
            assert (run.draws.log_density is None) == stored
            return super().measure(run)

    Evidence.figures, Evidence.stored = figures, stored
    DIAGNOSTICS.register("evidence", Evidence)
    density = np.zeros((CHAINS, DRAWS))
    draws = with_record(with_parts(STEPS, log_density=density), figures=Figures(log_evidence=-3.0))
    recorded = check_and_record(draws.draws)[0]
    assert seen == [-3.0 if figures or not stored else None]
    changed = with_record(recorded, figures=Figures(log_evidence=-4.0))
    assert (read_report(changed) is None) == stale
    assert len(seen) == 1 if stored else seen == [-3.0, -4.0]


class Patience(Advice):
    """Advice of a sampler of this test."""

    sound_acceptance = (0.6, 0.7)

    def other_steps(self, larger: bool) -> str:
        """Return how to change the step size."""
        return f"{'raise' if larger else 'lower'} the temperature ({self.settings['draws']})"

    def more_draws(self, shortage: float = 3.0) -> str:
        """Return how to get more effective draws."""
        return "wait longer"


def test_a_sampler_brings_its_advice_and_its_sound_acceptance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ADVICE, "patient", Patience)
    sampler = SamplerRecord(name="patient", settings={"draws": 7})
    rates = {"acceptance_rate": np.full((CHAINS, 40), 0.9)}
    own = with_parts(FEW, statistics=rates, record=Record(sampler=sampler))
    text = str(check(own))
    assert "0.6 to 0.7" in text
    assert (
        "- acceptance 0.9, as steps are too small for this posterior: raise the temperature (7)"
        in text
    )
    assert "wait longer" in text
    assert "nuts" not in text
    for other in (
        SamplerRecord(name="patient"),  # without settings, it is a sampler of another program
        SamplerRecord(name="of another package", settings={"draws": 7}),
    ):
        text = str(check(with_parts(own, record=Record(sampler=other))))
        assert "0.1 to 1" in text
        assert "nuts" in text
