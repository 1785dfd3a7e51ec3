"""A study with a few sentences of the demo data."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.small_demo import write_small_demo

from bpa_ppl.extras.studies.running import run_study
from bpa_ppl.extras.studies.study import read_study

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
gain = "ter"
restarts = 2

[sweeps.prior]
setting = "variance"
values = [0.01, 1]
methods = ["map"]
sizes = [4]
"""


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and its lists, references and weights."""
    folder = tmp_path_factory.mktemp("study")
    write_small_demo(folder, sentences=24, candidates=8)
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
def quick_study(study_file: Path) -> Path:
    """The file of a study without samplers, which take long to compile, and without sweeps."""
    text = study_file.read_text("utf-8").replace('"heuristic", "map", ', "")
    study_file.write_text(text[: text.index("[sweeps")], "utf-8")
    return study_file


@pytest.fixture
def finished(results: Path, study_file: Path) -> Path:
    """A new copy of the results folder."""
    return Path(shutil.copytree(results, study_file.parent / "results"))
