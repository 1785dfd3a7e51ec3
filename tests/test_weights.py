from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import BpaWarning, DataError, NBest, UsageError, Weights, from_lists
from bpa_ppl.extending import StartingWeights, match
from bpa_ppl.weights import is_log_probability, unnamed_weights

MOSES = from_lists([["a", "b"]], [[[1, 0], [3, 0]]], ["LM0", "UnknownWordPenalty0"])
VALUES = {"TM0[1]": 0.25, "LM0": 0.5, "TM0[0]": -1.0}
LISTS = from_lists(
    [["a", "b"], ["c", "d", "e"]],
    [[[-2, 0.5, 7], [-4, 0.7, 7]], [[-1, 0.1, 9], [-1, 0.1, 9], [-4, 0.4, 9]]],
    ["logprob", "comet", "constant"],
)


def test_weights_are_an_ordered_mapping() -> None:
    weights = Weights(VALUES, "moses.ini")
    assert (dict(weights), weights == VALUES, "LM1" in weights) == (VALUES, True, False)
    assert weights.names == ("TM0[1]", "LM0", "TM0[0]")
    assert weights.values_array.tolist() == [0.25, 0.5, -1.0]
    other = weights.updated({"LM0": 3, "W0": 4})
    assert other.names == (*weights.names, "W0")
    assert (other["LM0"], weights["LM0"], other.origin) == (3, 0.5, "moses.ini")


@pytest.mark.parametrize(
    ("values", "kind", "code", "parameter"),
    [
        ([("LM0", 1), ("LM0", 1)], DataError, "duplicate", None),
        ({"W0": 1, "LM0": np.nan}, DataError, "bad-number", None),
        ([0.5, 1.0], UsageError, "wrong-type", "values"),
        ({"LM0": "high"}, UsageError, "wrong-type", "values"),
        ({"LM0": 1j}, UsageError, "wrong-type", "values"),
        ({1: 0.5}, UsageError, "wrong-type", "values"),
        ({"LM0": 0}, DataError, "no-data", None),
    ],
)
def test_values_that_are_no_weights(
    values: Any, kind: Any, code: str, parameter: str | None
) -> None:
    with raises(kind, code, parameter=parameter, match=r"LM0|$"):
        Weights(values, "moses.ini").normalised()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_normalised_weights_have_unit_norm_and_direction(values: list[float]) -> None:
    assume((norm := sum(map(abs, values))) > 1e-6)
    weights = Weights({f"F{i}": value for i, value in enumerate(values)})
    normalised = weights.normalised().values_array
    np.testing.assert_allclose(np.abs(normalised).sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(np.multiply(normalised, norm), values, rtol=1e-12, atol=1e-12)


def test_weights_are_matched_by_name(toy: NBest) -> None:
    with pytest.warns(BpaWarning, match="W0 left out"):
        matched = match({**VALUES, "W0": 1}, toy)
    assert matched.names == matched.free_names == toy.feature_names == ("LM0", "TM0[0]", "TM0[1]")
    assert matched.values.tolist() == [0.5, -1.0, 0.25]
    assert match(VALUES, toy, fixed=["TM0"]).free_names == ("LM0",)
    weights = {"LM0": 1.0, "UnknownWordPenalty0": 1.0}
    assert match(weights, MOSES).free_names == ("LM0",)
    assert match(weights, MOSES, fixed=[]).free_names == tuple(weights)
    assert match(None, MOSES).values.tolist() == [1, 1]


def test_full_vectors_from_free_ones(toy: NBest) -> None:
    matched = match(VALUES, toy, fixed=["TM0[0]"])
    assert (matched.free_names, matched.fixed_names) == (("LM0", "TM0[1]"), ("TM0[0]",))
    assert matched.full([7, 8]).tolist() == [7, -1, 8]
    assert matched.full(np.arange(12).reshape(3, 2, 2)).shape == (3, 2, 3)
    assert matched.values.tolist() == [0.5, -1.0, 0.25]  # a copy was filled


@pytest.mark.parametrize(
    ("changes", "kind", "code", "parameter", "mention"),
    [
        ({"weights": Weights({"TM0[0]": 1}, "w.txt")}, DataError, "missing-weight", "weights",
         r"^w\.txt: .* LM0, TM0\[1\],"),
        ({"weights": [0.5, 1.0]}, DataError, "wrong-length", None, "LM0"),
        ({"weights": "w.ini"}, UsageError, "wrong-type", "weights", "w.ini"),
        ({"weights": [[0.5, 1.0, 2.0]]}, UsageError, "wrong-type", "weights", None),
        ({"defaults": [1.0]}, UsageError, "wrong-type", "defaults", None),
        ({"lists": "dev.nbest"}, UsageError, "wrong-type", "lists", "dev.nbest"),
        ({"fixed": ["LM0", "LM1"]}, DataError, "missing-feature", "fixed", "LM1.* LM0, TM0"),
        ({"fixed": "LM0"}, UsageError, "wrong-type", "fixed", "LM0"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(
    toy: NBest, changes: Any, kind: Any, code: str, parameter: str | None, mention: str | None
) -> None:
    with raises(kind, code, parameter=parameter, match=mention):
        match(**{"weights": VALUES, "lists": toy, **changes})


def test_unnamed_weights_are_in_feature_order() -> None:
    for weights in ([1.0, 2, 3], np.array([1, 2, 3]), unnamed_weights([1, 2, 3])):
        matched = match(weights, LISTS)
        assert (matched.values.tolist(), matched.spread) == ([1, 2, 3], None)


def test_missing_weights_follow_from_the_spread_within_lists() -> None:
    expected = [np.sqrt((1 + 1 + 1 + 1 + 4) / 5), np.sqrt((0.02 + 0.06) / 5), 0]
    np.testing.assert_allclose(LISTS.spread, expected, rtol=1e-6)
    large = LISTS.with_features("shifted", LISTS.features[:, 1] * 2**-3 + 2**10)
    assert large.spread[3] == pytest.approx(expected[1] / 8, rel=0.01)
    matched, spread = match(None, LISTS), LISTS.spread
    assert matched.values.tolist() == [1 / spread[0], 0, 0]
    np.testing.assert_array_equal(matched.spread, spread)
    assert match(None, LISTS, defaults={"comet": 2}).values[1] == 2
    # They do not depend on the units of the features.
    other = match(None, replace(LISTS, features=LISTS.features * np.float32([8, 0.25, 1])))
    np.testing.assert_allclose(matched.values, other.values * [8, 0.25, 1])
    np.testing.assert_allclose(matched.spread, other.spread / [8, 0.25, 1], rtol=1e-6)


def test_log_probabilities_are_known_by_their_names() -> None:
    names = {"logprob", "LogProb", "seq_logprob", "model.log_prob", "lm", "LM1", "score", "F12"}
    others = {"comet_score", "film", "logic_problem", "F", "chrF2", "WordPenalty0"}
    assert set(filter(is_log_probability, names | others)) == names


def test_other_weights_stand_for_starting_weights_of_them() -> None:
    start = StartingWeights({"LM0": 0.5}, fixed=["LM0"])
    assert StartingWeights.of(start) is start
    assert StartingWeights.of("equal") == StartingWeights("equal")
    for options, code, parameter in (
        ({"fixed": "LM0"}, "wrong-type", "fixed"),
        ({"defaults": [0.5]}, "wrong-type", "defaults"),
        ({"lower_is_better": "LM0"}, "conflict", "lower_is_better"),
    ):
        with raises(UsageError, code, parameter=parameter):
            StartingWeights({"LM0": 0.5}, **options)
