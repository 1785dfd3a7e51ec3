"""A study with a few sentences of the demo data."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import pytest

from bpa_ppl.experiments import read_study, run_study

SENTENCES, HYPOTHESES = 24, 8
STUDY = """
sizes = [4, 8]
draws = 3
seed = 5
methods = ["canonical", "heuristic", "map", "mira", "mert-ter"]

[domains.leaflet]
weights = "moses.ini"
adapt = "nbest"
adapt_references = ["ref"]
held_out = 10

[variants.mert-ter]
like = "mert"
metric = "ter"
restarts = 2

[sweeps.prior]
setting = "prior_variance"
values = [0.01, 1]
methods = ["map"]
sizes = [4]
"""


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a separate cache for compiled programs."""
    with patch.dict(os.environ, BPA_PPL_CACHE=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and its lists, references and weights."""
    folder = tmp_path_factory.mktemp("study")
    demo = files("bpa_ppl.demo_data")
    lists: dict[str, list[str]] = {}
    with demo.joinpath("leaflet.nbest100.gz").open("rb") as packed:
        for line in gzip.decompress(packed.read()).decode().splitlines(keepends=True):
            lists.setdefault(line.split(" ||| ")[0], []).append(line)
    kept = [line for key in list(lists)[:SENTENCES] for line in lists[key][:HYPOTHESES]]
    (folder / "nbest").write_text("".join(kept), "utf-8")
    references = demo.joinpath("leaflet.ref").read_text("utf-8").splitlines(keepends=True)
    (folder / "ref").write_text("".join(references[:SENTENCES]), "utf-8")
    (folder / "moses.ini").write_text(demo.joinpath("moses.ini").read_text("utf-8"), "utf-8")
    (folder / "study.toml").write_text(STUDY, "utf-8")
    return folder


@pytest.fixture(scope="session")
def results(originals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the results of the study."""
    folder = tmp_path_factory.mktemp("results") / "results"
    run_study(read_study(originals / "study.toml"), folder)
    return folder


@pytest.fixture
def study_file(originals: Path, tmp_path: Path) -> Path:
    """The file of a new copy of the study."""
    copy = tmp_path / "study"
    shutil.copytree(originals, copy)
    return copy / "study.toml"


@pytest.fixture
def finished(results: Path, study_file: Path) -> Path:
    """A new copy of the results folder."""
    return Path(shutil.copytree(results, study_file.parent / "results"))
