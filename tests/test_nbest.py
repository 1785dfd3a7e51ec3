from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from table_content import table_content

from bpa_ppl.errors import BpaWarning, DataError, NoSuchSentence, UsageError
from bpa_ppl.nbest import NBest

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def lists_with_all_columns(sizes: list[int], first: int = 0) -> NBest:
    """Return lists with all columns; each value encodes its row or sentence."""
    rows, ids = np.arange(sum(sizes)), np.arange(first, first + len(sizes))
    return NBest.from_arrays(
        [f"text {row % 5}" for row in rows],
        rows[:, np.newaxis],
        ["row"],
        sizes,
        references=[(f"reference {i}",) for i in ids],
        totals=-rows,
        sources=[f"source {i}" for i in ids],
        extras={
            "gain": rows / 2,
            "vectors": np.column_stack([rows, -rows]),
            "spans": [(r,) for r in rows],
        },
        sentence_extras={"title": [f"title {i}" for i in ids]},
    ).with_sentence_extras(domain=ids % 2)


def assert_consistent(nbest: NBest, sentences: list[int]) -> None:
    """Assert that all columns of selected `lists_with_all_columns` match rows and sentences."""
    rows = nbest.features[:, 0]
    assert nbest.totals is not None
    assert nbest.totals.tolist() == (-rows).tolist()
    assert [nbest.text(h) for h in range(len(rows))] == [f"text {int(r) % 5}" for r in rows]
    assert nbest.extras["gain"].tolist() == (rows / 2).tolist()  # type: ignore[union-attr]
    assert nbest.extras["vectors"][:, 1].tolist() == (-rows).tolist()  # type: ignore[call-overload]
    assert nbest.extras["spans"] == tuple((int(r),) for r in rows)
    assert nbest.references == tuple((f"reference {s}",) for s in sentences)
    assert nbest.sources == tuple(f"source {s}" for s in sentences)
    assert nbest.sentence_extras["title"] == tuple(f"title {s}" for s in sentences)
    assert nbest.sentence_extras["domain"].tolist() == [s % 2 for s in sentences]  # type: ignore[union-attr]
    assert set(nbest.string_index.tolist()) == set(range(len(nbest.strings)))


def rows_by_sentence(nbest: NBest) -> list[list[int]]:
    return [nbest.features[nbest.rows(s), 0].astype(int).tolist() for s in range(len(nbest))]


def test_lists_are_concatenated(toy: NBest) -> None:
    assert (len(toy), toy.sizes.tolist(), toy.offsets.tolist()) == (3, [4, 2, 3], [0, 4, 6, 9])
    assert (toy.texts(1), toy.text(8)) == (["hello world", "hello"], "three")
    assert (toy.features.dtype, toy.sentence_ids.tolist()) == (np.float32, [0, 1, 2])
    assert toy.totals is None


def test_scores_are_inner_products_in_double_precision(toy: NBest) -> None:
    weights = [0.5, -1.25, 2.0]
    expected = [sum(w * float(h) for w, h in zip(weights, row)) for row in toy.features]  # noqa: B905
    assert toy.scores(weights).dtype == np.float64
    np.testing.assert_allclose(toy.scores(weights), expected, rtol=1e-14)
    huge = toy.with_features("huge", np.full(len(toy.features), 1e30))
    with raises(DataError, "bad-number", parameter="weights"):
        huge.scores(dict.fromkeys(huge.feature_names, 1e300))


def test_best_is_first_hypothesis_with_highest_score(toy: NBest) -> None:
    scores = [0, 3, 3, 1, -2, -1, 5, 5, 5]
    assert toy.best(scores).tolist() == [1, 1, 0]
    assert toy.chosen(toy.best(scores)) == ["a cat sat", "hello", "one two three"]


def test_attributes_are_read_only(toy: NBest) -> None:
    with pytest.raises(FrozenInstanceError):
        toy.origin = "other"  # type: ignore[misc]
    for array in (toy.offsets, toy.features, toy.sentence_ids, toy.string_index):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_empty_table() -> None:
    nbest = NBest.from_lists([], [], ["LM0"])
    assert len(nbest) == 0
    assert nbest.features.shape == (0, 1)
    assert nbest.scores([1.0]).shape == (0,)


@pytest.mark.parametrize(
    ("changes", "code", "parameter"),
    [
        ({"feature_names": ("LM0",)}, "wrong-length", None),
        ({"offsets": np.array([0, 4, 6, 8])}, "wrong-length", None),
        ({"offsets": np.array([0, 4, 9])}, "wrong-length", None),
        ({"string_index": np.full(9, 99, np.int32)}, "mismatch", None),
        ({"totals": np.full(9, np.nan, np.float32)}, "bad-number", None),
        ({"offsets": np.array([0, 4, 4, 9])}, "no-data", None),
        ({"string_index": np.zeros(3, np.int32)}, "wrong-length", None),
        ({"totals": np.zeros(3, np.float32)}, "wrong-length", "totals"),
        ({"references": (("x",),)}, "wrong-length", "references"),
    ],
)
def test_inconsistent_arrays_raise(
    toy: NBest, changes: dict, code: str, parameter: str | None
) -> None:
    with raises(DataError, code, parameter=parameter, match="^dev.nbest: "):
        replace(toy, origin="dev.nbest", **changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_feature_is_located(toy: NBest, value: float) -> None:
    features = toy.features.copy()
    features[5, 1] = value
    with raises(DataError, "bad-number", match=r"TM0\[0\] of hypothesis 1 of sentence 1 is"):
        replace(toy, features=features)


@pytest.mark.parametrize(
    ("texts", "features"), [([["a", "b"]], [[[1.0]]]), ([["a"], ["b"]], [[[1.0]], [[1.0, 2.0]]])]
)
def test_rejects_features_of_another_length(texts: Any, features: Any) -> None:
    with raises(DataError, "wrong-length", parameter="features"):
        NBest.from_lists(texts, features, ["LM0"])
    with raises(UsageError, "wrong-type", parameter="texts"):
        NBest.from_lists(["ab"], [[[1.0], [2.0]]], ["LM0"])


def test_all_columns_from_lists() -> None:
    nbest = NBest.from_lists(
        [["a", "b"], ["a"]],
        [[[1.0], [2.0]], [[3.0]]],
        ["LM0"],
        references=["one", ("two", "deux")],
        sources=["x", "y"],
        extras={"gain": [np.array([0.5, 1.0]), np.array([2.0])], "spans": [[(0,), (1,)], [()]]},
        sentence_extras={"title": ["t", "u"]},
        sentence_ids=[7, 3],
    )
    assert nbest.references == (("one",), ("two", "deux"))
    assert nbest.sources == ("x", "y")
    assert nbest.extras["gain"].tolist() == [0.5, 1.0, 2.0]  # type: ignore[union-attr]
    assert nbest.extras["spans"] == ((0,), (1,), ())
    assert nbest.sentence_extras == {"title": ("t", "u")}
    assert nbest.sentence_ids.tolist() == [7, 3]


class TestSequence:
    """Indexing, slicing, selecting and chunking keep all columns."""

    LENGTHS = (4, 1, 3, 2)

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
    def test_indexing(self, key: Any, sentences: list[int]) -> None:
        part = lists_with_all_columns(list(self.LENGTHS))[key]
        assert part.sizes.tolist() == [self.LENGTHS[s] for s in sentences]
        assert part.sentence_ids.tolist() == sentences
        assert_consistent(part, sentences)

    @pytest.mark.parametrize("key", [4, [0, 4]])
    def test_rejects_positions_out_of_range(self, key: Any) -> None:
        lists = lists_with_all_columns(list(self.LENGTHS))
        with raises(NoSuchSentence, match="sentence (4|-5): .* 0 to 3"):
            lists[key]
        with raises(NoSuchSentence, match="sentence -1:"):
            lists.select([-1])
        assert issubclass(NoSuchSentence, UsageError)
        assert issubclass(NoSuchSentence, IndexError)

    @settings(deadline=None)
    @given(SIZES, st.data())
    def test_all_columns_are_selected(self, sizes: list[int], data: st.DataObject) -> None:
        nbest = lists_with_all_columns(sizes)
        chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1)))
        assert_consistent(nbest.select(chosen), chosen)
        assert rows_by_sentence(nbest.select(chosen)) == [
            rows_by_sentence(nbest)[s] for s in chosen
        ]
        size = data.draw(st.integers(1, 7))
        assert_consistent(nbest.truncate(size), list(range(len(sizes))))
        first_rows = [rows[:size] for rows in rows_by_sentence(nbest)]
        assert rows_by_sentence(nbest.truncate(size)) == first_rows
        start = 0
        for chunk in nbest.chunks(size):
            assert_consistent(chunk, list(range(start, start + len(chunk))))
            assert rows_by_sentence(chunk) == rows_by_sentence(nbest)[start : start + size]
            start += len(chunk)
        assert start == len(sizes)


class TestConcatenation:
    @settings(deadline=None)
    @given(SIZES, SIZES)
    def test_all_columns_are_concatenated(self, sizes: list[int], others: list[int]) -> None:
        one = lists_with_all_columns(sizes)
        other = lists_with_all_columns(others, first=len(sizes))
        other = replace(other, sentence_ids=other.sentence_ids + len(sizes))
        both = one + other
        assert both.sizes.tolist() == sizes + others
        assert both.sentence_ids.tolist() == list(range(len(sizes + others)))
        assert_consistent(both[: len(one)], list(range(len(one))))
        assert_consistent(both[len(one) :], list(range(len(one), len(both))))
        assert set(both.strings) == set(one.strings) | set(other.strings)
        assert len(set(both.strings)) == len(both.strings)

    def test_features_are_matched_by_name(self, toy: NBest) -> None:
        turned = {"features": toy.features[:, ::-1], "feature_names": toy.feature_names[::-1]}
        both = toy + replace(toy, sentence_ids=[5, 6, 7], **turned)
        assert both.feature_names == toy.feature_names
        assert both.features[9:].tobytes() == toy.features.tobytes()

    def test_rejects_features_of_one_table_only(self, toy: NBest) -> None:
        with raises(DataError, "mismatch"):
            toy + replace(toy.without("TM0[1]"), sentence_ids=[5, 6, 7])

    def test_common_sentence_ids(self, toy: NBest) -> None:
        assert NBest.concatenate([toy, toy], renumber=True).sentence_ids.tolist() == [*range(6)]
        # Repeated sentences of one table are kept.
        assert (toy.select([1, 1]) + toy[:1]).sentence_ids.tolist() == [1, 1, 0]

    @pytest.mark.parametrize("column", ["totals", "gain", "title"])
    def test_rejects_columns_of_one_table_only(self, column: str) -> None:
        one = lists_with_all_columns([2, 1])
        other = replace(lists_with_all_columns([1]), sentence_ids=[9])
        with raises(DataError, "missing-column"):
            one + other.without(column)
        assert len(one.without(column) + other.without(column)) == 3

    def test_missing_columns_are_filled_and_reported(self) -> None:
        one = lists_with_all_columns([2, 1])
        other = replace(lists_with_all_columns([1]), sentence_ids=[9])
        bare = other.without("totals", "references", "sources", "gain", "title")
        with pytest.warns(BpaWarning) as caught:
            both = NBest.concatenate([one, bare], fill_missing=True)
        told = "\n".join(str(note.message) for note in caught)
        for part in (
            "gain, total are missing for 1 of 4",
            "no references for 1 of 3",
            "no sources",
        ):
            assert part in told
        assert both.references == (*(one.references or ()), ())
        assert (both.totals, both.sources) == (None, None)
        assert both.sentence_extras["source"] == (*(one.sources or ()), None)
        assert both.sentence_extras["title"][-1] is None
        assert np.array_equal(both.extras["total"][:3], one.totals)
        assert np.isnan([both.extras["total"][3], both.extras["gain"][3]]).all()

    def test_a_feature_of_some_tables_is_an_extra_of_all(self, toy: NBest) -> None:
        other = replace(toy.without("TM0[1]"), sentence_ids=[5, 6, 7])
        with pytest.warns(BpaWarning, match=r"TM0\[1\] is missing for 9 of 18 candidates"):
            both = NBest.concatenate([other, toy], fill_missing=True)
        assert both.feature_names == other.feature_names
        assert np.isnan(both.extras["TM0[1]"][:9]).all()
        column = toy.features[:, toy.feature_names.index("TM0[1]")]
        assert np.array_equal(both.extras["TM0[1]"][9:], column)
        none = other.without(*other.feature_names).with_extras(x=np.zeros(9))
        with raises(DataError, "mismatch"):
            NBest.concatenate([toy, none], fill_missing=True)

    def test_rejects_columns_of_different_shape(self, toy: NBest) -> None:
        flat = toy.with_extras(gain=np.zeros(9))
        for gain in (np.zeros((9, 2)), ["x"] * 9):
            other = replace(toy, sentence_ids=[5, 6, 7]).with_extras(gain=gain)
            with raises(DataError, "mismatch"):
                flat + other


class TestColumns:
    def test_extras_are_replaced_and_dropped(self, toy: NBest) -> None:
        more = toy.with_extras(gain=range(9)).with_extras(gain=np.ones(9), spans=["x"] * 9)
        assert isinstance(more.extras["gain"], np.ndarray)
        assert more.extras["spans"] == ("x",) * 9
        assert toy.extras == {}
        assert list(more.without("gain", "references").extras) == ["spans"]
        assert more.without("references").references is None

    @pytest.mark.parametrize(
        ("change", "code", "parameter"),
        [
            (lambda n: n.with_extras(gain=[1, 2]), "wrong-length", "gain"),
            (lambda n: n.with_sentence_extras(t=[1, 2]), "wrong-length", "t"),
            (lambda n: n.with_sources(["a"]), "wrong-length", "sources"),
            (lambda n: n.with_references([["x"]]), "wrong-length", "references"),
            (lambda n: n.with_extras(t=range(9)).with_sentence_extras(t="abc"), "wrong-type", "t"),
            (lambda n: n.with_extras(t=range(9)).with_sentence_extras(t=[1] * 3), "duplicate", "t"),
            (lambda n: n.with_extras(references=range(9)), "duplicate", "references"),
            (lambda n: n.with_features(["A"], np.zeros((3, 1))), "wrong-length", "columns"),
            (lambda n: n.with_features(["LM0"], np.zeros((9, 1))), "duplicate", "names"),
            (lambda n: n.with_features("A", np.full(9, np.nan)), "bad-number", None),
            (lambda n: n.without("size"), "unknown-name", "columns"),
            (lambda n: n.truncate(0), "bad-usage", "size"),
            (lambda n: list(n.chunks(0)), "bad-usage", "sentences"),
            (lambda n: n.regroup(np.array([0]), np.array([0, 1]), [1]), "wrong-length", None),
            (lambda n: n.select([True, False]), "wrong-length", "sentences"),
            (lambda n: n.scores({"LM0": 1.0}), "missing-weight", "weights"),
            (lambda n: NBest.concatenate([]), "no-data", "parts"),
            (lambda n: n + n, "duplicate", "renumber"),
            (lambda n: n.with_extras(g=None), "wrong-type", "g"),
            (lambda n: n.with_extras(g="a"), "wrong-type", "g"),
            (lambda n: n.with_sources("the cat"), "wrong-type", "sources"),
            (lambda n: n.with_sources([1, 2, 3]), "wrong-type", "sources"),
            (lambda n: n.with_references("a"), "wrong-type", "references"),
            (lambda n: n.with_references([["a"], ["b"], [3]]), "wrong-type", "references"),
            (lambda n: n.with_references({"a", "b", "c"}), "wrong-type", "references"),
            (lambda n: n.with_references({1.5: "a"}), "wrong-type", "references"),
            (lambda n: n[True], "wrong-length", "sentences"),
            (lambda n: n["0"], "wrong-type", "sentences"),
            (lambda n: n[(0, 1.5)], "wrong-type", "sentences"),
            (lambda n: n[[0, [1]]], "wrong-type", "sentences"),
            (lambda n: n.truncate(1.5), "bad-usage", "size"),
            (lambda n: n.without(None), "unknown-name", "columns"),
            (lambda n: n.with_features("x", [["a"]]), "wrong-type", "columns"),
            (lambda n: n.scores([1.0]), "wrong-length", "weights"),
            (lambda n: n.scores([1.0, np.inf, 0.0]), "bad-number", "weights"),
            (lambda n: n.scores(["a"]), "wrong-type", "weights"),
        ],
    )
    def test_rejects_invalid_arguments(
        self, toy: NBest, change: Any, code: str, parameter: str | None
    ) -> None:
        kind = {"wrong-type": UsageError, "bad-usage": UsageError, "unknown-name": UsageError}
        usage = parameter in ("sentences", "parts")
        with raises(UsageError if usage else kind.get(code, DataError), code, parameter=parameter):
            change(toy)

    def test_features_are_added_and_dropped(self, toy: NBest) -> None:
        more = toy.with_features(["A", "B"], np.arange(18).reshape(9, 2))
        assert more.features[:, :3].tobytes() == toy.features.tobytes()
        assert more.features[:, 4].tolist() == list(range(1, 18, 2))
        assert more.without("A", "TM0").feature_names == ("LM0", "B")
        assert more.without("TM0[0]").feature_names == ("LM0", "TM0[1]", "A", "B")

    def test_extras_are_read_only(self) -> None:
        nbest = lists_with_all_columns([2, 1])
        with pytest.raises(TypeError, match="does not support item assignment"):
            nbest.extras["gain"] = np.zeros(3)  # type: ignore[index]
        with pytest.raises(ValueError, match="read-only"):
            nbest.extras["gain"][0] = 1  # type: ignore[index]
        array: npt.NDArray[np.float64] = np.zeros(3)
        nbest.with_extras(gain=array)
        array[0] = 1  # the caller's array stays writable

    def test_pickle_round_trip(self) -> None:
        nbest = lists_with_all_columns([2, 1])
        again = pickle.loads(pickle.dumps(nbest))
        assert_consistent(again, [0, 1])
        with pytest.raises(TypeError, match="does not support item assignment"):
            again.extras["gain"] = ()
        with pytest.raises(ValueError, match="read-only"):
            again.features[0] = 1


class TestDisplay:
    def test_repr(self) -> None:
        nbest = replace(lists_with_all_columns([2, 1]), origin="dev.nbest.gz")
        assert repr(nbest) == (
            "NBest(2 sentences, 3 hypotheses, 1 feature, totals, references, sources, gain, "
            "vectors, spans, title, domain, from dev.nbest.gz)"
        )
        assert repr(nbest[1]).startswith("NBest(1 sentence, 1 hypothesis, 1 feature, ")
        plain = NBest.from_lists([["a"] * 2500], [np.zeros((2500, 2))], ["A", "B"])
        assert repr(plain) == "NBest(1 sentence, 2,500 hypotheses, 2 features)"


RECORDS = [
    {"id": 3, "text": "a", "lm": -1, "by": "x", "reference": "r"},
    {"id": 3, "text": "b", "lm": -2.5, "by": "y", "reference": "r"},
    {"id": 1, "text": "a", "lm": np.float32(0.5), "by": "x", "reference": "s"},
]


def assert_records(nbest: NBest) -> None:
    assert nbest.sentence_ids.tolist() == [3, 1]
    assert nbest.sizes.tolist() == [2, 1]
    assert (nbest.feature_names, nbest.features.tolist()) == (("lm",), [[-1], [-2.5], [0.5]])
    assert nbest.extras["by"] == ("x", "y", "x")
    assert nbest.references == (("r",), ("s",))


class TestArrays:
    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"sizes": [1, 1]}, "wrong-length"),
            ({"sizes": [1.5, 1.5]}, "wrong-type"),
            ({"features": np.zeros((3, 2))}, "wrong-length"),
            ({"texts": "abc"}, "wrong-type"),
            ({"references": ["x", "y"]}, "wrong-length"),
            ({"texts": ["a", 1, "c"]}, "wrong-type"),
            ({"feature_names": [3]}, "wrong-type"),
            ({"sentence_ids": 3}, "wrong-length"),
            ({"totals": [1.0]}, "wrong-length"),
            ({"feature_names": None}, "wrong-type"),
            ({"sentence_ids": [0.5]}, "wrong-type"),
            ({"gain": 3}, "wrong-type"),
            ({"extras": np.zeros(2)}, "wrong-type"),
        ],
    )
    def test_rejects_inconsistent_arrays(self, changes: dict[str, Any], code: str) -> None:
        given = {"texts": ["a", "b", "c"], "features": np.zeros((3, 1)), "sizes": 3}
        given |= {"feature_names": ["lm"]}
        kind = UsageError if code == "wrong-type" else DataError
        columns = {"sentence_extras": changes} if "gain" in changes else changes
        parameter = None if "extras" in changes else next(iter(changes))
        with raises(kind, code, parameter=parameter):
            NBest.from_arrays(**{**given, **columns})

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"totals": [0.0, 1.0]}, "wrong-type"),
            ({"totals": [[0.0], [1.0, 2.0]]}, "wrong-length"),
            ({"texts": [3, ["c"]]}, "wrong-type"),
            ({"extras": {"gain": [[1], [2, 3]]}}, "wrong-length"),
            ({"extras": {"gain": None}}, "wrong-type"),
        ],
    )
    def test_rejects_inconsistent_lists(self, changes: dict[str, Any], code: str) -> None:
        given = {"texts": [["a", "b"], ["c"]], "features": [[[1.0], [2.0]], [[3.0]]]}
        parameter = "gain" if "extras" in changes else next(iter(changes))
        kind = UsageError if code == "wrong-type" else DataError
        with raises(kind, code, parameter=parameter):
            NBest.from_lists(**{"feature_names": ["lm"], **given, **changes})


class TestRecords:
    def test_record_per_candidate_and_dictionary_of_columns(self) -> None:
        columns: dict[str, Any] = {n: [r[n] for r in RECORDS] for n in RECORDS[0]}
        for records in (RECORDS, iter(RECORDS), columns, {**columns, "lm": [-1, -2.5, 0.5]}):
            assert_records(NBest.from_records(records))

    def test_record_per_sentence(self) -> None:
        """Candidates as a list of objects, or as an object of lists as in Hugging Face datasets."""
        columns = {
            "id": ["p", "q"],
            "references": [["r"], ["s", "t"]],
            "candidates": [
                [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}],
                [{"text": "c", "lm": 3}],
            ],
        }
        nbest = NBest.from_records(columns)
        columnwise = [{"text": ["a", "b"], "lm": [1, 2]}, {"text": ["c"], "lm": [3]}]
        other = NBest.from_records({**columns, "candidates": columnwise})
        assert table_content(other) == table_content(nbest)
        assert nbest.references == (("r",), ("s", "t"))
        assert nbest.sentence_extras["id"] == ("p", "q")

    def test_references_argument_overrides_references_in_records(self) -> None:
        records = [{**record, "id": int(record["id"] == 3)} for record in RECORDS]
        nbest = NBest.from_records(records, references=["0", "1"], sources=["s", "t"])
        assert nbest.references == (("1",), ("0",))
        assert nbest.sources == ("t", "s")

    @pytest.mark.parametrize(
        ("records", "line"), [([*RECORDS, {"id": 9}], 4), ([{0: 1}], 1), (["id"], 1)]
    )
    def test_rejects_invalid_records(self, records: Any, line: int) -> None:
        with raises(DataError, line=line):
            NBest.from_records(records)

    @pytest.mark.parametrize(
        ("records", "code"), [([], "no-data"), ("text", "wrong-type"), ({"id": 1}, "wrong-type")]
    )
    def test_rejects_other_arguments(self, records: Any, code: str) -> None:
        with raises(UsageError, code, parameter="records"):
            NBest.from_records(records)
        with raises(DataError, "wrong-length", parameter="records"):
            NBest.from_records({"id": [1], "text": ["a", "b"]})
        with raises(UsageError, "wrong-type", parameter="frame"):
            NBest.from_dataframe(RECORDS)

    def test_records_with_bad_numbers_can_be_dropped(self) -> None:
        records = [*RECORDS, {**RECORDS[2], "lm": np.inf}]
        with raises(DataError, parameter="bad", line=4):
            NBest.from_records(records)
        with raises(UsageError, "unknown-name", parameter="bad"):
            NBest.from_records(records, bad="ignore")
        with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
            nbest = NBest.from_records(records, bad="drop")
        assert nbest.sizes.tolist() == [2, 1]


class TestDataFrames:
    def test_data_frames_of_several_libraries(self) -> None:
        frame = pd.DataFrame(RECORDS)
        table = pa.Table.from_pandas(frame)
        for data in (frame, table, table.to_batches()[0]):
            assert_records(NBest.from_dataframe(data))

    def test_nbest_is_readable_as_arrow_table(self) -> None:
        nbest = NBest.from_records(RECORDS).with_extras(n=np.array([1, 2, 3]))
        table = pa.table(nbest)
        assert table.column_names == ["id", "text", "reference", "lm", "by", "n"]
        assert nbest.to_dataframe()["n"].tolist() == [1, 2, 3]
        assert NBest.from_dataframe(table).feature_names == ("lm", "n")

    @pytest.mark.parametrize(
        ("columns", "parameter", "line"),
        [
            ({"lm": [1.0, np.inf, 2.0]}, "bad", 2),
            ({"text": ["a", None, "b"]}, None, 2),
            ({"reference": ["r", "x", "s"]}, None, 2),
        ],
    )
    def test_rejects_invalid_data_frames(
        self, columns: dict[str, Any], parameter: str | None, line: int | None
    ) -> None:
        frame = pd.DataFrame({n: [r[n] for r in RECORDS] for n in RECORDS[0]} | columns)
        with raises(DataError, parameter=parameter, line=line):
            NBest.from_dataframe(frame)


def test_what_is_cached_is_not_copied_to_other_lists() -> None:
    lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.0], [3.0, 8.0]]], ["LM0", "W"])
    assert lists.spread.tolist() == [1, 4]
    assert lists.without("LM0").spread.tolist() == [4]
    assert lists.truncate(1).spread.tolist() == [0, 0]


def test_rejects_tables_without_rows() -> None:
    nested = pa.list_(pa.struct([("text", pa.string()), ("lm", pa.float64())]))
    for name, kind in (("text", pa.string()), ("candidates", nested)):
        table = pa.table({"id": pa.array([], pa.int64()), name: pa.array([], kind)})
        with raises(DataError, "no-data", match="empty: there are no n-best lists"):
            NBest.from_dataframe(table)
