from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, add_features
from bpa_ppl.component import Positive
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features import FeatureSource, of_each_string
from bpa_ppl.features.base import Features
from bpa_ppl.features.length import Length
from bpa_ppl.registry import FEATURES


class Scaled(FeatureSource, frozen=True):
    """A feature of the sentence, as a third party would write it."""

    scale: Positive = 1.0
    names: tuple[str, ...] = ("ScaledA", "ScaledB")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"difficulty"})

    def columns(self, nbest: NBest) -> Features:
        values = np.repeat(np.asarray(nbest.sentence_extras["difficulty"]), nbest.sizes)
        return self.names, self.scale * np.column_stack([values, -values])


@pytest.fixture
def scaled() -> Iterator[None]:
    FEATURES.register("scaled", Scaled)
    yield
    del FEATURES._members["scaled"]


@pytest.fixture
def sourced(toy: NBest) -> NBest:
    return toy.with_sources(["le chat", "", "un deux trois"]).with_sentence_extras(
        difficulty=[1.0, 2.0, 3.0]
    )


def test_features_come_after_existing_ones(toy: NBest) -> None:
    longer = add_features(toy, "length")
    assert longer.feature_names == (*toy.feature_names, "LengthWords")
    assert longer.features[:, :3].tobytes() == toy.features.tobytes()
    assert longer.features[:, 3].tolist() == [3, 3, 4, 1, 2, 1, 3, 3, 1]
    assert longer.features.dtype == np.float32
    assert longer.references == toy.references


def test_lengths_by_setting(sourced: NBest) -> None:
    settings = Length(words=False, characters=True, ratio=True)
    added = add_features(sourced, settings)
    assert added.feature_names[3:] == ("LengthCharacters", "LengthRatio")
    texts = [added.text(row) for row in range(9)]
    assert added.features[:, 3].tolist() == [len(text) for text in texts]
    # An empty source counts as one word.
    expected = np.float32([3 / 2, 3 / 2, 4 / 2, 1 / 2, 2, 1, 1, 1, 1 / 3])
    assert added.features[:, 4].tolist() == expected.tolist()


def test_no_lengths_at_all(toy: NBest) -> None:
    assert add_features(toy, Length(words=False)).feature_names == toy.feature_names
    assert add_features(toy, []).feature_names == toy.feature_names


def test_several_sources(sourced: NBest, scaled: None) -> None:
    added = add_features(sourced, ["scaled", Length(), Scaled(scale=2, names=("X", "Y"))])
    assert added.feature_names[3:] == ("ScaledA", "ScaledB", "LengthWords", "X", "Y")
    assert added.features[:, 3].tolist() == [1, 1, 1, 1, 2, 2, 3, 3, 3]
    assert added.features[:, 7].tolist() == [-2, -2, -2, -2, -4, -4, -6, -6, -6]


def test_parts_of_lists_have_the_features_of_the_whole(sourced: NBest) -> None:
    source = Length(ratio=True)
    whole = add_features(sourced, source).select([2, 0])
    part = add_features(sourced.select([2, 0]), source)
    assert part.features.tobytes() == whole.features.tobytes()


def test_each_distinct_text_is_computed_once() -> None:
    lists = NBest.from_lists([["a", "b", "a"], ["b", "c"]], [[[0]] * 3, [[0]] * 2], ["LM0"])
    asked: list[str] = []

    def function(text: str) -> float:
        asked.append(text)
        return ord(text)

    assert of_each_string(lists, function).tolist() == [97, 98, 97, 98, 99]
    assert sorted(asked) == ["a", "b", "c"]
    asked.clear()
    of_each_string(lists[1], function)
    assert sorted(asked) == ["b", "c"]


def test_missing_inputs(toy: NBest, scaled: None) -> None:
    with raises(DataError, "missing-sources", parameter="sources"):
        add_features(toy, Length(ratio=True))
    with raises(DataError, "missing-difficulty", parameter="difficulty"):
        add_features(toy, "scaled")


def test_names_that_exist_already(toy: NBest) -> None:
    with raises(DataError, "duplicate"):
        add_features(add_features(toy, "length"), "length")
    with raises(DataError, "duplicate"):
        add_features(toy, ["length", Length(characters=True)])


def test_invalid_sources(toy: NBest) -> None:
    with raises(UsageError, "unknown-name"):
        add_features(toy, "widht")
    with raises(UsageError, "wrong-type"):
        add_features(toy, Length)  # type: ignore[arg-type]
    with raises(UsageError, "wrong-type"):
        add_features(toy, [3])  # type: ignore[list-item]
    with raises(UsageError, "invalid-setting", parameter="words"):
        Length(words="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "features", [(["F"], [1.0, 2.0]), {"F": [1.0, 2.0]}, (["F", "G"], [[1.0]])]
)
def test_columns_of_the_wrong_shape(toy: NBest, features: Any) -> None:
    class Wrong(FeatureSource, frozen=True):
        def columns(self, nbest: NBest) -> Features:
            return features

    with raises(DataError, "wrong-length"):
        add_features(toy, Wrong())


def test_values_that_are_not_finite_are_located(toy: NBest) -> None:
    class Infinite(FeatureSource, frozen=True):
        def columns(self, nbest: NBest) -> Features:
            return {"F": [0] * 5 + [np.inf] + [0] * 3}

    with raises(DataError, "bad-number"):
        add_features(toy, Infinite())


def test_what_features_are_made_from(scaled: None) -> None:
    assert Length(ratio=True).recipe() == {
        "source": "length",
        "words": True,
        "characters": False,
        "ratio": True,
    }
    assert Scaled(scale=2).recipe()["source"] == "scaled"
    result = Length(ratio=True).recipe()
    assert FEATURES.resolve(result.pop("source"), result) == Length(ratio=True)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, bpa_ppl.features, bpa_ppl.features.length; "
        "print([m for m in ('jax', 'arviz', 'numba', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
