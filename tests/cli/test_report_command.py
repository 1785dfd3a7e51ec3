"""`bpa report`: the page lands where it should, and bad input is told in a line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.diagnostics.report_page import posterior_page
from bpa_ppl.posterior import inference_data


def test_the_page_is_that_of_the_library(folder: Path) -> None:
    done = run("report", "poor.nc", "-o", "report.html", "--top", 2)
    assert (done.code, done.out, done.err) == (0, "", "wrote report.html\n")
    ours = posterior_page(
        bpa_ppl.read_posterior("poor.nc"), title="Posterior poor.nc", top=2
    ).splitlines()
    theirs = Path("report.html").read_text("utf-8").splitlines()
    assert theirs == ours
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


def test_new_lists_with_references_answer_whether_it_helped(folder: Path) -> None:
    new = ("--nbest", "nbest", "--references", "ref", "-q")
    assert run("report", "good.nc", *new, "-o", "report.html").code == 0
    html = Path("report.html").read_text("utf-8")
    assert html.index("<h2>Did it help?") < html.index("<h2>What moved")
    ter = re.search(r"TER (\d+\.\d\d) → (\d+\.\d\d)", html)
    assert ter
    told = run("rerank", "nbest", "-p", "good.nc", "-r", "ref", "-o", "out", "-q").out
    assert re.search(rf"TER +{ter[1]} +{ter[2]}", told), told
    same = run("report", "good.nc", "--lists", *new[1:], "-o", "-")
    assert same.out == html


def test_sentences_are_shown_by_the_texts_of_the_lists_adapted_to(folder: Path) -> None:
    done = run("report", "poor.nc", "--adaptation-lists", "nbest", "-q", "-o", "report.html")
    assert done.code == 0, done.err
    shown = re.findall(r'scope="row">(\d+): ([^<…]+)', Path("report.html").read_text("utf-8"))
    lists = bpa_ppl.read_nbest("nbest")
    assert len(shown) == 8
    assert all(any(t.startswith(text) for t in lists.texts(int(s))) for s, text in shown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("good.nc", "-o", "r", "-r", "ref"), "--references goes with --nbest"),
        (("good.nc", "-o", "r", "--nbest", "nbest"), "(--references)"),
        (("good.nc", "-o", "r", "--nbest", "5", "-r", "ref"), "error: 5: no such file"),
        (("good.nc", "-o", "r", "--nbest", "nbest", "--scores", "x"), "with --list-size"),
        (("good.nc", "-o", "r", "--nbest", "nbest", "-r", "one"), "one has 1 lines"),
        (
            ("poor.nc", "-o", "r", "--adaptation-lists", "other"),
            "the lists that it was adapted to (--adaptation-lists)",
        ),
        (("none.nc", "-o", "report.html"), "error: none.nc: no such file"),
        (("ref", "-o", "report.html"), "error: ref: not a readable NetCDF posterior"),
        (("good.nc", "-o", "missing/report.html"), "missing"),
        (("good.nc", "-o", "report.html", "--top", 0), "at least 1 weight, not 0 (--top)"),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[object, ...], message: str) -> None:
    Path("one").write_text("one\n", "utf-8")
    lines = Path("nbest").read_text("utf-8").splitlines(keepends=True)
    first = lines[0].partition(" ")[0]
    one_list = [line for line in lines if line.startswith(f"{first} ")]
    Path("other").write_text("".join(one_list), "utf-8")
    done = run("report", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not Path("report.html").exists()
    assert not Path("r").exists()
