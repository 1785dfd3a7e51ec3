"""`bpa compare`."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import run, succeed

import bpa_ppl as bpa

PROGRAM = ("--model", "normal_mean:model", "--data", "data.json")
MODEL = """
import numpyro
import numpyro.distributions as dist


def model(count, y):
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    with numpyro.plate("row", count):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def fails():
    numpyro.sample("mean", dist.Normal(1 / 0, 1.0))
"""


@pytest.fixture
def of_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with a model of its own name, and its data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("normal_mean.py").write_text(MODEL, "utf-8")
    Path("data.json").write_text('{"count": 3, "y": [1.0, 2, 0.5]}', "utf-8")


@pytest.mark.usefixtures("of_model")
def test_compare_writes_a_page_and_tables_and_names_what_failed() -> None:
    poor = np.repeat([0.5, 1.5], 100).reshape(2, 100)
    bpa.write_posterior(bpa.Draws({"mean": poor}), "poor.nc")
    done = run(
        *("compare", *PROGRAM, "-o", "report", "--samplers", "laplace, heuristic"),
        *("--samplers", "map", "--set", "laplace.draws=1500", "--posterior", "mine=poor.nc"),
        *("--runs", 2, "--reference-draws", 1000, "--reference-sampler", "imh", "-q"),
    )
    assert done.code == 2
    assert re.search("^map +failed ", done.out, re.MULTILINE)
    assert "heuristic needs canonical weights" in done.out
    result = json.loads(Path("report/comparison.json").read_text("utf-8"))["samplers"]
    assert list(result) == ["laplace", "heuristic", "map", "mine"]
    assert (result["laplace"]["verdict"], result["mine"]["verdict"]) == ("agrees", "not converged")
    efficiency = result["laplace"]["efficiency"]
    assert (efficiency["draws"], len(efficiency["per_run"])) == (1500, 2)
    html = Path("report/index.html").read_text("utf-8")
    assert "bpa compare --model normal_mean:model" in html
    assert "failed: heuristic, map" in html.replace("F", "f")
    assert "<td>laplace.draws=1500</td>" in html
    assert "<td>normal_mean:model</td>" in html


@pytest.mark.slow
@pytest.mark.usefixtures("of_model")
def test_samplers_are_compared_on_a_model() -> None:
    imh = ("--samplers", "imh", "--reference-sampler", "imh")
    done = succeed("compare", *PROGRAM, *imh, "--runs", "2")
    assert re.search(r"^imh +agrees", done.out, re.MULTILINE)
    draws = bpa.sample(*loaded("normal_mean", "data.json"), sampler="imh:draws=4000", seed=5)
    bpa.write_posterior(draws, "reference.nc")
    again = succeed("compare", "reference.nc", *PROGRAM, "--samplers", "laplace", "--runs", "1")
    assert re.search(r"^laplace +agrees", again.out, re.MULTILINE)
    limits = ("--replications", "20", "--max-seconds", "600")
    done = succeed("calibrate", *PROGRAM, "--samplers", "laplace", *limits)
    assert "laplace, 20 replications: calibrated" in done.out


def loaded(module: str, data: str) -> tuple[Any, tuple[()], dict[str, Any]]:
    program = runpy.run_path(f"{module}.py")["model"]
    return program, (), {n: np.array(x) for n, x in json.loads(Path(data).read_text()).items()}


@pytest.mark.usefixtures("of_model")
@pytest.mark.parametrize(
    ("words", "data", "mention"),
    [
        ("--model normal_mean", "{}", "a model is named module:function"),
        ("--model normal_mean.py", "{}", "or FILE.py:function, not 'normal_mean.py'"),
        ("--model normal_mean.py:", "{}", "or FILE.py:function, not 'normal_mean.py:'"),
        ("--model nowhere:model", "{}", "the module nowhere cannot be imported"),
        ("--model nowhere.py:model", "{}", "there is no file nowhere.py: give FILE.py:function"),
        ("--model a/nowhere:model", "{}", "there is no file a/nowhere: give FILE.py:function"),
        (
            "--model ~nobody/a.py:model",
            "{}",
            "there is no file ~nobody/a.py: give FILE.py:function",
        ),
        ("--model ./normal_mean.py:modle", "{}", "unknown function 'modle' of the module ./normal"),
        ("--model other.json:model", "{}", "the module other.json cannot be imported"),
        ("--model ends:model", "{}", "the module ends cannot be imported: SystemExit: 3"),
        (
            "--model normal_mean:fails",
            "{}",
            "division by zero; look at line 13 of normal_mean.py",
        ),
        ("--model normal_mean:modle", "{}", "unknown function 'modle' of"),
        ("--model normal_mean:model", '{"count": 3}', "missing a required argument: 'y'"),
        ("--model normal_mean:model", '{"count": 3, "z": 1}', "missing a required argument: 'y'"),
        (
            "--model normal_mean:model",
            '{"count": 1, "y": [[1], [1, 2]]}',
            "y has rows of different",
        ),
        ("--model normal_mean:model", '{"count": 1, "y": ["a"]}', "y is not made of numbers"),
        ("--model normal_mean:model", "[]", "is no object"),
        ("--model normal_mean:model", "{", "other.json:1: not JSON"),
        ("--model normal_mean:model", "[" * 100_000, "other.json:1: objects nest too deeply"),
        ("", "{}", "needs --model: give both, or leave it out (--data)"),
        ("--model normal_mean:model --set draws=5", "{}", "expected SAMPLER.NAME=VALUE, not 'draw"),
        (
            "--model normal_mean:model --set map.draws=5",
            '{"count": 3, "y": [1, 2, 3]}',
            "map has settings and is not run: leave out the settings",
        ),
        (
            "a.nc --model normal_mean:model --reference-draws 5000",
            '{"count": 3, "y": [1, 2, 3]}',
            "a.nc is the reference: leave out the options of a long run (--reference-sampler)",
        ),
        ("a.nc b.nc --model normal_mean:model", "{}", "a model has one reference"),
    ],
)
def test_what_is_no_model_or_no_data_is_refused(words: str, data: str, mention: str) -> None:
    Path("other.json").write_text(data, "utf-8")
    Path("ends.py").write_text("raise SystemExit(3)", "utf-8")
    path = list(sys.path)
    done = run("compare", *words.split(), "--data", "other.json")
    assert (done.code, done.out) == (2, "")
    assert mention in done.err
    assert done.err.count("\n") == 1
    assert sys.path == path
