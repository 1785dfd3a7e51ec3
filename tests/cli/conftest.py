"""A small part of the demo's data, and posteriors of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from support.command_line import run
from support.records import with_record
from support.small_demo import cache as cache
from support.small_demo import write_small_demo

from bpa_ppl import write_posterior
from bpa_ppl.posterior.files import read_draws


@pytest.fixture(autouse=True)
def _without_drawing(without_drawing: None) -> None:
    """Pages are drawn in tests/diagnostics, and by the commands of the pages in docs."""


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `nbest`, `ref`, `moses.ini`, and posteriors `good.nc` and `poor.nc`."""
    folder = tmp_path_factory.mktemp("originals")
    write_small_demo(folder, sentences=12, candidates=10)
    adapt = ("adapt", folder / "nbest", "-r", folder / "ref", "-w", folder / "moses.ini", "-q")
    assert run(*adapt, "-o", folder / "good.nc", "--sampler", "map").code == 0
    point = read_draws(folder / "good.nc")
    noise = np.random.default_rng(0).normal(size=(2, 10, point.flat.shape[1]))
    logs = {name: np.tile(v[0, 0], (2, 10, 1)) for name, v in point.log_likelihood.items()}
    parts: dict[str, Any] = {"values": {"weights": point.flat[0] + 0.03 * noise}}
    parts |= {"log_likelihood": logs, "log_prior": {}, "log_density": None, "statistics": {}}
    sampler = structs.replace(point.record.sampler, name="rwm")
    poor = with_record(replace(point, kind="chains", **parts), sampler=sampler)
    write_posterior(poor, folder / "poor.nc")
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the originals, and the current folder of the test."""
    copy = tmp_path / "work"
    shutil.copytree(originals, copy)
    monkeypatch.chdir(copy)
    return copy
