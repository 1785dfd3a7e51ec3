"""compare: right samplers agree, wrong ones are caught, whatever program wrote their posteriors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from scipy.stats import binom, energy_distance
from support.cmdstan import write_cmdstan
from support.external_posterior import autoregressive, external_posterior, inference_data
from support.raising import raises
from xarray import Dataset, DataTree

from bpa_ppl import BpaWarning, DataError, Draws, UsageError
from bpa_ppl.cli.app import run_command
from bpa_ppl.diagnostics.pages.figures import Layer
from bpa_ppl.diagnostics.samplers import joint_test
from bpa_ppl.diagnostics.samplers.comparison import (
    AGREES,
    DIFFERS,
    INCONCLUSIVE,
    MAX_BIAS,
    NOT_CONVERGED,
    Comparison,
    compare,
)
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison
from bpa_ppl.diagnostics.samplers.joint_test import SPLITS, measure_joint_distance
from bpa_ppl.diagnostics.samplers.moments import bound_bias, compare_moments, holm
from bpa_ppl.diagnostics.samplers.pictures import compute_ecdf_differences, compute_ranks
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs
from bpa_ppl.diagnostics.samplers.same_posterior import check_same_posterior
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.arviz_functions import arviz_version
from bpa_ppl.posterior.record import ComponentRecord, Observed, PriorRecord, Record

NAMES = ("LM0", "TM0", "WP0")
Change = Callable[[np.ndarray], np.ndarray]


def runs(
    change: Change = lambda x: x, count: int = 4, draws: int = 500, correlation: float = 0.3
) -> list[Draws]:
    """Standard normal chains with correlation 0.7 between the first two weights, changed."""
    chains = (autoregressive(correlation, 4, draws, 3, seed=seed) for seed in range(count))
    return [Draws({"weights": change(tied(values))}, NAMES) for values in chains]


def tied(draws: np.ndarray) -> np.ndarray:
    out = draws.copy()
    out[..., 1] = 0.7 * draws[..., 0] + np.sqrt(1 - 0.7**2) * draws[..., 1]
    return out


@pytest.fixture(scope="module")
def reference() -> list[Draws]:
    return [Draws({"weights": tied(autoregressive(0.2, 4, 1500, 3, seed=999))}, NAMES)]


def test_holm_is_that_of_r() -> None:
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") of R 4.3
    np.testing.assert_allclose(holm([0.05, 0.02, 0.03, 0.04, 0.01]), [0.09, 0.08, 0.09, 0.09, 0.05])


def shuffled(draws: np.ndarray) -> np.ndarray:
    """Right in each weight, but the weights know nothing of each other."""
    rng = np.random.default_rng(0)
    out = draws.copy()
    out[..., 1] = rng.permutation(out[..., 1].reshape(-1)).reshape(out.shape[:2])
    return out


def skewed(draws: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1, but asymmetric."""
    out, sd = draws.copy(), np.sqrt(np.exp(0.18) - np.exp(0.09))
    out[..., 2] = (np.exp(0.3 * draws[..., 2]) - np.exp(0.045)) / sd
    return out


WRONG: dict[str, tuple[Change, str]] = {
    "shifted": (lambda x: x + np.array([0, 0.2, 0]), "the mean of TM0"),
    "too wide": (lambda x: x * np.array([1, 1, 1.2]), "of WP0"),
    "skewed": (skewed, "of WP0"),
    "shuffled": (shuffled, "the correlation of LM0 and TM0"),
}


@pytest.fixture(scope="module")
def judged(reference: list[Draws]) -> Comparison:
    """Right and wrong samplers beside each other: each is judged by itself."""
    wrong = {name: runs(change) for name, (change, _) in WRONG.items()}
    return compare({"right": runs(), **wrong}, reference)


@pytest.mark.parametrize("sampler", WRONG)
def test_a_wrong_sampler_is_caught(judged: Comparison, sampler: str) -> None:
    assert not judged
    assert judged["right"].verdict == AGREES
    assert judged[sampler].verdict == DIFFERS
    assert WRONG[sampler][1] in judged[sampler].reason


def test_right_samplers_are_hardly_ever_accused(reference: list[Draws]) -> None:
    truth, accused = concatenate_runs(reference), 0
    for seed in range(30):
        draws = Draws({"weights": tied(autoregressive(0.8, 4, 600, 3, seed=2000 + seed))}, NAMES)
        accused += min(gap["p_value"] for gap in compare_moments(draws, truth)) < 0.05
    # A level of 5% gives 1.5 of 30; 7 or more have a probability of 0.1%.
    assert accused < 7


def importance_sample(seed: int, count: int) -> Draws:
    """Weighted draws of `tied` normal draws from a wider normal distribution."""
    draws = tied(1.3 * autoregressive(0.0, 1, count, 3, seed=seed))
    covariance = np.array([[1, 0.7, 0], [0.7, 1, 0], [0, 0, 1]])
    square = np.einsum("cdi,ij,cdj->cd", draws, np.linalg.inv(covariance), draws)
    log_weight = -0.5 * square * (1 - 1 / 1.3**2)
    return Draws({"weights": draws}, NAMES, "weighted", log_weight)


def test_the_distance_is_the_energy_distance() -> None:
    one = Draws({"weights": autoregressive(0.0, 4, 500, 1, seed=5)}, ("LM0",))
    other = Draws({"weights": 1 + autoregressive(0.0, 4, 500, 1, seed=6)}, ("LM0",))
    found = measure_joint_distance(one, other)
    x, y = one.flat[:, 0], other.flat[:, 0]
    deviation = np.concatenate([x, y]).std()
    assert found.value == pytest.approx(energy_distance(x / deviation, y / deviation), abs=0.03)
    # All three statistics are beyond those of every split: the adjustment counts them.
    assert found.p_value <= 3 / (SPLITS + 1)
    # A mean that is off by one changes the variance of the pooled draws of both alike.
    assert found.moment_p_value > 0.01


def test_dependence_without_correlation_is_found() -> None:
    """|z₂| = |z₁|, and z₃ with the sign of z₁ z₂: marginals and correlations are those of z."""
    for dimensions in (8, 3):
        truth, z = (autoregressive(0.0, 4, 500, dimensions, seed) for seed in (1, 2))
        first, second, *_ = np.moveaxis(z, -1, 0)
        if dimensions == 8:
            second[:] = np.abs(first) * np.sign(second)
        else:
            z[..., 2] = np.abs(z[..., 2]) * np.sign(first * second)
        names = tuple(f"f{k}" for k in range(dimensions))
        distance = measure_joint_distance(*(Draws({"weights": x}, names) for x in (z, truth)))
        assert distance.p_value < 0.005
        if dimensions == 8:
            assert distance.moment == "the correlation of the squares of f0 and f1"
        else:
            assert distance.neighbours_p_value < 0.005 < distance.moment_p_value


def test_agreement_needs_enough_draws(reference: list[Draws]) -> None:
    few, more = runs(count=1, draws=250), runs(count=4, draws=2500)
    found = compare({"few": few, "more": more}, reference)
    assert not found
    assert (found["few"].verdict, found["more"].verdict) == (INCONCLUSIVE, AGREES)
    assert (found["few"].agrees, found["more"].agrees) == (None, True)
    bounds = [found.as_dict()["samplers"][name]["bound"] for name in ("few", "more")]
    assert bounds[0] > MAX_BIAS >= bounds[1]
    counts = "5 times as many draws are enough: 5000 of few and 30000 of the reference"
    assert f" {counts}" in found["few"].reason
    # The bound is part of what is said of an agreement.
    bound = f"{np.ceil(1000 * bounds[1]) / 1000:g}"
    assert f"no posterior mean is biased by more than {bound} sd" in found["more"].reason
    assert re.search(rf"^more +agrees +{bound} ", str(found), re.MULTILINE)
    assert f"more (every mean within {bound} sd)" in render_comparison(found)


@pytest.mark.usefixtures("without_joint_test")
def test_a_smaller_bias_takes_more_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The draws that the reason names are enough."""
    values = [arrays(seed, 500) for seed in (0, 1)]
    few = compare(*values, bias=0.1)["a"]
    assert few.bound is not None
    asked = few.bound / 2.5
    few = compare(*values, bias=asked)["a"]
    times = int(np.ceil((few.bound / asked) ** 2))
    counts = f"{times} times as many draws are enough: {times * 2000} of a and {times * 2000} of"
    assert few.verdict == INCONCLUSIVE
    assert f"more than {asked:g}; if there is no bias, {counts}" in few.reason
    enough = compare(arrays(2, 500 * times), arrays(3, 500 * times), bias=asked)
    assert enough["a"].verdict == AGREES
    assert enough.as_dict()["bias"] == asked
    for wrong in (0.0, 0.2, float("nan")):
        with raises(UsageError, "invalid-setting", parameter="bias", match=f"got {wrong}"):
            compare(*values, bias=wrong)
    monkeypatch.chdir(tmp_path)
    for name, posterior in zip("ab", values, strict=True):
        as_tree(posterior).to_netcdf(f"{name}.nc")
    with pytest.raises(SystemExit) as ending:
        run_command(["compare", "a.nc", "b.nc", "--bias", "0.02"])
    assert ending.value.code == 3
    assert "more than 0.02; if there is no bias" in capsys.readouterr().out


def test_a_sampler_that_fails_its_check_is_not_judged(reference: list[Draws]) -> None:
    short = runs(count=1, draws=20, correlation=0.8)
    apart = runs(lambda x: x + np.arange(4)[:, None, None])
    slow = runs(count=1, draws=500, correlation=0.95)  # agreed before, with 50 effective draws
    found = compare({"short": short, "apart": apart, "slow": slow}, reference)
    assert not found
    assert {result.verdict for result in found.samplers} == {NOT_CONVERGED}
    assert {result.bound for result in found.samplers} == {None}
    assert found["apart"].agrees is None
    assert "the chains disagree" in found["apart"].reason
    assert "is now off by" in found["short"].reason


def test_the_same_draws_given_twice_are_refused(reference: list[Draws]) -> None:
    once, again = runs(count=1), runs(count=2)
    for repeated in ([*once, *once], [*once, *again]):
        with raises(DataError, "duplicate", match="chain 0 of run 0 and chain 0 of run 1"):
            compare({"twice": repeated}, reference)
    copied = runs(lambda x: x[[0, 1, 2, 0]], count=1)
    with raises(DataError, "duplicate", match="chain 0 of run 0 and chain 3 of run 0"):
        compare({"copied": copied}, reference)
    nearly = [Draws({"weights": run.weights + 1e-12}, NAMES) for run in reference]
    with raises(DataError, "duplicate", match="itself has"):
        compare({"itself": nearly}, reference)


@pytest.mark.usefixtures("without_joint_test")
def test_weights_are_matched_by_name(reference: list[Draws]) -> None:
    order = [2, 0, 1]
    names = tuple(NAMES[i] for i in order)
    values = (run.weights[..., order] for run in runs())
    assert compare({"turned": [Draws({"weights": x}, names) for x in values]}, reference)
    other = [Draws({"weights": autoregressive(0.0, 4, 500, 3, seed=1)}, ("LM0", "TM0", "XX"))]
    with raises(DataError, "mismatch", match="WP0, XX;"):
        compare({"other": other}, reference)


def test_runs_that_cannot_be_compared_are_refused(reference: list[Draws]) -> None:
    short = Draws({"weights": autoregressive(0.3, 4, 50, 3, seed=77)}, NAMES)
    found = compare({"right": runs()}, short)["right"]
    assert found.verdict == NOT_CONVERGED
    assert "the reference has 98 effective draws" in found.reason
    with raises(DataError, "no-data", match="no run of none"):
        compare({"none": []}, reference)
    with raises(DataError, "wrong-length", match="5 draws per chain"):
        concatenate_runs(runs(count=1, draws=5))
    with pytest.raises(DataError, match=r"WP0 .* draw 6 of chain 0"):
        concatenate_runs(runs(lambda x: np.where(x < 2, x, np.nan), count=1))


def test_longer_runs_are_thinned() -> None:
    """Runs of `auto` are longer where the first draws fail their check."""
    short, long = runs(count=1)[0], runs(count=2, draws=2000)[1]
    together = concatenate_runs([short, long])
    length = short.shape[1]
    assert together.shape == (short.shape[0] + long.shape[0], length)
    np.testing.assert_array_equal(together.weights[-1], long.weights[-1, :: 2000 // length])


def test_weighted_draws_are_compared_by_their_weights(reference: list[Draws]) -> None:
    weighted = importance_sample(8, 20_000)
    unweighted = replace(weighted, kind="chains", log_weight=None)
    unweighted = replace(unweighted, values={"weights": unweighted.weights.reshape(4, -1, 3)})
    found = compare({"weighted": [weighted], "unweighted": [unweighted]}, reference)
    assert found["weighted"].verdict == AGREES
    assert found["unweighted"].verdict == DIFFERS


def nested_sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of a sampler of another program, (1, n), and logarithms of their importance weights."""
    draws = importance_sample(seed, 6000)
    assert draws.log_weight is not None
    return draws.weights, draws.log_weight - 400.0


@pytest.mark.usefixtures("without_joint_test")
def test_importance_weights_of_other_programs_are_named() -> None:
    values, logs = nested_sample(8)
    truth = {"x": tied(autoregressive(0.2, 4, 1500, 3, seed=999))}
    forms = {
        "arrays": {"x": values, "logwt": logs},
        "statistics": inference_data({"posterior": {"x": values}, "sample_stats": {"logwt": logs}}),
    }
    named, unnamed = {"log_weights": "logwt"}, {"parameter": "log_weights"}
    for form in forms.values():
        with raises(DataError, "missing-argument", **unnamed, match="log_weights='logwt'"):
            compare(form, truth)
        found = compare(form, truth, **named)["a"]
        assert (found.verdict, len(found.discrepancies)) == (AGREES, 15)
        assert compare(truth, form, **named)["a"].verdict == AGREES
        two_runs = nested_sample(9)
        second = {"x": two_runs[0], "logwt": two_runs[1] + 800.0}  # with another constant
        runs = compare({"two": [form, second]}, truth, **named)["two"]
        assert runs.draws is not None
        assert runs.verdict == AGREES
        assert runs.draws.importance.reshape(2, -1).sum(axis=1) == pytest.approx([0.5, 0.5])
        assert compare(form, truth, log_weights="none")["a"].verdict != AGREES
    with raises(UsageError, "bad-name", **unnamed, match="no posterior has the variable logw "):
        compare(truth, truth, log_weights="logw")


@pytest.mark.parametrize("name", ["Importance_Weights", "weight", "log_w", "lw", "logWT"])
def test_a_variable_with_the_name_of_weights_is_not_ignored(name: str) -> None:
    may_be = f"{name} of a may be importance weights"
    with raises(DataError, "missing-argument", parameter="log_weights", match=may_be):
        compare(arrays(0) | {name: X}, arrays(1))
    # A table, or a name that only contains such letters, is a variable.
    for other in ({"weight": np.stack([X, X], -1)}, {"blw_t": X}, {"b_wt": X}):
        with raises(DataError, "no-data", match="no variable in common"):
            compare(other, arrays(1))


@pytest.mark.usefixtures("without_joint_test")
def test_tails_of_a_weighted_reference_are_those_of_its_distribution() -> None:
    """Draws from a Cauchy distribution, with importance weights of a normal one."""
    draws = np.random.default_rng(0).standard_cauchy((1, 20_000))
    logs = np.log1p(draws**2) - draws**2 / 2
    found = compare({"x": X}, {"x": draws, "logwt": logs}, log_weights="logwt")
    assert (found["a"].verdict, found.left_out) == (AGREES, ())


def recorded(**changes: object) -> Draws:
    """Draws with what `adapt` records of its data and of its model."""
    known = {
        "record": Record(
            observed=Observed(sentences=3, gain="ter"),
            likelihood=ComponentRecord("margin", {"gamma": 2.0}),
            prior=PriorRecord("isotropic", {"variance": 0.1}),
        ),
        "observed": {"oracle": np.array([4, 0, 2])},
        "sentence_ids": np.array([0, 1, 2]),
        "constants": {"prior_mean": np.arange(3.0), "prior_variance": np.full(3, 0.1)},
    }
    draws = tied(autoregressive(0.3, 4, 300, 3, seed=5))
    return replace(Draws({"weights": draws}, NAMES), **{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"record": Record(observed=Observed(sentences=4))}, "number of sentences is 4, not 3"),
        ({"sentence_ids": np.array([0, 2, 1])}, "sentence_ids"),
        ({"sentence_ids": np.array(["0", "1", "2"])}, "sentence_ids"),
        ({"observed": {"oracle": np.array([4, 1, 2])}}, "values of oracle"),
        ({"observed": {"oracle": np.array([4, 1])}}, "values of oracle"),
        (
            {"record": Record(likelihood=ComponentRecord("oracle"))},
            "oracle.*, not .*margin.*gamma.*2.0",
        ),
        (
            {"record": Record(prior=PriorRecord("horseshoe"))},
            "horseshoe.*, not .*isotropic.*variance.*0.1",
        ),
        ({"constants": {"prior_mean": np.ones(3)}}, "values of prior_mean"),
    ],
)
def test_posteriors_of_other_data_or_models_are_refused(changes: dict, named: str) -> None:
    with raises(DataError, "mismatch", match=f"mine is a posterior of other .*{named}.*;"):
        compare({"mine": [recorded(**changes)]}, [recorded()])


@pytest.mark.parametrize(
    ("oracle", "effective", "problem"),
    [
        (np.zeros(5, int), 3, ""),  # two sentences are padding
        (np.zeros(5, int), 2, ""),  # a list of one candidate has no effect
        (np.zeros(5, int), None, ""),
        (np.zeros(2, int), None, "there are 3 lists, and tables of only 2"),
        (np.zeros(5, int), 4, "there are 3 lists, and tables of 4"),
        (np.array([0, 0, 1, 0, 0]), 3, "other values of oracle"),
    ],
)
def test_rows_of_tables_are_the_oracles_of_lists(
    oracle: np.ndarray, effective: int | None, problem: str
) -> None:
    """As NumPyro records them: row 0 of each list is its oracle, and padding comes last."""
    draws = autoregressive(0.3, 4, 300, 3, seed=6)
    parts: dict[str, Any] = {"observed_data": {"oracle": oracle}}
    if effective is not None:
        parts["log_likelihood"] = {
            "oracle": -1.0 * (np.arange(len(oracle)) < effective) + draws[..., :1] * 0
        }
    labels = {"coords": {"feature": list(NAMES)}, "dims": {"weights": ["feature"]}}
    mine = as_draws(inference_data({"posterior": {"weights": draws}, **parts}, **labels))
    for pair in ((mine, recorded()), (recorded(), mine)):
        if problem:
            with raises(DataError, "mismatch", match=problem):
                check_same_posterior("mine", *pair)
        else:
            check_same_posterior("mine", *pair)


def test_texts_that_are_equal_are_the_same_data() -> None:
    texts = {"sentence_ids": np.array(["a", "b", "c"])}
    with raises(DataError, "mismatch", match="other values of sentence_ids"):
        check_same_posterior("mine", recorded(**texts), recorded(sentence_ids=np.array(["a"] * 3)))
    check_same_posterior("mine", recorded(**texts), recorded(**texts))


# --- posteriors of any program -------------------------------------------------------------------

Arrays = dict[str, Any]
SCHOOLS = ["Choate", "Deerfield", "Phillips"]
NAMED = {"coords": {"school": SCHOOLS}, "dims": {"theta": ["school"]}}


def arrays(seed: int, draws: int = 1500) -> Arrays:
    """Draws of a scalar and of a vector."""
    values = autoregressive(0.3, 4, draws, 4, seed)
    return {"mu": 3 + 2 * values[..., 0], "theta": values[..., 1:]}


@pytest.fixture
def without_joint_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the splits of the joint test, which take most of the time of a comparison."""
    monkeypatch.setattr(joint_test, "SPLITS", 9)


def as_tree(values: Arrays, **labels: Any) -> Any:
    return inference_data({"posterior": values}, **(labels or NAMED))


def as_dataset(values: Arrays) -> Dataset:
    dims = {"mu": ("chain", "draw"), "theta": ("chain", "draw", "school")}
    data = {name: (dims[name], array) for name, array in values.items()}
    return Dataset(data, coords={"school": SCHOOLS})


def as_datatree(values: Arrays) -> DataTree:
    return DataTree.from_dict({"posterior": as_dataset(values)})


@pytest.mark.usefixtures("without_joint_test")
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
    assert compare(arrays(0), [arrays(1), arrays(2, 900)])["a"].verdict == AGREES  # other lengths
    schools = [f"school={name}" for name in SCHOOLS]
    for result, labels in ((results[0], range(3)), (labelled, schools)):
        assert f"of theta[{labels[1]}]: by +0.3" in result.reason
        names = {row["variable"] for row in result.discrepancies}
        assert names == {"mu", *(f"theta[{label}]" for label in labels)}


@pytest.mark.usefixtures("without_joint_test")
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


@pytest.mark.usefixtures("without_joint_test")
def test_what_is_not_finite_is_left_out_by_name() -> None:
    def run(seed: int, *, infinite: float = -np.inf) -> Arrays:
        values = arrays(seed)
        logs = np.stack([values["mu"], values["mu"]], axis=-1)
        logs[0, 7, 1] = infinite
        return values | {"logs": logs, "never": np.full((4, 1500), np.nan)}

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
def test_statistics_and_data_of_the_posteriors_count() -> None:
    """Divergent transitions fail the check, and other observed data are another posterior."""

    def run(seed: int, diverging: int = 0, y: float = 1.0, apart: float = 0.0) -> Any:
        statistics = {"diverging": np.arange(6000).reshape(4, 1500) < diverging}
        observed = {"y": np.full(3, y), "names": np.array(list("abc"))}
        drawn = {name: values.copy() for name, values in arrays(seed).items()}
        for values in drawn.values():
            values[0] += apart
        groups = {"posterior": drawn, "sample_stats": statistics, "observed_data": observed}
        return inference_data(groups)

    assert compare(run(0), run(1))["a"].verdict == AGREES
    found = compare(run(0, diverging=40), run(1))["a"]
    assert found.verdict == NOT_CONVERGED
    assert "40 divergent transitions" in found.reason
    found = compare(run(0, diverging=40, apart=1.0), run(1))["a"]
    assert found.reason.startswith("40 divergent transitions")
    assert "R-hat" in found.reason
    with raises(DataError, "mismatch", match="other values of y"):
        compare(run(0, y=2.0), run(1))


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
    ours, theirs = (Draws({"weights": arrays(k)["theta"]}, ("LM0", "TM0", "WP0")) for k in (0, 1))
    rows = compare(ours, theirs, var_names=["weights"])["a"].discrepancies
    assert rows[0]["variable"] == "weights[feature=LM0]"


CELLS = {
    "brackets from 1": lambda i, j: f"theta[{i + 1},{j + 1}]",
    "brackets from 0": lambda i, j: f"theta[{i}, {j}]",
    "dots from 1": lambda i, j: f"theta.{i + 1}.{j + 1}",
    "dots from 0": lambda i, j: f"theta.{i}.{j}",
}


def matrix(seed: int) -> np.ndarray:
    """Draws of an array (2, 2), whose last cell has another mean."""
    means = np.array([[0, 0], [0, 5]])
    return means + autoregressive(0.3, 4, 1500, 4, seed).reshape(4, 1500, 2, 2)


def as_cells(values: np.ndarray, spelling: Callable[[int, int], str]) -> Arrays:
    """Return the cells of an array (2, 2) as variables, in another order."""
    return {spelling(i, j): values[..., i, j] for j in (0, 1) for i in (1, 0)}


@pytest.mark.usefixtures("without_joint_test")
@pytest.mark.parametrize("spelling", CELLS.values(), ids=CELLS)
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
        f"not compared, because only a has {'it' if len(cells) == 1 else 'them'}: "
        f"{', '.join(cells)}",
        "not compared, because only the reference has it: theta",
    )
    assert found["a"].verdict == INCONCLUSIVE
    assert f"1 of {1 + len(cells) + int(np.prod(shape))} variables were" in found["a"].reason


@pytest.mark.usefixtures("without_joint_test")
def test_cells_of_an_incomplete_array_are_named() -> None:
    def run(seed: int) -> Arrays:
        return {"mu": autoregressive(0.3, 4, 1000, 1, seed)[..., 0]}

    cells = dict.fromkeys(("theta[1]", "theta[3]"), run(3)["mu"])
    found = compare(run(0) | cells, run(1))
    named = "not compared, because only a has them: theta[1], theta[3]"
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
        "not compared, because only mine has it: tau",
        "not compared, because only the reference has it: log_tau",
    )
    assert found["mine"].verdict == INCONCLUSIVE
    assert re.fullmatch(
        r"with 95% confidence, no posterior mean is biased by more than 0\.\d+ sd; 1 of 3 "
        "variables were compared, because only mine has tau and only the reference has log_tau: .*",
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
    assert html.count("only the reference has it: log_tau") == 1
    assert "1 of 3 variables were compared" in html
    for name, values in {"mine": posterior, "reference": reference}.items():
        inference_data({"posterior": values}).to_netcdf(f"{name}.nc")
    with pytest.raises(SystemExit) as ending:
        run_command(["compare", "mine.nc", "reference.nc"])
    printed = capsys.readouterr().out
    assert ending.value.code == 3
    assert re.search(r"^mine\.nc +inconclusive ", printed, re.MULTILINE)
    assert "1 of 3 variables were compared" in printed
    assert "only mine.nc has it: tau" in printed
    run_command(["compare", "mine.nc", "reference.nc", "--var-names", "mu"])
    assert re.search(r"^mine\.nc +agrees ", capsys.readouterr().out, re.MULTILINE)


def of_adapt(seed: int, *, sites: tuple[str, ...] = ("weights",), **more: np.ndarray) -> Draws:
    """Draws of three weights, and of other variables, which are parameters if named by `sites`."""
    values = {"weights": autoregressive(0.3, 4, 2500, 3, seed), **more}
    return Draws(values, NAMES, sites=sites)


@pytest.mark.usefixtures("without_joint_test")
def test_the_parameters_that_a_posterior_records_are_what_must_be_compared() -> None:
    def scale(seed: int, shift: float = 0.0) -> dict[str, np.ndarray]:
        return {"scale": shift + autoregressive(0.3, 4, 2500, 1, seed)[..., 0]}

    def of_numpyro(seed: int, **more: np.ndarray) -> Any:
        return external_posterior(autoregressive(0.3, 4, 2500, 3, seed), NAMES, sites=more)

    sites = {"sites": ("weights", "scale")}
    # What is no parameter is a function of them: not needed on the other side, and not compared.
    found = compare(of_adapt(0, **scale(10)), of_numpyro(1))
    assert (found["a"].verdict, found.left_out) == (
        AGREES,
        ("not compared, because only a has it: scale",),
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
    assert "3 of 4 variables were compared, because only a has scale" in found["a"].reason
    found = compare(of_adapt(0, **sites, **scale(10)), of_numpyro(1), var_names=["weights"])
    assert found["a"].verdict == AGREES


def test_a_feature_may_have_the_name_of_a_parameter() -> None:
    def run(seed: int) -> Draws:
        values = autoregressive(0.3, 4, 1000, 4, seed)
        return Draws(
            {"weights": values[..., :1], "LM0": 3 + values[..., 1:]},
            ("LM0[1]",),
            sites=("weights", "LM0"),
        )

    found = compare(run(0), run(1))["a"]
    assert [row["variable"] for row in found.discrepancies[::5]] == [
        *("LM0[1]", "LM0[0] (site)", "LM0[1] (site)", "LM0[2] (site)")
    ]


@pytest.mark.usefixtures("without_joint_test")
def test_reference_draws_of_posteriordb_are_those_of_arrays(shared_data: Path) -> None:
    """Names such as theta[1] in its files, and the array theta as NumPyro or PyMC have it."""
    with ZipFile(
        shared_data / "posteriordb" / "eight_schools-eight_schools_noncentered.json.zip"
    ) as archive:
        chains = json.loads(archive.read(archive.namelist()[0]))
    first, last = (
        {name: np.array([chain[name] for chain in half]) for name in half[0]}
        for half in (chains[:5], chains[5:])
    )
    theta = np.stack([first[f"theta[{k}]"] for k in range(1, 9)], axis=-1)
    found = compare({"mu": first["mu"], "tau": first["tau"], "theta": theta}, last)
    assert (found["a"].verdict, found.left_out) == (AGREES, ())
    assert len(found["a"].discrepancies) == 10 * 5
    moved = {"mu": first["mu"], "log_tau": 3 + np.log(first["tau"]), "theta": theta + 3}
    found = compare(moved, last)["a"]
    assert found.verdict == DIFFERS
    assert "9 of 11 variables were compared, because only a has log_tau and only" in found.reason


X = np.random.default_rng(0).normal(size=(4, 1500))
RENAMED = {"coords": {"school": ["A", "B", "C"]}, "dims": {"theta": ["school"]}}


@pytest.mark.parametrize(
    ("posterior", "code", "message"),
    [
        ({"zeta": X}, "no-data", "no variable in common: a has zeta; the reference has mu, theta"),
        ({"mu": X.T}, "wrong-length", "a has 1500 chains of 4 draws: are chain and draw exchanged"),
        ({"mu": X.reshape(-1)}, "wrong-length", r"get_samples\(group_by_chain=True\)"),
        (
            {"theta": X.reshape(-1, 1)},
            "wrong-length",
            r"theta of a has 6000 chains of 1 draws.*get_samples\(group_by_chain=True\)",
        ),
        (
            Dataset({"mu": (("chain", "draw"), X)}).stack(sample=("chain", "draw")),
            "wrong-length",
            r'in a, mu has the dimensions sample: .*; call unstack\("sample"\)',
        ),
        ({"theta": np.stack([X, X], -1)}, "mismatch", r"theta has the shape \(2,\) in a, and \(3,"),
        ({"mu": X[0]}, "wrong-length", r"mu of a has the shape \(1500,\): it must begin with \(ch"),
        (
            {"mu": np.where(X < 3.25, X, np.nan)},
            "no-data",
            "nothing to compare; not compared, because it is not finite in a: mu",
        ),
        (as_tree(arrays(0), **RENAMED), "mismatch", r"other labels .*school=A.*school=Choate"),
    ],
    ids=[
        *("name", "transposed", "flat", "flat vector", "stacked"),
        *("shape", "one chain", "nan", "labels"),
    ],
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
    with raises(UsageError, "duplicate", parameter="posteriors", match="is called the reference"):
        compare({"the reference": arrays(0)}, arrays(1))
    with raises(DataError, "no-data", match="no run of the reference"):
        compare(arrays(0), [])


def test_pairs_of_very_many_variables_are_chosen_by_their_correlation() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 400, 80))
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


def test_the_band_of_ranks_holds_its_level() -> None:
    """Of 300 correct samplers with correlated draws at most 5% leave it; binomial limit at 0.1%."""

    def draws(seed: int, shift: float = 0.0, scale: float = 1.0) -> Draws:
        values = autoregressive(0.6, 4, 500, 1, seed)
        return Draws({"weights": np.exp(scale * values + shift)}, ("x",))

    def leaves(ours: Draws, theirs: Draws, seed: int = 0) -> bool:
        ((band, curve),) = compute_ranks(ours, theirs, [0], seed)
        return bool(((curve.y > band.y) | (curve.y < band.base)).any())

    left = sum(leaves(draws(seed), draws(1000 + seed), seed) for seed in range(300))
    assert 1 <= left <= 28
    assert leaves(draws(0, 0.5), draws(1))
    ((_, narrow),) = compute_ranks(draws(0, scale=0.5), draws(1), [0])
    middle, edge = narrow.y[len(narrow.y) // 2], narrow.y[0]
    assert middle > 1 > edge  # a hill


@pytest.mark.usefixtures("without_joint_test")
def test_the_command_compares_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    as_tree(arrays(0)).to_netcdf("a.nc")
    as_dataset(arrays(1)).to_netcdf("b.nc", engine="h5netcdf")  # without groups
    as_tree(arrays(2) | {"mu": arrays(2)["mu"] + 1}).to_netcdf("c.nc")
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
    logs = {"logwt": np.random.default_rng(0).normal(scale=0.1, size=(4, 1500))}
    as_tree(arrays(0) | logs).to_netcdf("weighted.nc")
    with raises(DataError, "missing-argument", parameter="log_weights", match="--log-weights"):
        run_command(["compare", "weighted.nc", "b.nc"])
    run_command(["compare", "weighted.nc", "b.nc", "--log-weights", "logwt"])
    with raises(UsageError, parameter="weights", match="a second posterior"):
        run_command(["compare", "a.nc"])
    remedy = "give a NetCDF file of `bpa adapt`, or of .* any program's ArviZ data"
    with raises(DataError, "missing-file", match=rf"none\.nc: no such file: {remedy}"):
        run_command(["compare", "a.nc", "none.nc"])


@pytest.mark.usefixtures("without_joint_test")
def test_without_a_reference_each_is_compared_with_the_others() -> None:
    wrong = arrays(3)
    wrong["mu"] = wrong["mu"] + 0.6  # 0.3 posterior standard deviations
    alone = compare({"a": arrays(0), "b": [arrays(1), arrays(2)]})
    assert alone
    assert (alone.truth, alone.reference) == (None, "the draws of all others, pooled")
    for name, against in (("a", "b"), ("b", "a")):
        assert alone[name].reason.endswith(f" sd; compared with {against}, without a reference")
    assert "Agree with the others: a (every mean within" in render_comparison(alone)
    assert compare(arrays(0), [arrays(1), arrays(2)])["a"].bound == alone["a"].bound
    found = compare({"a": arrays(0), "b": arrays(1), "c": arrays(2), "wrong": wrong})
    assert found["wrong"].verdict == DIFFERS
    assert "compared with a, b and c pooled, without a reference" in found["wrong"].reason
    assert found["wrong"].discrepancies[0]["bias"] == pytest.approx(0.3, abs=0.06)
    assert found["a"].verdict == NOT_CONVERGED
    assert "give a reference if these disagree among themselves; compared with b, c and wr" in (
        found["a"].reason
    )
    few = compare({"a": arrays(0, 300), "b": arrays(1, 300)})["a"]
    assert few.verdict == INCONCLUSIVE
    assert re.search(r"enough: \d+ of a and \d+ of b; compared with b, without a ref", few.reason)
    with raises(DataError, "duplicate", match="a has the draws of b, which"):
        compare({"a": arrays(0), "b": arrays(0)})
    logs = {"logwt": np.zeros((4, 1500))}
    with raises(DataError, "mismatch", match="only some posteriors have importance weights"):
        compare({"a": arrays(0) | logs, "b": arrays(1)}, log_weights="logwt")


@pytest.mark.usefixtures("without_joint_test")
@pytest.mark.skipif(arviz_version() >= 1, reason="ArviZ 1 has no reader of CSV files of CmdStan")
def test_csv_files_of_cmdstan_are_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = arrays(0)
    draws = np.concatenate([drawn["mu"][..., None], drawn["theta"]], axis=-1)
    write_cmdstan(tmp_path, ["mu", "theta.1", "theta.2", "theta.3"], draws)
    as_tree(arrays(1)).to_netcdf("b.nc")
    found = compare({"stan": "output_*.csv"}, "b.nc")["stan"]
    same = compare(drawn, arrays(1))["a"]
    assert found.bound == pytest.approx(same.bound)
    assert (found.verdict, found.efficiency["chains"]) == (AGREES, 4)
    assert found.efficiency["evaluations"] == 7 * 6000
    run_command(["compare", "stan=output_*.csv", "truth=b.nc"])
    assert re.search(r"^stan +agrees ", capsys.readouterr().out, re.MULTILINE)
    run_command(["compare", "stan=output_*.csv", "b.nc", "--no-reference"])
    printed = capsys.readouterr().out
    assert re.findall(r"^(\S+) +agrees ", printed, re.MULTILINE) == ["stan", "b.nc"]
    assert "compared with stan, without a reference" in printed
    assert compare("output_1.csv", "b.nc")["output_1.csv"].efficiency["chains"] == 1
    with raises(UsageError, "duplicate", parameter="posteriors", match=r"are called b\.nc"):
        run_command(["compare", "b.nc", "output_1.csv", "b.nc"])
    with raises(DataError, "missing-file", match=r"none_\*\.csv: no such file"):
        run_command(["compare", "none_*.csv", "b.nc"])
    Path("other.csv").write_text("# a,b\n")
    with raises(DataError, "damaged", match=r"other\.csv: ArviZ cannot read it"):
        run_command(["compare", "other.csv", "b.nc"])


# --- the levels of the tests ---------------------------------------------------------------------


@pytest.mark.slow
def test_the_bound_is_above_the_bias() -> None:
    """In one dimension with a probability of 95%; what may agree is off by less than the limit."""
    count, covered, accepted = 200, 0, 0
    for seed in range(count):
        ours = Draws({"weights": 0.1 + autoregressive(0.5, 4, 600, 1, seed)}, ("LM0",))
        theirs = Draws({"weights": autoregressive(0.3, 4, 2000, 1, seed=9000 + seed)}, ("LM0",))
        bound = bound_bias(ours, theirs)[0]
        covered += bound >= 0.1
        accepted += bound <= MAX_BIAS
    assert binom.ppf(1e-3, count, 0.95) <= covered <= binom.ppf(0.999, count, 0.95)
    assert accepted <= 0.1 * count


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_joint_test_keeps_its_level(weighted: bool) -> None:
    """A level of 5% that is 20% would be found in 120 runs with a probability of 99%."""
    p_values = []
    for seed in range(120):  # a fresh reference each time, with another autocorrelation
        ours = importance_sample(seed, 600)
        if not weighted:
            ours = Draws({"weights": tied(autoregressive(0.6, 4, 300, 3, seed=seed))}, NAMES)
        theirs = Draws({"weights": tied(autoregressive(0.2, 4, 250, 3, seed=9000 + seed))}, NAMES)
        p_values.append(measure_joint_distance(ours, theirs, seed).p_value)
    for level in (0.01, 0.05, 0.3):
        rejected = np.sum(np.array(p_values) <= level)
        assert binom.cdf(rejected, len(p_values), level) > 1e-3
        assert binom.sf(rejected - 1, len(p_values), level) > 1e-3


@pytest.mark.usefixtures("without_joint_test")
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy
def test_draws_whose_squares_overflow_do_not_agree() -> None:
    rng = np.random.default_rng(0)
    right, draws = {"mu": rng.normal(size=(4, 2000))}, rng.normal(size=(4, 2000))
    far = np.where(rng.random((4, 2000)) < 0.01, 1e200 * draws, draws)
    found = compare({"mu": far}, right)
    assert not found
    assert found["a"].reason
