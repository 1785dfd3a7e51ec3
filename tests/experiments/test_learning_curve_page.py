"""The page, figures and data of a study's results."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from html_outline import Outline
from PIL import Image
from sacrebleu.metrics import BLEU

import bpa_ppl
from bpa_ppl.experiments.page import write_figures
from bpa_ppl.experiments.results import read_results


@pytest.fixture(scope="module")
def written(results: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of the study's page, in a copy of the results."""
    folder = shutil.copytree(results, tmp_path_factory.mktemp("page") / "results")
    with pytest.MonkeyPatch.context() as patch:  # drawing takes most of the time
        empty = Image.new("RGB", (1, 1))
        saved = "bpa_ppl.diagnostics.pages.page.save"
        patch.setattr(saved, lambda _, file, kind, dpi: empty.save(file, kind))
        return write_figures(folder, kind="none")


def test_page_has_the_numbers_of_the_results(written: list[Path]) -> None:
    finished, html = written[0].parent, written[0].read_text("utf-8")
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
        assert f"{np.mean(words / wanted):.4g}" in cells
    assert bpa_ppl.__version__ in cells
    (details,) = (table for table in page.tables if "precision 4" in table[0])
    assert len(details) == 1 + 2 * 5  # each method at each size, not at the largest alone
    images = page.values("img", "src")
    assert len(images) == 4  # two metrics, seconds, one sweep
    assert all(image.startswith("data:image/png;base64,") for image in images)


def test_precisions_and_brevity_at_every_size(written: list[Path]) -> None:
    """The details are those of sacreBLEU, and the brevity is min(1, c/r)."""
    finished = written[0].parent
    with (finished / "bleu_details.csv").open(encoding="utf-8") as file:
        details = {(row["method"], int(row["size"])): row for row in csv.DictReader(file)}
    rows = [row for row in read_results(finished)[0].to_pylist() if not row["setting"]]
    assert set(details) == {(row["method"], row["size"]) for row in rows}
    for (method, size), detail in details.items():
        chosen = [row for row in rows if (row["method"], row["size"]) == (method, size)]
        counts = np.array([row["bleu_counts"] for row in chosen]).reshape(len(chosen), -1, 9)
        sums = counts.sum(axis=1).astype(int)
        scores = [
            BLEU.compute_bleu(s[:4].tolist(), s[4:8].tolist(), s[4], s[8], smooth_method="none")
            for s in sums
        ]
        for n in range(4):
            expected = np.mean([score.precisions[n] for score in scores])
            assert float(detail[f"precision_{n + 1}"]) == pytest.approx(expected)
        assert float(detail["brevity_penalty"]) == pytest.approx(np.mean([s.bp for s in scores]))
        brevity = np.mean(np.minimum(1, sums[:, 4] / sums[:, 8]))
        assert float(detail["brevity"]) == pytest.approx(brevity)
