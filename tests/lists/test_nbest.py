from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises
from support.table_content import table_content

import bpa_ppl
from bpa_ppl import NBest, concatenate, from_arrays, from_lists, from_records, to_arrow
from bpa_ppl.errors import BpaWarning, DataError, UsageError

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def rows_of(sizes: list[int]) -> list[list[int]]:
    """Return the numbers of the rows of each list."""
    return [rows.tolist() for rows in np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])]


def build(rows: Sequence[list[int]], sentences: Sequence[int]) -> NBest:
    """Return lists with all columns; each value encodes its row or sentence."""
    each, ids = np.array([row for one in rows for row in one], int), np.array(sentences, int)
    nbest = from_arrays(
        [f"text {row % 5}" for row in each],
        each[:, np.newaxis],
        ["row"],
        [len(one) for one in rows],
        references=[(f"reference {i}",) for i in ids],
        totals=-each,
        sources=[f"source {i}" for i in ids],
        extras={"gain": each / 2, "vectors": np.stack([each, -each], 1)},
        sentence_extras={"title": [f"title {i}" for i in ids]},
    )
    nbest = nbest.with_extras(spans=[(row,) for row in each]).with_sentence_extras(domain=ids % 2)
    return replace(nbest, sentence_ids=ids)


def assert_same(nbest: NBest, rows: Sequence[list[int]], sentences: Sequence[int]) -> None:
    """Assert that all columns are those of some rows and sentences."""
    expected = build(rows, sentences)
    strings = ("strings", "string_index")
    assert table_content(nbest, *strings) == table_content(expected, *strings)
    assert [nbest.text(h) for h in range(len(nbest.features))] == [
        f"text {row % 5}" for one in rows for row in one
    ]
    assert set(nbest.string_index.tolist()) == set(range(len(nbest.strings)))


def lists_with_all_columns(sizes: list[int]) -> NBest:
    return build(rows_of(sizes), range(len(sizes)))


def test_scores_are_inner_products_in_double_precision(toy: NBest) -> None:
    weights = [0.5, -1.25, 2.0]
    expected = [sum(w * float(h) for w, h in zip(weights, row)) for row in toy.features]  # noqa: B905
    for values in (weights, dict(zip(toy.feature_names, weights, strict=True))):
        assert toy.scores(values).dtype == np.float64
        np.testing.assert_allclose(toy.scores(values), expected, rtol=1e-14)


def test_best_is_first_candidate_with_highest_score(toy: NBest) -> None:
    scores = [0, 3, 3, 1, -2, -1, 5, 5, 5]
    assert toy.best(scores).tolist() == [1, 1, 0]
    assert toy.chosen(toy.best(scores)) == ["a cat sat", "hello", "one two three"]


def later(nbest: NBest) -> NBest:
    """Return the same lists with other ids."""
    return replace(nbest, sentence_ids=nbest.sentence_ids + 100)


# --- indexing, slicing, selecting and chunking keep all columns ----------------------------------

LENGTHS = [4, 1, 3, 2]


@pytest.mark.parametrize(
    ("key", "sentences"),
    [
        (2, [2]),
        (np.int64(1), [1]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        ([3, 0, 3], [3, 0, 3]),
        ([True, False, False, True], [0, 3]),
    ],
    ids=str,
)
def test_an_index_selects_lists(key: Any, sentences: list[int]) -> None:
    rows = rows_of(LENGTHS)
    assert_same(lists_with_all_columns(LENGTHS)[key], [rows[s] for s in sentences], sentences)


@settings(deadline=None)
@given(SIZES, st.data())
def test_all_columns_are_selected(sizes: list[int], data: st.DataObject) -> None:
    nbest, rows, ids = lists_with_all_columns(sizes), rows_of(sizes), range(len(sizes))
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1)))
    assert_same(nbest.select(chosen), [rows[s] for s in chosen], chosen)
    size = data.draw(st.integers(1, 7))
    assert_same(nbest.truncate(size), [one[:size] for one in rows], ids)
    for start, chunk in zip(ids[::size], nbest.chunks(size), strict=True):
        assert_same(chunk, rows[start : start + size], ids[start : start + size])


# --- concatenation -------------------------------------------------------------------------------


@settings(deadline=None)
@given(SIZES, SIZES)
def test_all_columns_are_concatenated(sizes: list[int], others: list[int]) -> None:
    rows, n = rows_of(sizes + others), len(sizes)
    ids = range(len(rows))
    both = concatenate([build(rows[:n], ids[:n]), build(rows[n:], ids[n:])])
    assert_same(both, rows, ids)
    assert len(set(both.strings)) == len(both.strings)


def test_features_are_matched_by_name_and_repeated_sentences_kept(toy: NBest) -> None:
    turned = {"features": toy.features[:, ::-1], "feature_names": toy.feature_names[::-1]}
    both = concatenate([toy.select([1, 1, 0]), later(replace(toy, **turned))])
    assert both.sentence_ids.tolist() == [1, 1, 0, 100, 101, 102]
    assert both.feature_names == toy.feature_names
    assert both.features[-9:].tobytes() == toy.features.tobytes()


def test_missing_columns_are_filled_and_reported() -> None:
    one = lists_with_all_columns([2, 1]).with_extras(odd=(1.5, [], "x"))
    other = replace(lists_with_all_columns([1]), sentence_ids=[9])
    bare = other.without("totals", "references", "sources", "gain", "title")
    with pytest.warns(BpaWarning) as caught:
        both = concatenate([one, bare], fill_missing=True)
    told = "\n".join(str(note.message) for note in caught)
    for part in ("gain, total are missing for 1 of 4", "no references for 1 of 3", "no sources"):
        assert part in told
    assert both.references == (*(one.references or ()), ())
    assert (both.totals, both.sources) == (None, None)
    assert both.sentence_extras["source"] == (*(one.sources or ()), None)
    assert both.sentence_extras["title"][-1] is None
    assert np.array_equal(both.extras["total"][:3], one.totals)
    assert both.extras["odd"] == (1.5, [], "x", None)
    assert np.isnan([both.extras["total"][3], both.extras["gain"][3]]).all()


def test_a_feature_of_some_tables_is_an_extra_of_all(toy: NBest) -> None:
    other = replace(toy.without("TM0[1]"), sentence_ids=[5, 6, 7])
    with pytest.warns(BpaWarning, match=r"TM0\[1\] is missing for 9 of 18 candidates"):
        both = concatenate([other, toy], fill_missing=True)
    assert both.feature_names == other.feature_names
    assert np.isnan(both.extras["TM0[1]"][:9]).all()
    column = toy.features[:, toy.feature_names.index("TM0[1]")]
    assert np.array_equal(both.extras["TM0[1]"][9:], column)
    none = other.without(*other.feature_names)
    with raises(DataError, "mismatch", match="no feature in common"):
        concatenate([toy, none.with_features(["x"], np.zeros((9, 1)))], fill_missing=True)
    with pytest.warns(BpaWarning, match="LM0.* are missing for 9 of 18 candidates"):
        both = concatenate([toy, none], fill_missing=True)
    assert both.feature_names == ()
    with raises(UsageError, "no-data", parameter="parts"):
        concatenate([])


# --- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "parameter"),
    [
        (lambda n: n.with_extras(gain=[1, 2]), "wrong-length", "gain"),
        (lambda n: n.with_extras(references=range(9)), "duplicate", "references"),
        (lambda n: n.with_extras(t=[0] * 9).with_sentence_extras(t=[1] * 3), "duplicate", "t"),
        (lambda n: n.with_sources(["a"]), "wrong-length", "sources"),
        (lambda n: n.with_sources("the cat"), "wrong-type", "sources"),
        (lambda n: n.with_references([["x"]]), "wrong-length", "references"),
        (lambda n: n.with_references([["a"], ["b"], [3]]), "wrong-type", "references"),
        (lambda n: n.with_references({1.5: "a"}), "wrong-type", "references"),
        (lambda n: n.with_references({10**400: "a"}), "mismatch", "references"),
        (lambda n: n.with_references({True: "a"}), "wrong-type", "references"),
        (lambda n: n.with_features(["A"], np.zeros((3, 1))), "wrong-length", "columns"),
        (lambda n: n.with_features("A", np.full(9, np.nan)), "missing-feature", None),
        (lambda n: n.with_features(["LM0"], np.zeros((9, 1))), "duplicate", "names"),
        (lambda n: n.without(None), "unknown-name", "columns"),
        (lambda n: n.truncate(0), "bad-usage", "size"),
        (lambda n: list(n.chunks(0)), "bad-usage", "sentences"),
        (lambda n: n.regroup(np.array([0]), np.array([0, 1]), [1]), "wrong-length", "sizes"),
        (lambda n: n.select([True, False]), "wrong-type", "sentences"),
        (lambda n: n.scores({"LM0": 1.0}), "missing-weight", "weights"),
        (lambda n: n.scores([1.0]), "wrong-length", "weights"),
        (lambda n: n.scores([1.0, np.inf, 0.0]), "bad-number", "weights"),
        (lambda n: n.with_features("F", [1e30] * 9).scores([1e300] * 4), "bad-number", "weights"),
        (lambda n: concatenate([n, n]), "duplicate", "renumber"),
        (lambda n: concatenate([n, later(n.without("TM0[1]"))]), "mismatch", None),
        (lambda n: concatenate([n, later(n.with_extras(v=[0] * 9))]), "missing-column", None),
        (lambda n: concatenate_values(n, np.zeros(9), ["x"] * 9), "mismatch", None),
        (lambda n: concatenate_values(n, np.zeros(9), np.zeros((9, 2))), "mismatch", None),
        (lambda n: replace(n, feature_names=("LM0",)), "wrong-length", "features"),
        (lambda n: replace(n, offsets=np.array([0, 4, 6, 8])), "wrong-length", "sizes"),
        (lambda n: replace(n, offsets=np.array([0, 4, 4, 9])), "no-data", None),
        (lambda n: replace(n, string_index=np.full(9, 99)), "mismatch", None),
        (lambda n: replace(n, totals=np.full(9, np.nan)), "missing-feature", None),
        (lambda n: replace(n, totals=np.zeros(3)), "wrong-length", "totals"),
    ],
)
def test_invalid_arguments(toy: NBest, change: Any, code: str, parameter: str | None) -> None:
    is_usage = code in ("wrong-type", "unknown-name", "bad-usage")
    with raises(UsageError if is_usage else DataError, code, parameter=parameter):
        change(toy)


def concatenate_values(nbest: NBest, values: Any, others: Any) -> NBest:
    """Join lists with those of other ids, whose extra `v` has other values."""
    return concatenate([nbest.with_extras(v=values), later(nbest.with_extras(v=others))])


def test_a_feature_that_is_not_finite_is_located(toy: NBest) -> None:
    features = toy.features.copy()
    features[5, 1] = -np.inf
    place = r"^dev.nbest: TM0\[0\] of candidates\[1\] of list 1 is"
    with raises(DataError, "bad-number", match=place):
        replace(toy, features=features, origin="dev.nbest")


def test_columns_are_read_only_in_pickles_too() -> None:
    nbest = lists_with_all_columns([2, 1])
    for lists in (nbest, pickle.loads(pickle.dumps(nbest))):
        assert_same(lists, [[0, 1], [2]], [0, 1])
        with pytest.raises(FrozenInstanceError):
            lists.origin = "other"  # type: ignore[misc]
        with pytest.raises(TypeError, match="does not support item assignment"):
            lists.extras["gain"] = np.zeros(3)  # type: ignore[index]
        for array in (lists.offsets, lists.features, lists.string_index, lists.extras["gain"]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1  # type: ignore[index]
    array = np.zeros(3)
    nbest.with_extras(gain=array)
    array[0] = 1  # the caller's array stays writable


def test_features_are_added_and_dropped(toy: NBest) -> None:
    more = toy.with_features(["A", "B"], np.arange(18).reshape(9, 2))
    assert more.features[:, :3].tobytes() == toy.features.tobytes()
    assert more.features[:, 4].tolist() == list(range(1, 18, 2))
    assert more.without("A", "TM0").feature_names == ("LM0", "B")
    assert more.without("TM0[0]").feature_names == ("LM0", "TM0[1]", "A", "B")


def test_lists_are_described_in_one_line() -> None:
    nbest = replace(lists_with_all_columns([2, 1]), origin="dev.nbest.gz")
    assert repr(nbest) == (
        "NBest(2 sentences, 3 candidates, 1 feature, totals, references, sources, gain, "
        "vectors, spans, title, domain, from dev.nbest.gz)"
    )


LISTS = {"texts": [["a", "b"], ["c"]], "features": [[[1.0], [2.0]], [[3.0]]]}
ARRAYS = {"texts": ["a", "b", "c"], "features": np.zeros((3, 1)), "sizes": 3}


@pytest.mark.parametrize(
    ("function", "changes", "code"),
    [
        ("arrays", {"sizes": [1, 1]}, "wrong-length"),
        ("arrays", {"sizes": [1.5, 1.5]}, "wrong-type"),
        ("arrays", {"features": np.zeros((3, 2))}, "wrong-length"),
        ("arrays", {"texts": "abc"}, "wrong-type"),
        ("arrays", {"references": ["x", "y"]}, "wrong-length"),
        ("arrays", {"feature_names": [3]}, "wrong-type"),
        ("arrays", {"sentence_ids": [0.5]}, "wrong-type"),
        ("arrays", {"totals": [1.0]}, "wrong-length"),
        ("arrays", {"sentence_extras": {"gain": 3}}, "wrong-type"),
        ("arrays", {"extras": np.ones(3)}, "wrong-type"),
        ("arrays", {"sentence_extras": [["news"]]}, "wrong-type"),
        ("lists", {"extras": "abc"}, "wrong-type"),
        ("lists", {"features": [[[1.0], [2.0]], [[1.0, 2.0]]]}, "wrong-type"),
        ("lists", {"totals": [[0.0], [1.0, 2.0]]}, "wrong-length"),
        ("lists", {"texts": [3, ["c"]]}, "wrong-type"),
    ],
)
def test_inconsistent_data_are_refused(function: str, changes: dict[str, Any], code: str) -> None:
    given = {"feature_names": ["lm"], **(LISTS if function == "lists" else ARRAYS), **changes}
    (parameter, value), *_ = changes.items()
    if isinstance(value, dict):
        parameter = next(iter(value))
    with raises(UsageError if code == "wrong-type" else DataError, code, parameter=parameter):
        getattr(bpa_ppl, f"from_{function}")(**given)


#: Columns of the table of two lists.
COLUMNS: dict[str, Any] = {
    "id": [3, 3, 1],
    "text": ["a", "b", "a"],
    "lm": [-1, -2.5, np.float32(0.5)],
    "by": ["x", "y", "x"],
    "reference": ["r", "r", "s"],
}
NO_IDS, NO_TEXTS = pa.array([], pa.int64()), pa.array([], pa.string())
NESTED = pa.list_(pa.struct([("text", pa.string()), ("lm", pa.float64())]))


@pytest.mark.parametrize(
    ("data", "code", "parameter", "line"),
    [
        ([{0: 1}], "bad-data", None, 1),
        (["id"], "bad-data", None, 1),
        ({"id": [1], "text": ["a", "b"]}, "wrong-length", "records", None),
        (pd.DataFrame({**COLUMNS, "lm": [1.0, np.inf, 2.0]}), "bad-number", "bad", 2),
        (pd.DataFrame({**COLUMNS, "reference": ["r", "x", "s"]}), "bad-data", None, 2),
        (pa.table({"id": NO_IDS, "text": NO_TEXTS}), "no-data", None, None),
        (pa.table({"id": NO_IDS, "candidates": pa.array([], NESTED)}), "no-data", None, None),
        ([], "no-data", "records", None),
        (np.array(5), "wrong-type", "records", None),
    ],
)
def test_invalid_records_are_refused_with_their_line(
    data: Any, code: str, parameter: str | None, line: int | None
) -> None:
    kind = UsageError if parameter == "records" and code != "wrong-length" else DataError
    with raises(kind, code, parameter=parameter, line=line):
        from_records(data, features="*")


def test_lists_are_written_as_a_table_of_arrow() -> None:
    nbest = from_records(COLUMNS, features="lm").with_extras(n=np.array([1, 2, 3]))
    table = to_arrow(nbest)
    assert table.column_names == ["id", "text", "reference", "lm", "by", "n"]
    assert table["n"].to_pylist() == [1, 2, 3]
    again = from_records(table, features=nbest.feature_names)
    assert (again.feature_names, list(again.extras["n"])) == (("lm",), [1, 2, 3])


def test_a_table_without_lists() -> None:
    nbest = from_lists([], [], ["LM0"])
    assert (len(nbest), nbest.features.shape, nbest.scores([1.0]).shape) == (0, (0, 1), (0,))


def test_what_is_cached_is_not_copied_to_other_lists() -> None:
    lists = from_lists([["a", "b"]], [[[1.0, 0.0], [3.0, 8.0]]], ["LM0", "W"])
    assert lists.spread.tolist() == [1, 4]
    assert lists.without("LM0").spread.tolist() == [4]
    assert lists.truncate(1).spread.tolist() == [0, 0]
