from __future__ import annotations

import numpy as np
import pytest
from judged_lists import judged_lists
from raising import raises

from bpa_ppl import BpaWarning, DataError, add_features
from bpa_ppl.features.indicators import Indicators


def test_each_value_has_its_own_column() -> None:
    lists = add_features(judged_lists(2), Indicators(column="system"))
    assert lists.feature_names[2:] == ("system=ann", "system=bob", "system=eve")
    assert lists.features[:, 2:].tolist() == np.eye(3).tolist() * 2


def test_new_values_have_no_column_and_are_warned_about_once() -> None:
    fitted = Indicators(column="system").fitted(judged_lists(2, names=("ann", "bob")))
    with pytest.warns(BpaWarning, match="system eve") as warnings:
        lists = add_features(judged_lists(2), fitted)
    assert lists.feature_names[2:] == ("system=ann", "system=bob")
    assert lists.features[2, 2:].tolist() == [0, 0]
    assert len(warnings) == 1


def test_integers_are_categories() -> None:
    lists = judged_lists(1).with_extras(year=np.array([2020, 2021, 2020]))
    assert Indicators(column="year").fitted(lists).values == ("2020", "2021")


def test_invalid_columns() -> None:
    lists = judged_lists(1)
    with raises(DataError, "missing-systen", parameter="systen"):
        add_features(lists, Indicators(column="systen"))
    for values in ([0.5, 1.0, 2.0], [None, "a", "b"]):
        with raises(DataError, "wrong-type"):
            add_features(lists.with_extras(other=values), Indicators(column="other"))
