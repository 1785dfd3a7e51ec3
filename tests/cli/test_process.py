"""The command as a process of its own: a whole line of work, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from command_line import run, start

PROGRAM = str(Path(sys.executable).parent / "bpa")
SENTENCES = 12  # in the lists of the fixture


def bpa(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, encoding="utf-8", check=False)


def test_adapt_check_rerank_weights(folder: Path) -> None:
    assert shutil.which(PROGRAM), "the package is not installed: no program bpa beside Python"
    adapt = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map")
    adapted = bpa(*adapt, "-o", "new.nc")
    assert (adapted.returncode, adapted.stdout) == (0, "")
    # One process shows that the program is whole; another costs seconds of imports.
    reranked = run("rerank", "-", "-p", "new.nc", stdin=Path("nbest").read_text("utf-8"))
    assert reranked.code == 0
    assert len(reranked.out.splitlines()) == SENTENCES
    checked = run("check", "new.nc")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.strip() in adapted.stderr
    assert run("weights", "new.nc", "-o", "new.ini", "--template", "moses.ini") == (0, "", "")
    assert Path("new.ini").read_text("utf-8") != Path("moses.ini").read_text("utf-8")


def test_an_error_has_no_traceback(folder: Path) -> None:
    done = bpa("check", "none")
    assert done.returncode == 2
    assert done.stderr == ("error: none: no such file: give the posterior that `bpa adapt` wrote\n")


def test_a_closed_pipe_is_not_an_error(folder: Path) -> None:
    line = f"'{PROGRAM}' rerank - -p good.nc -q < nbest | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, encoding="utf-8", check=False)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_ctrl_c_leaves_nothing(folder: Path) -> None:
    os.mkfifo("lists")
    before = sorted(os.listdir())
    many = ("--sampler", "rwm", "--set", "draws=1000000", "--set", "thinning=200")
    process = start("adapt", "lists", "-r", "ref", "-w", "moses.ini", "-o", "new.nc", *many)
    with open("lists", "wb", opener=_once_read) as lists:
        lists.write(Path("nbest").read_bytes())
    time.sleep(2)  # into the work, wherever it is then
    assert sorted(os.listdir()) == before  # nothing is made before there is something to write
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before


def _once_read(path: str, flags: int) -> int:
    """Open a pipe as soon as somebody reads it; without a reader it cannot be opened."""
    for _ in range(1200):
        with suppress(OSError):
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    raise TimeoutError(path)
