"""`bpa report`: the page lands where it should, and bad input is told in a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page
from bpa_ppl.posterior import inference_data


def test_the_page_is_that_of_the_library(folder: Path) -> None:
    done = run("report", "poor.nc", "-o", "report.html", "--shown", 2)
    assert (done.code, done.out, done.err) == (0, "", "wrote report.html\n")
    ours = posterior_page(
        bpa_ppl.read_posterior("poor.nc"), title="Posterior poor.nc", shown=2
    ).splitlines()
    theirs = Path("report.html").read_text("utf-8").splitlines()
    assert [line for line in theirs if "<figure" not in line] == [
        line for line in ours if "<figure" not in line
    ]
    assert "NOT converged" in "".join(theirs)


def test_the_page_goes_to_standard_output(folder: Path) -> None:
    done = run("report", "good.nc", "-o", "-")
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("<!DOCTYPE html>")
    assert done.out.rstrip().endswith("</html>")


def test_quiet_is_quiet(folder: Path) -> None:
    assert run("report", "good.nc", "-o", "report.html", "-q").err == ""


def test_a_posterior_written_by_plain_arviz(folder: Path) -> None:
    draws = np.random.default_rng(1).normal(size=(4, 100, 2))
    inference_data({"posterior": {"weights": draws}}).to_netcdf("theirs.nc")
    assert run("report", "theirs.nc", "-o", "report.html").code == 0
    assert "does not record the canonical weights" in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.nc", "-o", "report.html"), "error: none.nc: no such file"),
        (("ref", "-o", "report.html"), "error: ref: not a readable NetCDF posterior"),
        (("good.nc", "-o", "missing/report.html"), "missing"),
        (("good.nc", "-o", "report.html", "--shown", 0), "error: shown must be at least 1"),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[object, ...], message: str) -> None:
    done = run("report", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not Path("report.html").exists()
