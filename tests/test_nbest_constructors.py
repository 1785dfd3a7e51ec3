"""NBest from arrays, records and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from table_content import table_content

from bpa_ppl import NBest
from bpa_ppl.errors import BpaWarning, DataError, UsageError

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
    def test_arrays_equal_lists(self) -> None:
        flat = NBest.from_arrays(
            ["a", "b", "c"],
            np.arange(6).reshape(3, 2),
            ["lm", "tm"],
            [1, 2],
            references=["x", ("y", "z")],
            totals=[1, 2, 3],
            sources=["s", "t"],
            extras={"by": ("u", "v", "w"), "n": np.arange(3)},
            sentence_extras={"doc": ["d", "e"]},
            sentence_ids=[4, 2],
        )
        lists = NBest.from_lists(
            [["a"], ["b", "c"]],
            [[[0, 1]], [[2, 3], [4, 5]]],
            ["lm", "tm"],
            references=["x", ("y", "z")],
            totals=[[1], [2, 3]],
            sources=["s", "t"],
            extras={"by": [["u"], ["v", "w"]], "n": [np.array([0]), np.array([1, 2])]},
            sentence_extras={"doc": ["d", "e"]},
            sentence_ids=[4, 2],
        )
        assert table_content(flat) == table_content(lists)

    def test_single_size_for_all_lists(self) -> None:
        nbest = NBest.from_arrays(["a"] * 6, np.zeros((6, 1)), ["lm"], 3)
        assert nbest.sizes.tolist() == [3, 3]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sizes": 2}, "3 hypotheses cannot be divided into lists of 2"),
            ({"sizes": [1, 1]}, "the sizes sum to 2, but there are 3 hypotheses"),
            ({"sizes": [1.5, 1.5]}, "sizes must be integers"),
            ({"features": np.zeros((3, 2))}, r"features must have the shape \(3, 1\)"),
            ({"features": [["x"]] * 3}, "features are not a table of numbers"),
            ({"features": [[1], [1, 2], [3]]}, "features are not a table of numbers"),
            ({"features": [[1], [1e39], [3]]}, "lm of hypothesis 1 of sentence 0 is inf"),
            ({"texts": "abc"}, "texts must be a sequence"),
            ({"texts": ["a", 1, "c"]}, "texts must be a sequence"),
            ({"references": ["x", "y"]}, "2 values of references for 1 sentence"),
        ],
    )
    def test_rejects_inconsistent_arrays(self, changes: dict[str, Any], message: str) -> None:
        given = {"texts": ["a", "b", "c"], "features": np.zeros((3, 1)), "sizes": 3}
        with pytest.raises((DataError, UsageError), match=message):
            NBest.from_arrays(feature_names=["lm"], **{**given, **changes})


class TestRecords:
    def test_record_per_candidate(self) -> None:
        assert_records(NBest.from_records(RECORDS))
        assert_records(NBest.from_records(iter(RECORDS)))

    def test_dictionary_of_columns(self) -> None:
        columns: dict[str, Any] = {n: [r[n] for r in RECORDS] for n in RECORDS[0]}
        assert_records(NBest.from_records(columns))
        assert_records(NBest.from_records({**columns, "lm": np.array([-1, -2.5, 0.5])}))

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
        assert table_content(
            NBest.from_records({**columns, "candidates": columnwise})
        ) == table_content(nbest)
        assert nbest.references == (("r",), ("s", "t"))
        assert nbest.sentence_extras["id"] == ("p", "q")

    def test_references_argument_overrides_references_in_records(self) -> None:
        records = [{**record, "id": int(record["id"] == 3)} for record in RECORDS]
        nbest = NBest.from_records(records, references=["0", "1"], sources=["s", "t"])
        assert nbest.references == (("1",), ("0",))
        assert nbest.sources == ("t", "s")

    @pytest.mark.parametrize(
        ("records", "message"),
        [
            ([{"id": 0, "text": "a", "lm": np.inf}], r"<memory>:1: lm is inf, not a finite"),
            ([*RECORDS, {"id": 9}], "<memory>:4: text is missing"),
            ([{0: 1}], "<memory>:1: the name of a field must be a text, not 0"),
            (["id"], "<memory>:1: 'id' is not an object"),
            ([], "there are no records"),
            ("text", "records must be dictionaries, or columns by name, not 'text'"),
            (3, "records must be dictionaries, or columns by name, not 3"),
            ({"id": [1], "text": ["a", "b"]}, "columns of records differ in length"),
            ({"id": 1}, "a column of records must be a sequence, not 1"),
        ],
    )
    def test_rejects_invalid_records(self, records: Any, message: str) -> None:
        with pytest.raises((DataError, UsageError), match=message):
            NBest.from_records(records)

    def test_records_with_bad_numbers_can_be_dropped(self) -> None:
        with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
            nbest = NBest.from_records([*RECORDS, {**RECORDS[2], "lm": np.inf}], bad="drop")
        assert nbest.sizes.tolist() == [2, 1]


class InterchangeOnly:
    """A data frame with the interchange protocol only."""

    def __init__(self, table: pa.Table):
        self._table = table

    def __dataframe__(self, **options: Any) -> Any:
        return self._table.__dataframe__(**options)


class TestDataFrames:
    def test_data_frames_of_several_libraries(self) -> None:
        frame = pd.DataFrame(RECORDS)
        table = pa.Table.from_pandas(frame)
        for given in (frame, table, table.to_batches()[0], InterchangeOnly(table)):
            assert_records(NBest.from_dataframe(given))

    def test_unnamed_index_is_not_a_feature(self) -> None:
        frame = pd.DataFrame(RECORDS)
        shuffled = frame.set_index(np.array([5, 7, 9]))
        assert_records(NBest.from_dataframe(shuffled))
        assert_records(NBest.from_dataframe(frame.set_index("id")))

    def test_nbest_is_readable_as_arrow_table(self) -> None:
        nbest = NBest.from_records(RECORDS).with_extras(n=np.array([1, 2, 3]))
        table = pa.table(nbest)
        assert table.column_names == ["id", "text", "reference", "lm", "by", "n"]
        assert nbest.to_dataframe()["n"].tolist() == [1, 2, 3]
        assert NBest.from_dataframe(table).feature_names == ("lm", "n")

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"lm": [1.0, np.inf, 2.0]}, "<memory>:2: lm is inf, not a finite"),
            ({"lm": [1, "x", 2]}, "Arrow cannot read a column"),
            ({"text": ["a", None, "b"]}, "<memory>:2: text is missing"),
            ({"reference": ["r", "x", "s"]}, "<memory>:2: another reference than before"),
            ({"id": [0, 1, 0]}, "<memory>:3: a second list of sentence 0"),
        ],
    )
    def test_rejects_invalid_data_frames(self, columns: dict[str, Any], message: str) -> None:
        frame = pd.DataFrame({n: [r[n] for r in RECORDS] for n in RECORDS[0]} | columns)
        with pytest.raises(DataError, match=message):
            NBest.from_dataframe(frame)

    def test_rejects_list_as_data_frame(self) -> None:
        with pytest.raises(UsageError, match=r"a list is not a data frame: .* or use from_records"):
            NBest.from_dataframe(RECORDS)

    def test_to_dataframe_without_pandas_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def raise_import_error(*_: object, **__: object) -> None:
            raise ImportError("no pandas")

        monkeypatch.setattr(
            "bpa_ppl.rows.writing.table_of", lambda *_, **__: TableWithoutPandas(raise_import_error)
        )
        with pytest.raises(UsageError, match="to_dataframe needs pandas: run `pip install pandas`"):
            NBest.from_records(RECORDS).to_dataframe()


class TableWithoutPandas:
    """A table whose conversion to pandas fails."""

    def __init__(self, to_pandas: Any):
        self.to_pandas = to_pandas
