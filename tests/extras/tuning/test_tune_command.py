"""`bpa tune`: the weights of the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.command_line import succeed
from support.small_demo import write_small_demo

import bpa_ppl as bpa
from bpa_ppl.extras.tuning.reestimation import reestimate

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
