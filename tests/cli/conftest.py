"""A small part of the demo's data, and posteriors of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from support.command_line import run
from support.posteriors import read_weight_draws, with_parts, with_record
from support.small_demo import cache as cache
from support.small_demo import write_small_demo

from bpa_ppl import write_posterior


@pytest.fixture(autouse=True)
def _without_drawing(without_drawing: None) -> None:
    """Pages are drawn in tests/diagnostics, and by the commands of the pages in docs."""


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `nbest`, `ref`, `moses.ini`, and posteriors.

    They are `complete.nc` of `bpa adapt`, and `good.nc` and `poor.nc`, which are read in half the
    time: they have only the draws and constants that commands need.
    """
    folder = tmp_path_factory.mktemp("originals")
    write_small_demo(folder, sentences=12, candidates=10)
    adapt = ("adapt", folder / "nbest", "-r", folder / "ref", "-w", folder / "moses.ini", "-q")
    assert run(*adapt, "-o", folder / "complete.nc", "--sampler", "map").code == 0
    point = read_weight_draws(folder / "complete.nc")
    kept = ("canonical", "mode", "prior_mean", "prior_variance", "fixed")
    constants = {
        name: point.draws.constants[name] for name in kept if name in point.draws.constants
    }
    few: dict[str, Any] = {"log_density": None, "log_likelihood": {}}
    few |= {"log_prior": {}, "prior": {}, "observed": {}, "constants": constants}
    good = with_parts(point, **few)
    write_posterior(good, folder / "good.nc")
    noise = np.random.default_rng(0).normal(size=(2, 10, point.flat.shape[1]))
    weights = {"weights": point.flat[0] + 0.03 * noise}
    sampler = structs.replace(point.record.sampler, name="rwm")
    poor = with_record(with_parts(good, kind="chains", values=weights), sampler=sampler)
    write_posterior(poor, folder / "poor.nc")
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the originals, and the current folder of the test."""
    copy = tmp_path / "work"
    shutil.copytree(originals, copy)
    monkeypatch.chdir(copy)
    return copy
