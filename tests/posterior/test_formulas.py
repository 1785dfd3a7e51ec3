"""Weights as the settings of other programs: each chooses as the rule `mean`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from support.command_line import refused, run, succeed
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import Draws, UsageError, Weights, from_arrays, point_weights, read_weights
from bpa_ppl.posterior.formulas import FORMULAS, describe_undecided, find_undecided, format_weights
from bpa_ppl.posterior.record import FeatureScale, RecipeRecord, Record, SourceRecord

NAMES = ("am", "judge b", "length")
Scores = Callable[[str, npt.NDArray[np.float32]], npt.NDArray[np.float64]]


def listed(text: str, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """A weighted sum, as of TRL or TruLens."""
    values: dict[str, list[float]] = {}
    exec(text, values)
    order = re.match(r"# \w+ in this order: (.*)\n", text)
    assert order is not None
    assert json.loads(order[1]) == list(NAMES)
    return features @ np.array(values.get("reward_weights") or values["weights"])


def opensearch(text: str, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Normalised features times weights, as the plugin's linear ranker."""
    model = json.loads(text)["model"]["model"]
    assert model["type"] == "model/linear"
    weights, total = json.loads(model["definition"]), np.zeros(len(features))
    for column, name in zip(features.T, NAMES, strict=True):
        scale = model["feature_normalizers"][name]["standard"]
        total += weights[name] * (column - scale["mean"]) / scale["standard_deviation"]
    return total


def elasticsearch(text: str, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The script, whose scores must not be negative; they are 32-bit floats."""
    query = json.loads(text)["rescore"]["query"]
    assert (query["query_weight"], query["rescore_query_weight"]) == (0, 1)
    script = query["rescore_query"]["script_score"]["script"]
    assert script["source"].endswith("return s < 0 ? 1 / (1 - s) : 1 + s;")
    weights = script["params"]["weights"]
    s = features @ np.array([weights[name] for name in NAMES])
    scores = np.where(s < 0, 1 / (1 - np.minimum(s, 0)), 1 + s).astype(np.float32)
    assert (scores >= 0).all()
    return scores.astype(np.float64)


def weight_file(text: str, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Weights or scales that can be read again; a name with a blank is written in JSON."""
    if text.startswith("{"):
        weights: Mapping[str, float] = read_weights(text.encode())
    else:
        weights = {n: float(v) for n, v in re.findall(r"(?m)^(.*)= (.*)$", text)}
        assert weights["am"] == 1
    return features @ np.array([weights[name] for name in NAMES])


PROGRAMS: dict[str, Scores] = {
    "json": weight_file,
    "trl": listed,
    "trulens": listed,
    "opensearch": opensearch,
    "elasticsearch": elasticsearch,
    "lm-scale": weight_file,
}


def posterior_with(mean: list[float], **fields: object) -> Draws:
    """A posterior of three weights, which is called checked."""
    rng = np.random.default_rng(3)
    weights = rng.normal(mean, [0.05, 0.05, 0.2], (4, 500, 3))
    scales = {n: FeatureScale(spread=s) for n, s in zip(NAMES, (2.0, 0.5, 4.0), strict=True)}
    return Draws({"weights": weights}, NAMES, record=Record(feature_scales=scales, **fields))  # type: ignore[arg-type]


@pytest.fixture
def lists() -> bpa.NBest:
    """Two hundred lists of nine, written to the file `new.jsonl`."""
    rng = np.random.default_rng(8)
    features = rng.normal(0, [2.0, 0.5, 4.0], (1800, 3)) - [80.0, 0.0, 0.0]
    made = from_arrays([f"text {n}" for n in range(1800)], features, NAMES, 9)
    bpa.write_nbest(made, "new.jsonl")
    return made


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written to a temporary folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("program", FORMULAS)
def test_the_choices_are_those_of_the_mean(program: str, is_fixed: bool, lists: bpa.NBest) -> None:
    draws = posterior_with([1.0, 1.9, 0.15])
    if is_fixed:  # the weights of other features are not divided by another number than this one
        values, fixed = {"weights": draws.weights[..., :2]}, Weights({"length": 0.15})
        draws = Draws(values, NAMES[:2], fixed=fixed, record=draws.record)
    bpa.write_posterior(draws, "post.nc")
    text = succeed("weights", "post.nc", "--unchecked", "--format", program, "-o", "-").out
    chosen = lists.best(PROGRAMS[program](text, lists.features))
    texts = succeed("rerank", "new.jsonl", "-p", "post.nc", "--rule", "mean", "--unchecked").out
    assert lists.chosen(chosen) == texts.splitlines()
    assert len(set((chosen % 9).tolist())) > 5  # not always the same place


def test_json_has_intervals() -> None:
    draws = posterior_with([1.5, 1.9, 0.15])
    bpa.write_posterior(draws, "post.nc")
    shown = run("weights", "post.nc", "--unchecked", "-o", "w.json")
    content = json.loads(Path("w.json").read_text())
    weights, norm = dict(read_weights("w.json")), sum(map(abs, point_weights(draws).values()))
    assert weights == pytest.approx({n: w / norm for n, w in point_weights(draws).items()})
    for name, deviation in zip(NAMES, (0.05, 0.05, 0.2), strict=True):
        width = np.subtract(*content["intervals"][name][::-1])
        assert width == pytest.approx(2 * 1.96 * deviation / norm, rel=0.1)
    # In units of standard deviations within the lists, the weights are 3, 0.95 and 0.6 ± 0.8.
    assert content["undecided"] == [["judge b", "length"]]
    assert "the difference of judge b and length is not decided by your labels" in shown.err


def test_a_point_has_no_intervals() -> None:
    bpa.write_posterior(Draws({"weights": [[[1.0, 3.0]]]}, ("a, b", 'c"d'), "point"), "map.nc")
    shown = run("weights", "map.nc", "--unchecked", "--format", "json", "-o", "w.json")
    assert json.loads(Path("w.json").read_text()) == {"weights": {"a, b": 0.25, 'c"d': 0.75}}
    assert "a single point does not show which differences your labels decide" in shown.err
    trl = succeed("weights", "map.nc", "--unchecked", "--format", "trl", "-o", "-").out
    assert trl.splitlines() == [
        '# reward_funcs in this order: ["a, b", "c\\"d"]',
        "reward_weights = [0.25, 0.75]",
    ]


def test_differences_are_those_of_standardised_weights() -> None:
    draws = posterior_with([1.0, 4.0, 2.0])
    assert find_undecided(draws) == [("am", "judge b")]  # 2, 2, 8
    assert describe_undecided(posterior_with([1.0, 1.0, 2.0])) == ""
    raw = Draws(draws.values, NAMES)
    assert find_undecided(raw) == []


def test_several_differences_are_named_or_counted() -> None:
    """Differences have a standard deviation of 0.71: those above 1.39 are decided."""
    for means, named in {
        (0.0, 1.2, 2.4): "of a and b; of b and c",
        (0.0, 0.0, 0.0): "of a and b; of a and c; of b and c",
        (0.0, 0.0, 0.0, 0.0): "of a and b; of a and c; of a and d; and of 3 more pairs",
    }.items():
        weights = np.random.default_rng(0).normal(means, 0.5, (4, 2500, len(means)))
        sentence = describe_undecided(Draws({"weights": weights}, tuple("abcd"[: len(means)])))
        assert sentence == f"these differences are not decided by your labels: {named}"


def test_a_feature_without_a_recorded_scale_is_not_normalised() -> None:
    scales = {"am": FeatureScale(spread=2.0), "length": FeatureScale(spread=4.0)}
    draws = Draws({"weights": np.ones((1, 4, 3))}, NAMES, record=Record(feature_scales=scales))
    text = format_weights(draws, "opensearch", Weights(dict.fromkeys(NAMES, 1.0)))
    model = json.loads(text)["model"]["model"]
    assert json.loads(model["definition"]) == pytest.approx(
        {"am": 2 / 3, "judge b": 1 / 3, "length": 4 / 3}
    )
    normalisers = {name: one["standard"] for name, one in model["feature_normalizers"].items()}
    assert normalisers == {
        "am": {"mean": 0.0, "standard_deviation": 2.0},
        "length": {"mean": 0.0, "standard_deviation": 4.0},
    }


def test_a_weight_of_zero_is_a_weight() -> None:
    weights = Weights({"am": 0.0, "judge b": 1.0, "length": 3.0})
    text = format_weights(posterior_with([1.0, 1.0, 1.0]), "trulens", weights)
    assert "weights = [0, 0.25, 0.75]\n" in text


def test_what_a_program_cannot_compute_is_refused() -> None:
    source = SourceRecord(source="lm", feature_names=("lm",))
    bpa.write_posterior(posterior_with([1, 2, 3], recipe=RecipeRecord(sources=(source,))), "x.nc")
    bpa.write_posterior(posterior_with([-1.0, 2, 3]), "negative.nc")
    command = ("weights", "x.nc", "--unchecked", "-o", "w.txt")
    refused(*command, "--format", "trl", mention="trl does not have lm")
    refused(*command, "--format", "trll", mention="unknown format 'trll'")
    refused(*command, "--format", "trl", "--template", "moses.ini", mention="weights 'trl': choose")
    refused(*command, "--domain", "de", mention="the same weights for all domains: leave")
    command = ("weights", "negative.nc", "--unchecked", "-o", "w.txt", "--format")
    refused(*command, "trulens", mention="the weight of am is negative")
    refused(*command, "lm-scale", mention="the weight of am is not positive")
    refused(*command, "lm-scale", "--acoustic", "none", mention="the acoustic score is one of am")
    assert not Path("w.txt").exists()
    assert succeed(*command, "lm-scale", "--acoustic", "judge b").out == ""
    assert "judge b= 1\n" in Path("w.txt").read_text()


def test_options_of_other_programs_and_points_are_refused() -> None:
    posterior = posterior_with([1.0, 2.0, 3.0])
    with raises(UsageError, "conflict", parameter="acoustic"):
        format_weights(posterior, "trl", posterior.at_point(), "am")
    for point in ("mean", "mode"):
        with raises(UsageError, "conflict", parameter="draw"):
            bpa.point_weights(posterior, point, 2, unchecked=True)
    assert bpa.point_weights(posterior, "draw", 2, unchecked=True)["am"]


def test_a_weight_file_may_hold_other_fields() -> None:
    content = b'{"weights": {"lm": 0.5, "tm": [1, 2]}, "intervals": {"lm": [0, 1]}}'
    assert read_weights(content) == Weights({"lm": 0.5, "tm[0]": 1.0, "tm[1]": 2.0})
    assert dict(read_weights(b'{"weights": 0.5}')) == {"weights": 0.5}
