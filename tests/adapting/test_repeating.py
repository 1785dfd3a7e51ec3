"""The record of options, with which an adaptation is repeated, and the signature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import reference_model
from support.command_line import run
from support.posteriors import name_weights, read_weight_draws, with_record
from support.raising import raises
from support.registries import FEATURES, GAINS, LIKELIHOODS

import bpa_ppl as bpa
from bpa_ppl import DataError, Isotropic, NBest, Prior, UsageError, recorded_options
from bpa_ppl.extending import StartingWeights, log_linear

NAMES = ["lm", "tm", "wp"]
CANONICAL = {"lm": 0.5, "tm": 0.2, "wp": -1.0}
#: The lists and their references are random, which is noticed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the judged lists do not separate"),
    pytest.mark.filterwarnings("ignore:the references seem to be those of other lists"),
]
SHARED = "margin:ties=shared"
#: The pilot sample has as many draws.
FAST: dict[str, Any] = {"sampler": "laplace:draws=256"}


def lists_of(seed: int) -> NBest:
    rng = np.random.default_rng(seed)
    words = np.array(["a", "cat", "the", "dog", "sat"])
    texts = [[" ".join(rng.choice(words, 4)) for _ in range(5)] for _ in range(12)]
    return bpa.from_lists(
        texts,
        rng.normal(size=(12, 5, 3)).round(3).tolist(),
        NAMES,
        references=[" ".join(rng.choice(words, 4)) for _ in range(12)],
        sources=[" ".join(rng.choice(words, 4)) for _ in range(12)],
        extras={"system": [list("ABACB")] * 12},
    )


LISTS = lists_of(0)


#: Weights and options.
CASES: list[tuple[Any, dict[str, Any]]] = [
    (CANONICAL, {**FAST, "seed": 7, "likelihood": "oracle", "prior": "isotropic:variance=0.3"}),
    (CANONICAL, {"likelihood": LIKELIHOODS["pairs"](), "gain": GAINS.resolve("chrf", {"beta": 3})}),
    (
        StartingWeights(CANONICAL, fixed=["wp"]),
        {"gain": "bleu", "prior": Isotropic(variance={"lm": 0.5})},
    ),
    (np.array([0.5, 0.2, -1.0]), {"prior": Isotropic(variance=np.array([0.1, 0.2, 0.4]))}),
    (CANONICAL, {"prior": Prior.gaussian(CANONICAL, 0.1 + np.eye(3) / 3)}),
    (CANONICAL, {"prior": Prior.isotropic(CANONICAL, [0.1, 0.2, 0.3])}),
    (
        StartingWeights(CANONICAL, defaults={"LengthWords": 0.25}),
        {"add": ["consensus", FEATURES["length"](ratio=True)]},
    ),
    (CANONICAL, {"preset": "published-2010", "sampler": "heuristic:draws=30"}),
    ({"lm": 0.5, "tm": np.float32(0.2)}, {"exclude": ["wp"], "likelihood": SHARED}),
    (
        StartingWeights(pretrained=False),
        {"add": ["consensus", "length"], "prior": "isotropic:scale=0.2"},
    ),
    (None, {"features": NAMES[:2], "gain": "tm", "categorical": ("system",)}),
    (StartingWeights("equal", lower_is_better="wp"), {"likelihood": "none"}),
]


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] if place % 3 else [])
        for place, case in enumerate(CASES)
    ],
)
@pytest.mark.filterwarnings("ignore:tm is the gain, and so not a feature")
@pytest.mark.filterwarnings("ignore:the indicators of system are left out")
def test_recorded_options_give_the_same_file(
    weights: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    path, again = tmp_path / "posterior.nc", tmp_path / "again.nc"
    bpa.write_posterior(bpa.adapt(LISTS, weights, **{"sampler": "map", **options}), path)
    recorded_weights, recorded = recorded_options(read_weight_draws(path))
    bpa.write_posterior(bpa.adapt(LISTS, recorded_weights, **recorded), again)
    assert again.read_bytes() == path.read_bytes()


def test_only_what_was_given_is_recorded() -> None:
    posterior = bpa.adapt(LISTS, CANONICAL, **FAST, jobs=2)
    assert recorded_options(posterior) == (CANONICAL, FAST)


def test_changes_take_the_place_of_recorded_options() -> None:
    posterior = bpa.adapt(LISTS, CANONICAL, **FAST, seed=3, likelihood="oracle")
    weights, options = recorded_options(posterior, seed=0, weights="equal")
    assert (weights, options) == ("equal", {**FAST, "seed": 0, "likelihood": "oracle"})
    _, options = recorded_options(posterior, sampler="map")
    assert options == {"sampler": "map", "seed": 3, "likelihood": "oracle"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gain", lambda texts, references: np.array([float(len(text)) for text in texts])),
        ("model", lambda lists, prior, likelihood: log_linear(lists, prior, likelihood)),
        ("gain", reference_model.given(*[0] * 12)),
    ],
)
def test_objects_of_python_are_given_again(name: str, value: Any) -> None:
    posterior = bpa.adapt(LISTS, CANONICAL, sampler="map", **{name: value})
    with raises(UsageError, "not-supported", parameter=name):
        recorded_options(posterior)
    weights, options = recorded_options(posterior, **{name: value})
    again = bpa.as_weight_draws(bpa.adapt(LISTS, weights, **options))
    np.testing.assert_array_equal(again.weights, bpa.as_weight_draws(posterior).weights)


def test_posteriors_of_other_programs_are_refused() -> None:
    foreign = name_weights(np.zeros((2, 10, 1)), ("lm",))
    for posterior in (foreign, with_record(foreign, options={})):
        with raises(DataError, "not-supported"):
            recorded_options(posterior)


def test_signatures_are_equal_exactly_for_equal_adaptations(tmp_path: Path) -> None:
    def signed(nbest: NBest, weights: Any = CANONICAL, **options: Any) -> str:
        bpa.write_posterior(bpa.adapt(nbest, weights, **{**FAST, **options}), tmp_path / "p.nc")
        return str(json.loads(run("check", tmp_path / "p.nc", "--json").out)["signature"])

    first = signed(LISTS)
    assert signed(lists_of(0)) == first
    others = [signed(lists_of(1)), signed(LISTS, {**CANONICAL, "lm": 0.25}), signed(LISTS, seed=1)]
    others += [signed(LISTS, likelihood="oracle"), signed(LISTS, sampler="laplace:draws=257")]
    assert len({first, *others}) == len(others) + 1
    parts = ("lists:12|data:", "|metric:ter|", "|likelihood:margin,", "|prior:isotropic,")
    parts += ("|sampler:laplace", "|chains:1|draws:256|seed:0|numpyro:")
    assert all(part in first for part in (*parts, f"|version:{bpa.__version__}"))
