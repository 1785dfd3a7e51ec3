"""A small part of the demo's data, and posteriors of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import run
from small_demo import cache as cache
from small_demo import write_small_demo
from xarray import DataTree

from bpa_ppl.posterior import files


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """Remember the content of posterior files: reading one takes 0.2 s, and each command does it.

    Reading is tested in tests/posterior, and by the commands that run in a process of their own.
    """
    remembered = lru_cache(maxsize=32)(files.from_bytes)

    def from_bytes(content: bytes) -> DataTree:
        return remembered(content).copy(deep=True)

    with patch.object(files, "from_bytes", from_bytes):
        yield


@pytest.fixture(autouse=True)
def _without_drawing(without_drawing: None) -> None:
    """Pages are drawn in tests/diagnostics, and by the commands of the pages in docs."""


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `nbest`, `ref`, `moses.ini`, and posteriors `good.nc` and `poor.nc`."""
    folder = tmp_path_factory.mktemp("originals")
    write_small_demo(folder, sentences=12, hypotheses=10)
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
