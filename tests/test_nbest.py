from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.columns import intern
from bpa_ppl.nbest import NBest

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def numbered(sizes: list[int]) -> NBest:
    """Return lists whose single feature counts the rows, with texts and references to match."""
    rows = iter(range(sum(sizes)))
    tables = [[[next(rows)] for _ in range(size)] for size in sizes]
    return NBest.from_lists(
        [[f"text {row % 5}" for [row] in table] for table in tables],
        tables,
        ["row"],
        references=[[f"reference {s}"] for s in range(len(sizes))],
        totals=[[-row for [row] in table] for table in tables],
    )


def rows_of(nbest: NBest) -> list[list[int]]:
    return [nbest.features[nbest.rows(s), 0].astype(int).tolist() for s in range(len(nbest))]


def test_lists_are_laid_one_after_the_other(toy: NBest) -> None:
    assert len(toy) == 3
    assert toy.offsets.tolist() == [0, 4, 6, 9]
    assert toy.sizes.tolist() == [4, 2, 3]
    assert toy.texts(1) == ["hello world", "hello"]
    assert toy.text(8) == "three"
    assert toy.features.dtype == np.float32
    assert toy.sentence_ids.tolist() == [0, 1, 2]
    assert toy.totals is None


def test_equal_texts_are_stored_once() -> None:
    nbest = NBest.from_lists([["b", "a", "b"], ["a"]], [[[1]] * 3, [[1]]], ["LM0"])
    assert nbest.strings == ("b", "a")
    assert nbest.string_index.tolist() == [0, 1, 0, 1]


@given(st.lists(st.sampled_from(["", "a", "b", "A", "a "])))
def test_interned_texts_read_back(texts: list[str]) -> None:
    strings, index = intern(texts)
    assert [strings[i] for i in index] == texts
    assert list(strings) == list(dict.fromkeys(texts))
    assert index.dtype == np.int32


@given(SIZES, st.data())
def test_select_takes_lists_whole_in_any_order_with_repeats(
    sizes: list[int], data: st.DataObject
) -> None:
    nbest = numbered(sizes)
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1))
    picked = nbest.select(chosen)
    assert rows_of(picked) == [rows_of(nbest)[s] for s in chosen]
    assert [picked.texts(i) for i in range(len(chosen))] == [nbest.texts(s) for s in chosen]
    assert picked.references == tuple((f"reference {s}",) for s in chosen)
    assert picked.sentence_ids.tolist() == chosen
    assert picked.totals is not None
    assert picked.totals.tolist() == [-row for rows in rows_of(picked) for row in rows]


def test_select_by_mask(toy: NBest) -> None:
    assert toy.select(np.array([True, False, True])).sizes.tolist() == [4, 3]


@given(SIZES, st.integers(1, 7))
def test_truncate_keeps_the_head_of_each_list(sizes: list[int], size: int) -> None:
    nbest = numbered(sizes)
    assert rows_of(nbest.truncate(size)) == [rows[:size] for rows in rows_of(nbest)]


@pytest.mark.parametrize("size", [0, -1])
def test_a_list_cannot_be_cut_to_nothing(toy: NBest, size: int) -> None:
    with pytest.raises(UsageError, match=f"at least one hypothesis, not {size}"):
        toy.truncate(size)


@given(SIZES, st.integers(1, 9))
def test_chunks_are_the_whole(sizes: list[int], count: int) -> None:
    nbest = numbered(sizes)
    chunks = list(nbest.chunks(count))
    assert all(len(chunk) == count for chunk in chunks[:-1])
    assert [rows for chunk in chunks for rows in rows_of(chunk)] == rows_of(nbest)


def test_scores_are_inner_products_in_double_precision(toy: NBest) -> None:
    weights = [0.5, -1.25, 2.0]
    expected = [sum(w * float(h) for w, h in zip(weights, row)) for row in toy.features]  # noqa: B905
    assert toy.scores(weights).dtype == np.float64
    np.testing.assert_allclose(toy.scores(weights), expected, rtol=1e-14)


def test_the_best_is_the_first_of_the_highest(toy: NBest) -> None:
    scores = [0, 3, 3, 1, -2, -1, 5, 5, 5]
    assert toy.best(scores).tolist() == [1, 1, 0]
    assert toy.chosen(toy.best(scores)) == ["a cat sat", "hello", "one two three"]


def test_references_are_exchanged(toy: NBest) -> None:
    other = toy.with_references([["x", "y"], ["z"], []])
    assert other.references == (("x", "y"), ("z",), ())
    assert toy.references == (("the cat sat down",), ("hello world",), ("one two three",))
    with pytest.raises(DataError, match="1 values of references for 3 sentences"):
        toy.with_references([["x"]])


def test_it_cannot_be_changed(toy: NBest) -> None:
    with pytest.raises(FrozenInstanceError):
        toy.origin = "other"  # type: ignore[misc]
    for array in (toy.offsets, toy.features, toy.sentence_ids, toy.string_index):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_no_lists_at_all() -> None:
    nbest = NBest.from_lists([], [], ["LM0"])
    assert len(nbest) == 0
    assert nbest.features.shape == (0, 1)
    assert nbest.scores([1.0]).shape == (0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_names": ("LM0",)}, "disagree in shape"),
        ({"feature_names": ("LM0", "TM0", "TM0")}, "two features have the same name"),
        ({"offsets": np.array([0, 4, 6, 8])}, "disagree in shape"),
        ({"offsets": np.array([0, 4, 9])}, "disagree in shape"),
        ({"offsets": np.array([0, 4, 4, 9])}, "the list of sentence 1 is empty"),
        ({"string_index": np.zeros(3, np.int32)}, "disagree in shape"),
        ({"totals": np.zeros(3, np.float32)}, "3 values of totals for 9 hypotheses"),
        ({"totals": np.full(9, np.nan, np.float32)}, "a total score is not a finite number"),
        ({"references": (("x",),)}, "1 values of references for 3 sentences"),
    ],
)
def test_parts_that_do_not_fit_are_named(toy: NBest, changes: dict, message: str) -> None:
    with pytest.raises(DataError, match=f"dev.nbest: .*{message}"):
        replace(toy, origin="dev.nbest", **changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_not_finite_is_located(toy: NBest, value: float) -> None:
    features = toy.features.copy()
    features[5, 1] = value
    with pytest.raises(DataError, match=r"TM0\[0\] of hypothesis 1 of sentence 1 is -?(nan|inf)"):
        replace(toy, features=features)


def test_texts_and_features_must_agree_in_number() -> None:
    with pytest.raises(DataError, match="same number of hypotheses"):
        NBest.from_lists([["a", "b"]], [[[1.0]]], ["LM0"])
