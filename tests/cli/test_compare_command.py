"""`bpa compare` and `bpa calibrate`: pages, tables, exit codes, and bad input."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from command_line import run, start

LISTS = ("nbest", "-w", "moses.ini")
COMPARE = ("compare", *LISTS, "-r", "ref", "-o", "report")
SHORT = ("--runs", 2, "--reference-draws", 1000, "--reference-sampler", "imh", "-q")


def test_compare_writes_a_page_and_tables(folder: Path) -> None:
    done = run(
        *(*COMPARE, *SHORT, "--samplers", "laplace, heuristic", "--figures", "png"),
        *("--set", "laplace.draws=1500", "--posterior", "mine=poor.nc"),
    )
    assert done.code == 0, done.err
    names = {path.name for path in Path("report").iterdir()}
    assert {"index.html", "comparison.json", "efficiency.csv", "accuracy.png"} <= names
    found = json.loads(Path("report/comparison.json").read_text("utf-8"))["samplers"]
    assert {name: one["verdict"] for name, one in found.items()} == {
        "laplace": "agrees",
        "heuristic": found["heuristic"]["verdict"],
        "mine": "undecided",
    }
    assert found["heuristic"]["verdict"] != "agrees"
    assert found["laplace"]["efficiency"]["draws"] == 1500
    assert found["laplace"]["efficiency"]["seconds"] > 0
    assert found["laplace"]["downstream"]["sentences"] == 12
    assert "seconds" in found["mine"]["efficiency"]["missing"]
    html = Path("report/index.html").read_text("utf-8")
    assert "bpa compare nbest -w moses.ini" in html
    assert "mine does not record seconds" in html
    assert "laplace" in done.out


@pytest.mark.slow
def test_calibrate_tells_the_verdict(folder: Path) -> None:
    calibrate = ("calibrate", *LISTS, "--replications", 40, "-q", "--jobs", 2)
    good = run(*calibrate, "--samplers", "laplace", "-o", "page.html")
    assert good.code == 0, good.err
    assert "laplace, 40 replications: calibrated" in good.out
    assert "<svg" not in good.out
    assert "log p(A|λ)" in Path("page.html").read_text("utf-8")
    # A walk that is far too short has not left its start.
    short = ("--samplers", "rwm-isotropic", "--set", "rwm-isotropic.draws=20")
    poor = run(*calibrate, *short, "--set", "rwm-isotropic.warmup=1", "-o", "numbers.json")
    assert poor.code == 3
    assert "raise draws" in poor.out
    (told,) = json.loads(Path("numbers.json").read_text("utf-8"))
    assert told["passed"] is False


def test_a_posterior_of_another_model_or_of_other_data_is_refused(folder: Path) -> None:
    mine = ("--samplers", "map", *SHORT, "--posterior", "mine=poor.nc")
    other = run(*COMPARE, *mine, "--likelihood", "oracle")
    assert other.code == 2
    assert "error: mine is a posterior of another model: its likelihood is margin" in other.err
    lines = Path("nbest").read_text("utf-8").splitlines(keepends=True)
    Path("nbest").write_text("".join(lines[:60]), "utf-8")
    fewer = run(*COMPARE, *mine)
    assert fewer.code == 2
    assert "other data: it was adapted to 12 sentences, not to 6; only" in fewer.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("compare", *LISTS, "-o", "report"), "compare needs --references"),
        ((*COMPARE, "--samplers", "gibbs"), "unknown sampler 'gibbs'"),
        ((*COMPARE, "--samplers", ""), "names no sampler"),
        ((*COMPARE, "--runs", 0), "at least one sampler"),
        ((*COMPARE, "--reference-sampler", "map"), "map has no setting draws"),
        ((*COMPARE, "--posterior", "imh=poor.nc"), "imh is already the name of a sampler"),
        ((*COMPARE, "--posterior", "mine=good.nc"), "1 draws per chain are too few"),
        ((*COMPARE, "--figures", "gif"), "unknown kind of figures 'gif'"),
        ((*COMPARE, "--set", "draws=5"), "SAMPLER.NAME=VALUE"),
        ((*COMPARE, "--set", "imh.leaps=5"), "imh has no setting leaps"),
        ((*COMPARE, "--posterior", "none.nc"), "--posterior takes NAME=VALUE"),
        ((*COMPARE, "--posterior", "mine=none.nc"), "no such file"),
        ((*COMPARE, "--samplers", "map", *SHORT), "1 draws per chain are too few"),
        (("calibrate", *LISTS, "--replications", 3), "at least 20"),
        (("calibrate", *LISTS, "--samplers", "gibbs"), "unknown sampler 'gibbs'"),
        (("calibrate", *LISTS, "--samplers", ""), "names no sampler"),
        (
            ("calibrate", *LISTS, "--likelihood", "margin", "-r", "ref"),
            "the likelihood margin is not a distribution",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(folder: Path, arguments: tuple, told: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("error:") == 1


@pytest.mark.slow
def test_ctrl_c_ends_a_calibration(folder: Path) -> None:
    many = ("--replications", 100_000, "--jobs", 2, "--samplers", "imh,nuts")
    process = start("calibrate", *LISTS, *many, "-o", "page.html")
    time.sleep(4)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert not Path("page.html").exists()
