"""The same command gives the same bytes: in another process, at another time, on one core."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROGRAM

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
