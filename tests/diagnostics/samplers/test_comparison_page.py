"""A comparison on paper: a safe page, tables that can be read back, and bands of pictures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from support.compared_draws import few_splits
from support.html_outline import Outline
from support.posteriors import InferenceData, autoregressive, external_posterior, name_array
from support.raising import raises

from bpa_ppl import DataError, Draws, compare
from bpa_ppl.diagnostics.pages.figures import Layer
from bpa_ppl.diagnostics.samplers.calibration import (
    Replication,
    run_calibration,
    write_calibrations,
)
from bpa_ppl.diagnostics.samplers.comparison import FAILED, Comparison, SamplerResult
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison, write_comparison
from bpa_ppl.diagnostics.samplers.efficiency import COLUMNS
from bpa_ppl.diagnostics.samplers.pictures import compute_ecdf_differences, draw_pictures

NAMES = ("LM0", "<script>TM0</script>")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    chains = [autoregressive(0.3, 4, 500, 2, seed) for seed in range(2)]
    right = [external_posterior(draws, NAMES) for draws in chains]
    wrong = [external_posterior(1 + draws, NAMES) for draws in chains]
    for seconds, run in zip((1.0, 1.2, 0.1, 0.2), [*right, *wrong], strict=True):
        run["posterior"].attrs["sampling_time"] = seconds
    truth = [external_posterior(autoregressive(0.1, 4, 3000, 2, seed=9), NAMES)]
    with few_splits():
        result = compare({"<b>right": right, "wrong": wrong}, truth)
    failed = SamplerResult("broken", dict.fromkeys(COLUMNS), FAILED, "install <i>nutpie</i>")
    return replace(result, samplers=(*result.samplers, failed))


def test_the_page_is_whole_and_safe_and_so_is_the_table_in_a_notebook(
    comparison: Comparison,
) -> None:
    html = render_comparison(comparison, provenance={"lists": "<i>"}, command="bpa compare 'x<y'")
    outline = Outline(html)
    assert not {"script", "b", "i"} & set(outline.tags)
    assert "DIFFERS: wrong; failed: broken" in html
    assert "{'" not in html  # no dictionary as Python prints it
    assert "install &lt;i&gt;nutpie" in html
    assert "&lt;b&gt;right" in html
    assert "bpa compare &#39;x&lt;y&#39;" in html
    shown = comparison._repr_html_()
    assert "&lt;b&gt;right" in shown
    assert "DIFFERS" in shown
    assert not {"script", "b", "i", "img"} & set(Outline(shown).tags)


def test_pictures_whose_text_is_text_follow_the_tables(comparison: Comparison) -> None:
    html = render_comparison(comparison)
    assert html.index('<svg class="plot"') > html.index("Joint distribution</h2>")
    drawn = re.findall(r'<svg class="plot".*?</svg>', html, re.DOTALL)
    titles = [re.findall(r'class="title"[^>]*>(.*?)<', one)[0] for one in drawn]
    assert titles == [escape(name) for name in NAMES] * 2
    for one in drawn[2:4]:
        band, *lines = (
            np.array([pair.split(",") for pair in points.split()], np.float64)[:, 1]
            for points in re.findall(r'points="([^"]*)"', one)
        )
        inside = [bool(band.min() <= y.min() and y.max() <= band.max()) for y in lines]
        assert inside == [True, False]


@pytest.mark.usefixtures("without_joint_test")
def test_errors_are_drawn_where_evaluations_are_known_and_the_others_are_named() -> None:
    def run(seed: int, **stats: np.ndarray) -> InferenceData:
        return external_posterior(autoregressive(0.3, 4, 200, 2, seed), NAMES, **stats)

    steps = np.full((4, 200), 3)
    given = {"counted": run(1, n_steps=steps), "unknown": run(2)}
    for reference, floors in ((run(3), 1), (None, 0)):
        html = render_comparison(compare(given, reference))
        assert "is not recorded: unknown." in html
        drawn = re.findall(r'<svg class="plot".*?</svg>', html, re.DOTALL)
        (errors,) = (one for one in drawn if 'aria-label="error of the means' in one)
        assert errors.count('class="line guide dashed"') == floors
        assert re.findall(r'class="line (c\d)', errors) == ["c0"]
    assert "error of the means" not in render_comparison(compare({"one": run(1, n_steps=steps)}))


def test_the_numbers_are_written(comparison: Comparison, tmp_path: Path) -> None:
    written = write_comparison(comparison, tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["index.html", "comparison.json"]
    data = json.loads(written[1].read_text("utf-8"))
    right, wrong = (data["samplers"][name] for name in ("<b>right", "wrong"))
    assert (right["verdict"], wrong["verdict"], data["passed"]) == ("agrees", "DIFFERS", False)
    assert len(right["discrepancies"]) == 2 * 5
    z = comparison["<b>right"].discrepancies[0]["z"]
    assert right["discrepancies"][0]["z"] == pytest.approx(z)
    assert [run["seconds"] for run in wrong["efficiency"]["per_run"]] == [0.1, 0.2]
    # The wrong one is faster, and is not ranked.
    assert [rank["sampler"] for rank in data["ranking"]] == ["<b>right"]
    (tmp_path / "file").write_text("")
    with raises(DataError, "cannot-write"):
        write_comparison(comparison, tmp_path / "file" / "folder")


def test_without_a_reference_there_are_no_verdicts() -> None:
    found = compare({"some": [external_posterior(autoregressive(0.3, 4, 200, 2, 1), NAMES)]})
    assert found
    assert "there are no verdicts" in render_comparison(found)


def test_the_page_of_calibrations(tmp_path: Path) -> None:
    def replicate(i: int) -> Replication:
        return Replication([0.1], autoregressive(0.0, 1, 99, 1, seed=i))

    found = run_calibration(replicate, ["<i>λ"], replications=30, sampler="<b>")
    write_calibrations([found], tmp_path / "page.html", command="bpa calibrate")
    html = (tmp_path / "page.html").read_text("utf-8")
    assert "NOT calibrated: &lt;b&gt;" in html
    assert not {"script", "b", "i"} & set(Outline(html).tags)
    assert "&lt;b&gt;, 30 replications: NOT calibrated" in found._repr_html_()
    assert "&lt;i&gt;λ" in found._repr_html_()


def inside(layers: list[Layer]) -> bool:
    band, curve = layers
    return bool((np.abs(curve.y) <= band.y).all())


@pytest.mark.slow
def test_the_band_of_the_ecdf_holds_its_level() -> None:
    """Of 200 correct samplers about 5% leave it; binomial limits at 0.1%."""

    def draws(seed: int, shift: float = 0.0) -> Draws:
        values = autoregressive(0.0, 2, 150, 1, seed)
        return name_array(np.exp(values + shift), ("x",))

    left = sum(
        not inside(compute_ecdf_differences({"a": draws(seed)}, draws(1000 + seed), seed)[0])
        for seed in range(200)
    )
    assert 1 <= left <= 21
    assert not inside(compute_ecdf_differences({"a": draws(0, 0.5)}, draws(1))[0])


def test_the_variables_that_are_furthest_off_are_drawn() -> None:
    names = [*"abcdefgh"]
    draws, truth = (name_array(autoregressive(0.0, 2, 50, 8, seed), names) for seed in (1, 2))
    densities, _ = draw_pictures({"s": draws}, truth, {"s": names[::-1]}, {"s": []})
    assert re.findall('aria-label="(.)"', str(densities)) == names[2:]
    assert "6 of 8 variables, those that are furthest off." in str(densities)


@pytest.mark.slow
@pytest.mark.usefixtures("without_joint_test")
@pytest.mark.parametrize("with_reference", [True, False])
def test_more_samplers_than_colours_have_a_plot_each(with_reference: bool) -> None:
    steps = np.ones((4, 200))
    names = [f"sampler {k}" for k in range(7)]
    given = {
        name: external_posterior(autoregressive(0.1, 4, 200, 2, k), NAMES, n_steps=steps)
        for k, name in enumerate(names)
    }
    reference = external_posterior(autoregressive(0.1, 4, 400, 2, 9), NAMES)
    html = render_comparison(compare(given, reference if with_reference else None))
    figures = re.findall(r"<figure>.*?</figure>", html, re.DOTALL)
    assert len(figures) == 2 + with_reference  # densities, ECDFs, errors
    for figure in figures:
        titles = re.findall(r'aria-label="([^"]*)"', figure)
        assert [title.split(", ")[-1] for title in titles] == names
        assert "legend" not in figure
        assert set(re.findall(r'class="line (c\d)', figure)) == {"c0"}
        assert figure.count('class="line c0"') == len(names)
