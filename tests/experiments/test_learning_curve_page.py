"""The page, figures and data of a study's results."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from html_outline import Outline
from raising import raises

import bpa_ppl
from bpa_ppl import DataError, UsageError
from bpa_ppl.experiments import read_results, write_figures


def test_page_has_the_numbers_of_the_results(finished: Path) -> None:
    written = write_figures(finished, kind="none")
    html = written[0].read_text("utf-8")
    page = Outline(html)
    cells = {cell for table in page.tables for row in table for cell in row}
    rows = read_results(finished)[0].to_pylist()
    for method in ("canonical", "heuristic", "map", "mira", "mert-ter"):
        for metric in ("ter", "bleu"):
            chosen = [r for r in rows if (r["method"], r["size"], r["setting"]) == (method, 8, "")]
            values = [row[metric] for row in chosen]
            assert f"{np.mean(values):.1f} ± {2 * np.std(values, ddof=1):.1f}" in cells
        counts = np.array([row["bleu_counts"] for row in chosen]).reshape(len(chosen), -1, 9)
        words, wanted = counts.sum(axis=1)[:, [4, 8]].T
        assert f"{np.mean(words / wanted):.3f}" in cells
    assert bpa_ppl.__version__ in cells
    numbers = r"[\d.]+ ± [\d.]+, of \S+ \(BLEU [\d.]+, length [\d.]+\)"
    assert re.search(rf"leaflet, \|A\| = 4: the lowest mean TER is {numbers}", html)
    images = page.values("img", "src")
    assert len(images) == 4  # two metrics, seconds, one sweep
    assert all(image.startswith("data:image/png;base64,") for image in images)


def test_figure_data(finished: Path) -> None:
    write_figures(finished, kind="none")
    with (finished / "points.csv").open(encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    rows = read_results(finished)[0].to_pylist()
    values = [r["ter"] for r in rows if r["setting"] == "prior_variance=1"]
    (swept,) = (p for p in points if (p["setting"], p["metric"]) == ("prior_variance=1", "ter"))
    assert float(swept["mean"]) == pytest.approx(np.mean(values))
    assert float(swept["passed"]) == 1
    assert (finished / "differences.csv").stat().st_size > 0
    with (finished / "median_seconds.csv").open(encoding="utf-8") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {row["method"] for row in rows}


@pytest.mark.parametrize(("kind", "first"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figure_files(finished: Path, kind: str, first: bytes) -> None:
    written = [path for path in write_figures(finished, kind=kind) if path.suffix == f".{kind}"]
    assert {path.stem for path in written} == {"ter", "bleu", "seconds", "sweep_prior_variance"}
    assert all(path.read_bytes().startswith(first) for path in written)


def test_rejects_results_without_figures(finished: Path, tmp_path: Path) -> None:
    with raises(UsageError, "unknown-name", parameter="kind"):
        write_figures(finished, kind="gif")
    with raises(DataError, "missing-file"):
        write_figures(tmp_path)
