"""`bpa tune`: the weights of the library, and a loop that resumes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.command_line import run, succeed
from support.small_demo import write_small_demo

import bpa_ppl as bpa
from bpa_ppl.extras.studies.tuning.reestimation import reestimate

TUNE = ("tune", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new.json")
FAST = ("--tuner", "mira", "--set", "epochs=3")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists, references and weights, in the current folder of the test."""
    write_small_demo(tmp_path, sentences=12, candidates=10)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_weights_are_those_of_the_library(folder: Path) -> None:
    options = ("--gain", "ter", "--seed", "2", "--fixed", "LM0", "--template", "moses.ini")
    done = succeed(*TUNE, *FAST, *options, "-o", "new.ini")
    change = r"\d+\.\d+ → \d+\.\d+ \([−+]\d+\.\d+\)"
    pattern = f"scores of the lists: TER {change}; BLEU {change}; length {change}$"
    assert (done.out, bool(re.search(pattern, done.err, re.MULTILINE))) == ("", True)
    old, new = (Path(name).read_text().splitlines() for name in ("moses.ini", "new.ini"))
    changed = [b for a, b in zip(old, new, strict=True) if a != b]
    assert {line.split("=")[0][-1:] for line in changed} == {"0"}
    lists, start = bpa.read_nbest("nbest", references="ref"), bpa.read_weights("moses.ini")
    chosen = {"tuner": "mira", "epochs": 3, "gain": "ter", "seed": 2, "fixed": ["LM0"]}
    assert bpa.read_weights("new.ini") == reestimate(lists, start, **chosen).weights


def test_a_failed_loop_resumes(folder: Path) -> None:
    lines = Path("nbest").read_text().splitlines(keepends=True)
    Path("first").write_text("".join(line for i, line in enumerate(lines) if i % 10 < 5))
    decoder = "echo run >> calls && test -e ready -a -e {weights} && cp nbest {nbest}"
    tune = ("tune", "first", *TUNE[2:], *FAST, "--decoder", decoder)
    failed = run(*tune)
    assert (failed.code, "run it manually" in failed.err) == (2, True)
    assert list(Path("new.json.rounds").glob("nbest.*")) == []
    Path("ready").touch()
    done = succeed(*tune, "--return", "last")
    assert Path("calls").read_text().count("run") == 3
    assert "iteration 1:" not in done.err  # its weights were there
    whole = run(*tune, "--return", "last", "--rounds", "kept")
    assert bpa.read_weights("kept/weights.2.json") == bpa.read_weights("new.json")
    assert whole.err.splitlines()[-1] == done.err.splitlines()[-1]
