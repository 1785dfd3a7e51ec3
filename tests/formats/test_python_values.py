"""Values of Python, NumPy, pandas, Arrow and JAX are read rightly or refused with their place."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.posteriors import name_weights
from support.raising import raises

from bpa_ppl import (
    BayesianRanker,
    NBest,
    Reranker,
    concatenate,
    from_arrays,
    from_lists,
    from_records,
    from_samples,
    log_density,
    read_nbest,
    write_nbest,
)
from bpa_ppl.errors import BpaError, DataError, NoSuchSentence, UsageError
from bpa_ppl.extending import gains

HALF_MASKED = np.ma.masked_array([1.0, 2.0], mask=[True, False])
TEXTS = ["a", "b"]
HERE = [[1.0], [2.0]]


def one_list(values: Any, **options: Any) -> NBest:
    """Return a list of two candidates with the features x, as given, and y."""
    return from_lists([TEXTS], [[[1.0], [2.0]]], ["y"], extras={"x": [values]}, **options)


TIMES = [np.array([1, 2], kind) for kind in ("m8[s]", "m8[ns]", "M8[ns]")]


def table(**columns: Any) -> dict[str, Any]:
    """Return a list of two candidates, with other columns."""
    return {"id": [0, 0], "text": TEXTS, **columns}


def records(*values: Any, **options: Any) -> NBest:
    rows = [{"id": 0, "text": f"t{n}", "x": x} for n, x in enumerate(values)]
    return from_records(rows, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda: from_lists([["a", "b\0"]], [HERE], ["x"]),
        lambda: from_lists([TEXTS], [HERE], ["x"], references=[("r", "s\0")]),
        lambda: from_lists([TEXTS], [HERE], ["x"], references={0: "s\0"}),
        lambda: from_lists([TEXTS], [HERE], ["x"], sources=["s\0"]),
        lambda: from_samples([["a", "b\0"]]),
        lambda: reranker().choose(["a", "b\0"], {"x": [1, 2]}),
    ],
)
def test_no_text_of_python_has_nul(call: Callable[[], Any]) -> None:
    with pytest.raises(DataError, match="a NUL character, which is not text") as caught:
        call()
    assert caught.value.code == "bad-encoding"


@pytest.mark.parametrize(
    "values",
    [
        HALF_MASKED,
        [np.ma.masked, 2],
        [None, Decimal(2)],
        [pd.NA, Fraction(2)],
        pd.Series([None, 2], dtype="Int64"),
        pa.array([None, 2]),
        np.array([None, 2], object),
        [Decimal("NaN"), np.longdouble(2)],
        (pd.NaT, np.array(2)),
        jnp.array([jnp.nan, 2.0]),
    ],
)
def test_missing_values_are_missing_everywhere(values: Any) -> None:
    expected = [np.nan, 2.0]
    for lists in (one_list(values), from_records(table(x=values)), records(*values)):
        np.testing.assert_array_equal(gains(lists, "x"), expected)
    # Of features no value may be missing: the same sentence says which and what to do.
    columns, named = list(zip([3, 4], values, strict=True)), ["y", "x"]
    for read in (
        lambda: from_lists([["c"], TEXTS], [[[1, 1]], columns], named),
        lambda: from_arrays(["c", *TEXTS], [(1, 1), *columns], named, [1, 2]),
        lambda: from_records(
            {"id": [0, 1, 1], "text": ["c", *TEXTS], "x": [1, *values]}, features="x"
        ),
        lambda: from_lists([["c"], TEXTS], [[[1]], HERE], ["y"]).with_features("x", [1, *values]),
        lambda: log_density(one_list(values), features="x", likelihood="none"),
    ):
        shown = r"x is missing for 1 of [23] candidates, the first is candidates\[0\] of list [01]:"
        with pytest.raises(DataError, match=shown) as caught:
            read()
        assert caught.value.code == "missing-feature"


@pytest.mark.parametrize(
    "call",
    [
        lambda masked: from_arrays(TEXTS, HERE, ["x"], 2, totals=masked),
        lambda masked: from_arrays(TEXTS, HERE, ["x"], masked.astype(int)),
        lambda masked: from_arrays(TEXTS, HERE, ["x"], 1, sentence_ids=masked.astype(int)),
        lambda masked: one_list([1, 2]).with_features("z", masked),
        lambda masked: one_list([1, 2])[masked.astype(int)],
        lambda masked: from_samples([TEXTS], [[masked, [-1.0]]]),
        lambda masked: from_arrays(TEXTS, np.ones((2, 2)), "xy", 2).scores(masked),
        lambda masked: gains(one_list([1, 2]), lambda _: masked),
        lambda masked: reranker().choose(TEXTS, {"x": masked}),
        lambda masked: BayesianRanker().fit(masked[:, None], [1, 0], qid=[0, 0]),
        lambda masked: BayesianRanker().fit(np.ones((2, 1)), [1, 0], qid=masked),
    ],
)
def test_masked_values_are_refused_where_none_may_be_missing(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        call(HALF_MASKED)
    with pytest.raises(ValueError, match=r"."):
        call(np.ma.masked_array(HALF_MASKED.data, mask=[False, True]))


def test_masked_gains_of_the_estimator_are_not_judged() -> None:
    features, qid = np.array([[0.0], [1], [5], [0], [1], [5]]), [0, 0, 0, 1, 1, 1]
    values = np.array([0, 1, np.nan, 0, 1, np.nan])
    masked = np.ma.masked_array(np.nan_to_num(values, nan=9), mask=np.isnan(values))
    ranker = BayesianRanker(sampler="map")
    expected = ranker.fit(features, values, qid=qid).coef_.tolist()
    assert ranker.fit(features, masked, qid=qid).coef_.tolist() == expected


@pytest.mark.parametrize("one", [Decimal("0.5"), Fraction(1, 2), np.array(0.5), jnp.array(0.5)])
def test_exact_numbers_and_scalars_are_numbers(one: Any) -> None:
    assert records(one, 1.0, features="x").features.tolist() == [[0.5], [1]]
    assert records(one, features="*").feature_names == ("x",)
    frame = {"id": [0], "text": ["a"], "scores": [{"lm": one}]}
    assert from_records(frame, features="scores.*").features.tolist() == [[0.5]]
    assert gains(one_list([one, one]), "x").tolist() == [0.5, 0.5]
    assert reranker().choose(TEXTS, {"x": [one, 1]}).text == "b"


def test_values_of_numpy_anywhere_are_those_of_python() -> None:
    one, number = np.float32(0.5), np.int64(7)
    spans = {"text": "a", "x": one, "in": {"y": one}, "spans": [[one, number], one]}
    extras = {"day": number, "more": [one], "of": {"z": one}}
    flat = {"id": number, **spans} | {f"sentence.{n}": v for n, v in extras.items()}
    for record in ({"id": number, **extras, "candidates": [spans]}, flat):
        lists = from_records([record], features="*")
        assert (lists.ids, lists.feature_names) == ((7,), ("x", "in.y"))
        assert lists.features.tolist() == [[0.5, 0.5]]
        assert repr(lists.extras["spans"]) == "([[0.5, 7], 0.5],)"
        of_list = [lists.sentence_extras[name][0] for name in extras]
        assert repr(of_list) == "[7, [0.5], {'z': 0.5}]"
    pair = {"chosen": "a", "rejected": "b", "share": one, "x_chosen": one, "x_rejected": one}
    assert repr(from_records([pair]).sentence_extras["share"]) == "(0.5,)"


@pytest.mark.parametrize("one", [np.array(False), np.array(1.5), 1.5])
def test_a_scalar_is_no_column_of_a_list(one: Any) -> None:
    for features, extras in (([one], {}), ([[[1.0], [2.0]]], {"mqm": [one]})):
        name = "mqm" if extras else "features"
        with raises(UsageError, "wrong-type", parameter=name, match="must be a sequence"):
            from_lists([TEXTS], features, ["lm"], extras=extras)


def test_candidates_in_an_array() -> None:
    lists = from_records([{"id": 0, "candidates": np.array(TEXTS)}])
    assert (lists.texts(0), lists.feature_names) == (TEXTS, ())
    frame = pd.DataFrame({"x": [1, 2]})
    assert from_lists([TEXTS], [frame], ["x"]).features.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "values", [["1", "2"], [b"1", b"2"], [1j, 2], *TIMES, ["a", 1], [[1, 2], [3]]]
)
def test_what_is_not_a_number_is_no_feature(values: Any) -> None:
    for call in (
        lambda: from_arrays(TEXTS, [[value] for value in values], ["x"], 2),
        lambda: reranker().choose(TEXTS, {"x": values}),
    ):
        with pytest.raises(BpaError):
            call()


def test_times_are_no_features(tmp_path: Path) -> None:
    for values in TIMES:
        for lists in (records(*values, features="*"), from_records(table(x=values), features="*")):
            assert lists.feature_names == ()
    frame = pd.DataFrame(table(x=pd.period_range("2020", periods=2)))
    assert from_records(frame.to_dict("records"), features="*").feature_names == ()
    frame.to_parquet(tmp_path / "lists.parquet")
    for read in (lambda: from_records(frame), lambda: read_nbest(tmp_path / "lists.parquet")):
        with raises(DataError, "wrong-type", match="the column x is of periods of time"):
            read()
    with raises(UsageError, "wrong-type", parameter="features"):
        from_arrays(TEXTS, frame[["x"]], ["x"], 2)


@pytest.mark.filterwarnings("ignore:.* missing for")
def test_missing_numbers_are_joined_with_texts() -> None:
    """A column without any value in one table is of texts in another one."""
    empty, texts = records(None), records("u", None)
    assert np.isnan(gains(empty, "x")).all()
    joined = concatenate([empty, texts, empty], renumber=True)
    assert joined.extras["x"] == (None, "u", None, None)
    joined = concatenate([texts, empty], renumber=True)
    assert joined.extras["x"] == ("u", None, None)


def test_odd_values_of_records_are_refused_with_their_place() -> None:
    for value in (1j, b"1", 10**400, "1", True, [1.0, 2.0]):
        with raises(DataError, "bad-number", parameter="bad", line=1, match="x is "):
            records(value, features="x")


@pytest.mark.parametrize("ids", [(5, 6), ("s1", "s2"), (5, None), (5.0, 6.5)])
def test_the_id_of_a_candidate_is_no_feature(ids: Any, tmp_path: Path) -> None:
    candidates = [{"text": text, "id": of, "x": 1} for text, of in zip(TEXTS, ids, strict=True)]
    lists = from_records([{"id": 7, "candidates": candidates}], features="*")
    assert (lists.ids, lists.feature_names, lists.extras["id"]) == ((7,), ("x",), ids)
    write_nbest(lists, tmp_path / "lists.jsonl")
    again = read_nbest(tmp_path / "lists.jsonl")
    assert (again.feature_names, again.extras["id"]) == (("x",), ids)
    with raises(DataError, "bad-name", line=1):
        from_records([{"id": "q", "candidates": candidates}])


def test_repeated_columns_of_a_frame_are_named() -> None:
    frame = pd.DataFrame([[0, "a", 1.0, 2.0]], columns=["id", "text", "lm", "lm"])
    with raises(DataError, "duplicate", match="columns lm:"):
        from_records(frame)


@pytest.mark.parametrize("key", ["1", 1.0, True, np.True_, None, [1.0], {1}, slice(0.0, 1), 1j])
def test_lists_are_selected_by_integers(key: Any) -> None:
    with raises(UsageError, "wrong-type", parameter="sentences"):
        one_list([1, 2])[key]


@pytest.mark.parametrize("key", [5, 10**30, [10**30], np.uint64(2**63)])
def test_positions_out_of_range(key: Any) -> None:
    match = r"no sentence at one of \[?\d+\]?: positions run"
    with raises(NoSuchSentence, "no-such-sentence", match=match):
        one_list([1, 2])[key]


@pytest.mark.parametrize("ids", [[3, 3], [3, 4, 3], np.array([-1, 2, -1]), ["a", "b", "a"]])
def test_two_lists_have_different_ids(ids: Any) -> None:
    named = {"sentence_extras": {"id": ids}} if isinstance(ids[0], str) else {"sentence_ids": ids}
    with pytest.raises(DataError, match=r"lists? of sentence"):
        from_lists([["a"]] * len(ids), [[[1.0]]] * len(ids), ["x"], **named)


@pytest.mark.parametrize("ids", [np.array([2**63 + 5], np.uint64), [2**63], [2**64], [1.0], ["q"]])
def test_numbers_of_sentences_are_integers_of_64_bits(ids: Any) -> None:
    with raises(UsageError, "wrong-type", parameter="sentence_ids"):
        one_list([1, 2], sentence_ids=ids)


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        *((of, 7) for of in (7, np.uint8(7), jnp.array(7), pa.scalar(7, pa.uint64()).as_py())),
        *((of, str(int(of))) for of in (np.uint64(2**63 + 5), 2**63, -(2**63) - 1, 2**64)),
        *((of, str(of)) for of in ("7", Decimal("7.5"), 7.0, True, 1j)),
    ],
)
def test_ids_are_integers_of_64_bits_or_texts(identifier: Any, expected: int | str) -> None:
    number = 1 if isinstance(expected, int) else "1"
    references = {expected: "A", number: "B"}
    rows = [{"id": i, "text": "a"} for i in (identifier, 1)]
    nested = [{"id": i, "candidates": ["a"]} for i in (identifier, 1)]
    for one in (rows, nested, *[pd.DataFrame(rows)] * isinstance(identifier, int)):
        lists = from_records(one, references=references)
        assert (lists.ids, lists.references) == ((expected, number), (("A",), ("B",)))
    if isinstance(identifier, Decimal | float | complex | bool):
        with raises(UsageError, "wrong-type", parameter="references"):
            from_records([{"id": 7, "text": "a"}], references={identifier: "A"})
    elif not hasattr(identifier, "shape") or identifier.shape == ():
        cells = ["id,text", *(f"{i},a" for i in (identifier, 1))]
        numbers = 1 if str(expected) == "7" else number
        assert read_nbest(cells, format="csv").ids[1] == numbers


def test_texts_are_those_of_python() -> None:
    texts = np.array(TEXTS)
    lists = from_lists([texts], [[[1], [2]]], ["x"], references=texts[None], sources=texts[:1])
    values = [*lists.strings, *(lists.references or ((),))[0], *(lists.sources or ())]
    assert set(map(type, values)) == {str}
    assert type(records(np.str_("u")).extras["x"][0]) is str
    assert records("None", "42").extras["x"] == ("None", "42")


@pytest.mark.parametrize("texts", ["ab", {"a", "b"}, {"a": 1}, [b"a", b"b"], [1, 2], None])
def test_texts_of_one_list_are_a_sequence_of_texts(texts: Any) -> None:
    with raises(UsageError, "wrong-type", parameter="texts"):
        reranker().choose(texts, {"x": [1, 2]})


def reranker() -> Reranker:
    """Return a posterior that prefers higher numbers of x."""
    return Reranker(name_weights(np.ones((1, 4, 1)), ("x",)), unchecked=True)


def test_an_id_of_a_sentence_without_candidates_occurs_once() -> None:
    one, empty = {"id": 1, "candidates": [{"text": "a"}]}, {"id": 1, "candidates": []}
    other = {"id": 0, "candidates": [{"text": "b"}]}
    for twice in ([empty, other, one], [one, other, empty], [empty, other, empty]):
        with raises(DataError, "duplicate", line=3):
            from_records(twice)


@pytest.mark.parametrize("kind", [str, object])
def test_masked_texts_are_missing(kind: type) -> None:
    masked = np.ma.masked_array(np.array(TEXTS, kind), mask=[False, True])
    assert one_list(masked).extras["x"] == ("a", None)
    with raises(DataError, "bad-data", line=2, match="text is missing"):
        from_records({"id": [0, 0], "text": masked})


# --- columns of Arrow ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_kinds_of_texts(kind: pa.DataType) -> None:
    """Polars exports categories as dictionaries of string views."""
    columns = {
        "id": pa.array(["p", "p", "q"], kind),
        "text": pa.array(["a", "b", "a"], kind),
        "by": pa.array(["me", None, "you"], kind),
    }
    encoded = {name: column.dictionary_encode() for name, column in columns.items()}
    for table in (pa.table(columns), pa.table(encoded)):
        nbest = from_records(table)
        assert (nbest.ids, nbest.texts(0), nbest.texts(1)) == (("p", "q"), ["a", "b"], ["a"])
        assert nbest.extras["by"] == ("me", None, "you")
        assert from_records(table.slice(1)).extras["by"] == (None, "you")


def test_kinds_of_numbers(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([0, 0], pa.uint8()),
        "text": pa.array(["a", "a"]).dictionary_encode(),
        "half": pa.array(np.array([0.5, 1], np.float16)),
        "whole": pa.array([2**60, -1]),
        "decimal": pa.array([1, 2]).cast(pa.decimal128(20, 0)),
        "scores": [{"in": 1.0, "out": 2.0}, {"in": 3.0, "out": 4.0}],
    }
    parquet.write_table(pa.table(columns), tmp_path / "lists.parquet")
    nbest = read_nbest(tmp_path / "lists.parquet", features="*")
    assert nbest.feature_names == ("half", "whole", "decimal", "scores.in", "scores.out")
    assert nbest.features.tolist() == [[0.5, 2.0**60, 1, 1, 2], [1, -1, 2, 3, 4]]


def test_a_column_twice(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    columns = {"id": [0], "text": ["x"], "a.b": [1.0], "a": [{"b": 2.0}]}
    twice = pa.table([pa.array([0]), *[pa.array(["a"])] * 2], ["id", "text", "text"])
    for table in (pa.table(columns), twice):
        parquet.write_table(table, path)
        with raises(DataError, "duplicate", match=r"lists\.parquet: .*two columns (a.b|text)"):
            read_nbest(path)
