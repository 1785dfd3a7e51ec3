"""A small part of the demo's data, and posteriors of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import run, write_draws_around
from small_demo import cache as cache
from small_demo import write_small_demo


@pytest.fixture(autouse=True)
def _without_drawing(without_drawing: None) -> None:
    """Pages are drawn in tests/diagnostics, and by the commands of the pages in docs."""


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `nbest`, `ref`, `moses.ini`, and posteriors `good.nc` and `poor.nc`."""
    folder = tmp_path_factory.mktemp("originals")
    write_small_demo(folder, sentences=12, hypotheses=10)
    adapt = ("adapt", folder / "nbest", "-r", folder / "ref", "-w", folder / "moses.ini", "-q")
    assert run(*adapt, "-o", folder / "good.nc", "--sampler", "map").code == 0
    write_draws_around(folder / "good.nc", folder / "poor.nc", (2, 10), "rwm")
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the originals, and the current folder of the test."""
    copy = tmp_path / "work"
    shutil.copytree(originals, copy)
    monkeypatch.chdir(copy)
    return copy
