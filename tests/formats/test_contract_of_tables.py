"""What holds in every table of candidates, whatever holds it: see `WAYS` and `OF_RECORDS`.

Each field has its place, and what is wrong is named. Values may be missing, columns may have other
names, rows may come in any order, and sentences may have no candidates or references.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.raising import raises
from support.table_content import table_content
from support.user_files import GOOD, Write

from bpa_ppl import NBest, from_records, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats import jsonl
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.separated import Csv
from bpa_ppl.lists.columns import read_column

Record = dict[str, Any]
#: Makes lists of rows, with settings of the format and arguments of the reader.
Make = Callable[..., NBest]


def nested(rows: list[Record], candidates: str = "candidates") -> list[Record]:
    """Return a record for each sentence; its id is the first field of a row."""
    lists: dict[Any, Record] = {}
    for row in rows:
        identifier = next(iter(row))
        key = row[identifier]
        own = {n: v for n, v in row.items() if n in (identifier, "src", "ref", "reference")}
        of_candidate = {n: v for n, v in row.items() if n not in own}
        lists.setdefault(key, {**own, candidates: []})[candidates].append(of_candidate)
    return list(lists.values())


def separated(delimiter: str) -> Make:
    """Return what writes rows with empty cells for missing values."""

    def make(rows: list[Record], path: Path, settings: str = "", **roles: Any) -> NBest:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
        format = ("csv" if delimiter == "," else "tsv") + settings
        return read_nbest(path, format=format, **roles)

    return make


def json_lines(rows: list[Record], path: Path, settings: str = "", **roles: Any) -> NBest:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return read_nbest(path, format="jsonl" + settings, **roles)


def parquet_file(rows: list[Record], path: Path, settings: str = "", **roles: Any) -> NBest:
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return read_nbest(path, format="parquet" + settings, **roles)


def in_memory(table: Callable[[list[Record]], Any]) -> Make:
    """Return what makes lists of a table of rows."""
    return lambda rows, path, settings="", **roles: from_records(table(rows), **roles)


WAYS: dict[str, Make] = {
    "csv": separated(","),
    "tsv": separated("\t"),
    "jsonl": json_lines,
    "jsonl, nested": lambda rows, *more, **of: json_lines(nested(rows), *more, **of),
    "parquet": parquet_file,
    "parquet, nested": lambda rows, *more, **of: parquet_file(nested(rows), *more, **of),
    "records": in_memory(list),
    "records, nested": in_memory(nested),
    "pandas": in_memory(pd.DataFrame),
    "arrow": in_memory(pa.Table.from_pylist),
}
pytestmark = pytest.mark.usefixtures("small_blocks")
FLAT = pytest.mark.parametrize("way", [way for way in WAYS if "nested" not in way])
#: Sentence and fields of each candidate; None is a value that is missing.
NAMES = ("id", "text", "lm", "mqm", "by")
PARTLY: list[Record] = [
    dict(zip(NAMES, row, strict=True))
    for row in [
        *((0, "a", -1.0, None, "x"), (0, "b", -2.5, 0.0, "y"), (1, "c", -3.0, None, "x")),
        *((1, "d", 4.0, None, "z"), (2, "e", 0.5, -5.0, "x"), (2, "f", 0.25, -1.0, "y")),
    ]
]


# --- fields --------------------------------------------------------------------------------------


def changed(**fields: Any) -> dict[str, Any]:
    """Return the good sentence, one on, with other fields of its second candidate."""
    first, second = GOOD["candidates"]  # type: ignore[misc]
    return {**GOOD, "id": 5, "candidates": [first, {**second, **fields}]}  # type: ignore[dict-item]


def spaced(rows: list[Record], path: Path, **roles: Any) -> NBest:
    """Read JSON lines with blanks before the colons, which Python decodes."""
    path.write_text("".join(json.dumps(row).replace('": ', '" : ') + "\n" for row in rows), "utf-8")
    return read_nbest(path, **roles)


def by_python(rows: list[Record], path: Path, **roles: Any) -> NBest:
    """Read JSON lines that Python decodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "is_strict_json", lambda data, values: False)
        return json_lines(rows, path, **roles)


#: What makes lists of records of any form.
OF_RECORDS: dict[str, Make] = {
    "jsonl": json_lines,
    "jsonl, blanks": spaced,
    "jsonl, by Python": by_python,
    "records": in_memory(list),
}


@pytest.mark.parametrize("way", [*OF_RECORDS, "parquet"])
def test_every_field_has_its_place(way: str, tmp_path: Path) -> None:
    make = {**OF_RECORDS, "parquet": parquet_file}[way]
    records = [GOOD, {**GOOD, "id": 2}, changed()]
    nbest = make(records, tmp_path / "lists", features=["scores.lm", "scores.tm.*"])
    assert nbest.sentence_ids.tolist() == [4, 2, 5]
    assert nbest.feature_names == ("scores.lm", "scores.tm.in")
    assert nbest.features.tolist() == [[-1.5, 2], [-2, 0]] * 3
    assert nbest.totals is not None
    assert nbest.totals.tolist() == [-3, 1e-3] * 3
    assert nbest.texts(2) == ["a cat", "cat"]
    assert nbest.sources == ("un chat",) * 3
    assert nbest.references == (("the cat", "a cat"),) * 3
    assert dict(nbest.extras) == {"system": ("ours", "theirs") * 3}
    assert dict(nbest.sentence_extras) == {"doc": ({"name": "pets", "year": 2021},) * 3}


WRONG = [
    (changed(text=None), r"candidates\[1\]\.text"),
    ({**GOOD, "id": 5, "candidates": [3]}, r"candidates\[0\] is 3"),
    ({**GOOD, "id": 1.5}, r"sentence id 1\.5 is not an integer or a text: write it as one"),
    ({**GOOD, "id": [5]}, r"sentence id \[5\] is not an integer or a text: write it as one"),
    ({**GOOD, "id": "5"}, "sentence id '5'"),
    ({**GOOD, "id": 5, "references": 7}, "references is 7, .*: write texts"),
    ({**GOOD, "id": 5, "source": 7}, "source is 7, not a text: write it as one"),
    ({**GOOD, "id": 5, "reference": "x"}, "reference and references"),
    ({"id": 5, "text": "a", "lm": 1}, "candidates"),
    ({"id": 3, "candidates": []}, "a second list of sentence 3"),
    ({"id": 5, "candidates": {"text": ["a"]}}, "candidates is {'text': .'a'.}, not a list of obj"),
    ({"id": 5, "candidates": [["a"]]}, r"\[0\] is \['a'\], neither a text nor an object"),
    ({"id": 5, "candidates": ["a", None]}, r"\[1\] is null, neither a text nor an object"),
    ({"id": 5, "candidates": [{"text": 42}]}, r"\[0\]\.text is 42, not a text: write it as a text"),
    ({"id": 5, "candidates": [{"text": None}]}, "text is missing: give each candidate a text"),
]


@pytest.mark.parametrize("way", OF_RECORDS)
@pytest.mark.parametrize(("record", "value"), WRONG)
def test_what_is_wrong_is_named_with_line_and_field(
    way: str, tmp_path: Path, record: Any, value: str
) -> None:
    with pytest.raises(DataError, match=value) as caught:
        OF_RECORDS[way]([GOOD, {**GOOD, "id": 3}, record], tmp_path / "l", features="scores.lm")
    assert caught.value.line == 3


# --- missing values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "missing"),
    [
        *((way, None) for way in WAYS),
        ("jsonl, nested", ...),
        *((way, float("nan")) for way in ("parquet", "records, nested")),
    ],
)
def test_a_number_that_is_missing_for_some(tmp_path: Path, way: str, missing: Any) -> None:
    """It is a judgement, or a feature if there is a value in place of the missing ones."""
    rows = [{n: missing if v is None else v for n, v in row.items()} for row in PARTLY]
    rows = [{n: v for n, v in row.items() if v is not ...} for row in rows]
    make, path = WAYS[way], tmp_path / "lists"
    nbest = make(rows, path, features="lm")
    assert nbest.feature_names == ("lm",)
    assert nbest.features[:, 0].tolist() == [row["lm"] for row in PARTLY]
    np.testing.assert_array_equal(read_column(nbest, "mqm"), [np.nan, 0, np.nan, np.nan, -5, -1])
    assert nbest.extras["by"] == ("x", "y", "x", "z", "x", "y")
    line = 1 + (way in ("csv", "tsv"))
    shown = r"mqm is missing for 3 of 6 .*\(missing: mqm=VALUE\), or leave it out \(exclude: mqm\)"
    for features in ("mqm", "*"):
        with raises(DataError, "missing-feature", parameter="missing", line=line, match=shown):
            make(rows, path, features=features)
    filled = make(rows, path, features="*", missing={"mqm": -9})
    assert filled.feature_names == ("lm", "mqm")
    assert filled.features[:, 1].tolist() == [-9, 0, -9, -9, -5, -1]
    assert make(rows, path, features="*", exclude="mqm").feature_names == ("lm",)


def test_totals_and_sources_may_be_missing_for_some(tmp_path: Path) -> None:
    records = [
        {"id": 0, "source": None, "candidates": [{"text": "a", "lm": 1, "total": 2}]},
        {"id": 1, "source": "s", "candidates": [{"text": "b", "lm": 1}]},
    ]
    with pytest.warns(BpaWarning, match="no source for 1 of 2 sentences"):
        nbest = from_records(records, features="lm")
    assert (nbest.totals, nbest.sources) == (None, None)
    np.testing.assert_array_equal(nbest.extras["total"], [2, np.nan])
    assert nbest.sentence_extras["source"] == (None, "s")
    for name in ("lists.jsonl", "lists.parquet"):
        write_nbest(nbest, tmp_path / name)
        with pytest.warns(BpaWarning):
            assert table_content(read_nbest(tmp_path / name)) == table_content(nbest)


# --- names of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] in "ctj" or "parquet" in way])
def test_named_columns_are_the_usual_ones(way: str, tmp_path: Path) -> None:
    whole = {"segment": 7, "src": "un chat", "ref": "the cat"}
    rows = [{**whole, "output": "a cat", "lm": -1.5, "by": "x"}]
    rows.append({**whole, "output": "cat", "lm": -2, "by": "y"})
    names = ":id=segment,text=output,source=src,reference=ref"
    make = WAYS[way.partition(",")[0]]
    if "nested" in way:
        rows, names = nested(rows, "hyps"), f"{names},candidates=hyps"
    lists = make(rows, tmp_path / "lists", names, features="lm")
    assert (lists.ids, lists.texts(0), lists.feature_names) == ((7,), ["a cat", "cat"], ("lm",))
    assert (lists.sources, lists.references) == (("un chat",), (("the cat",),))
    assert dict(lists.extras) == {"by": ("x", "y")}
    assert lists.features[:, 0].tolist() == [-1.5, -2]


#: Lists of which each field is in an object.
RECORDS: list[Record] = [
    {
        "meta": {"id": f"d{k}", "set": "x"},
        "doc": {"q": f"q{k}"},
        "ref": {"a": {"b": f"r{k}"}},
        "candidates": [{"message": {"content": f"t{k}{n}", "s": n}, "text": "no"} for n in "uv"],
    }
    for k in range(3)
]


@pytest.mark.filterwarnings("ignore:.*the column text is left out")
@pytest.mark.parametrize("name", ["nope", "doc.nope", "nope.q", "doc.q.nope"])
@pytest.mark.parametrize(
    ("field", "other"), [("source", "reference=ref.a.b"), ("reference", "source=doc.q")]
)
def test_names_with_dots_are_those_of_fields_of_objects(
    tmp_path: Path, field: str, other: str, name: str
) -> None:
    """A field that no record has is refused."""
    listed = rf"no column {name} .the columns are .*doc.q.*: name another one, .*{field}=NAME.* or "
    listed += f"leave out {field}="
    path = tmp_path / "lists"
    for make in (json_lines, parquet_file):
        settings = f":id=meta.id,text=message.content,{other}"
        lists = make(RECORDS, path, settings)
        assert (lists.ids, lists.texts(1)) == (("d0", "d1", "d2"), ["t1u", "t1v"])
        assert lists.references == ((("r0",), ("r1",), ("r2",)) if field == "source" else None)
        assert lists.sources == (None if field == "source" else ("q0", "q1", "q2"))
        assert lists.extras == {"message.s": ("u", "v") * 3}
        with raises(DataError, "missing-column", parameter="format", match=listed):
            make(RECORDS, path, f"{settings},{field}={name}")
    with raises(DataError, "missing-column", parameter="format", match=listed):
        list(iter_nbest(path, format=f"parquet{settings},{field}={name}", chunk=1))


def test_two_columns_of_one_name_are_refused(write: Write, tmp_path: Path) -> None:
    with raises(DataError, "duplicate", parameter="format", match="seg"):
        read_nbest(write("id,text,lm,seg", "0,a,1,7"), format="csv:id=seg,source=seg")
    table = pa.table({"id": [0], "text": ["x"], "a.b": [1.0], "a": [{"b": 2.0}]})
    parquet.write_table(table, tmp_path / "x.parquet")
    with raises(DataError, "duplicate", match="two columns a.b"):
        read_nbest(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("lines", "format", "shown"),
    [
        (["segment,output", "7,a"], "csv", "segment"),
        (
            ["segment,output", "7,a"],
            Csv(id="segment", text="out"),
            "no column out .*segment,text=NAME",
        ),
        (
            ['{"segment": 7, "output": "a"}'],
            Jsonl(id="segment"),
            "no column text .*segment,text=NAME",
        ),
        (['{"id": 7, "candidates": [{"hyp": "a"}]}'], "jsonl", "no column text .*text=NAME"),
        (['{"id": 7, "message": {"content": "a"}}'], "jsonl", "message.content.*text=NAME"),
        (["seg.id,text", "7,a"], "csv", "no column id .*seg.id.*id=NAME"),
        (['{"id": 7, "prompt": {"content": "a"}}'], "jsonl", "no column text .*text=NAME"),
        (['{"author": {"id": 1}, "text": "a"}'], "jsonl", "no column id .*id=NAME"),
        *(
            (["id,text,lm", "0,a,1"], f"csv:{column}", "zz")
            for column in ("id=zz", "text=zz", "source=zz")
        ),
        (["id,text,lm", "0,a,1"], "csv:text=id", "id"),
        (["id,text,lm", "0,a,1"], "csv:reference=text", "text"),
        *(
            (['{"id": 0, "candidates": [{"text": "a"}]}'], f"jsonl:{column}", "zz")
            for column in ("id=zz", "text=zz", "id=meta.zz", "text=message.zz", "candidates=zz")
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is left out")
def test_an_absent_column_is_named(write: Write, lines: list[str], format: Any, shown: str) -> None:
    with raises(DataError, "missing-column", parameter="format", line=1, match=shown):
        read_nbest(write(*lines), format=format)


def test_in_memory_columns_are_to_be_renamed() -> None:
    with raises(DataError, "missing-column", line=1, match=": rename the columns, NAME to text$"):
        from_records([{"id": 7, "mt": "a"}])


def test_a_control_character_in_the_name_of_a_column(write: Write) -> None:
    good = {"id": 0, "candidates": [{"text": "a", "lm": 1}]}
    bad = {"id": 5, "candidates": [{"text": "a", "lm": 1, "l\am": 1}]}
    with raises(DataError, "bad-name", match=r"the column l\\x07m has a control character"):
        read_nbest(write(*map(json.dumps, [good, bad])))


def test_a_field_of_sentences_and_of_candidates(write: Write) -> None:
    good = {"candidates": [{"text": "a", "lm": -1}]}
    bad = {"candidates": ["a"], "lm": "x"}
    with raises(DataError, "bad-data", line=2, match="lm is a field of the sentence here, and of"):
        read_nbest(write(*map(json.dumps, [good, bad])))


# --- rows and sentences --------------------------------------------------------------------------

#: Sentence 2 comes before 1, system B has no candidate of 7, and C a second one.
IDS = {"A": [7, 2, 1], "B": [1, 2], "C": [2, 7, 1, 7]}


@FLAT
def test_rows_are_grouped_by_sentence(way: str, tmp_path: Path) -> None:
    """By order of first appearance, as of tables that are sorted by system."""
    rows = [
        {"id": s, "text": f"{name} {s} {k}", "reference": f"the {s}", "lm": k + 0.5, "by": name}
        for name, ids in IDS.items()
        for k, s in enumerate(ids)
    ]
    with pytest.warns(BpaWarning, match="grouped by id") as notes:
        lists = WAYS[way](rows, tmp_path / "lists", features="lm")
    header = int(way in ("csv", "tsv"))
    if way not in ("pandas", "arrow", "records"):
        assert f"(lines {2 + header} and {5 + header})" in str(notes[0].message)
    assert lists.sentence_ids.tolist() == [7, 2, 1]
    assert lists.references == (("the 7",), ("the 2",), ("the 1",))
    expected = sorted(rows, key=lambda row: [7, 2, 1].index(row["id"]))
    assert [lists.text(row) for row in range(len(rows))] == [row["text"] for row in expected]
    assert lists.features[:, 0].tolist() == [row["lm"] for row in expected]
    assert list(lists.extras["by"]) == [row["by"] for row in expected]


def test_rows_that_cannot_be_grouped(write: Write) -> None:
    with raises(DataError, line=4, match="another source"):
        read_nbest(write("id,text,source,lm", "0,a,x,1", "1,b,y,1", "0,c,z,1"))
    with raises(DataError, line=4, match=r"line 2: sort the rows by id, or .*read_nbest"):
        list(iter_nbest(write("id,text,lm", "0,a,1", "1,b,2", "0,c,3")))
    with raises(DataError, line=3, match="second list of sentence 0"):
        read_nbest(write(*(json.dumps({"id": s, "candidates": ["a"]}) for s in (0, 1, 0))))


def test_the_long_form_states_what_belongs_to_a_sentence_once(write: Write) -> None:
    lines: list[Record] = [{"id": k // 3, "text": "abcd"[k], "lm": k} for k in range(4)]
    lines[1] |= {"sentence.doc": "d", "reference": "r"}
    with pytest.warns(BpaWarning, match="no reference for 1 sentence, the first of id 1"):
        nbest = read_nbest(write(*map(json.dumps, lines)))
    assert nbest.sentence_extras["doc"] == ("d", None)
    assert nbest.references == (("r",), ())
    lines[2]["sentence.doc"] = "e"
    with pytest.raises(DataError, match=r":3: .*doc"):
        read_nbest(write(*map(json.dumps, lines)))


@pytest.mark.filterwarnings("ignore:.*no reference for 1 sentence")
@pytest.mark.parametrize("name", ["reference", "references"])
def test_references_in_any_form(write: Write, name: str) -> None:
    several, both = ["the cat", "a cat"], [{"text": "a cat", "lm": -1.5}, {"text": "cat", "lm": -2}]
    records = [{name: of, "candidates": both} for of in ("the cat", several, [], ["b"])]
    expected = (("the cat",), tuple(several), (), ("b",))
    assert read_nbest(write(*map(json.dumps, records))).references == expected
    texts = [{"id": 0, name: several, "candidates": ["a"]}, {"id": 1, "candidates": ["a"]}]
    assert read_nbest(write(*map(json.dumps, texts))).references == (tuple(several), ())
    nbest = read_nbest(write(f"id,text,{name}", "0,a,the cat", "0,b,", "1,a,"))
    assert nbest.references == (("the cat",), ())


@pytest.mark.parametrize("nothing", [{"candidates": []}, {"candidates": None}, {}])
def test_sentences_without_candidates(write: Write, tmp_path: Path, nothing: Record) -> None:
    both = {"candidates": [{"text": "a cat", "lm": -1.5}, {"text": "cat", "lm": -2}]}
    records = [{"id": k, "source": f"s{k}", **(nothing if k % 2 else both)} for k in range(4)]
    path = write(*map(json.dumps, records))
    table = tmp_path / "lists.parquet"
    parquet.write_table(pa.Table.from_pylist(records), table)
    for read in (
        lambda: read_nbest(path),
        lambda: read_nbest(table),
        lambda: from_records(records),
    ):
        with pytest.warns(BpaWarning, match="2 sentences without candidates, the first of id 1"):
            nbest = read()
        assert (nbest.sentence_ids.tolist(), nbest.sources) == ([0, 2], ("s0", "s2"))
    with pytest.warns(BpaWarning, match="without candidates"), raises(DataError, "no-data"):
        from_records([{"id": 0, "candidates": []}])
    empty: dict[int, str | None] = {}
    with pytest.warns(BpaWarning, match="without candidates"):
        parts = list(iter_nbest(path, chunk=1, empty=empty))
    assert [part.sentence_ids.tolist() for part in parts] == [[0], [2]]
    assert empty == {1: "s1", 3: "s3"}
