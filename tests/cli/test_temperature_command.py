"""The calibration temperature of a posterior, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.diagnostics import temperature

BASE = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "p.nc", "--sampler", "map")


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
