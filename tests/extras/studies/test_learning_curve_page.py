"""The page, figures and data of a study's results."""

from __future__ import annotations

import csv
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sacrebleu.metrics import BLEU
from support.html_outline import Outline

import bpa_ppl
from bpa_ppl.extras.studies.page import describe_result, draw_figures, write_figures
from bpa_ppl.extras.studies.results import read_results


@pytest.fixture(scope="module")
def written(results: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of the study's page, in a copy of the results."""
    folder = shutil.copytree(results, tmp_path_factory.mktemp("page") / "results")
    with pytest.MonkeyPatch.context() as patch:  # drawing takes most of the time
        patch.setattr(Figure, "savefig", lambda _, file, **options: file.write(b"<svg/>"))
        return write_figures(folder, kind="none")


@pytest.mark.slow
def test_page_has_the_numbers_of_the_results(written: list[Path]) -> None:
    finished, html = written[0].parent, written[0].read_text("utf-8")
    page = Outline(html)
    cells = {cell for table in page.tables for row in table for cell in row}
    rows = read_results(finished)[0].to_pylist()
    for method in ("canonical", "heuristic", "map", "mira", "mert-ter"):
        for metric in ("ter", "bleu"):
            chosen = [r for r in rows if (r["method"], r["size"], r["setting"]) == (method, 8, "")]
            values = [row[metric] for row in chosen]
            mean, spread = np.mean(values), 2 * np.std(values, ddof=1)
            if method == "canonical":
                assert f"{mean:.4g}" in cells  # it does not depend on A
            else:
                # Two digits of the spread, as Python rounds it.
                digits = -Decimal(f"{spread:.1e}").as_tuple().exponent
                assert f"{mean:.{digits}f} ± {spread:.{digits}f}" in cells
        counts = np.array([row["bleu_counts"] for row in chosen]).reshape(len(chosen), -1, 9)
        words, wanted = counts.sum(axis=1)[:, [4, 8]].T
        assert f"{np.mean(words / wanted):.4g}" in cells
    assert bpa_ppl.__version__ in cells
    (details,) = (table for table in page.tables if "precision 4" in table[0])
    assert len(details) == 1 + 2 * 5  # each method at each size, not at the largest alone
    images = page.values("img", "src")
    assert len(images) == 4  # two metrics, seconds, one sweep
    assert all(image.startswith("data:image/svg+xml;base64,") for image in images)


def test_the_page_names_the_methods_and_the_best(written: list[Path]) -> None:
    html = written[0].read_text("utf-8")
    page = Outline(html)
    (methods,) = (dict(table[1:]) for table in page.tables if table[0] == ["method", "what it is"])
    assert methods == {
        "canonical": "the canonical weights λ_T, not adapted",
        "heuristic": "heuristic sampling (published)",
        "map": "mode of the posterior (maximum a posteriori)",
        "mira": "margin-infused relaxed algorithm (batch MIRA); gain bleu",
        "mert-ter": "minimum error rate training; gain ter; restarts = 2",
    }
    assert "The default of bpa adapt is the sampler auto" in html
    assert html.count("Each number is the mean") == 1
    rows = read_results(written[0].parent)[0].to_pylist()
    rows = [row for row in rows if row["size"] == 8 and not row["setting"]]
    means = {m: np.mean([row["ter"] for row in rows if row["method"] == m]) for m in methods}
    best = min(means, key=means.__getitem__)
    assert re.search(rf"Mean TER: on leaflet, 8 sentences, {best}.* \({means[best]:.4g}\)", html)


def point(method: str, mean: float, **values: Any) -> dict[str, Any]:
    """A point of a curve of gains between 0 and 1."""
    own = {"domain": "d", "size": 5, "method": method, "setting": "", "metric": "comet"}
    return {**own, "mean": mean, "interval": 0.031, "draw_error": 0.01, **values}


def test_the_verdict_says_which_differences_are_clear() -> None:
    points = [point("imh", 0.62), point("map", 0.61), point("canonical", 0.5), point("pro", 0.4)]
    place = {"domain": "d", "size": 5, "metric": "comet", "first": "imh"}
    differences = [
        {**place, "second": name, "adjusted": p}
        for name, p in (("map", 0.4), ("canonical", 0.01), ("pro", 0.01))
    ]
    assert describe_result(points, differences, "comet", "imh") == (
        "Mean COMET: on d, 5 sentences, imh (usually the default of bpa adapt) is best (0.62), "
        "clearly better than 2 of 3 others, not than map, and canonical (not adapted) has 0.5."
    )
    unclear = [{**one, "adjusted": 0.2} for one in differences]
    assert "but not clearly better than any of the 3 others" in describe_result(
        points, unclear, "comet", "imh"
    )


def test_curves_have_bands_and_one_draw_has_no_interval() -> None:
    def axes(**values: Any) -> list[Any]:
        points = [point("imh", 0.6, size=size, **values) for size in (5, 10)]
        return draw_figures(points, [], ["comet"])["comet"].axes

    mean, spread = axes()
    (band,) = mean.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (pytest.approx(0.58), pytest.approx(0.62))
    assert not spread.collections
    assert len(axes(interval=np.nan, draw_error=0.0)) == 1


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
