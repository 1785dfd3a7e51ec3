from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bpa_ppl.features.base import fold_of


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(2, 7))
def test_equal_keys_stay_together_and_folds_are_even(keys: list[int], folds: int) -> None:
    result = fold_of(keys, folds)
    assert result.dtype == np.int64
    assert result.shape == (len(keys),)
    distinct = dict(zip(keys, result.tolist(), strict=True))
    assert [distinct[key] for key in keys] == result.tolist()
    sizes = Counter(distinct.values())
    assert set(sizes) == set(range(min(folds, len(distinct))))
    assert not sizes or max(sizes.values()) - min(sizes.values()) <= 1


def test_fewer_keys_than_folds_leave_one_out() -> None:
    assert sorted(fold_of([("a", "x"), ("b", "x"), ("a", "y")], 5).tolist()) == [0, 1, 2]
    assert fold_of(["a", "a"], 5).tolist() == [0, 0]


def test_folds_are_the_same_each_time_and_are_shuffled() -> None:
    keys = list(range(100))
    result = fold_of(keys, 5)
    assert result.tolist() == fold_of(keys, 5).tolist()
    # Neighbours are not dealt out in turn: topics follow one another in a text.
    assert np.mean(np.diff(result) == 1) < 0.5
