from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judged import judged

from bpa_ppl import BpaWarning, DataError, add_features
from bpa_ppl.features.indicators import Indicators


def test_each_value_has_a_column_of_its_own() -> None:
    lists = add_features(judged(2), Indicators(column="system"))
    assert lists.feature_names[2:] == ("system=ann", "system=bob", "system=eve")
    assert lists.features[:, 2:].tolist() == np.eye(3).tolist() * 2


def test_values_that_were_not_there_are_told_once_each_and_have_no_column() -> None:
    known = Indicators(column="system").fitted(judged(2, names=("ann", "bob")))
    with pytest.warns(BpaWarning) as told:
        lists = add_features(judged(2), known)
    assert lists.feature_names[2:] == ("system=ann", "system=bob")
    assert lists.features[2, 2:].tolist() == [0, 0]
    assert [str(one.message) for one in told] == [
        "<memory>: system eve did not occur in the adaptation lists: it has no weight of its own"
    ]


def test_whole_numbers_are_categories_too() -> None:
    lists = judged(1).with_extras(year=np.array([2020, 2021, 2020]))
    assert Indicators(column="year").fitted(lists).values == ("2020", "2021")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("systen", ["a", "b", "c"], "need systen, which the lists do not have"),
        ("other", [0.5, 1.0, 2.0], "other holds no texts"),
        ("other", [None, "a", "b"], "other holds no texts"),
    ],
)
def test_columns_that_are_no_categories(column: str, values: Any, message: str) -> None:
    lists = judged(1).with_extras(other=values)
    with pytest.raises(DataError, match=message):
        add_features(lists, Indicators(column=column))
