"""The same command gives the same bytes: in another process, at another time, on one core."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROGRAM, run
from foreign import autoregressive, foreign

from bpa_ppl.posterior import write_posterior
from bpa_ppl.registry import SAMPLERS

ONE_CORE = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {PROGRAM}"
COMMANDS = (
    ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", "-q", "--no-cache"),
    ("report", "new.nc", "-o", "page.html", "-q"),
    ("rerank", "nbest", "-p", "new.nc", "-o", "new.txt", "--details", "new.tsv", "--unchecked"),
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs to choose a core")
def test_on_one_core_and_on_all_the_same_files_are_made(originals: Path, tmp_path: Path) -> None:
    for name, program in (("one", ONE_CORE), ("all", PROGRAM)):
        shutil.copytree(originals, tmp_path / name)
        environment = {**os.environ, "PYTHONHASHSEED": str(len(program))}
        for command in COMMANDS:
            line = [sys.executable, "-c", program, *command]
            subprocess.run(line, cwd=tmp_path / name, env=environment, check=True)
    for made in ("new.nc", "page.html", "new.txt", "new.tsv"):
        one, every = ((tmp_path / name / made).read_bytes() for name in ("one", "all"))
        assert one == every, made


def test_advice_is_given_in_options_that_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = foreign(autoregressive(0.99, 4, 100, 2, seed=3), ("LM0", "TM0"))
    data.attrs.update(sampler="auto", settings='{"draws": 100, "chains": 4}')
    write_posterior(data, "poor.nc")
    done = run("check", "poor.nc")
    assert done.code == 3
    advice = [line for line in done.out.splitlines() if line.startswith("- ")]
    given = [pair.split("=") for line in advice for pair in re.findall(r"--set (\w+=\w+)", line)]
    assert ["draws", "400"] in given
    assert {name for name, _ in given} <= {"draws", "warmup"}  # the latter of nuts
    named = {name for line in advice for name in re.findall(r"--sampler (\w+)", line)}
    assert named <= set(SAMPLERS)
