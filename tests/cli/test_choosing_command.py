"""Settings chosen from the adaptation sentences, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.diagnostics import temperature
from bpa_ppl.sampling.choosing import SETTINGS

BASE = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "p.nc", "--sampler", "map")


def test_the_choice_is_printed_in_one_line_and_recorded(folder: Path) -> None:
    done = run(*BASE, "--choose", "prior-variance")
    assert done.code == 0
    made = bpa_ppl.as_draws(bpa_ppl.read_posterior("p.nc")).attrs
    assert made["choice"]["because"] in done.err.splitlines() + done.out.splitlines()
    assert made["choice"]["because"].startswith(("chose prior-variance", "kept prior-variance"))
    assert made["prior"]["variance"] == made["choice"]["chosen"]["prior-variance"]
    assert [row["prior-variance"] for row in made["choice"]["table"]] == [0.1, 0.01, 0.03, 0.3, 1.0]


def test_by_evidence_and_quietly(folder: Path) -> None:
    done = run(*BASE, "-q", "--choose", "prior-variance", "--choose-by", "evidence")
    assert (done.code, done.out + done.err) == (0, "")
    made = bpa_ppl.as_draws(bpa_ppl.read_posterior("p.nc")).attrs["choice"]
    assert made["by"] == "evidence"
    best = max(made["table"], key=lambda row: row["evidence"])
    assert made["chosen"]["prior-variance"] == best["prior-variance"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--choose", "gamma"), "unknown setting to choose 'gamma': choose one of margin"),
        (("--choose", "margin", "--choose-by", "aic"), "unknown criterion of choice 'aic'"),
        (("--choose", "delta"), "delta is a setting of the sampler heuristic"),
        (
            ("--choose", "prior-variance", "--prior-variance", "0.3"),
            "prior-variance is both given and to be chosen",
        ),
    ],
)
def test_what_cannot_be_chosen(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = run(*BASE, *options)
    assert done.code == 2
    assert message in done.err
    assert not Path("p.nc").exists()


def test_the_help_names_every_setting(folder: Path) -> None:
    told = " ".join(run("adapt", "--help").out.replace("│", " ").split())
    assert all(name in told for name in SETTINGS)


def test_a_temperature_is_fitted_told_and_used(folder: Path) -> None:
    base = [*BASE[:-1], "laplace"]
    assert run(*base, "-q").code == 0
    assert run("rerank", "nbest", "-p", "p.nc", "-o", "out", "--details", "cold", "-q").code == 0
    done = run(*base, "--fit-temperature")
    assert done.code == 0, done.err
    posterior = bpa_ppl.read_posterior("p.nc")
    found = temperature(posterior, bpa_ppl.read_nbest("nbest", references="ref"))
    assert str(found) in (done.err + done.out).splitlines()
    assert bpa_ppl.as_draws(posterior).attrs["temperature"] == pytest.approx(found.value)
    assert run("rerank", "nbest", "-p", "p.nc", "-o", "out", "--details", "warm", "-q").code == 0
    assert Path("warm").read_text() != Path("cold").read_text()


def test_a_point_has_no_temperature(folder: Path) -> None:
    done = run(*BASE, "--fit-temperature")
    assert done.code == 2
    assert "leave-one-out needs draws of the posterior" in done.err
    assert not Path("p.nc").exists()
