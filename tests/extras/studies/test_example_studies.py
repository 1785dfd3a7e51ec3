"""The studies in examples/ run, here on a few sentences."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path

import pytest
from support.registries import SAMPLERS
from support.small_demo import write_small_demo

from bpa_ppl.extras.studies.page import write_figures
from bpa_ppl.extras.studies.running import run_study
from bpa_ppl.extras.studies.study import Study, read_study

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL = {
    "demo_data/leaflet.nbest100.gz": "nbest",
    "demo_data/leaflet.ref": "ref",
    "demo_data/moses.ini": "moses.ini",
    '"demo_data/': f'"{EXAMPLES}/demo_data/',
}


def read_small(folder: Path, name: str) -> Study:
    """Return a study of the examples with few sentences, one draw and one size of A."""
    write_small_demo(folder, sentences=20, candidates=12)
    text = (EXAMPLES / name).read_text("utf-8")
    for old, new in SMALL.items():
        text = text.replace(old, new)
    for pattern, value in (("sizes", "[4]"), ("draws", "1"), ("held_out", "10")):
        text = re.sub(f"^{pattern} +=.*$", f"{pattern} = {value}", text, flags=re.MULTILINE)
    (folder / name).write_text(text, "utf-8")
    return read_study(folder / name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("name", ["delta.toml", "systems.toml"])
def test_the_study_has_a_curve_of_each_method_in_each_domain(name: str, tmp_path: Path) -> None:
    study = read_small(tmp_path, name)
    run_study(study, tmp_path / "results")
    write_figures(tmp_path / "results", kind="none")
    table = (tmp_path / "results" / "points.csv").read_text("utf-8")
    points = {(row["domain"], row["method"]) for row in csv.DictReader(table.splitlines())}
    domains, methods = ([one.name for one in many] for many in (study.domains, study.methods))
    assert points == set(product(domains, methods))


def test_the_curves_of_delta_are_those_of_the_published_sample() -> None:
    study = read_study(EXAMPLES / "delta.toml")
    for method in study.methods[1:]:
        delta = float(method.name.removeprefix("delta-"))
        assert method.component() == SAMPLERS["heuristic"](draws=100, delta=delta)
        assert method.prior == "isotropic:variance=1.0"
