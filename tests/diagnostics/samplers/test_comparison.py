"""compare: right samplers agree, wrong ones are caught, and other posteriors are refused."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import refused, run_command
from support.compared_draws import (
    COUNT,
    NAMES,
    Change,
    arrays,
    as_dataset,
    as_tree,
    importance_sample,
    runs,
    tied,
)
from support.posteriors import (
    ComponentRecord,
    ObservedRecord,
    PriorRecord,
    autoregressive,
    inference_data,
    name_array,
    name_weights,
    record_of,
)
from support.raising import raises

from bpa_ppl import (
    DataError,
    Draws,
    UsageError,
    adapt,
    as_draws,
    as_weight_draws,
    compare,
    from_lists,
)
from bpa_ppl.diagnostics.samplers.comparison import (
    AGREES,
    DIFFERS,
    INCONCLUSIVE,
    MAX_BIAS,
    NOT_CONVERGED,
    Comparison,
)
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison
from bpa_ppl.diagnostics.samplers.programs import read_program
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs
from bpa_ppl.diagnostics.samplers.same_posterior import check_same_posterior


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
    """Correct and wrong samplers in one comparison: each has a verdict of its own."""
    wrong = {name: runs(change) for name, (change, _) in WRONG.items()}
    return compare({"right": runs(), **wrong}, reference)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", WRONG)
def test_a_wrong_sampler_is_caught(judged: Comparison, sampler: str) -> None:
    assert not judged
    assert judged["right"].verdict == AGREES
    assert judged[sampler].verdict == DIFFERS
    assert WRONG[sampler][1] in judged[sampler].reason


@pytest.mark.usefixtures("without_joint_test")
def test_agreement_needs_enough_draws(reference: list[Draws]) -> None:
    few, more = runs(count=1, draws=250), runs(count=2, draws=1500)
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
    values = [arrays(seed, 250) for seed in (0, 1)]
    few = compare(*values, bias=0.1)["a"]
    assert few.bound is not None
    asked = few.bound / 2.5
    few = compare(*values, bias=asked)["a"]
    times = int(np.ceil((few.bound / asked) ** 2))
    counts = f"{times} times as many draws are enough: {times * 1000} of a and {times * 1000} of"
    assert few.verdict == INCONCLUSIVE
    assert f"more than {asked:g}; if there is no bias, {counts}" in few.reason
    enough = compare(arrays(2, 250 * times), arrays(3, 250 * times), bias=asked)
    assert enough["a"].verdict == AGREES
    assert enough.as_dict()["bias"] == asked
    for wrong in (0.0, 0.2, float("nan")):
        with raises(UsageError, "invalid-setting", parameter="bias", match=f"not {wrong}"):
            compare(*values, bias=wrong)
    monkeypatch.chdir(tmp_path)
    for name, posterior in zip("ab", values, strict=True):
        as_tree(posterior).to_netcdf(f"{name}.nc")
    with pytest.raises(SystemExit) as ending:
        run_command(["compare", "a.nc", "b.nc", "--bias", "0.02"])
    assert ending.value.code == 3
    assert "more than 0.02; if there is no bias" in capsys.readouterr().out


@pytest.mark.usefixtures("without_joint_test")
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


@pytest.mark.usefixtures("without_joint_test")
def test_the_same_draws_given_twice_get_no_verdict(reference: list[Draws]) -> None:
    once, again = runs(count=1), runs(count=2)
    copied = runs(lambda x: x[[0, 1, 2, 0]], count=1)
    for repeated in ([*once, *once], [*once, *again], copied):
        result = compare({"twice": repeated}, reference)["twice"]
        assert result.verdict == NOT_CONVERGED
        assert result.reason.startswith("chains 0 and ")
        assert "have the same draws" in result.reason
    nearly = [name_array(run.array + 1e-12, NAMES) for run in reference]
    with raises(DataError, "duplicate", match="itself has"):
        compare({"itself": nearly}, reference)


@pytest.mark.usefixtures("without_joint_test")
def test_weights_are_matched_by_name(reference: list[Draws]) -> None:
    order = [2, 0, 1]
    names = tuple(NAMES[i] for i in order)
    values = (run.array[..., order] for run in runs())
    assert compare({"turned": [name_array(x, names) for x in values]}, reference)
    other = name_weights(autoregressive(0.0, 4, 500, 3, seed=1), ("LM0", "TM0", "XX"))
    with raises(DataError, "mismatch", match="WP0, XX;"):
        compare({"other": other}, name_weights(reference[0].array, NAMES))


@pytest.mark.usefixtures("without_joint_test")
def test_runs_that_cannot_be_compared_are_refused(reference: list[Draws]) -> None:
    short = name_array(autoregressive(0.3, 4, 50, 3, seed=77), NAMES)
    found = compare({"right": runs()}, short)["right"]
    assert found.verdict == NOT_CONVERGED
    assert "the reference has 98 effective draws" in found.reason
    with raises(DataError, "no-data", match="no run to compare for a sampler"):
        compare({"a sampler": []}, reference)
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
    np.testing.assert_array_equal(together.array[-1], long.array[-1, :: 2000 // length])


@pytest.mark.usefixtures("without_joint_test")
def test_weighted_draws_are_compared_by_their_weights(reference: list[Draws]) -> None:
    weighted = importance_sample(8, 20_000)
    unweighted = replace(weighted, kind="chains", log_weight=None)
    unweighted = replace(unweighted, values={"values": unweighted.array.reshape(4, -1, 3)})
    found = compare({"weighted": [weighted], "unweighted": [unweighted]}, reference)
    assert found["weighted"].verdict == AGREES
    assert found["unweighted"].verdict == DIFFERS


@pytest.mark.usefixtures("without_joint_test")
def test_statistics_and_data_of_the_posteriors_count() -> None:
    """Divergent transitions fail the check, and other observed data are another posterior."""

    def run(seed: int, diverging: int = 0, y: float = 1.0, apart: float = 0.0) -> Any:
        statistics = {"diverging": np.arange(4 * COUNT).reshape(4, COUNT) < diverging}
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
    # The rule is the same for a sampler, the reference, and the others without a reference.
    assert compare(run(0, diverging=1), run(1))["a"].verdict == NOT_CONVERGED
    by_reference = compare(run(0), run(1, diverging=1))
    assert by_reference["a"].verdict == NOT_CONVERGED
    assert "the reference fails the check, as a sampler would: 1 divergent transition" in (
        by_reference["a"].reason
    )
    assert by_reference.reference.endswith("which fail the check of the samplers")
    assert compare(run(0), run(1)).reference.endswith("which pass the same check")
    alone = compare({"a": run(0), "b": run(1, diverging=1), "c": run(2)})
    assert [alone[name].verdict for name in "abc"] == [AGREES, NOT_CONVERGED, AGREES]
    assert alone["a"].reason.endswith("compared with c, without a reference")
    one_of_two = compare({"a": run(0), "b": run(1, diverging=1)})
    assert [one_of_two[name].verdict for name in "ab"] == [NOT_CONVERGED] * 2
    with raises(DataError, "mismatch", match="other values of y"):
        compare(run(0, y=2.0), run(1))


@pytest.mark.usefixtures("without_joint_test")
def test_misuse_is_refused() -> None:
    given, tau = (arrays(0), arrays(1)), "not all posteriors have the variable tau: a has"
    with raises(UsageError, "bad-name", parameter="var_names", match=tau):
        compare(*given, var_names=["tau"])
    with raises(UsageError, "wrong-type", parameter="posterior", match="not int"):
        compare(5, arrays(1))
    with raises(UsageError, "wrong-type", parameter="reference", match="runs of one"):
        compare(arrays(0), {"b": as_tree(arrays(1)), "c": as_tree(arrays(2))})
    with raises(UsageError, "duplicate", parameter="posteriors", match="is called the reference"):
        compare({"the reference": arrays(0)}, arrays(1))
    with raises(DataError, "no-data", match="no run to compare for the reference"):
        compare(arrays(0), [])


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
    assert html.index("<table") < html.index("<svg")
    run_command(["compare", "a.nc", "c.nc", "b.nc", "--var-names", "theta"])
    logs = {"logwt": np.random.default_rng(0).normal(scale=0.1, size=(4, COUNT))}
    as_tree(arrays(0) | logs).to_netcdf("weighted.nc")
    with raises(UsageError, "bad-name", parameter="log_weights", match="log_weights names a var"):
        run_command(["compare", "weighted.nc", "b.nc", "--log-weights", "none"])
    run_command(["compare", "weighted.nc", "b.nc", "--log-weights", "logwt"])
    with raises(UsageError, "missing-argument", match="give two or more posteriors"):
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
    few = compare({"a": arrays(0, 150), "b": arrays(1, 150)})["a"]
    assert few.verdict == INCONCLUSIVE
    assert re.search(r"enough: \d+ of a and \d+ of b; compared with b, without a ref", few.reason)
    with raises(DataError, "duplicate", match="a has the draws of b, or its random key"):
        compare({"a": arrays(0), "b": arrays(0)})
    logs = {"logwt": np.zeros((4, COUNT))}
    with raises(DataError, "mismatch", match="only some posteriors have importance weights"):
        compare({"a": arrays(0) | logs, "b": arrays(1)}, log_weights="logwt")


@pytest.mark.usefixtures("without_joint_test")
def test_rounded_values_are_named() -> None:
    rng = np.random.default_rng(0)
    exact, other = ({"mu": rng.normal(size=(4, 5000))} for _ in range(2))
    assert "rounded" not in compare(exact, {"mu": other["mu"] + 0.1})["a"].reason
    found = compare({"mu": exact["mu"].round(1) + 0.1}, other)["a"]
    assert found.reason.startswith("the values of mu in a are rounded: write all their digits; ")


def recorded(**changes: object) -> Draws:
    """Draws with what `adapt` records of its data and of its model."""
    known = {
        "record": record_of(
            observed=ObservedRecord(sentences=3, gain="ter"),
            likelihood=ComponentRecord("margin", {"gamma": 2.0}),
            prior=PriorRecord("isotropic", {"variance": 0.1}),
        ),
        "observed": {"oracle": np.array([4, 0, 2])},
        "sentence_ids": np.array([0, 1, 2]),
        "constants": {"prior_mean": np.arange(3.0), "prior_variance": np.full(3, 0.1)},
    }
    draws = tied(autoregressive(0.3, 4, 300, 3, seed=5))
    return name_weights(draws, NAMES, **{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sentence_ids": np.array([0, 2, 1])}, "values of oracle"),
        ({"sentence_ids": np.array([0, 1, 3])}, "labels of sentence"),
        ({"sentence_ids": np.array(["0", "1", "2"])}, "labels of sentence"),
        ({"observed": {"oracle": np.array([4, 1, 2])}}, "values of oracle"),
        ({"observed": {"oracle": np.array([4, 1])}}, "values of oracle"),
        (
            {"record": record_of(likelihood=ComponentRecord("oracle"))},
            "oracle.*, not .*margin.*gamma.*2.0",
        ),
        (
            {"record": record_of(prior=PriorRecord("horseshoe"))},
            "horseshoe.*, not .*isotropic.*variance.*0.1",
        ),
        ({"constants": {"prior_mean": np.ones(3)}}, "values of prior_mean"),
    ],
)
def test_posteriors_of_other_data_or_models_are_refused(changes: dict, named: str) -> None:
    with raises(DataError, "mismatch", match=f"mine is a posterior of other .*{named}.*;"):
        compare({"mine": [recorded(**changes)]}, [recorded()])


@pytest.mark.parametrize(
    ("oracle", "problem"),
    [
        (np.zeros(5, int), ""),
        (np.zeros(3, int), ""),
        (np.array([4, 0, 2]), ""),
        (np.array([0, 0, 1, 0, 0]), "other values of oracle"),
    ],
)
def test_zeros_stand_for_data_that_are_arguments(oracle: np.ndarray, problem: str) -> None:
    """As the rows of the oracles of lists in the tables of a model."""
    draws = autoregressive(0.3, 4, 300, 3, seed=6)
    parts: dict[str, Any] = {"observed_data": {"oracle": oracle}}
    labels = {"coords": {"feature": list(NAMES)}, "dims": {"weights": ["feature"]}}
    mine = as_draws(inference_data({"posterior": {"weights": draws}, **parts}, **labels))
    for pair in ((mine, recorded().draws), (recorded().draws, mine)):
        if problem:
            with raises(DataError, "mismatch", match=problem):
                check_same_posterior("mine", *pair)
        else:
            check_same_posterior("mine", *pair)


def test_texts_that_are_equal_are_the_same_data() -> None:
    texts = {"sentence_ids": np.array(["a", "b", "c"])}
    with raises(DataError, "mismatch", match="other labels of sentence"):
        other = recorded(sentence_ids=np.array(["a"] * 3)).draws
        check_same_posterior("mine", recorded(**texts).draws, other)
    check_same_posterior("mine", recorded(**texts).draws, recorded(**texts).draws)


def test_data_in_another_order_are_the_same() -> None:
    """Of a program, whose schools have other places; without labels, places are compared."""

    def observed(*schools: str, values: Sequence[float], **parts: Any) -> Draws:
        data = {"effect": np.array(values), "prior_scale": np.array(values) + 1}
        dims = dict.fromkeys(data, ("school",))
        effects = {"observed": {"effect": data["effect"]}}
        effects |= {"constants": {"prior_scale": data["prior_scale"]}}
        coords = {"school": schools} if schools else {}
        return Draws({"mu": np.zeros((2, 9))}, dims=dims, coords=coords, **effects, **parts)

    one = observed("a", "b", "c", values=[1.0, 2.0, 3.0])
    check_same_posterior("mine", observed("b", "c", "a", values=[2.0, 3.0, 1.0]), one)
    check_same_posterior("mine", observed(values=[1.0, 2.0, 3.0]), one)
    for other in (
        observed("b", "c", "a", values=[1.0, 2.0, 3.0]),
        observed("a", "b", "d", values=[1.0, 2.0, 3.0]),
        observed(values=[2.0, 3.0, 1.0]),
        observed("a", "b", values=[1.0, 2.0]),
    ):
        with raises(DataError, "mismatch"):
            check_same_posterior("mine", other, one)


@pytest.mark.parametrize(
    "name", ["{}/my-model.py", "folder/my-model.py", "../{0.name}/my-model.py", "~/my-model.py"]
)
def test_a_program_is_read_from_any_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has any name, and imports from its own folder; it replaces no module."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    text = "from __future__ import annotations\nimport dataclasses\nfrom imported import *\n"
    text += "@dataclasses.dataclass\nclass Settings:\n    scale: float = 1.0\n"
    (folder / "my-model.py").write_text(text, "utf-8")
    (folder / "imported.py").write_text("def model(count, y): ...\n", "utf-8")
    (tmp_path / "data.json").write_text('{"count": 3, "y": [1.0, 2, 0.5]}', "utf-8")
    monkeypatch.chdir(tmp_path)
    name = name.format(folder)
    if name.startswith(".."):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
    program, arguments = read_program(f"{name}:model", tmp_path / "data.json")
    assert arguments["y"].tolist() == [1.0, 2, 0.5]
    assert inspect.signature(program).bind(**arguments)
    assert str(folder) not in sys.path
    refused(
        "calibrate", "--model", f"{name}:model", "-o", folder / "my-model.py", mention="another"
    )


def test_posteriors_of_other_data_are_not_compared() -> None:
    """The name of the file and the order of the columns do not matter."""
    rng = np.random.default_rng(5)
    names, features = ("a", "b"), rng.normal(size=(12, 2)).astype(np.float32)
    texts = [[f"{s} {word}" for word in ("cat", "dog", "red")] for s in range(4)]

    def adapted(
        texts: list[list[str]] = texts, change: float = 0, gain: float = 0, **fields: Any
    ) -> Draws:
        changed, gains = features.copy(), np.arange(12) % 5 + 0.0
        changed[7, 1] += change
        gains[7] += gain
        lists = from_lists(texts, np.split(changed, 4), names).with_extras(score=gains)
        lists = replace(lists, **fields)
        return as_weight_draws(adapt(lists, {"a": 1, "b": 1}, gain="score", sampler="map"))

    one = adapted()
    assert set(one.adaptation.data) == {"texts", "features", "oracles", "gains"}
    reversed_columns = adapted(features=features[:, ::-1], feature_names=names[::-1], origin="x")
    check_same_posterior("other", reversed_columns.draws, one.draws)
    others = {
        "texts": adapted([[*texts[0][:2], "0 mouse"], *texts[1:]]),
        "features": adapted(change=1e-3),
        "gains": adapted(gain=1e-3),
    }
    for name, other in others.items():
        with raises(DataError, "mismatch", match=f"it was made from other {name};"):
            check_same_posterior("other", other.draws, one.draws)
