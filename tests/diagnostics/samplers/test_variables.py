"""Which variables of posteriors of any program are compared, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.cmdstan import write_cmdstan
from support.command_line import run_command
from support.compared_draws import (
    COUNT,
    NAMES,
    SCHOOLS,
    Arrays,
    arrays,
    as_tree,
    importance_sample,
    tied,
)
from support.posteriors import autoregressive, external_posterior, inference_data, name_weights
from support.raising import raises
from xarray import Dataset

from bpa_ppl import DataError, UsageError, WeightDraws, compare
from bpa_ppl.diagnostics.samplers.comparison import AGREES, DIFFERS, INCONCLUSIVE, NOT_CONVERGED
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison


@pytest.mark.usefixtures("without_joint_test")
def test_what_cannot_be_compared_is_left_out() -> None:
    def run(seed: int) -> Arrays:
        rng = np.random.default_rng(seed)
        heavy = {"ratio": rng.standard_cauchy((4, COUNT))}
        factor = np.stack([np.ones((4, COUNT)), rng.normal(size=(4, COUNT))], axis=-1)
        counts = rng.poisson(3, (2, 4, COUNT))
        discrete = {"k": counts[0], "z": counts[1].astype(float)}
        return arrays(seed) | heavy | {"L": factor} | discrete

    found = compare(run(0), run(1))
    assert found["a"].verdict == AGREES
    assert {row["variable"] for row in found["a"].discrepancies} == {
        *("mu", "theta[0]", "theta[1]", "theta[2]", "L[1]", "ratio")
    }
    of_ratio = [row for row in found["a"].discrepancies if row["variable"] == "ratio"]
    assert [row["quantity"] for row in of_ratio] == ["q5", "q50", "q95"]
    quantile = np.quantile(run(1)["ratio"], 0.95)
    assert of_ratio[2]["reference"] == pytest.approx(quantile)
    assert "no mean of normal scores of ranks, is biased" in found["a"].reason
    assert found.left_out == (
        "not compared, because they are discrete: k, z",
        "not compared, because it is constant: L[0]",
        "compared by quantiles alone, as the tails of these draws are so heavy that mean and sd "
        "are not reliable: ratio",
    )
    moved = run(0)
    moved["ratio"] = moved["ratio"] + 0.5
    result = compare(moved, run(1))["a"]
    assert result.verdict == DIFFERS
    assert "the q50 of ratio" in result.reason
    assert "discrete: k, z" in str(found)
    assert found.as_dict()["left_out"] == list(found.left_out)
    with raises(DataError, "no-data", match="nothing to compare.*discrete: k"):
        compare(run(0), run(1), var_names=["k"])
    with raises(DataError, "mismatch", match=r"L\[0\] is 1 in all draws of the reference, but not"):
        compare(run(0) | {"L": run(0)["L"][..., ::-1]}, run(1))
    stopped = run(0) | {"mu": np.full((4, COUNT), 3.0)}
    result = compare(stopped, run(1))["a"]
    assert (result.verdict, "all draws of mu are equal" in result.reason) == (NOT_CONVERGED, True)


@pytest.mark.usefixtures("without_joint_test")
def test_what_is_not_finite_is_left_out_by_name() -> None:
    def run(seed: int, *, infinite: float = -np.inf) -> Arrays:
        values = arrays(seed)
        logs = np.stack([values["mu"], values["mu"]], axis=-1)
        logs[0, 7, 1] = infinite
        return values | {"logs": logs, "never": np.full((4, COUNT), np.nan)}

    found = compare(run(0), run(1))
    assert found["a"].verdict == AGREES
    assert found.left_out == ("not compared, because they are not finite: logs[1], never",)
    assert "logs[0]" in {row["variable"] for row in found["a"].discrepancies}
    # What only one side has as numbers is a difference.
    for pair, owner in (((run(0), run(1, infinite=0.0)), "a"), ((run(0, infinite=0.0), run(1)), 0)):
        found = compare(*pair)
        owner = owner or "the reference"
        assert f"not compared, because it is not finite in {owner}: logs[1]" in found.left_out
        assert found["a"].verdict == INCONCLUSIVE
        assert f"5 of 7 variables were compared, because logs[1] is not finite in {owner}: " in (
            found["a"].reason
        )
        assert compare(*pair, var_names=["mu"])["a"].verdict == AGREES
        with raises(DataError, "bad-number", match=rf"logs\[1\] is not finite in {owner}: fix"):
            compare(*pair, var_names=["mu", "logs"])


@pytest.mark.usefixtures("without_joint_test")
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
    ours, theirs = (name_weights(arrays(k)["theta"], ("LM0", "TM0", "WP0")) for k in (0, 1))
    rows = compare(ours, theirs, var_names=["weights"])["a"].discrepancies
    assert rows[0]["variable"] == "weights[LM0]"


CELLS = {
    "brackets from 1": lambda i, j: f"theta[{i + 1},{j + 1}]",
    "brackets from 0": lambda i, j: f"theta[{i}, {j}]",
    "dots from 1": lambda i, j: f"theta.{i + 1}.{j + 1}",
    "dots from 0": lambda i, j: f"theta.{i}.{j}",
}


def matrix(seed: int) -> np.ndarray:
    """Draws of an array (2, 2), whose last cell has another mean."""
    means = np.array([[0, 0], [0, 5]])
    return means + autoregressive(0.0, 4, COUNT, 4, seed).reshape(4, COUNT, 2, 2)


def as_cells(values: np.ndarray, spelling: Callable[[int, int], str]) -> Arrays:
    """Return the cells of an array (2, 2) as variables, in another order."""
    return {spelling(i, j): values[..., i, j] for j in (0, 1) for i in (1, 0)}


@pytest.mark.usefixtures("without_joint_test")
@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(of, id=name, marks=[pytest.mark.slow] if name != "dots from 1" else [])
        for name, of in CELLS.items()
    ],
)
def test_cells_with_names_of_their_own_are_those_of_an_array(
    spelling: Callable[[int, int], str],
) -> None:
    truth, cells = {"theta": matrix(1)}, as_cells(matrix(0), spelling)
    wrong = as_cells(matrix(0) + np.array([[0, 0], [3, 0]]), spelling)
    found = compare({"right": cells, "wrong": wrong, "array": {"theta": matrix(2)}}, truth)
    verdicts = [found[name].verdict for name in ("right", "wrong", "array")]
    assert (verdicts, found.left_out) == ([AGREES, DIFFERS, AGREES], ())
    assert re.search(r"of theta\[1, 0\]: by \+[23]\.", found["wrong"].reason)
    # The reference may have the cells, or both sides cells with other names.
    assert compare({"theta": matrix(2)}, cells)["a"].verdict == AGREES
    dots = as_cells(matrix(1), CELLS["dots from 1"])
    assert compare(cells, dots)["a"].verdict == AGREES
    assert compare(cells, dots if "." in next(iter(cells)) else truth).left_out == ()
    assert compare(cells, truth, var_names=["theta"])["a"].verdict == AGREES


@pytest.mark.usefixtures("without_joint_test")
@pytest.mark.parametrize(
    ("cells", "shape"),
    [
        (("theta[1]", "theta[3]"), (2,)),
        (("theta[2]", "theta[3]"), (2,)),
        (("theta[1]", "theta[2]"), (3,)),
        (("theta[1]", "theta[2]"), (1, 2)),
        (("theta[1,1]", "theta[2,2]"), (2, 2)),
        (("theta[1]", "theta.1"), (2,)),
        (("theta[1]", "theta[1,1]"), (2,)),
        (("theta[1]", "theta[999999999]"), (2,)),
        (("theta[a]", "theta[b]"), (2,)),
        (("Theta[1]", "Theta[2]"), (2,)),
        (("theta[0]",), ()),
    ],
)
def test_cells_that_are_not_those_of_the_array_stay_variables(
    cells: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    def run(seed: int) -> Arrays:
        return {"mu": autoregressive(0.3, 4, 1000, 1, seed)[..., 0]}

    array = autoregressive(0.3, 4, 1000, int(np.prod(shape)), 2).reshape(4, 1000, *shape)
    found = compare(run(0) | dict.fromkeys(cells, run(3)["mu"]), run(1) | {"theta": array})
    assert found.left_out == (
        f"not compared, because {'it is' if len(cells) == 1 else 'they are'} only in a: "
        f"{', '.join(cells)}",
        "not compared, because it is only in the reference: theta",
    )
    assert found["a"].verdict == INCONCLUSIVE
    assert f"1 of {1 + len(cells) + int(np.prod(shape))} variables were" in found["a"].reason


@pytest.mark.usefixtures("without_joint_test")
def test_cells_of_an_incomplete_array_are_named() -> None:
    def run(seed: int) -> Arrays:
        return {"mu": autoregressive(0.3, 4, 1000, 1, seed)[..., 0]}

    cells = dict.fromkeys(("theta[1]", "theta[3]"), run(3)["mu"])
    found = compare(run(0) | cells, run(1))
    named = "not compared, because they are only in a: theta[1], theta[3]"
    assert (found.left_out, found["a"].verdict) == ((named,), INCONCLUSIVE)


@pytest.mark.usefixtures("without_joint_test")
def test_a_variable_that_only_some_have_leaves_no_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that is off by 3 has another name in the reference."""
    monkeypatch.chdir(tmp_path)
    truth, mine = arrays(1), arrays(0)
    reference = {"mu": truth["mu"], "log_tau": truth["theta"][..., 0]}
    posterior = {"mu": mine["mu"], "tau": 3 + mine["theta"][..., 0]}
    found = compare({"mine": posterior, "wrong": {"mu": 5 + mine["mu"]}}, reference)
    assert not found
    assert found.left_out == (
        "not compared, because it is only in mine: tau",
        "not compared, because it is only in the reference: log_tau",
    )
    assert found["mine"].verdict == INCONCLUSIVE
    assert re.fullmatch(
        r"with 95% confidence, no posterior mean is biased by more than 0\.\d+ sd; 1 of 3 "
        "variables were compared, because tau is only in mine and log_tau is only in the "
        "reference: .*",
        found["mine"].reason,
    )
    assert found["wrong"].verdict == DIFFERS
    assert "1 of 3 variables were compared" in found["wrong"].reason
    short = {name: values[:, :50] for name, values in posterior.items()}
    for pair in ((short, reference), (posterior, {n: x[:, :50] for n, x in reference.items()})):
        result = compare(*pair)["a"]
        assert result.verdict == NOT_CONVERGED
        assert "1 of 3 variables were compared" in result.reason
    html = render_comparison(found)
    assert html.count("only in the reference: log_tau") == 1
    assert "1 of 3 variables were compared" in html
    for name, values in {"mine": posterior, "reference": reference}.items():
        inference_data({"posterior": values}).to_netcdf(f"{name}.nc")
    with pytest.raises(SystemExit) as ending:
        run_command(["compare", "mine.nc", "reference.nc"])
    printed = capsys.readouterr().out
    assert ending.value.code == 3
    assert re.search(r"^mine\.nc +inconclusive ", printed, re.MULTILINE)
    assert "1 of 3 variables were compared" in printed
    assert "only in mine.nc: tau" in printed
    run_command(["compare", "mine.nc", "reference.nc", "--var-names", "mu"])
    assert re.search(r"^mine\.nc +agrees ", capsys.readouterr().out, re.MULTILINE)


def of_adapt(
    seed: int, *, sites: tuple[str, ...] = ("weights",), **more: np.ndarray
) -> WeightDraws:
    """Draws of three weights, and of other variables, which are parameters if named by `sites`."""
    weights = autoregressive(0.0, 4, 1200, 3, seed)
    return name_weights(weights, NAMES, values=more, sampled=sites)


@pytest.mark.usefixtures("without_joint_test")
def test_the_parameters_that_a_posterior_records_are_what_must_be_compared() -> None:
    def scale(seed: int, shift: float = 0.0) -> dict[str, np.ndarray]:
        return {"scale": shift + autoregressive(0.0, 4, 1200, 1, seed)[..., 0]}

    def of_numpyro(seed: int, **more: np.ndarray) -> Any:
        return external_posterior(autoregressive(0.0, 4, 1200, 3, seed), NAMES, sites=more)

    sites = {"sites": ("weights", "scale")}
    # What is no parameter is a function of them: not needed on the other side, and not compared.
    found = compare(of_adapt(0, **scale(10)), of_numpyro(1))
    assert (found["a"].verdict, found.left_out) == (
        AGREES,
        ("not compared, because it is only in a: scale",),
    )
    found = compare(of_numpyro(0, **scale(10)), of_adapt(1))
    assert (found["a"].verdict, len(found.left_out)) == (AGREES, 1)
    assert compare(of_adapt(0, **scale(10, 3.0)), of_adapt(1, **scale(11)))["a"].verdict == AGREES
    # Parameters are compared, with each other and with any variable of another program.
    for other in (of_adapt(1, **sites, **scale(11)), of_numpyro(1, **scale(11))):
        right, wrong = (of_adapt(0, **sites, **scale(10, shift)) for shift in (0.0, 3.0))
        found = compare({"right": right, "wrong": wrong}, other)
        assert [found[name].verdict for name in ("right", "wrong")] == [AGREES, DIFFERS]
        assert re.search(r"of scale: by \+[23]\.", found["wrong"].reason)
        variables = {row["variable"] for row in found["right"].discrepancies}
        assert variables == {*NAMES, "scale"}
    # A parameter that the other does not have.
    found = compare(of_adapt(0, **sites, **scale(10)), of_numpyro(1))
    assert found["a"].verdict == INCONCLUSIVE
    assert "3 of 4 variables were compared, because scale is only in a" in found["a"].reason
    found = compare(of_adapt(0, **sites, **scale(10)), of_numpyro(1), var_names=["weights"])
    assert found["a"].verdict == AGREES


@pytest.mark.usefixtures("without_joint_test")
def test_cells_that_are_variables_are_those_of_arrays() -> None:
    """Names such as theta[1] in posteriordb, and the array theta as NumPyro or PyMC have it."""
    values = np.random.default_rng(0).normal(size=(2, 5, 1000, 10))
    values[..., 1] = np.exp(values[..., 1])
    names = ("mu", "tau", *(f"theta[{k}]" for k in range(1, 9)))
    first, last = (dict(zip(names, np.moveaxis(x, -1, 0), strict=True)) for x in values)
    theta = np.stack([first[f"theta[{k}]"] for k in range(1, 9)], axis=-1)
    found = compare({"mu": first["mu"], "tau": first["tau"], "theta": theta}, last)
    assert (found["a"].verdict, found.left_out) == (AGREES, ())
    assert len(found["a"].discrepancies) == 10 * 5
    moved = {"mu": first["mu"], "log_tau": 3 + np.log(first["tau"]), "theta": theta + 3}
    found = compare(moved, last)["a"]
    assert found.verdict == DIFFERS
    assert "9 of 11 variables were compared, because log_tau is only in a and" in found.reason


X = np.random.default_rng(0).normal(size=(4, COUNT))

RENAMED = {"coords": {"school": ["A", "B", "C"]}, "dims": {"theta": ["school"]}}


@pytest.mark.parametrize(
    ("posterior", "code", "message"),
    [
        (
            {"zeta": X},
            "no-data",
            "in common: a has zeta; the reference has mu, theta",
        ),
        ({"mu": X.T}, "wrong-length", "a has 800 chains of 4 draws: exchange"),
        ({"mu": X.reshape(-1)}, "wrong-length", "it must begin with.*other-programs.md"),
        (
            {"theta": X.reshape(-1, 1)},
            "wrong-length",
            "a has 3200 chains of 1 draws.*other-programs.md",
        ),
        (
            Dataset({"mu": (("chain", "draw"), X)}).stack(sample=("chain", "draw")),
            "wrong-length",
            "in a, mu has the dimensions sample: it needs chain and draw.*other-programs.md",
        ),
        (
            {"theta": np.stack([X, X], -1)},
            "mismatch",
            r"theta of a has .* \(2,\), but .* \(3,",
        ),
        ({"mu": X[0]}, "wrong-length", r"mu of a has the shape \(800,\): it must begin with \(ch"),
        (
            {"mu": np.where(np.arange(COUNT) == 7, np.nan, X)},
            "no-data",
            "nothing to compare; not compared, because it is not finite in a: mu",
        ),
        (as_tree(arrays(0), **RENAMED), "mismatch", r"have labels .*theta.A.*theta.Choate"),
    ],
    ids=[
        *("name", "transposed", "flat", "flat vector", "stacked"),
        *("shape", "one chain", "nan", "labels"),
    ],
)
def test_what_cannot_be_compared_is_refused(posterior: Any, code: str, message: str) -> None:
    with raises(DataError, code, match=message):
        compare(posterior, as_tree(arrays(1)))


def nested_sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of a sampler of another program, (1, n), and logarithms of their importance weights."""
    draws = importance_sample(seed, 6000)
    assert draws.log_weight is not None
    return draws.array, draws.log_weight - 400.0


@pytest.mark.usefixtures("without_joint_test")
def test_importance_weights_of_other_programs_are_named() -> None:
    values, logs = nested_sample(8)
    truth = {"x": tied(autoregressive(0.0, 4, COUNT, 3, seed=999))}
    forms = {
        "arrays": {"x": values, "logwt": logs},
        "statistics": inference_data({"posterior": {"x": values}, "sample_stats": {"logwt": logs}}),
    }
    named = {"log_weights": "logwt"}
    for form in forms.values():
        found = compare(form, truth, **named)["a"]
        assert (found.verdict, len(found.discrepancies)) == (AGREES, 15)
        assert compare(truth, form, **named)["a"].verdict == AGREES
        two_runs = nested_sample(9)
        second = {"x": two_runs[0], "logwt": two_runs[1] + 800.0}  # with another constant
        runs = compare({"two": [form, second]}, truth, **named)["two"]
        assert runs.draws is not None
        assert runs.verdict == AGREES
        assert runs.draws.importance.reshape(2, -1).sum(axis=1) == pytest.approx([0.5, 0.5])
        assert compare(form, truth, var_names=["x"])["a"].verdict != AGREES
    match = "for each draw, not .logw"
    with raises(UsageError, "bad-name", parameter="log_weights", match=match):
        compare(truth, truth, log_weights="logw")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cauchy", "levy", "pareto1.5", "pareto0.8", "t2", "lognormal3"])
def test_heavy_tails_are_compared_by_their_quantiles(name: str) -> None:
    """Right draws are never said to differ, and those with half as long tails again are found.

    k of t with 2 degrees is ½, where the variance ceases to exist: every second set of its draws
    has a smaller k̂, and is compared by its means as well; so is one in 25 of a Pareto distribution
    with a k of ⅔.
    """
    laws = {"cauchy": stats.cauchy(), "levy": stats.levy(), "t2": stats.t(2)}
    laws |= {"pareto1.5": stats.pareto(1.5), "pareto0.8": stats.pareto(0.8)}
    law = {**laws, "lognormal3": stats.lognorm(3)}[name]
    alone = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first, second = (law.rvs(size=(4, 2000), random_state=rng) for _ in range(2))
        right = compare({"x": first}, {"x": second})
        assert right["a"].verdict in (AGREES, INCONCLUSIVE)
        alone += any("compared by quantiles alone" in one for one in right.left_out)
        middle = law.median()
        wrong = compare({"x": middle + 1.5 * (first - middle)}, {"x": second})
        assert wrong["a"].verdict == DIFFERS
    assert alone >= {"t2": 0, "pareto1.5": 3}.get(name, 4)


@pytest.mark.usefixtures("without_joint_test")
def test_tails_of_a_weighted_reference_are_those_of_its_distribution() -> None:
    """Draws from a Cauchy distribution, with importance weights of a normal one."""
    draws = np.random.default_rng(0).standard_cauchy((1, 20_000))
    logs = np.log1p(draws**2) - draws**2 / 2
    found = compare({"x": X}, {"x": draws, "logwt": logs}, log_weights="logwt")
    assert (found["a"].verdict, found.left_out) == (AGREES, ())


@pytest.mark.slow
@pytest.mark.usefixtures("without_joint_test")
def test_csv_files_of_cmdstan_are_chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = arrays(0)
    draws = np.concatenate([drawn["mu"][..., None], drawn["theta"]], axis=-1)
    write_cmdstan(tmp_path, ["mu", "theta.1", "theta.2", "theta.3"], draws)
    as_tree(arrays(1)).to_netcdf("b.nc")
    found = compare({"stan": "output_*.csv"}, "b.nc")["stan"]
    same = compare(drawn, arrays(1))["a"]
    assert found.bound == pytest.approx(same.bound)
    assert (found.verdict, found.efficiency["chains"]) == (AGREES, 4)
    assert found.efficiency["evaluations"] == 7 * 4 * COUNT
    assert compare("output_1.csv", "b.nc")["output_1.csv"].efficiency["chains"] == 1
    with raises(UsageError, "duplicate", parameter="posteriors", match=r"are called b\.nc"):
        run_command(["compare", "b.nc", "output_1.csv", "b.nc"])
    with raises(DataError, "missing-file", match=r"none_\*\.csv: no such file"):
        run_command(["compare", "none_*.csv", "b.nc"])
    Path("other.csv").write_text("# stan_version_major = 2\nlp__,mu\n1,a\n")
    with raises(DataError, "damaged", match=r"other\.csv: not output of Stan"):
        run_command(["compare", "other.csv", "b.nc"])
