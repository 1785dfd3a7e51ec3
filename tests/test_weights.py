from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from raising import raises

from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Weights, check_totals, is_log_probability, match

MOSES = NBest.from_lists([["a", "b"]], [[[1, 0], [3, 0]]], ["LM0", "UnknownWordPenalty0"])
VALUES = {"TM0[1]": 0.25, "LM0": 0.5, "TM0[0]": -1.0}


class TestWeights:
    def test_weights_are_an_ordered_mapping(self) -> None:
        weights = Weights(VALUES, "moses.ini")
        assert dict(weights) == VALUES
        assert weights.names == ("TM0[1]", "LM0", "TM0[0]")
        assert weights.values_array.tolist() == [0.25, 0.5, -1.0]
        assert weights == VALUES
        assert "LM1" not in weights
        assert repr(weights) == "Weights({'TM0[1]': 0.25, 'LM0': 0.5, 'TM0[0]': -1})"

    def test_rejects_invalid_values(self) -> None:
        with raises(DataError, "duplicate", match=r"^moses\.ini: "):
            Weights([("LM0", 1), ("LM0", 1)], "moses.ini")
        for value in (np.nan, np.inf, -np.inf):
            with raises(DataError, "bad-number", match="LM0"):
                Weights({"W0": 1, "LM0": value})
        for values in ([0.5, 1.0], {"LM0": "high"}, {1: 0.5}, None):
            with raises(UsageError, "wrong-type", parameter="values"):
                Weights(values)  # type: ignore[arg-type]
        with raises(DataError, "no-data"):
            Weights({"LM0": 0}).normalised()

    def test_updated_returns_new_weights(self) -> None:
        weights = Weights(VALUES, "moses.ini")
        other = weights.updated({"LM0": 3, "W0": 4})
        assert other.names == (*weights.names, "W0")
        assert (other["LM0"], weights["LM0"], other.origin) == (3, 0.5, "moses.ini")

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1))
    def test_normalised_weights_have_unit_norm_and_direction(self, values: list[float]) -> None:
        assume((norm := sum(map(abs, values))) > 1e-6)
        weights = Weights({f"F{i}": value for i, value in enumerate(values)})
        normalised = weights.normalised().values_array
        np.testing.assert_allclose(np.abs(normalised).sum(), 1, rtol=1e-12)
        np.testing.assert_allclose(normalised * norm, values, rtol=1e-12, atol=1e-12)

    def test_normalising_some_leaves_the_others_unchanged(self) -> None:
        weights = Weights(VALUES).normalised(["LM0", "TM0[0]"])
        assert dict(weights) == {"TM0[1]": 0.25, "LM0": 0.5 / 1.5, "TM0[0]": -1 / 1.5}


class TestMatch:
    def test_weights_are_matched_by_name(self, toy: NBest) -> None:
        matched = match(Weights(VALUES), toy)
        assert matched.names == toy.feature_names == ("LM0", "TM0[0]", "TM0[1]")
        assert matched.values.tolist() == [0.5, -1.0, 0.25]
        assert matched.free_names == toy.feature_names

    def test_warns_of_weights_without_feature(self, toy: NBest) -> None:
        with pytest.warns(BpaWarning, match="W0 left out"):
            matched = match({**VALUES, "W0": 1}, toy)
        assert matched.values.tolist() == [0.5, -1.0, 0.25]

    def test_fixed_by_name_or_label(self, toy: NBest) -> None:
        assert match(VALUES, toy, fixed=["TM0[0]"]).free.tolist() == [True, False, True]
        assert match(VALUES, toy, fixed=["TM0"]).free_names == ("LM0",)
        assert match(VALUES, toy, fixed=[]).free.all()

    def test_unknown_word_penalty_is_fixed_by_default(self) -> None:
        weights = {"LM0": 1.0, "UnknownWordPenalty0": 1.0}
        assert match(weights, MOSES).free_names == ("LM0",)
        assert match(weights, MOSES, fixed=[]).free_names == tuple(weights)
        assert match(None, MOSES).values.tolist() == [1, 1]

    def test_full_vectors_from_free_ones(self, toy: NBest) -> None:
        matched = match(VALUES, toy, fixed=["TM0[0]"])
        assert (matched.free_names, matched.fixed_names) == (("LM0", "TM0[1]"), ("TM0[0]",))
        assert (matched.free_values.tolist(), matched.fixed_values.tolist()) == ([0.5, 0.25], [-1])
        assert matched.full([7, 8]).tolist() == [7, -1, 8]
        assert matched.full(np.arange(12).reshape(3, 2, 2)).shape == (3, 2, 3)
        assert matched.full(np.zeros((0, 2))).shape == (0, 3)
        assert matched.values.tolist() == [0.5, -1.0, 0.25]  # a copy was filled
        with pytest.raises(ValueError, match="shape mismatch"):
            matched.full([1, 2, 3])

    def test_rejects_invalid_weights(self, toy: NBest) -> None:
        with raises(
            DataError, "missing-weight", parameter="defaults", match=r"^w\.txt: .* LM0, TM0\[1\],"
        ):
            match(Weights({"TM0[0]": 1}, "w.txt"), toy)
        for weights in ("w.ini", ["a"], [[0.5, 1.0, 2.0]]):
            with raises(UsageError, "wrong-type", parameter="weights"):
                match(weights, toy)
        with raises(UsageError, "wrong-type", parameter="defaults"):
            match(VALUES, toy, defaults=[1.0])  # type: ignore[arg-type]
        with raises(UsageError, "wrong-type", parameter="nbest"):
            match(VALUES, "dev.nbest")  # type: ignore[arg-type]

    def test_rejects_invalid_fixed_features(self, toy: NBest) -> None:
        with raises(DataError, "missing-feature", parameter="fixed", match="LM1 .* LM0, TM0"):
            match(VALUES, toy, fixed=["LM0", "LM1"])
        with raises(DataError, "no-data", parameter="fixed"):
            match(VALUES, toy, fixed=["LM0", "TM0"])
        with raises(UsageError, "wrong-type", parameter="fixed"):
            match(VALUES, toy, fixed="LM0")


def test_totals_are_compared_within_lists(toy: NBest) -> None:
    weights = (0.5, -1.0, 0.25)
    totals = np.array([float(f"{score:.6g}") for score in toy.scores(weights)], np.float32)
    shift = np.repeat([5, -7, 0], toy.sizes).astype(np.float32)
    with warnings.catch_warnings(action="error"):
        check_totals(toy, weights)  # no totals to check
        check_totals(replace(toy, totals=totals), weights)
        check_totals(replace(toy, totals=totals + shift), weights)
    with pytest.warns(BpaWarning, match=r"do not reproduce the totals of \d\d%"):
        check_totals(replace(toy, totals=totals), (0.5, -1.0, 0.5))


class TestUnnamedAndMissingWeights:
    LISTS = NBest.from_lists(
        [["a", "b"], ["c", "d", "e"]],
        [[[-2, 0.5, 7], [-4, 0.7, 7]], [[-1, 0.1, 9], [-1, 0.1, 9], [-4, 0.4, 9]]],
        ["logprob", "comet", "constant"],
    )

    @pytest.mark.parametrize(
        "given", [[1.0, 2, 3], (1, 2, 3), np.array([1, 2, 3]), Weights.unnamed([1, 2, 3])]
    )
    def test_unnamed_weights_are_in_feature_order(self, given: Any) -> None:
        matched = match(given, self.LISTS)
        assert matched.values.tolist() == [1, 2, 3]
        assert matched.spread is None
        with raises(DataError, "wrong-length"):
            match(given, self.LISTS.without("constant"))

    def test_spread_is_the_standard_deviation_within_lists(self) -> None:
        expected = [np.sqrt((1 + 1 + 1 + 1 + 4) / 5), np.sqrt((0.02 + 0.06) / 5), 0]
        np.testing.assert_allclose(self.LISTS.spread, expected, rtol=1e-6)
        large = self.LISTS.with_features("shifted", self.LISTS.features[:, 1] * 2**-3 + 2**10)
        assert large.spread[3] == pytest.approx(expected[1] / 8, rel=0.01)

    def test_default_weight_of_log_probability_is_inverse_spread(self) -> None:
        matched = match(None, self.LISTS)
        spread = self.LISTS.spread
        assert matched.values.tolist() == [1 / spread[0], 0, 0]
        assert matched.spread is not None
        np.testing.assert_array_equal(matched.spread, spread)
        assert match(None, self.LISTS, defaults={"comet": 2}).values[1] == 2

    def test_initial_weights_do_not_depend_on_feature_units(self) -> None:
        other = replace(self.LISTS, features=self.LISTS.features * np.float32([8, 0.25, 1]))
        first, second = match(None, self.LISTS), match(None, other)
        np.testing.assert_allclose(first.values, second.values * [8, 0.25, 1])
        np.testing.assert_allclose(first.spread, second.spread / [8, 0.25, 1], rtol=1e-6)

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            ("logprob LogProb seq_logprob model.log_prob lm LM1 kenlm_lm score F12", True),
            ("comet_score film logic_problem F chrF2 WordPenalty0", False),
        ],
    )
    def test_log_probability_names(self, names: str, expected: bool) -> None:
        assert {name for name in names.split() if is_log_probability(name) != expected} == set()
