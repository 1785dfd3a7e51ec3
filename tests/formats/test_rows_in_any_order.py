"""Tables of which the rows of a sentence are not adjacent, such as those sorted by system."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from raising import raises

from bpa_ppl import NBest, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError

Write = Callable[..., Path]
Record = dict[str, Any]
#: Sentence 2 comes before 1, system B has no candidate of 7, and C a second one.
IDS = {"A": [7, 2, 1], "B": [1, 2], "C": [2, 7, 1, 7]}
RECORDS: list[Record] = [
    {"id": s, "text": f"{name} {s} {k}", "reference": f"the {s}", "lm": k + 0.5, "system": name}
    for name, ids in IDS.items()
    for k, s in enumerate(ids)
]


def text_file(records: list[Record], path: Path, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)


def json_lines(records: list[Record], path: Path) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


FILES: dict[str, Callable[[list[Record], Path], None]] = {
    "csv": lambda records, path: text_file(records, path, ","),
    "tsv": lambda records, path: text_file(records, path, "\t"),
    "jsonl": json_lines,
    "parquet": lambda records, path: parquet.write_table(pa.Table.from_pylist(records), path),
}


def check_groups(lists: NBest) -> None:
    """Check that the lists have all records, by sentence, in order of first appearance."""
    order = list(dict.fromkeys(record["id"] for record in RECORDS))
    assert lists.sentence_ids.tolist() == order == [7, 2, 1]
    for s, identifier in enumerate(order):
        records = [record for record in RECORDS if record["id"] == identifier]
        rows = lists.rows(s)
        assert lists.texts(s) == [record["text"] for record in records]
        assert lists.features[rows, 0].tolist() == [record["lm"] for record in records]
        assert list(lists.extras["system"][rows]) == [record["system"] for record in records]
        assert lists.references is not None
        assert lists.references[s] == (f"the {identifier}",)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", FILES)
def test_rows_are_grouped_by_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"lists.{kind}"
    FILES[kind](RECORDS, path)
    with pytest.warns(BpaWarning, match="grouped by id") as notes:
        lists = read_nbest(path)
    header = int(kind in ("csv", "tsv"))
    assert f"(lines {2 + header} and {5 + header})" in str(notes[0].message)
    check_groups(lists)


@pytest.mark.parametrize(
    "make",
    [NBest.from_records, lambda records: NBest.from_dataframe(pa.Table.from_pylist(records))],
    ids=["records", "data frame"],
)
def test_data_in_memory(make: Callable[[list[Record]], NBest]) -> None:
    with pytest.warns(BpaWarning, match="grouped by id"):
        check_groups(make(RECORDS))


def test_rows_that_disagree_about_their_sentence(write: Write) -> None:
    rows = ["0,a,x,1", "1,b,y,1", "0,c,z,1"]
    with raises(DataError, line=4, match="another source"):
        read_nbest(write("id,text,source,lm", *rows, name="lists.csv"))


def test_streams_need_adjacent_rows(write: Write) -> None:
    path = write("id,text,lm", "0,a,1", "1,b,2", "0,c,3", name="lists.csv")
    with raises(DataError, line=4, match=r"line 2: sort the rows by id, or .*read_nbest"):
        list(iter_nbest(path))


def test_lists_of_decoders_and_of_candidates_are_not_joined(write: Write) -> None:
    moses = ["0 ||| a ||| LM0= 1", "1 ||| b ||| LM0= 1", "0 ||| c ||| LM0= 1"]
    nested = [json.dumps({"id": s, "candidates": [{"text": "a", "lm": 1}]}) for s in (0, 1, 0)]
    for lines in (moses, nested):
        with raises(DataError, line=3, match="second list of sentence 0"):
            read_nbest(write(*lines))
