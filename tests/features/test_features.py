from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged_lists import judged_lists
from support.raising import raises
from support.registries import Registry

from bpa_ppl import BpaWarning, DataError, NBest, UsageError, add_features
from bpa_ppl.extending import FeatureSource
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.length import Length
from bpa_ppl.features.source import FEATURES, Features, assign_folds


class Scaled(FeatureSource, frozen=True):
    """A feature of the sentence, as a third party would write it."""

    scale: float = 1.0
    names: tuple[str, ...] = ("ScaledA", "ScaledB")

    needs: ClassVar[frozenset[str]] = frozenset({"difficulty"})

    def columns(self, lists: NBest) -> Features:
        values = np.repeat(np.asarray(lists.sentence_extras["difficulty"]), lists.sizes)
        return self.names, self.scale * np.column_stack([values, -values])


@pytest.fixture
def scaled(registries: list[Registry]) -> None:
    FEATURES.register("scaled", Scaled)


@pytest.fixture
def sourced(toy: NBest) -> NBest:
    sourced = toy.with_sources(["le chat", "", "un deux trois"])
    return sourced.with_sentence_extras(difficulty=[1.0, 2.0, 3.0])


def test_features_come_after_existing_ones(toy: NBest) -> None:
    longer = add_features(toy, "length")
    assert longer.feature_names == (*toy.feature_names, "LengthWords")
    assert longer.features[:, :3].tobytes() == toy.features.tobytes()
    assert longer.features[:, 3].tolist() == [3, 3, 4, 1, 2, 1, 3, 3, 1]
    assert longer.features.dtype == np.float64
    assert longer.references == toy.references
    for nothing in (Length(words=False), []):
        assert add_features(toy, nothing).feature_names == toy.feature_names
    with raises(DataError, "duplicate"):
        add_features(longer, "length")


def test_lengths_count_what_is_set(sourced: NBest) -> None:
    added = add_features(sourced, Length(words=False, characters=True, ratio=True))
    assert added.feature_names[3:] == ("LengthCharacters", "LengthRatio")
    texts = [added.text(row) for row in range(9)]
    assert added.features[:, 3].tolist() == [len(text) for text in texts]
    # An empty source counts as one word.
    expected = [3 / 2, 3 / 2, 4 / 2, 1 / 2, 2, 1, 1, 1, 1 / 3]
    assert added.features[:, 4].tolist() == expected


def test_several_sources_add_their_columns_in_order(sourced: NBest, scaled: None) -> None:
    added = add_features(sourced, ["scaled", Length(), Scaled(scale=2, names=("X", "Y"))])
    assert added.feature_names[3:] == ("ScaledA", "ScaledB", "LengthWords", "X", "Y")
    assert added.features[:, 3].tolist() == [1, 1, 1, 1, 2, 2, 3, 3, 3]
    assert added.features[:, 7].tolist() == [-2, -2, -2, -2, -4, -4, -6, -6, -6]


@pytest.mark.parametrize(
    ("kind", "code", "parameter", "sources"),
    [
        (DataError, "missing-sources", "sources", Length(ratio=True)),
        (DataError, "missing-difficulty", "difficulty", "scaled"),
        (DataError, "duplicate", None, ["length", Length(characters=True)]),
        (UsageError, "unknown-name", None, "widht"),
        (UsageError, "wrong-type", None, Length),
        (UsageError, "wrong-type", None, [3]),
    ],
)
def test_sources_that_cannot_be_added(
    toy: NBest, scaled: None, kind: Any, code: str, parameter: str | None, sources: Any
) -> None:
    with raises(kind, code, parameter=parameter):
        add_features(toy, sources)
    with raises(UsageError, "invalid-setting", parameter="words"):
        Length(words="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("features", "code"),
    [
        ((["F"], [1.0, 2.0]), "wrong-length"),
        ({"F": [1.0, 2.0]}, "wrong-length"),
        ((["F", "G"], [[1.0]]), "wrong-length"),
        ({"F": [0] * 5 + [np.inf] + [0] * 3}, "bad-number"),
    ],
)
def test_columns_of_the_wrong_shape_or_not_finite(toy: NBest, features: Any, code: str) -> None:
    class Wrong(FeatureSource, frozen=True):
        def columns(self, lists: NBest) -> Features:
            return features

    with raises(DataError, code):
        add_features(toy, Wrong())


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(2, 7))
def test_equal_keys_stay_together_and_folds_are_even(keys: list[int], folds: int) -> None:
    result = assign_folds(keys, folds)
    assert result.dtype == np.int64
    assert result.shape == (len(keys),)
    distinct = dict(zip(keys, result.tolist(), strict=True))
    assert [distinct[key] for key in keys] == result.tolist()
    sizes = Counter(distinct.values())
    assert set(sizes) == set(range(min(folds, len(distinct))))
    assert not sizes or max(sizes.values()) - min(sizes.values()) <= 1
    # Neighbours are not dealt out in turn: topics follow one another in a text.
    assert np.mean(np.diff(assign_folds(list(range(100)), 5)) == 1) < 0.5


def test_each_value_has_its_own_column() -> None:
    lists = add_features(judged_lists(2), Indicators(column="system"))
    assert lists.feature_names[2:] == ("system=ann", "system=bob", "system=eve")
    assert lists.features[:, 2:].tolist() == np.eye(3).tolist() * 2
    dated = lists.with_extras(year=np.array([2020, 2021, 2020] * 2))
    assert Indicators(column="year").fitted(dated).values == ("2020", "2021")


def test_new_values_have_no_column_and_are_warned_about_once() -> None:
    fitted = Indicators(column="system").fitted(judged_lists(2, names=("ann", "bob")))
    with pytest.warns(BpaWarning, match="system eve") as warnings:
        lists = add_features(judged_lists(2), fitted)
    assert lists.feature_names[2:] == ("system=ann", "system=bob")
    assert lists.features[2, 2:].tolist() == [0, 0]
    assert len(warnings) == 1


def test_invalid_columns_are_refused() -> None:
    lists = judged_lists(1)
    with raises(DataError, "missing-systen", parameter="systen"):
        add_features(lists, Indicators(column="systen"))
    missing = r"candidates\[{}\] of list .* has no other"
    for values, place in (([5, 1, None], 2), ([None, "a", "b"], 0), (["a", "", "b"], 1)):
        with raises(DataError, "missing-other", parameter="other", match=missing.format(place)):
            add_features(lists.with_extras(other=values), Indicators(column="other"))
    for value in ((1,), 0.5, 1.0):
        with raises(DataError, "wrong-type", match=r"candidates\[0\] .*: write texts"):
            add_features(lists.with_extras(other=[value, "a", "b"]), Indicators(column="other"))
