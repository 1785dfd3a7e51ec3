"""NBest from arrays, records and data frames."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from raising import raises
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
        common: dict[str, Any] = {
            "references": ["x", ("y", "z")],
            "sources": ["s", "t"],
            "sentence_extras": {"doc": ["d", "e"]},
            "sentence_ids": [4, 2],
        }
        flat = NBest.from_arrays(
            ["a", "b", "c"],
            np.arange(6).reshape(3, 2),
            ["lm", "tm"],
            [1, 2],
            totals=[1, 2, 3],
            extras={"by": ("u", "v", "w"), "n": np.arange(3)},
            **common,
        )
        lists = NBest.from_lists(
            [["a"], ["b", "c"]],
            [[[0, 1]], [[2, 3], [4, 5]]],
            ["lm", "tm"],
            totals=[[1], [2, 3]],
            extras={"by": [["u"], ["v", "w"]], "n": [np.array([0]), np.array([1, 2])]},
            **common,
        )
        assert table_content(flat) == table_content(lists)

    def test_single_size_for_all_lists(self) -> None:
        nbest = NBest.from_arrays(["a"] * 6, np.zeros((6, 1)), ["lm"], 3)
        assert nbest.sizes.tolist() == [3, 3]

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"sizes": 2}, "wrong-length"),
            ({"sizes": [1, 1]}, "wrong-length"),
            ({"sizes": [1.5, 1.5]}, "wrong-type"),
            ({"features": np.zeros((3, 2))}, "wrong-length"),
            ({"features": [["x"]] * 3}, "bad-number"),
            ({"features": [[1], [1, 2], [3]]}, "bad-number"),
            ({"texts": "abc"}, "wrong-type"),
            ({"texts": ["a", 1, "c"]}, "wrong-type"),
            ({"references": ["x", "y"]}, "wrong-length"),
        ],
    )
    def test_rejects_inconsistent_arrays(self, changes: dict[str, Any], code: str) -> None:
        given = {"texts": ["a", "b", "c"], "features": np.zeros((3, 1)), "sizes": 3}
        kind = UsageError if code == "wrong-type" else DataError
        with raises(kind, code, parameter=next(iter(changes))):
            NBest.from_arrays(feature_names=["lm"], **{**given, **changes})

    def test_number_that_is_too_large_is_located(self) -> None:
        with raises(DataError, "bad-number", match="lm of hypothesis 1 of sentence 0 is inf"):
            NBest.from_arrays(["a", "b"], [[1], [1e39]], ["lm"], 2)


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
        ("records", "line"),
        [([*RECORDS, {"id": 9}], 4), ([{0: 1}], 1), (["id"], 1)],
    )
    def test_rejects_invalid_records(self, records: Any, line: int) -> None:
        with raises(DataError, line=line):
            NBest.from_records(records)

    @pytest.mark.parametrize(
        ("records", "code"),
        [([], "no-data"), ("text", "wrong-type"), (3, "wrong-type"), ({"id": 1}, "wrong-type")],
    )
    def test_rejects_other_arguments(self, records: Any, code: str) -> None:
        with raises(UsageError, code, parameter="records"):
            NBest.from_records(records)
        with raises(DataError, "wrong-length", parameter="records"):
            NBest.from_records({"id": [1], "text": ["a", "b"]})

    def test_records_with_bad_numbers_can_be_dropped(self) -> None:
        records = [*RECORDS, {**RECORDS[2], "lm": np.inf}]
        with raises(DataError, parameter="bad", line=4):
            NBest.from_records(records)
        with raises(UsageError, "unknown-name", parameter="bad"):
            NBest.from_records(records, bad="ignore")
        with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
            nbest = NBest.from_records(records, bad="drop")
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
        ("columns", "parameter", "line"),
        [
            ({"lm": [1.0, np.inf, 2.0]}, "bad", 2),
            ({"lm": [1, "x", 2]}, "frame", None),
            ({"text": ["a", None, "b"]}, None, 2),
            ({"reference": ["r", "x", "s"]}, None, 2),
            ({"id": [0, 1, 0]}, None, 3),
        ],
    )
    def test_rejects_invalid_data_frames(
        self, columns: dict[str, Any], parameter: str | None, line: int | None
    ) -> None:
        frame = pd.DataFrame({n: [r[n] for r in RECORDS] for n in RECORDS[0]} | columns)
        with raises(DataError, parameter=parameter, line=line):
            NBest.from_dataframe(frame)

    def test_rejects_list_as_data_frame(self) -> None:
        with raises(UsageError, "wrong-type", parameter="frame"):
            NBest.from_dataframe(RECORDS)

    def test_to_dataframe_without_pandas_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = Mock(to_pandas=Mock(side_effect=ImportError("no pandas")))
        monkeypatch.setattr("bpa_ppl.rows.writing.table_of", lambda *_, **__: table)
        with raises(UsageError, "not-supported"):
            NBest.from_records(RECORDS).to_dataframe()
