"""A small part of the demo's data, and posteriors of it."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import run

SENTENCES, HYPOTHESES = 12, 10


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
