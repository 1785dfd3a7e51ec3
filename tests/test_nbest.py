from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpa_ppl.columns import intern
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import NBest

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


def numbered_lists(sizes: list[int]) -> NBest:
    """Return lists whose single feature is the row number, with texts, references and totals."""
    rows = iter(range(sum(sizes)))
    tables = [[[next(rows)] for _ in range(size)] for size in sizes]
    return NBest.from_lists(
        [[f"text {row % 5}" for [row] in table] for table in tables],
        tables,
        ["row"],
        references=[[f"reference {s}"] for s in range(len(sizes))],
        totals=[[-row for [row] in table] for table in tables],
    )


def lists_with_all_columns(sizes: list[int], first: int = 0) -> NBest:
    """Return lists with all columns; each value encodes its row or sentence."""
    counts = np.arange(sum(sizes))
    ids = np.arange(first, first + len(sizes))
    return (
        numbered_lists(sizes)
        .with_sources([f"source {i}" for i in ids])
        .with_references([(f"reference {i}",) for i in ids])
        .with_extras(
            gain=counts / 2,
            vectors=np.column_stack([counts, -counts]),
            spans=[(r,) for r in counts],
        )
        .with_sentence_extras(domain=ids % 2, title=[f"title {i}" for i in ids])
    )


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


@settings(deadline=None)
@given(st.lists(st.sampled_from(["", "a", "b", "A", "a "])))
def test_interned_texts_round_trip(texts: list[str]) -> None:
    strings, index = intern(texts)
    assert [strings[i] for i in index] == texts
    assert list(strings) == list(dict.fromkeys(texts))
    assert index.dtype == np.int32


@settings(deadline=None)
@given(SIZES, st.data())
def test_select_takes_whole_lists_in_any_order_with_repeats(
    sizes: list[int], data: st.DataObject
) -> None:
    nbest = numbered_lists(sizes)
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1))
    picked = nbest.select(chosen)
    assert rows_by_sentence(picked) == [rows_by_sentence(nbest)[s] for s in chosen]
    assert [picked.texts(i) for i in range(len(chosen))] == [nbest.texts(s) for s in chosen]
    assert picked.references == tuple((f"reference {s}",) for s in chosen)
    assert picked.sentence_ids.tolist() == chosen
    assert picked.totals is not None
    assert picked.totals.tolist() == [-row for rows in rows_by_sentence(picked) for row in rows]


def test_select_by_mask(toy: NBest) -> None:
    assert toy.select(np.array([True, False, True])).sizes.tolist() == [4, 3]


@settings(deadline=None)
@given(SIZES, st.integers(1, 7))
def test_truncate_keeps_first_hypotheses(sizes: list[int], size: int) -> None:
    nbest = numbered_lists(sizes)
    assert rows_by_sentence(nbest.truncate(size)) == [
        rows[:size] for rows in rows_by_sentence(nbest)
    ]


@pytest.mark.parametrize("size", [0, -1])
def test_truncate_rejects_size_below_one(toy: NBest, size: int) -> None:
    with pytest.raises(UsageError, match=f"size must be at least 1, got {size}"):
        toy.truncate(size)


@settings(deadline=None)
@given(SIZES, st.integers(1, 9))
def test_chunks_cover_all_lists(sizes: list[int], count: int) -> None:
    nbest = numbered_lists(sizes)
    chunks = list(nbest.chunks(count))
    assert all(len(chunk) == count for chunk in chunks[:-1])
    assert [rows for chunk in chunks for rows in rows_by_sentence(chunk)] == rows_by_sentence(nbest)


def test_scores_are_inner_products_in_double_precision(toy: NBest) -> None:
    weights = [0.5, -1.25, 2.0]
    expected = [sum(w * float(h) for w, h in zip(weights, row)) for row in toy.features]  # noqa: B905
    assert toy.scores(weights).dtype == np.float64
    np.testing.assert_allclose(toy.scores(weights), expected, rtol=1e-14)


def test_best_is_first_hypothesis_with_highest_score(toy: NBest) -> None:
    scores = [0, 3, 3, 1, -2, -1, 5, 5, 5]
    assert toy.best(scores).tolist() == [1, 1, 0]
    assert toy.chosen(toy.best(scores)) == ["a cat sat", "hello", "one two three"]


def test_with_references_replaces_references(toy: NBest) -> None:
    other = toy.with_references([["x", "y"], ["z"], []])
    assert other.references == (("x", "y"), ("z",), ())
    assert toy.references == (("the cat sat down",), ("hello world",), ("one two three",))
    with pytest.raises(DataError, match="1 values of references for 3 sentences"):
        toy.with_references([["x"]])


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
def test_inconsistent_arrays_raise(toy: NBest, changes: dict, message: str) -> None:
    with pytest.raises(DataError, match=f"dev.nbest: .*{message}"):
        replace(toy, origin="dev.nbest", **changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_feature_is_located(toy: NBest, value: float) -> None:
    features = toy.features.copy()
    features[5, 1] = value
    with pytest.raises(DataError, match=r"TM0\[0\] of hypothesis 1 of sentence 1 is -?(nan|inf)"):
        replace(toy, features=features)


def test_texts_and_features_must_have_equal_length() -> None:
    with pytest.raises(DataError, match="same number of hypotheses"):
        NBest.from_lists([["a", "b"]], [[[1.0]]], ["LM0"])


def test_rejects_flat_texts_and_ragged_features() -> None:
    with pytest.raises(UsageError, match="a list of hypotheses for each sentence, not one text"):
        NBest.from_lists(["ab"], [[[1.0], [2.0]]], ["LM0"])
    with pytest.raises(DataError, match="needs 2 features, one for each name"):
        NBest.from_lists([["a"], ["b"]], [[[1.0]], [[1.0, 2.0]]], ["LM0", "W0"])


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
            (-1, [3]),
            (np.int64(1), [1]),
            (slice(1, 3), [1, 2]),
            (slice(None), [0, 1, 2, 3]),
            (slice(-2, None), [2, 3]),
            (slice(3, 1), []),
            (slice(None, None, 2), [0, 2]),
            (slice(None, None, -1), [3, 2, 1, 0]),
            ([3, 0, 3], [3, 0, 3]),
            ([-1, 0], [3, 0]),
            (np.array([2, 1]), [2, 1]),
            ([], []),
            ([True, False, False, True], [0, 3]),
            (np.array([False, True, False, False]), [1]),
        ],
        ids=str,
    )
    def test_indexing(self, key: Any, sentences: list[int]) -> None:
        part = lists_with_all_columns(list(self.LENGTHS))[key]
        assert part.sizes.tolist() == [self.LENGTHS[s] for s in sentences]
        assert part.sentence_ids.tolist() == sentences
        assert_consistent(part, sentences)

    @pytest.mark.parametrize("key", [4, -5, [0, 4], [-5]])
    def test_rejects_positions_out_of_range(self, key: Any) -> None:
        with pytest.raises(
            IndexError, match=r"there is no sentence (4|-5): positions run from 0 to 3"
        ):
            lists_with_all_columns(list(self.LENGTHS))[key]
        with pytest.raises(UsageError):
            lists_with_all_columns(list(self.LENGTHS))[key]

    @pytest.mark.parametrize(
        "key", [[True, False], True, "0", 1.5, None, (0, 1.5), [0.0], np.zeros((2, 2), bool)]
    )
    def test_rejects_invalid_positions(self, key: Any) -> None:
        with pytest.raises(
            UsageError, match=r"a mask must have one value for each of 4|must be selected by"
        ):
            lists_with_all_columns(list(self.LENGTHS))[key]

    def test_select_rejects_negative_positions_and_short_masks(self, toy: NBest) -> None:
        with pytest.raises(UsageError, match="there is no sentence -1: positions run"):
            toy.select([-1])
        with pytest.raises(UsageError, match=r"a mask must have one value for each of 3 sentences"):
            toy.select([True, False])

    @settings(deadline=None)
    @given(SIZES, st.data())
    def test_all_columns_are_selected(self, sizes: list[int], data: st.DataObject) -> None:
        nbest = lists_with_all_columns(sizes)
        chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1)))
        assert_consistent(nbest.select(chosen), chosen)
        assert_consistent(nbest.truncate(data.draw(st.integers(1, 7))), list(range(len(sizes))))
        start = 0
        for chunk in nbest.chunks(data.draw(st.integers(1, 4))):
            assert_consistent(chunk, list(range(start, start + len(chunk))))
            start += len(chunk)
        assert start == len(sizes)

    def test_iteration_yields_single_lists(self, toy: NBest) -> None:
        lists = list(toy)
        assert [len(one) for one in lists] == [1, 1, 1]
        assert [one.texts(0) for one in lists] == [toy.texts(s) for s in range(3)]
        assert [one.strings for one in lists] == [tuple(toy.texts(s)) for s in range(3)]

    def test_slices_share_memory_and_selections_do_not(self, toy: NBest) -> None:
        assert np.shares_memory(toy[1:].features, toy.features)
        assert not np.shares_memory(toy.select([1, 2]).features, toy.features)

    def test_strings_keep_their_order(self) -> None:
        nbest = NBest.from_lists([["b", "a"], ["c", "a", "b"]], [[[1]] * 2, [[1]] * 3], ["LM0"])
        assert nbest[1].strings == ("b", "a", "c")
        assert nbest[1].texts(0) == ["c", "a", "b"]

    def test_chunks_reject_size_zero(self, toy: NBest) -> None:
        with pytest.raises(UsageError, match="must be at least 1, got 0"):
            list(toy.chunks(0))

    def test_regroup_rejects_inconsistent_sizes(self, toy: NBest) -> None:
        with pytest.raises(DataError, match="disagree in shape"):
            toy.regroup(np.array([0]), np.array([0, 1]), [1])


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

    def test_concatenated_parts_equal_the_whole(self, toy: NBest) -> None:
        again = NBest.concatenate(toy)
        for field in fields(NBest):
            actual, expected = getattr(again, field.name), getattr(toy, field.name)
            assert (
                np.array_equal(actual, expected) if field.name != "strings" else actual == expected
            )

    def test_features_are_matched_by_name(self, toy: NBest) -> None:
        other = replace(
            toy,
            features=toy.features[:, ::-1],
            feature_names=toy.feature_names[::-1],
            sentence_ids=[5, 6, 7],
        )
        both = toy + other
        assert both.feature_names == toy.feature_names
        assert both.features[9:].tobytes() == toy.features.tobytes()

    def test_rejects_features_of_one_table_only(self, toy: NBest) -> None:
        with pytest.raises(DataError, match=r"dev: TM0\[1\] is not a feature of both a\.nbest and"):
            replace(toy, origin="a.nbest") + replace(
                toy.without_features("TM0[1]"), sentence_ids=[5, 6, 7], origin="dev"
            )

    def test_rejects_common_sentence_ids(self, toy: NBest) -> None:
        with pytest.raises(
            DataError, match=r"<memory> have sentence ids in common: .*renumber=True"
        ):
            toy + toy
        assert NBest.concatenate([toy, toy], renumber=True).sentence_ids.tolist() == [*range(6)]
        # Repeated sentences of one table are kept.
        assert (toy.select([1, 1]) + toy[:1]).sentence_ids.tolist() == [1, 1, 0]

    @pytest.mark.parametrize("column", ["totals", "references", "sources", "gain", "title"])
    def test_rejects_columns_of_one_table_only(self, column: str) -> None:
        one, other = (
            lists_with_all_columns([2, 1]),
            replace(lists_with_all_columns([1]), sentence_ids=[9], origin="b.nbest"),
        )
        with pytest.raises(DataError, match=f"b.nbest: no {column}, which <memory> has: add it"):
            one + other.without(column)
        assert len(one.without(column) + other.without(column)) == 3

    def test_rejects_columns_of_different_shape(self, toy: NBest) -> None:
        flat = toy.with_extras(gain=np.zeros(9))
        for gain in (np.zeros((9, 2)), ["x"] * 9):
            other = replace(toy, sentence_ids=[5, 6, 7]).with_extras(gain=gain)
            with pytest.raises(DataError, match="the columns gain differ in shape"):
                flat + other

    def test_origins_are_joined(self, toy: NBest) -> None:
        parts = [replace(toy[s], origin=origin) for s, origin in enumerate("aba")]
        assert NBest.concatenate(parts).origin == "a + b"

    def test_rejects_empty_input_and_other_types(self, toy: NBest) -> None:
        with pytest.raises(UsageError, match="give at least one"):
            NBest.concatenate([])
        with pytest.raises(TypeError, match="unsupported operand"):
            toy + 1  # type: ignore[operator]


class TestColumns:
    def test_references_are_texts_or_tuples(self, toy: NBest) -> None:
        assert toy.with_references(["the cat", ["a", "b"], ()]).references == (
            ("the cat",),
            ("a", "b"),
            (),
        )

    @pytest.mark.parametrize(
        "references",
        ["the cat", 3, None, [1, 2, 3], [["a"], ["b"], [3]], {"a", "b", "c"}, {0: "a"}],
    )
    def test_rejects_invalid_references(self, toy: NBest, references: Any) -> None:
        with pytest.raises(
            UsageError, match="references must be one text, or a tuple of texts, for"
        ):
            toy.with_references(references)

    @pytest.mark.parametrize("sources", ["the cat", 3, [1, 2, 3], [("a",), ("b",), ("c",)]])
    def test_rejects_invalid_sources(self, toy: NBest, sources: Any) -> None:
        with pytest.raises(UsageError, match="sources must be one text for each sentence"):
            toy.with_sources(sources)

    def test_extras_are_replaced_and_dropped(self, toy: NBest) -> None:
        more = toy.with_extras(gain=range(9)).with_extras(gain=np.ones(9), spans=["x"] * 9)
        assert isinstance(more.extras["gain"], np.ndarray)
        assert more.extras["spans"] == ("x",) * 9
        assert toy.extras == {}
        assert list(more.without("gain", "references").extras) == ["spans"]
        assert more.without("references").references is None
        with pytest.raises(UsageError, match="unknown column 'size': choose one of totals, refer"):
            more.without("size")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda n: n.with_extras(gain=[1, 2]), "2 values of gain for 9 hypotheses"),
            (lambda n: n.with_sentence_extras(t=[1, 2]), "2 values of t for 3 sentences"),
            (lambda n: n.with_sources(["a"]), "1 values of sources for 3 sentences"),
            (
                lambda n: n.with_extras(t=range(9)).with_sentence_extras(t=range(3)),
                "there is a column t already",
            ),
            (lambda n: n.with_extras(references=range(9)), "a column references already"),
            (lambda n: n.with_features(["A"], np.zeros((3, 1))), r"shape \(9, 1\), not \(3, 1\)"),
            (
                lambda n: n.with_features(["LM0"], np.zeros((9, 1))),
                "there is a feature LM0 already",
            ),
            (lambda n: n.with_features("A", np.full(9, np.nan)), "A of hypothesis 0 of sentence 0"),
            (lambda n: n.without_features("TM1"), r"no feature TM1: there are LM0, TM0\[0\]"),
        ],
    )
    def test_rejects_inconsistent_columns(self, toy: NBest, change: Any, message: str) -> None:
        with pytest.raises(DataError, match=message):
            change(toy)

    @pytest.mark.parametrize("values", ["text", 3, {"a": 1}, None])
    def test_rejects_column_that_is_not_a_sequence(self, toy: NBest, values: Any) -> None:
        with pytest.raises(UsageError, match="the column gain must be a sequence of values"):
            toy.with_extras(gain=values)

    def test_features_are_added_and_dropped(self, toy: NBest) -> None:
        more = toy.with_features(["A", "B"], np.arange(18).reshape(9, 2))
        assert more.features[:, :3].tobytes() == toy.features.tobytes()
        assert more.features[:, 4].tolist() == list(range(1, 18, 2))
        assert more.without_features(["A", "TM0"]).feature_names == ("LM0", "B")
        assert more.without_features("TM0[0]").feature_names == ("LM0", "TM0[1]", "A", "B")

    def test_with_sentences_of_copies_sentence_columns_by_id(self) -> None:
        old = lists_with_all_columns([2, 1, 3])
        new = NBest.from_lists([["z"], ["y"]], [[[0.0]]] * 2, ["row"], sentence_ids=[2, 0])
        merged = new.with_sentences_of(old)
        assert merged.references == (("reference 2",), ("reference 0",))
        assert merged.sources == ("source 2", "source 0")
        assert merged.sentence_extras["title"] == ("title 2", "title 0")
        assert merged.texts(0) == ["z"]
        assert merged.extras == {}
        with pytest.raises(DataError, match="sentence id 9 is not in dev: give lists of the same"):
            replace(new, sentence_ids=[2, 9]).with_sentences_of(replace(old, origin="dev"))

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
            "vectors, spans, domain, title, from dev.nbest.gz)"
        )
        assert repr(nbest[1]).startswith("NBest(1 sentence, 1 hypothesis, 1 feature, ")
        plain = NBest.from_lists([["a"] * 2500], [np.zeros((2500, 2))], ["A", "B"])
        assert repr(plain) == "NBest(1 sentence, 2,500 hypotheses, 2 features)"

    def test_html_is_escaped(self, toy: NBest) -> None:
        page = replace(toy, origin="<b>&.nbest", feature_names=("<script>", "B", "C"))._repr_html_()
        tags: list[str] = []
        texts: list[str] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
        parser.handle_data = texts.append  # type: ignore[method-assign]
        parser.feed(page)
        assert set(tags) == {"table", "caption", "tr", "td"}
        assert "from <b>&.nbest" in texts
        assert "<script>, B, C" in texts
