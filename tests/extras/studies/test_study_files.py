"""Study files, also those in examples: mistakes, reported before the start; cells; samples."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.raising import raises
from support.registries import LIKELIHOODS, SAMPLERS
from support.small_demo import write_small_demo
from support.studies import edit_study

from bpa_ppl import DataError, Isotropic
from bpa_ppl.extras.studies.page import write_figures
from bpa_ppl.extras.studies.running import run_study
from bpa_ppl.extras.studies.study import (
    Cell,
    ListFiles,
    Method,
    Study,
    StudyDomain,
    Sweep,
    choose_seed,
    draw_sentences,
    list_cells,
    list_methods,
    read_study,
)
from bpa_ppl.extras.studies.tuning.redecoding import Decoder

VARIANT = 'like = "mert"\ngain = "ter"\nrestarts = 2'


def test_settings_are_read(study_file: Path) -> None:
    study = read_study(study_file)
    assert (study.sizes, study.draws, study.seed, study.replacement) == ((4, 8), 3, 5, True)
    assert [method.name for method in study.methods][-1] == "mert-ter"
    mert_ter = study.methods[-1]
    assert (mert_ter.engine, mert_ter.gain) == ("mert", "ter")
    assert mert_ter.engine_settings == (("restarts", 2),)
    assert study.domains[0].adapt == study_file.parent / "nbest"


@pytest.mark.parametrize(
    ("old", "new", "code", "named"),
    [
        ("sizes = [4, 8]", "sizes: [4, 8]", "unknown-format", "line 2"),
        ("sizes = [4, 8]", "", "wrong-type", "`sizes`"),
        ("seed = 5", f"seed = {2**63}", None, "seed"),
        ("sizes = [4, 8]", "sizes = [4, 4]", "wrong-type", "sizes contains a value twice"),
        ("seed = 5", "seed = 1" + 5000 * "0", "bad-number", "study.toml"),
        ('gain = "ter"', 'gain = "rouge"', "unknown-name", "'rouge'"),
        ('like = "mert"', "", None, r"\[variants.mert-ter\]: .*like"),
        ("variants.mert-ter", "variants.mert", "duplicate", "mert"),
        ("values = [0.01, 1]", "values = [inf]", None, r"\[sweeps.prior\]: .*variance"),
        ("values = [0.01, 1]", "values = ['/']", "wrong-type", "not '/'"),
        ('"mira"', '"mirra"', "unknown-name", "'mirra'"),
        ('"mira"', '"weight-trace"', "no-data", r"weight-trace .* \[development\]"),
        ('"nbest"', '"lists"', "missing-file", "lists;"),
        ("held_out = 10", "", None, r"\[domains.leaflet\]: .*test is missing"),
        ("restarts = 2", "epochs = 2", None, r"\[variants.mert-ter\]: .*epochs"),
        ('methods = ["map"]', 'methods = ["nuts"]', "unknown-name", "nuts"),
        # settings of likelihoods and samplers
        (VARIANT, 'like = "mert"\nlikelihood = "margin"', "not-supported", "mert-ter"),
        (VARIANT, 'like = "map"\nlikelihood = "margin"\nkappa = 2', None, "kappa"),
        (VARIANT, 'like = "map"\nlikelihood = 1', None, "likelihood"),
        *(
            (VARIANT, f'like = "{one}"', None, one)
            for one in ("canonical:draws=2", "m:a=2", "imh=2")
        ),
    ],
)
def test_rejects_invalid_studies(
    study_file: Path, old: str, new: str, code: str | None, named: str
) -> None:
    with pytest.raises(DataError, match=named) as caught:
        edit_study(study_file, (old, new))
    assert caught.value.path == study_file
    assert "\n" not in str(caught.value)
    if code is not None:  # others are those of settings of samplers, tuners and likelihoods
        assert caught.value.code == code


def test_methods_have_likelihoods_with_settings(study_file: Path) -> None:
    steep = """[variants.steep]\nlike = "map"\nlikelihood = "margin"\ngamma = 4
[sweeps.margins]\nsetting = "gamma"\nvalues = [1, 8]\nmethods = ["steep"]\nsizes = [4]
[variants.mert-ter]"""
    changes = ('methods = ["', 'methods = ["steep", "'), ("[variants.mert-ter]", steep)
    cells = list_cells(edit_study(study_file, *changes)).items()
    likelihoods = {c.setting: m.resolve_likelihood() for c, m in cells if c.method == "steep"}
    expected = {"": 4, "gamma=1": 1, "gamma=8": 8}
    assert likelihoods == {
        name: LIKELIHOODS["margin"](gamma=gamma) for name, gamma in expected.items()
    }
    methods = list_methods()
    assert methods["published"].resolve_likelihood() == LIKELIHOODS["oracle"]()
    assert methods["imh"].resolve_likelihood() is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("sizes = [4, 8]", "sizes = [4, 15]\nreplacement = false", "14 sentences"),
        ("held_out = 10", "held_out = 24", "held_out is 24"),
    ],
)
def test_rejects_too_few_sentences(study_file: Path, old: str, new: str, named: str) -> None:
    folder = study_file.parent / "results"
    with raises(DataError, "wrong-length", match=named):
        run_study(edit_study(study_file, (old, new)), folder)
    assert not folder.exists()


CELL = Cell("leaflet", 8, 0, "map", "")


def test_cells_are_unique_and_ordered(study_file: Path) -> None:
    methods = list_cells(read_study(study_file))
    cells = list(methods)
    assert len(set(cells)) == len(cells) == 3 * (5 + 2) + 3 * 5
    assert [cell[:3] for cell in cells] == sorted(cell[:3] for cell in cells)
    assert len({cell.name for cell in cells}) == len(cells)
    settings = {cell.setting: method for cell, method in methods.items()}
    assert set(settings) == {"", "variance=0.01", "variance=1"}
    assert settings["variance=0.01"].resolve_prior() == Isotropic(variance=0.01)


def test_samples_are_equal_for_all_methods_and_differ_otherwise(study_file: Path) -> None:
    study = read_study(study_file)
    same = CELL._replace(method="mira", setting="variance=1")
    fewer = replace(study, methods=study.methods[:1], sizes=(8,), sweeps=())
    drawn = draw_sentences(study, CELL, 14).tolist()
    assert drawn == draw_sentences(study, same, 14).tolist()
    assert drawn == draw_sentences(fewer, CELL, 14).tolist()
    assert choose_seed(study, CELL) == choose_seed(study, same)
    cells = [CELL, CELL._replace(draw=1), CELL._replace(domain="captions")]
    others = [(study, cell) for cell in cells] + [(replace(study, seed=6), CELL)]
    assert len({tuple(draw_sentences(one, cell, 14)) for one, cell in others}) == 4
    assert len({choose_seed(study, cell) for cell in cells}) == 3


PAGE = Path(__file__).resolve().parents[3] / "docs" / "extras" / "studies.md"


@pytest.mark.parametrize(
    ("section", "table", "elsewhere"),
    [
        ("Study", Study, {"development", "domains", "sweeps", "decoder"}),
        ("Domains", StudyDomain, {"name"}),
        ("Sweeps", Sweep, set()),
        ("Development lists", ListFiles, set()),
        ("Decoder", Decoder, {"folder"}),
    ],
)
def test_fields_are_listed(section: str, table: Any, elsewhere: set[str]) -> None:
    assert listed(section) == set(table.__struct_fields__) - elsewhere


def test_settings_of_variants_are_listed() -> None:
    settings = {name for name in Method.__struct_fields__ if not name.endswith("settings")}
    assert listed("Methods") >= settings - {"name", "kind", "engine"} | {"like"}


def listed(section: str) -> set[str]:
    """Return the names in the first columns of the tables of a section."""
    text = PAGE.read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", text, re.M))


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


def test_settings_may_follow_a_name(study_file: Path) -> None:
    text = 'like = "imh:draws=50"\nlikelihood = "margin:gamma=4"\nrule = "mbr:gain=chrf"'
    method = edit_study(study_file, (VARIANT, text)).methods[-1]
    assert method.component() == SAMPLERS.resolve("imh", {"draws": 50})
    assert method.resolve_likelihood() == LIKELIHOODS["margin"](gamma=4)
    assert method.with_settings({"gamma": 1}).resolve_likelihood() == LIKELIHOODS["margin"](gamma=1)


def test_a_study_of_version_1() -> None:
    study = read_study(Path(__file__).parents[2] / "golden" / "study.toml")
    assert study.sizes == (10, 20, 50, 100)
    assert [domain.name for domain in study.domains] == ["leaflet"]
