"""compare takes the posteriors of any program, and compares the variables that they share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import arviz
import numpy as np
import pytest
from support.external_posterior import autoregressive, inference_data
from support.raising import raises
from xarray import Dataset, DataTree

from bpa_ppl import BpaWarning, DataError, Draws, UsageError, compare
from bpa_ppl.cli.app import run_command
from bpa_ppl.diagnostics.pages.plots import Layer
from bpa_ppl.experiments.comparison.comparison import AGREES, DIFFERS, NOT_CONVERGED
from bpa_ppl.experiments.comparison.pictures import compute_ecdf_differences
from bpa_ppl.experiments.comparison.statistics import measure_joint_distance

Arrays = dict[str, Any]
SCHOOLS = ["Choate", "Deerfield", "Phillips"]
NAMED = {"coords": {"school": SCHOOLS}, "dims": {"theta": ["school"]}}


def arrays(seed: int, draws: int = 1500) -> Arrays:
    """Draws of a scalar and of a vector."""
    values = autoregressive(0.3, 4, draws, 4, seed)
    return {"mu": 3 + 2 * values[..., 0], "theta": values[..., 1:]}


def as_tree(values: Arrays, **labels: Any) -> Any:
    return inference_data({"posterior": values}, **(labels or NAMED))


def as_dataset(values: Arrays) -> Dataset:
    dims = {"mu": ("chain", "draw"), "theta": ("chain", "draw", "school")}
    data = {name: (dims[name], array) for name, array in values.items()}
    return Dataset(data, coords={"school": SCHOOLS})


def as_datatree(values: Arrays) -> DataTree:
    return DataTree.from_dict({"posterior": as_dataset(values)})


def test_every_form_of_data_has_the_same_verdict() -> None:
    wrong = arrays(0)
    wrong["theta"] = wrong["theta"] + np.array([0.0, 0.3, 0.0])
    forms = {"dict": dict, "data": as_tree, "set": as_dataset, "tree": as_datatree}
    several: Arrays = {name: form(wrong) for name, form in forms.items()}
    several["right"] = [as_tree(arrays(0, 700)), as_dataset(arrays(2, 700))]
    found = compare(several, arrays(1))
    results = [found[name] for name in forms]
    labelled = compare(as_tree(wrong), as_tree(arrays(1)))["a"]
    assert {result.verdict for result in (*results, labelled)} == {DIFFERS}
    assert len({result.bound for result in (*results, labelled)}) == 1
    assert found["right"].verdict == AGREES
    schools = [f"school={name}" for name in SCHOOLS]
    for result, labels in ((results[0], range(3)), (labelled, schools)):
        assert f"of theta[{labels[1]}]: by +0.3" in result.reason
        names = {row["variable"] for row in result.discrepancies}
        assert names == {"mu", *(f"theta[{label}]" for label in labels)}


def test_files_of_any_program_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of ArviZ, one of a Dataset without groups, and CSV of CmdStan by ArviZ."""
    monkeypatch.chdir(tmp_path)
    as_tree(arrays(0)).to_netcdf("a.nc")
    as_dataset(arrays(1)).to_netcdf("b.nc", engine="h5netcdf")
    found = compare("a.nc", "b.nc")
    assert found["a.nc"].verdict == AGREES
    for chain in range(4):
        columns = np.column_stack([x[chain].reshape(1500, -1) for x in arrays(2).values()])
        head = "# num_samples = 1500\n# num_warmup = 0\nmu,theta.1,theta.2,theta.3"
        np.savetxt(f"chain{chain}.csv", columns, delimiter=",", header=head, comments="")
    stan = arviz.from_cmdstan([f"chain{chain}.csv" for chain in range(4)])
    assert compare(stan, "b.nc")["a"].verdict == AGREES
    with raises(DataError, "missing-file", match=r"none\.nc: no such file"):
        compare("a.nc", "none.nc")


def test_what_has_no_comparable_mean_is_left_out() -> None:
    def run(seed: int) -> Arrays:
        rng = np.random.default_rng(seed)
        heavy = {"ratio": rng.standard_cauchy((4, 1500))}
        factor = np.stack([np.ones((4, 1500)), rng.normal(size=(4, 1500))], axis=-1)
        discrete = {"k": rng.poisson(3, (4, 1500)), "z": rng.poisson(3.0, (4, 1500)).astype(float)}
        return arrays(seed) | heavy | {"L": factor} | discrete

    found = compare(run(0), run(1))
    assert found["a"].verdict == AGREES
    assert {row["variable"] for row in found["a"].discrepancies} == {
        *("mu", "theta[0]", "theta[1]", "theta[2]", "L[1]")
    }
    assert [sentence.split("compared, because ")[1] for sentence in found.left_out] == [
        "they are discrete: k, z",
        "it is constant: L[0]",
        "it is too heavy in the tails, so that a mean may not exist: ratio",
    ]
    assert "discrete: k, z" in str(found)
    assert found.as_dict()["left_out"] == list(found.left_out)
    with raises(DataError, "no-data", match="nothing to compare.*discrete: k"):
        compare(run(0), run(1), var_names=["k"])
    with raises(DataError, "mismatch", match=r"L\[0\] is 1 in all draws of the reference, and not"):
        compare(run(0) | {"L": run(0)["L"][..., ::-1]}, run(1))
    stopped = run(0) | {"mu": np.full((4, 1500), 3.0)}
    result = compare(stopped, run(1))["a"]
    assert (result.verdict, "all draws of mu are equal" in result.reason) == (NOT_CONVERGED, True)


def test_statistics_and_data_of_the_posteriors_count() -> None:
    """Divergent transitions fail the check, and other observed data are another posterior."""

    def run(seed: int, diverging: int = 0, y: float = 1.0) -> Any:
        statistics = {"diverging": np.arange(6000).reshape(4, 1500) < diverging}
        observed = {"y": np.full(3, y), "names": np.array(list("abc"))}
        groups = {"posterior": arrays(seed), "sample_stats": statistics, "observed_data": observed}
        return inference_data(groups)

    assert compare(run(0), run(1))["a"].verdict == AGREES
    found = compare(run(0, diverging=40), run(1))["a"]
    assert found.verdict == NOT_CONVERGED
    assert "40 divergent transitions" in found.reason
    with raises(DataError, "mismatch", match="other values of y"):
        compare(run(0, y=2.0), run(1))


def test_variables_are_chosen_and_matched_by_their_labels() -> None:
    turned = arrays(0)
    turned["theta"] = turned["theta"][..., ::-1] + np.array([9.0, 5.0, 0.0])
    ordered = arrays(1)
    ordered["theta"] = ordered["theta"] + np.array([0.0, 5.0, 9.0])
    labels = {"coords": {"school": SCHOOLS[::-1]}, "dims": {"theta": ["school"]}}
    assert compare(as_tree(turned, **labels), as_tree(ordered))["a"].verdict == AGREES
    assert compare(as_tree(turned, **labels), ordered)["a"].verdict == DIFFERS
    assert compare(turned, ordered, var_names=["mu"])["a"].verdict == AGREES
    # Weights of `adapt` as variables like others.
    ours, theirs = (Draws({"weights": arrays(k)["theta"]}, ("LM0", "TM0", "WP0")) for k in (0, 1))
    rows = compare(ours, theirs, var_names=["weights"])["a"].discrepancies
    assert rows[0]["variable"] == "weights[feature=LM0]"


X = np.random.default_rng(0).normal(size=(4, 1500))
RENAMED = {"coords": {"school": ["A", "B", "C"]}, "dims": {"theta": ["school"]}}


@pytest.mark.parametrize(
    ("posterior", "code", "message"),
    [
        ({"zeta": X}, "no-data", "no variable in common: a has zeta; the reference has mu, theta"),
        ({"mu": X.T}, "wrong-length", "a has 1500 chains of 4 draws: are chain and draw exchanged"),
        ({"theta": np.stack([X, X], -1)}, "mismatch", r"theta has the shape \(2,\) in a, and \(3,"),
        ({"mu": X[0]}, "wrong-length", r"mu of a has the shape \(1500,\): it must begin with \(ch"),
        (
            {"mu": np.where(X < 3.25, X, np.nan)},
            "bad-number",
            "mu is not .* in draw 801 of chain 2",
        ),
        (as_tree(arrays(0), **RENAMED), "mismatch", r"other labels .*school=A.*school=Choate"),
    ],
    ids=["name", "transposed", "shape", "one chain", "nan", "labels"],
)
def test_what_cannot_be_compared_is_refused(posterior: Any, code: str, message: str) -> None:
    with raises(DataError, code, match=message):
        compare(posterior, as_tree(arrays(1)))


def test_misuse_is_refused() -> None:
    given, tau = (arrays(0), arrays(1)), "not all posteriors have the variable tau: a has"
    with raises(UsageError, "bad-name", parameter="var_names", match=tau):
        compare(*given, var_names=["tau"])
    with raises(UsageError, "wrong-type", parameter="posterior", match="not int"):
        compare(5, arrays(1))
    with raises(UsageError, "wrong-type", parameter="reference", match="not several"):
        compare(arrays(0), {"b": as_tree(arrays(1)), "c": as_tree(arrays(2))})
    with raises(DataError, "no-data", match="no run of the reference"):
        compare(arrays(0), [])


def test_pairs_of_very_many_variables_are_chosen_by_their_correlation() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 1000, 80))
    names = tuple(f"x{k}" for k in range(80))
    assert measure_joint_distance(*(Draws({"weights": z}, names) for z in (x, y))).p_value > 0.01
    x[..., 79] = 0.4 * x[..., 70] + np.sqrt(1 - 0.4**2) * x[..., 79]
    found = measure_joint_distance(*(Draws({"weights": z}, names) for z in (x, y)))
    assert (found.moment, found.p_value < 0.005) == ("the correlation of x70 and x79", True)


def inside(layers: list[Layer]) -> bool:
    band, curve = layers
    return bool((np.abs(curve.y) <= band.y).all())


def test_the_band_of_the_ecdf_holds_its_level() -> None:
    """Of 200 correct samplers about 5% leave it; binomial limits at 0.1%."""

    def draws(seed: int, shift: float = 0.0) -> Draws:
        values = autoregressive(0.0, 2, 150, 1, seed)
        return Draws({"weights": np.exp(values + shift)}, ("x",))

    left = sum(
        not inside(compute_ecdf_differences({"a": draws(seed)}, draws(1000 + seed), seed)[0])
        for seed in range(200)
    )
    assert 1 <= left <= 21
    assert not inside(compute_ecdf_differences({"a": draws(0, 0.5)}, draws(1))[0])


def test_the_command_compares_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in {"a": arrays(0), "b": arrays(1), "c": arrays(2)}.items():
        values["mu"] = values["mu"] + (name == "c")
        as_tree(values).to_netcdf(f"{name}.nc")
    run_command(["compare", "a.nc", "b.nc"])
    assert re.search(r"^a\.nc +agrees ", capsys.readouterr().out, re.MULTILINE)
    assert not Path("page").exists()
    with pytest.raises(SystemExit) as ending:
        run_command(["compare", "a.nc", "c.nc", "b.nc", "-o", "page", "-q"])
    assert ending.value.code == 3
    assert re.search(r"^c\.nc +DIFFERS ", capsys.readouterr().out, re.MULTILINE)
    html = Path("page/index.html").read_text("utf-8")
    assert html.index("<svg") < html.index("<table")
    run_command(["compare", "a.nc", "c.nc", "b.nc", "--var-names", "theta"])
    with raises(UsageError, parameter="weights", match="a second posterior"):
        run_command(["compare", "a.nc"])


def test_a_file_of_pymc_is_compared(tmp_path: Path) -> None:
    """PyMC writes seconds, dates of observations, and groups that are not needed."""
    dates = {"day": np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]")}
    groups = {"posterior": arrays(0) | {"mean": arrays(2)["theta"][..., :2]}}
    groups["log_likelihood"] = {"y": groups["posterior"]["mean"]}
    days = {"mean": ["day"], "y": ["day"]}
    data = inference_data(groups, coords=dates, dims=days)
    data["posterior"].attrs |= {"inference_library": "pymc", "sampling_time": 2.5}
    data.to_netcdf(tmp_path / "pymc.nc")
    reference = arrays(1) | {"mean": arrays(3)["theta"][..., :2]}
    with pytest.warns(BpaWarning, match="plain numbers") as notes:
        result = compare(tmp_path / "pymc.nc", reference)[str(tmp_path / "pymc.nc")]
    assert [str(note.message).partition(":")[0] for note in notes] == [
        "day of the groups posterior, log_likelihood is left out"
    ]
    assert result.verdict == AGREES
    assert result.efficiency["seconds"] == 2.5
    names = {row["variable"] for row in result.discrepancies}
    assert names == {"mu", *(f"theta[{k}]" for k in range(3)), "mean[0]", "mean[1]"}
