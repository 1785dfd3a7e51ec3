"""The check and the traces of posteriors of any program, without weights of features."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from support.command_line import refused, run, succeed
from support.raising import raises
from xarray import Dataset, DataTree

import bpa_ppl as bpa
from bpa_ppl import DataError, check
from bpa_ppl.diagnostics.pages.traces import draw_energy, draw_mixing

SHAPE = 4, 400


def hierarchy(**more: Any) -> DataTree:
    """A posterior as PyMC writes it: a scalar, a vector, a matrix, a count and a constant."""
    rng = np.random.default_rng(3)
    values = {
        "mu": rng.normal(size=SHAPE),
        "theta": rng.normal(size=(*SHAPE, 3)).cumsum(axis=1) * 0.02 + rng.normal(size=(*SHAPE, 3)),
        "L": rng.normal(size=(*SHAPE, 2, 2)),
        "count": rng.poisson(3.0, size=SHAPE),
        "known": np.ones(SHAPE),
    } | more
    dims = {
        n: ["chain", "draw", *(f"{n}_{k}" for k in range(v.ndim - 2))] for n, v in values.items()
    }
    statistics = {
        "diverging": np.arange(SHAPE[1]) % 100 == np.zeros((4, 1)),
        "energy": rng.gamma(5.0, size=SHAPE),
        "tree_depth": np.full(SHAPE, 3),
    }
    return DataTree.from_dict(
        {
            "posterior": Dataset({n: (dims[n], v) for n, v in values.items()}),
            "sample_stats": Dataset({n: (("chain", "draw"), v) for n, v in statistics.items()}),
        }
    )


def test_figures_are_those_of_arviz() -> None:
    data = hierarchy()
    values = {name: data["posterior"][name].values for name in ("mu", "theta", "L")}
    found = {finding.name: finding for finding in check(data).rows}

    def figures(name: str, **options: Any) -> np.ndarray:
        function = partial(getattr(array_stats, name), chain_axis=0, draw_axis=1, **options)
        return np.concatenate([np.ravel(function(x)) for x in values.values()])

    assert found["bulk ESS"].value == pytest.approx(figures("ess").min())
    assert found["tail ESS"].value == pytest.approx(
        figures("ess", method="tail", prob=(0.05, 0.95)).min()
    )
    assert found["R-hat"].value == pytest.approx(figures("rhat").max())
    assert found["R-hat"].where.startswith("theta[")
    assert found["divergences"].value == 16
    assert found["tree depth"].value == 3
    assert not check(data)
    known = {"divergences", "BFMI", "tree depth", "burn-in (|z|)", "MCSE / sd", "equal draws"}
    assert known <= found.keys()


def test_what_is_not_checked_is_said() -> None:
    broken = np.random.default_rng(5).normal(size=(*SHAPE, 3))
    broken[0, 7, 1] = np.inf
    report = check(hierarchy(broken=broken, text=np.full(SHAPE, "a"), z=np.full(SHAPE, 1j)))
    assert report.left_out == (
        "not checked, because they are not real-valued: text, z",
        "not checked, because it is discrete: count",
        "not checked, because it is not finite: broken[1]",
        "not checked, because it is constant: known",
    )
    first, *_, last = re.findall(r"^- (.*)", str(report), re.MULTILINE)
    assert first == "not checked, because it is not finite: broken[1]"  # it explains the failures
    assert last == "not checked, because it is constant: known"
    apart = {"x": np.cumsum(broken[..., 0], axis=1), "broken": broken}
    steady = {name: np.random.default_rng(6).normal(size=x.shape) for name, x in apart.items()}
    reason = bpa.compare(apart, steady)["a"].reason
    assert reason.startswith(
        "3 of 4 variables were compared, because broken[1] is not finite in a;"
    )
    assert report.as_dict()["left_out"] == list(report.left_out)
    assert {f.name for f in report.failures} == {f.name for f in check(hierarchy()).failures}
    (still,) = [f for f in check({"mu": np.ones(SHAPE)}).failures if f.name == "constant"]
    assert still.where == "mu"
    nothing = check({"mu": np.full(SHAPE, np.nan)})
    assert [finding.name for finding in nothing.failures] == ["not finite"]


def test_variables_are_chosen() -> None:
    data = hierarchy(broken=np.full(SHAPE, np.nan))
    (worst,) = {one.where for one in check(data, var_names=["mu"]).rows if one.name == "R-hat"}
    assert worst == "mu"
    assert {one.where for one in check(data, var_names=["theta[1]"]).rows} >= {"theta[1]"}
    assert not check(data, var_names=["broken"])  # named, it is checked
    (of_count,) = {f.where for f in check(data, var_names=["count"]).rows if f.name == "R-hat"}
    assert of_count == "count"
    assert check(data, var_names=["count"]).left_out == ()
    with raises(DataError, "missing-feature", parameter="var_names", match="tau: choose from"):
        check(data, var_names=["tau"])


@pytest.mark.parametrize(
    ("scale", "name"), [(1e60, ""), (1e200, "not finite"), (1e-200, "constant")]
)
def test_values_that_cannot_be_squared_need_another_unit(scale: float, name: str) -> None:
    rng = np.random.default_rng(0)
    runs = [{"x": scale * rng.normal(size=SHAPE), "y": rng.normal(size=SHAPE)} for _ in range(2)]
    failures = check(runs[0]).failures
    assert [finding.name for finding in failures] == ([name] if name else [])
    assert all(finding.where == "x" and "unit" in finding.advice for finding in failures)
    if name:
        with raises(DataError, "bad-number", match="x has values up to .*: divide it by"):
            bpa.compare(*runs)
    else:
        assert bpa.compare(*runs)["a"].verdict != "DIFFERS"


def test_what_cannot_be_checked_is_refused() -> None:
    counts = hierarchy()["posterior"].to_dataset()[["count"]]
    with raises(DataError, "no-data", match="no continuous variable.*discrete: count"):
        check(DataTree.from_dict({"posterior": counts}))
    flat = Dataset({"mu": ("draw", np.zeros(9))})
    draws_only = "mu has the dimensions draw: it needs chain and draw"
    with raises(DataError, "wrong-length", match=draws_only):
        check(DataTree.from_dict({"posterior": flat}))
    with raises(DataError, "no-data", match="no variable weights"):
        bpa.point_weights(hierarchy(), unchecked=True)


@pytest.mark.usefixtures("without_drawing")
def test_commands_take_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hierarchy().to_netcdf("any.nc", engine="h5netcdf")
    done = run("check", "any.nc")
    assert done.code == 3
    assert "divergences" in done.out
    succeed("trace", "any.nc", "-o", "any.html", "--var-names", "theta", "mu")
    page = Path("any.html").read_text("utf-8")
    assert 'alt="Traces of theta[0], theta[1], theta[2], mu"' in page
    assert "Energies" in page
    unknown = run("trace", "any.nc", "-o", "any.png", "--var-names", "tau")
    assert unknown.code == 2
    assert "posterior tau: choose from mu, theta[0], " in unknown.err
    chosen = run("check", "any.nc", "--var-names", "mu", "L")
    assert (chosen.code, "theta" in chosen.out) == (3, False)
    refused("weights", "any.nc", "-o", "w.json", mention="no variable weights")


@pytest.mark.slow
def test_a_figure_has_the_worst_hundred(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(1)
    many = rng.normal(size=(*SHAPE, 120))
    many[..., 7] = many[..., 7].cumsum(axis=1)
    with caplog.at_level("INFO", "bpa_ppl"):
        figure = bpa.plot_trace(hierarchy(many=many), ["many"])
    titles = [axes.get_title("left") for axes in figure.axes[1::3]]
    assert len(titles) == 100
    assert "many[7]" in titles
    assert "the 100 that mix worst are drawn, not" in caplog.text
    assert len(bpa.plot_trace(hierarchy(), top=2).axes) == 6


def test_mixing_and_energy_show_the_draws() -> None:
    draws = bpa.as_draws(hierarchy())
    lags, growth = (figure.axes[0] for figure in draw_mixing(draws, ["mu"]))
    assert [line.get_ydata()[0] for line in lags.lines] == [1.0] * 4
    assert growth.lines[0].get_ydata()[-1] == pytest.approx(
        array_stats.ess(draws.values["mu"], chain_axis=0, draw_axis=1)
    )
    figure = draw_energy(draws)
    assert figure is not None
    (_, pairs) = figure.axes
    assert len(pairs.lines[1].get_xdata()) == 16  # the divergent transitions
    assert draw_energy(bpa.as_draws(hierarchy()["posterior"].to_dataset())) is None
