"""A study of lists with a column as metric, categories, no references and no weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet
from support.judged_lists import judged_lists, write_json_lines
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.experiments.studies.page import write_figures
from bpa_ppl.experiments.studies.running import run_study
from bpa_ppl.experiments.studies.study import read_study

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
STUDY = """
sizes = [10]
draws = 1
methods = ["canonical", "judged", "mert-judged"]
columns = ["comet"]
categorical = ["system"]

[domains.neural]
weights = "none"
adapt = "lists.jsonl"
held_out = 20

[variants.judged]
like = "map"
gain = "comet"

[variants.mert-judged]
like = "mert"
gain = "comet"
restarts = 1
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write_json_lines(judged_lists(40), tmp_path / "lists.jsonl")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_study_reports_and_plots_the_column(study: Path) -> None:
    folder = study.parent / "results"
    rows = parquet.read_table(run_study(read_study(study), folder)).to_pylist()
    assert [name for name in rows[0] if name.endswith("_counts")] == ["comet_counts"]
    means = {row["method"]: row["comet"] for row in rows}
    assert means["judged"] > means["canonical"] + 0.3
    page = next(path for path in write_figures(folder, kind="none") if path.suffix == ".html")
    assert "COMET against" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('gain = "comet"', 'gain = "bleurt"', "unknown-name"),
        ('"judged"', '"map"', "missing-references"),
        ('columns = ["comet"]', 'columns = ["ter"]', "duplicate"),
        ('columns = ["comet"]', 'columns = ["a.b"]', "wrong-type"),
    ],
)
def test_rejects_invalid_settings(study: Path, old: str, new: str, code: str) -> None:
    study.write_text(STUDY.replace(old, new, 1))
    with raises(DataError, code):
        read_study(study)
