"""Columns that are named in the format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import DataError, iter_nbest, read_nbest


def test_a_column_with_two_names_is_refused(write: Write) -> None:
    with raises(DataError, "duplicate", parameter="format", match="seg"):
        read_nbest(write("id,text,lm,seg", "0,a,1,7"), format="csv:id=seg,source=seg")


DOTTED = "id=meta.id,source=doc.q,reference=ref.a.b"
RECORDS: list[dict[str, Any]] = [
    {
        "meta": {"id": f"d{k}", "set": "x"},
        "doc": {"q": f"q{k}"},
        "ref": {"a": {"b": f"r{k}"}},
        "candidates": [{"message": {"content": f"t{k}{n}", "s": n}, "text": "no"} for n in "uv"],
    }
    for k in range(3)
]


def as_rows(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records of which each is a candidate."""
    return [
        {**{n: v for n, v in record.items() if n != "candidates"}, **candidate}
        for record in records
        for candidate in record["candidates"]
    ]


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
@pytest.mark.filterwarnings("ignore:.*the column text is left out")
def test_names_with_dots_are_those_of_fields_of_objects(
    tmp_path: Path, nested: bool, ending: str
) -> None:
    records, path = RECORDS if nested else as_rows(RECORDS), tmp_path / f"x.{ending}"
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_bytes(gzip.compress(lines) if ending.endswith("gz") else lines)
    format = f"{ending.split('.')[0]}:text=message.content,{DOTTED}"
    for lists in (read_nbest(path, format=format), next(iter_nbest(path, format=format, chunk=3))):
        assert lists.ids == ("d0", "d1", "d2")
        assert [lists.texts(k) for k in range(3)] == [[f"t{k}u", f"t{k}v"] for k in range(3)]
        assert (lists.sources, lists.references) == (
            ("q0", "q1", "q2"),
            (("r0",), ("r1",), ("r2",)),
        )
        assert lists.extras["message.s"] == ("u", "v") * 3
        names = {"meta", "id"} if nested else {"id"}
        assert lists.sentence_extras.keys() == names
        assert lists.extras.keys() == ({"message.s"} if nested else {"message.s", "meta.set"})


def test_a_name_with_dots_may_be_that_of_a_column(write: Write) -> None:
    line = json.dumps({"id": 0, "candidates": [{"a.b": "x", "a": {"c.d": "z"}}]})
    for name, text in {"a.b": "x", "a.c.d": "z"}.items():
        assert read_nbest(write(line), format=f"jsonl:text={name}").texts(0) == [text]
    lines = ["id,message.content,lm", "0,x,1"]
    assert read_nbest(write(*lines), format="csv:text=message.content").texts(0) == ["x"]


@pytest.mark.filterwarnings("ignore:.*the column text is left out")
@pytest.mark.parametrize("name", ["nope", "doc.nope", "nope.q", "doc.q.nope"])
@pytest.mark.parametrize("field", ["source", "reference"])
def test_a_field_that_no_record_has_is_refused(
    write: Write, tmp_path: Path, field: str, name: str
) -> None:
    parquet = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(RECORDS), parquet)
    path = write(*map(json.dumps, RECORDS))
    listed = f"no column {name} .the columns are .*doc.q.*: name another one, or leave out {field}="
    for file, format in ((path, "jsonl"), (parquet, "parquet")):
        settings = f"{format}:id=meta.id,text=message.content,{field}={name}"
        with raises(DataError, "missing-column", parameter="format", match=listed):
            read_nbest(file, format=settings)
        # As the message says:
        assert len(read_nbest(file, format=settings.removesuffix(f",{field}={name}"))) == 3
        with raises(DataError, "missing-column", parameter="format", match=listed):
            list(iter_nbest(file, format=settings, chunk=1))


def test_a_field_may_be_absent_in_the_first_records(write: Write) -> None:
    lines = [{"id": k, "candidates": [{"text": "a", "lm": 1}]} for k in range(3)]
    late = [*lines[:2], {**lines[2], "doc": {"q": "late"}}]
    with pytest.warns(UserWarning, match="no source for 2 of 3"):
        lists = read_nbest(write(*map(json.dumps, late)), format="jsonl:source=doc.q")
    assert lists.sentence_extras["source"] == (None, None, "late")


def test_an_object_and_a_column_of_one_name_are_refused(tmp_path: Path) -> None:
    """Both would be the column `a.b`."""
    table = pa.table({"id": [0], "text": ["x"], "a.b": [1.0], "a": [{"b": 2.0}]})
    pq.write_table(table, tmp_path / "x.parquet")
    with raises(DataError, "duplicate", match="two columns a.b"):
        read_nbest(tmp_path / "x.parquet")
