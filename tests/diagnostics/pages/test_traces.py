"""Traces: what is drawn is the posterior's own draws, and their ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import same_color
from support.html_outline import Outline
from support.posteriors import autoregressive, name_array, name_weights
from support.raising import raises

from bpa_ppl import DataError, Draws, UsageError, WeightDraws, plot_trace
from bpa_ppl.diagnostics.pages.figures import write_figure
from bpa_ppl.diagnostics.pages.traces import draw_traces, find_worst_mixing, write_traces

NAMES = ("LM0", "TM0")


def chains(**parts: Any) -> WeightDraws:
    values = np.random.default_rng(0).normal(size=(4, 200, 2))
    return name_weights(values, NAMES, warmup={"weights": values[:, :30] + 5.0}, **parts)


def test_traces_show_the_warm_up_before_the_draws() -> None:
    draws = chains().draws
    _, traces, _ = draw_traces(draws, ["TM0"]).axes
    kept, warmup = traces.lines[:4], traces.lines[4:]
    for lines, values, start in ((kept, draws.array, 0), (warmup, draws.warmup["weights"], -30)):
        assert same_color([line.get_color() for line in lines], ["C0", "C1", "C2", "C3"])
        for chain, line in zip(values[..., 1], lines, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), chain)
            np.testing.assert_array_equal(line.get_xdata(), start + np.arange(len(chain)))
    (grey,) = traces.patches
    assert (grey.get_x(), grey.get_width()) == (-30, 30)
    assert traces.get_xlim() == (-30, 199)


def test_the_figure_has_values_labels_and_what_is_left_out() -> None:
    rng = np.random.default_rng(0)
    sites = {"z": rng.normal(size=(4, 100, 3))}
    sites["theta"] = 2 * sites["z"]
    coords = {"school": ("Choate", "Deerfield", "Hotchkiss")}
    dims = {"z": ("school",), "theta": ("school",)}
    draws = Draws(sites, sampled=("z",), dims=dims, coords=coords)
    figure = plot_trace(draws, top=2)
    figure.draw_without_rendering()
    titles = [axes.get_title("left") for axes in figure.axes[1::3]]
    assert {*titles} < {"z[Choate]", "z[Deerfield]", "z[Hotchkiss]"}
    (missing,) = {"z[Choate]", "z[Deerfield]", "z[Hotchkiss]"} - {*titles}
    note = figure.get_supxlabel().replace("\n", " ")
    assert missing in note
    assert "theta[Choate]" in note
    for density in figure.axes[::3]:
        assert any(tick.get_text() for tick in density.get_xticklabels())
    assert plot_trace(draws, ["z"]).get_supxlabel() == ""


@pytest.mark.parametrize(
    ("shape", "odd"),
    [((4, 50), 1.0), ((4, 50), np.nan), ((1, 50), np.inf), ((4, 3), 1.0), ((4, 3), np.nan)],
)
def test_odd_draws_of_any_shape_are_drawn(
    shape: tuple[int, int], odd: float, tmp_path: Path
) -> None:
    values = np.ones((*shape, 1))
    values[0, 1] = odd
    others = {"tau": values[..., 0]}
    weights = name_weights(np.ones((*shape, 1)), ("LM0",), values=others)
    figure = draw_traces(weights.draws, ["LM0", "tau"])
    write_figure(figure, tmp_path / "traces.png")
    np.testing.assert_array_equal(figure.axes[4].lines[0].get_ydata(), values[0, :, 0])


def test_ranks_of_a_chain_that_is_higher_are_far_from_uniform() -> None:
    values = np.random.default_rng(0).normal(size=(4, 2000, 1))

    def heights(values: np.ndarray) -> np.ndarray:
        """Return the ranks of every chain, in units of the height of the axes."""
        axes = draw_traces(name_array(values, ("LM0",)), ["LM0"]).axes[2]
        to_axes = axes.transData + axes.transAxes.inverted()
        return np.array([to_axes.transform(line.get_xydata())[:, 1] for line in axes.lines[:4]])

    np.testing.assert_allclose(heights(values), 0.5, atol=0.25)
    values[3] += 20.0
    assert np.ptp([*heights(values)[3], 0.5]) > 0.4


def test_draws_are_drawn_in_the_units_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(
        "bpa_ppl.diagnostics.pages.traces.draw_traces",
        lambda *arguments: drawn.append(arguments) or draw_traces(*arguments),
    )
    draws = chains().draws
    write_traces(
        draws,
        tmp_path / "t.png",
        ["LM0"],
        html=True,
        show=lambda draws: (replace(draws, values={"weights": draws.array * 3.0}), "In thirds."),
        describe=lambda draws: f"of {draws.kind}",
    )
    ((scaled, names, _),) = drawn
    assert names == ["LM0"]
    np.testing.assert_array_equal(scaled.array, draws.array * 3.0)
    page = Outline((tmp_path / "t.html").read_text(encoding="utf-8"))
    assert any("In thirds." in text for text in page.texts)
    assert "of chains" in page.texts
    plain = plot_trace(draws, ["LM0"]).axes[1].lines[0]
    np.testing.assert_array_equal(plain.get_ydata(), draws.array[0, :, 0])


def test_those_that_mix_worst_are_drawn() -> None:
    values = np.concatenate(
        [autoregressive(correlation, 4, 300, 1, seed=1) for correlation in (0.1, 0.95, 0.5)], axis=2
    )
    draws = name_array(values, ("a", "b", "c"))
    assert find_worst_mixing(draws, 1) == ["b"]
    assert find_worst_mixing(draws, 2) == ["b", "c"]
    assert find_worst_mixing(draws, 9) == ["a", "b", "c"]
    with raises(UsageError, parameter="top"):
        find_worst_mixing(draws, 0)


def test_a_page_has_the_figure_and_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "traces.html"
    write_traces(chains(), path, title="Traces of a walk")
    outline = Outline(path.read_text(encoding="utf-8"))
    kinds = "Densities", "Traces", "Ranks", "Autocorrelation", "Effective draws"
    assert outline.values("img", "alt") == [f"{kind} of LM0, TM0" for kind in kinds]
    assert "Converged." in outline.texts


def test_what_has_no_traces_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "traces.png"
    with raises(DataError, "missing-feature", parameter="var_names"):
        write_traces(chains(), path, ["LM0", "lm"])
    with raises(UsageError, "unknown-format", parameter="output"):
        write_traces(chains(), tmp_path / "traces.txt")
    values, weight = np.zeros((1, 5, 2)), np.zeros((1, 5))
    weighted = name_weights(values, NAMES, log_weight=weight, kind="weighted")
    for draws in (weighted, name_weights(np.zeros((1, 1, 2)), NAMES, kind="point")):
        with raises(DataError, "no-data"):
            write_traces(draws, path)
    assert not list(tmp_path.iterdir())
