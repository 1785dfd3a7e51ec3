"""Parquet files: long and nested, in batches, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bpa_ppl import from_records, read_nbest
from bpa_ppl.errors import DataError

NESTED = {
    "id": ["a", "b"],
    "source": ["s", "t"],
    "references": [["x", "y"], ["z"]],
    "year": [2020, 2021],
    "candidates": [
        [{"text": "u", "lm": -1.0, "by": "me"}, {"text": "v", "lm": -2.0, "by": "you"}],
        [{"text": "w", "lm": -3.0, "by": "me"}],
    ],
}


def written(tmp_path: Path, columns: Any) -> Path:
    path = tmp_path / "lists.parquet"
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    parquet.write_table(table, path)
    return path


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
    nbest = read_nbest(written(tmp_path, columns), features="*")
    assert nbest.feature_names == ("half", "whole", "decimal", "scores.in", "scores.out")
    assert nbest.features.tolist() == [[0.5, 2.0**60, 1, 1, 2], [1, -1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"candidates": [[{"text": "a"}, {"text": None}], []]}, r":1: candidates.1..text is miss"),
        ({"candidates": [{"text": ["a"], "lm": [1.0]}] * 2}, ":1: candidates is .*, not a list"),
        ({"candidates": None, "text": [["a", "b"], ["c"]]}, ":1: text is a list of texts"),
        ({"references": [["x"], [None]]}, r":2: references is \[None\]"),
        ({"id": None, "candidates": None, "text": ["a", "b"]}, ":1: .*id"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(
    tmp_path: Path, changes: dict[str, Any], match: str
) -> None:
    columns = {n: v for n, v in {**NESTED, **changes}.items() if v is not None}
    if "references" not in changes:
        columns.pop("references")
    with pytest.raises(DataError, match=rf"lists\.parquet{match}"):
        read_nbest(written(tmp_path, columns))


def test_a_column_twice(tmp_path: Path) -> None:
    columns = [pa.array([0]), pa.array(["a"]), pa.array(["a"])]
    read_table = pytest.importorskip("bpa_ppl.extras.phrases.table_files").read_table
    for read, names in ((read_nbest, ["id", "text", "text"]), (read_table, ["id", "by", "by"])):
        path = written(tmp_path, pa.table(columns, names))
        with pytest.raises(DataError, match=r"lists\.parquet: "):
            read(path)
