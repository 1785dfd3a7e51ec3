"""Files that version 1.0 wrote are read, and mean what they meant then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest
from make_golden import FOLDER, expected, unpacked
from support.posteriors import recorded_comparison
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, as_weight_draws

RECORDED = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def posterior(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def result(posterior: Path) -> dict[str, Any]:
    return expected(posterior)


@pytest.mark.parametrize("part", ["features", "choice", "texts", "weights", "prior"])
def test_choices(result: dict[str, Any], part: str) -> None:
    """Choices, weights and a prior are exactly as recorded."""
    assert result[part] == RECORDED[part]


def test_means_and_probabilities(result: dict[str, Any]) -> None:
    """Sums of floats may differ in their last bits between processors."""
    assert result["probability"] == pytest.approx(RECORDED["probability"], rel=1e-9)
    assert result["mean"] == pytest.approx(RECORDED["mean"], rel=1e-9)


def test_the_posterior_is_checked_and_has_its_record(posterior: Path) -> None:
    data = bpa.read_posterior(posterior)
    assert bpa.check(data)
    assert data.attrs["schema_version"] == 3
    comparison = recorded_comparison(data)
    assert comparison is not None
    assert (comparison.unit, comparison.evaluation) == ("chrf gain in words", "leave-one-out")
    sources = as_weight_draws(data).adaptation.recipe.sources
    assert [source.label for source in sources] == ["consensus", "length"]
    weights, options = bpa.recorded_options(data)
    assert weights is None
    assert options == {
        "sampler": "laplace:draws=200",
        "seed": 1,
        "gain": "chrf",
        "add": ["consensus", "length"],
    }


@pytest.mark.parametrize(
    ("schema", "writer"),
    [(2, "a state of bpa_ppl before the release of 1.0"), (4, r"bpa_ppl 9\.1\.0")],
)
def test_another_schema_is_refused(
    posterior: Path, tmp_path: Path, schema: int, writer: str
) -> None:
    other = shutil.copy(posterior, tmp_path / "other.nc")
    with h5py.File(other, "a") as file:
        file.attrs["schema_version"] = schema
        file.attrs["versions"] = '{"bpa_ppl": "9.1.0"}'
    match = rf"other\.nc: .* {writer}, in the schema version {schema}, .* reads version 3"
    for read in (
        bpa.read_posterior,
        bpa.Reranker,
        lambda path: bpa.compare({"a": path, "b": path}),
    ):
        with raises(DataError, "unknown-format", match=match):
            read(other)
