"""The page, figures and data of a study's results."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from raising import raises

import bpa_ppl
from bpa_ppl import DataError, UsageError
from bpa_ppl.experiments import read_results, write_figures


class PageParser(HTMLParser):
    """The texts of all table cells and the sources of all images."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.images: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag in ("td", "th")
        if tag == "img":
            self.images.append(dict(attrs)["src"] or "")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells.append(data)


def test_page_has_the_numbers_of_the_results(finished: Path) -> None:
    written = write_figures(finished, kind="none")
    page = PageParser()
    page.feed(written[0].read_text("utf-8"))
    rows = read_results(finished)[0].to_pylist()
    for method in ("canonical", "heuristic", "map", "mira", "mert-ter"):
        for metric in ("ter", "bleu"):
            chosen = [r for r in rows if (r["method"], r["size"], r["setting"]) == (method, 8, "")]
            values = [row[metric] for row in chosen]
            assert f"{np.mean(values):.1f} ± {2 * np.std(values, ddof=1):.1f}" in page.cells
        counts = np.array([row["bleu_counts"] for row in chosen]).reshape(len(chosen), -1, 9)
        words, wanted = counts.sum(axis=1)[:, [4, 8]].T
        assert f"{np.mean(words / wanted):.3f}" in page.cells
    assert bpa_ppl.__version__ in page.cells
    verdict = re.search(
        r"leaflet, \|A\| = 4: the lowest mean TER is [\d.]+ ± [\d.]+, of \S+ "
        r"\(BLEU [\d.]+, length [\d.]+\)",
        written[0].read_text("utf-8"),
    )
    assert verdict
    assert len(page.images) == 4  # two metrics, seconds, one sweep
    assert all(image.startswith("data:image/png;base64,") for image in page.images)


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
