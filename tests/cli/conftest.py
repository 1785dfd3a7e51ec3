"""The command, in this process or in one of its own, and a small part of the demo's data."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from bpa_ppl.cli import main
from bpa_ppl.errors import BpaWarning

SENTENCES, HYPOTHESES = 12, 10
# The program starts as from a terminal, even where Ctrl-C is ignored for background jobs.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from bpa_ppl.cli import main; main()"
)


class Outcome(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str = "") -> Outcome:
    """Run `bpa` in this process, which spares the import of JAX."""
    out, err, given = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(3))
    given.buffer.write(stdin.encode())
    given.seek(0)
    argv = ["bpa", *map(str, arguments)]
    with (
        patch.object(sys, "argv", argv),
        patch.object(sys, "stdin", given),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default", BpaWarning)
        with pytest.raises(SystemExit) as ending:
            main()
    return Outcome(int(ending.value.code or 0), _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(errors="replace")


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start `bpa` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep scores and compiled programs out of the user's cache."""
    with patch.dict(os.environ, BPA_PPL_CACHE=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `nbest`, `ref`, `moses.ini`, and posteriors `good.nc` and `poor.nc`."""
    folder = tmp_path_factory.mktemp("originals")
    demo = files("bpa_ppl.demo_data")
    lists: dict[str, list[str]] = {}
    with demo.joinpath("leaflet.nbest100.gz").open("rb") as packed:
        for line in gzip.decompress(packed.read()).decode().splitlines(keepends=True):
            lists.setdefault(line.split(" ||| ")[0], []).append(line)
    kept = [line for key in list(lists)[:SENTENCES] for line in lists[key][:HYPOTHESES]]
    (folder / "nbest").write_text("".join(kept), encoding="utf-8")
    references = demo.joinpath("leaflet.ref").read_text("utf-8").splitlines(keepends=True)
    (folder / "ref").write_text("".join(references[:SENTENCES]), encoding="utf-8")
    (folder / "moses.ini").write_text(demo.joinpath("moses.ini").read_text("utf-8"), "utf-8")
    adapt = ("adapt", folder / "nbest", "-r", folder / "ref", "-w", folder / "moses.ini", "-q")
    few = ("--set", "draws=10", "--set", "warmup=5", "--set", "chains=2")
    assert run(*adapt, "-o", folder / "good.nc", "--sampler", "map").code == 0
    assert run(*adapt, "-o", folder / "poor.nc", "--sampler", "rwm", *few).code == 0
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the originals, and the current folder of the test."""
    copy = tmp_path / "work"
    shutil.copytree(originals, copy)
    monkeypatch.chdir(copy)
    return copy
