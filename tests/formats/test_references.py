from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import from_records, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.references import read_references

LINES = ["r0", "r1", "r2"]
NAMES = [f"doc-{n}" for n in (1, 2, 3, 4)]
TABLE = ["id\treference", *(f"{name}\tthe cat {name[-1]}" for name in NAMES)]
OF_NAMES = [json.dumps({"id": name, "text": "a cat", "lm": 1}) for name in NAMES]
OF_NUMBERS = [f"{n} ||| a cat ||| LM0= 1 ||| 1" for n in range(4)]


def records(ids: list[Any]) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"t{place}", "lm": 1.0} for place, i in enumerate(ids)]


def test_files_that_are_no_references(write: Write, tmp_path: Path) -> None:
    two, three = write("a", "b", name="two"), write("c", "d", "e", name="three")
    table = write("id\treference", "0\ta", name="x.tsv")
    wrong = {"wrong-length": [two, three], "mismatch": table, "missing-file": tmp_path / "none"}
    for code, paths in (wrong | {"no-data": write(name="empty")}).items():
        with pytest.raises(DataError) as caught:
            read_nbest(OF_NUMBERS[:2], references=paths)
        assert caught.value.code == code
    with raises(DataError, "mismatch", match="two: lines without ids, but .*x.tsv has ids"):
        read_nbest(OF_NUMBERS[:1], references=[table, two])
    others: list[tuple[Any, str]] = [(1.5, "wrong-type"), (["the cat", "a dog"], "missing-file")]
    for value, code in others:  # a list has names of files
        with raises(UsageError, code, parameter="references"):
            read_nbest(OF_NUMBERS, references=value)


def test_files_compressed_or_not(write: Write) -> None:
    path = write("a cat ", "", name="ref")
    packed = write(gzip.compress("A\r\nun café\r\n".encode()), name="1")
    for paths in (path, str(path), [path]):
        assert read_nbest(OF_NUMBERS[:2], references=paths).references == (("a cat",), ("",))
    both = read_nbest(OF_NUMBERS[:2], references=[path, packed]).references
    assert both == tuple(read_references([path, packed])) == (("a cat", "A"), ("", "un café"))
    with raises(DataError, "mismatch"):
        read_references(write("id\treference", "0\ta", name="x.tsv"))
    with raises(UsageError, "no-data", parameter="paths"):
        read_references([])


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "expected", "numbers"),
    [
        ([0, 1, 2], "012", [0, 1, 2]),
        ([2, 0], "20", [2, 0]),
        (["2", "0", "1"], "201", [2, 0, 1]),
        (["00", "2", "1"], "012", [0, 1, 2]),
        (["a", "b", "c"], "012", [0, 1, 2]),
        (["d10", "d1", "d2"], "012", [0, 1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*the others are not used")
def test_lines_of_ids_or_in_their_order(ids: list[Any], expected: str, numbers: list[int]) -> None:
    lists = from_records(records(ids), references=LINES, sources=LINES)
    assert lists.references == tuple((LINES[int(i)],) for i in expected)
    assert lists.sources == tuple(LINES[int(i)] for i in expected)
    assert lists.sentence_ids.tolist() == numbers
    lines, references = map(json.dumps, records(ids)), [(line,) for line in LINES]
    parts = iter_nbest(lines, references=references, chunk=1)
    assert tuple(part.references[0] for part in parts) == lists.references


@pytest.mark.parametrize(
    ("ids", "line", "parameter", "match"),
    [
        ([0, 1], None, "references", "2 lists, but the text has 3 references: give a"),
        (["0", "1"], None, "references", "2 lists, but the text has 3 references: give a"),
        (["a", "b"], None, "references", "2 lists, but the text has 3 references: give a"),
        (["a", "b", "c", "d"], None, "references", "4 lists, but the text has 3 references"),
        ([0, 1, 2, 3], 4, "references", "no reference for sentence id 3: the text has 3 lines"),
        (
            [1, 2, 3],
            3,
            "format",
            "id 3: .* the first id, if ids are counted from 1 .*first_id=1",
        ),
        ([1, 0, 3], 3, "references", "no reference for sentence id 3"),
        (["4", "9"], 1, "references", "no reference for sentence id 4"),
        (["0", "b"], 2, "references", "the id 'b' is not an integer, as others are"),
        (["0", "01"], 2, "references", "the id '01' is not an integer, as others are"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 100])
def test_another_number_of_lines(
    ids: list[Any], line: int | None, parameter: str, match: str, chunk: int
) -> None:
    code = None if line else "wrong-length"
    with raises(DataError, code, parameter=parameter, line=line, match=match):
        from_records(records(ids), references=LINES)
    entries: dict[str, Any] = {"references": [(one,) for one in LINES], "sources": LINES}
    for what, texts in entries.items():
        named = what if parameter == "references" else parameter
        match = match.replace("reference", what[:-1])
        with raises(DataError, code, parameter=named, line=line, match=match):
            list(iter_nbest(map(json.dumps, records(ids)), chunk=chunk, **{what: texts}))


def test_lists_of_some_sentences_are_noted(write: Write) -> None:
    match = "lists for 2 sentences, but .*dev.nbest has 3 references|no list for the first referen"
    for ids in ([2, 0], [1, 2]):
        with pytest.warns(BpaWarning, match=match):
            lists = read_nbest(map(json.dumps, records(ids)), references=write(*LINES))
        assert lists.references == tuple((f"r{i}",) for i in ids)


@pytest.mark.filterwarnings("ignore:.*without candidates")
def test_sentences_without_candidates_have_lines(write: Write) -> None:
    for ids in ([0, 1, 2], ["a", "b", "c"]):
        rows = [{"id": i, "candidates": [] if i in (1, "b") else ["t"]} for i in ids]
        table: Any = {i: f"r{n}" for n, i in enumerate(ids)}
        for references in (write(*LINES), table):
            lists = read_nbest(map(json.dumps, rows), references=references)
            assert lists.references == (("r0",), ("r2",))


def test_the_order_of_ids_that_are_texts_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bpa_ppl"):
        from_records(records(["d1", "d10", "d2"]), references=LINES)
    assert "'d1' with line 1, …, 'd2' with line 3" in caplog.text


@pytest.mark.parametrize(
    "lines",
    [
        ["the cat, 1", "2. two", "3 people came", "Yes, I do"],
        ['"Yes."', '"No."', '"He left."', '"No," she said.'],
        ["{braces}", '{"id": 0, "reference": "a"}', "[1] see", "{"],
        ['<seg id="0">a</seg>', "0 ||| a cat ||| LM0= 1", "a cat (utt-3)", "0 one"],
    ],
)
def test_a_text_file_is_never_anything_else(write: Write, lines: list[str]) -> None:
    for name in ("ref", "dev.txt", "dev.ref.gz"):
        data = "\n".join([*lines, ""]).encode()
        texts = write(gzip.compress(data) if name.endswith("gz") else data, name=name)
        read = read_nbest(OF_NUMBERS, references=texts, sources=texts)
        assert read.references == tuple((line.strip(),) for line in lines)
        assert read.sources == tuple(line.strip() for line in lines)


@pytest.mark.parametrize("line", ["0\ta dog", "id\treference", "doc-1\t"])
def test_a_text_file_with_a_tab_is_an_error(write: Write, line: str) -> None:
    texts = write("the cat", line, name="dev.ref")
    match = r"a reference has a tab: if the lines have ids, write the names of the columns"
    with raises(DataError, "bad-line", parameter="references", line=2, match=match):
        read_nbest(OF_NUMBERS, references=texts)


# --- ids -----------------------------------------------------------------------------------------


def test_tables_and_json_lines(write: Write) -> None:
    table = write("id\treference", "3\td", "", "0\ta", "3\tD", "1\t", "2\t", name="x.tsv")
    commas = write("reference,domain,id", 'd,x,3\na,,0\nD,"a,b",3\n,,2\n"",,1', name="x.csv")
    rows = ['{"id": "3", "references": ["d", "D"]}', '{"id": 0, "reference": "a"}']
    rows += ['{"id": 1, "reference": null}', '{"id": 2, "references": []}']
    packed = gzip.compress("\n".join([*rows, ""]).encode())
    objects = write(*rows, name="x.jsonl"), write(packed, name="y.jsonl.gz")
    expected = (("a",), (), (), ("d", "D"))
    mapping: Any = {0: "a", "3": ["d", "D"], 1: (), 2: []}
    for given in (table, commas, *objects, mapping):
        with pytest.warns(BpaWarning, match="no reference for 2 sentences, the first of id 1"):
            lists = read_nbest(OF_NUMBERS, references=given)
        assert lists.references == expected
        parts = iter_nbest(OF_NUMBERS, references=given, chunk=1)
        with pytest.warns(BpaWarning, match="no reference for 2 sentences"):
            assert [part.references for part in parts] == [(("a",),), None, None, (("d", "D"),)]
    assert lists.with_references(mapping).references == expected
    both = read_nbest(OF_NAMES, references=[write(*TABLE, name=f"{n}.tsv") for n in "ab"])
    assert both.references == tuple((f"the cat {n}",) * 2 for n in (1, 2, 3, 4))


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_a_table_without_the_header(write: Write, ending: str) -> None:
    of = (lambda line: line) if ending == "tsv" else (lambda line: line.replace("\t", ","))
    header = {"tsv": "`id<TAB>reference`", "csv": "`id,reference`"}[ending]
    for first in ("id\ttext", "ID\tReference", "doc-1\tthe cat", "id\treference\tid", "the cat"):
        path = write(*map(of, [first, *TABLE[1:]]), name=f"x.{ending}")
        with raises(DataError, "missing-column", line=1, match=f"write {header} there"):
            read_nbest(OF_NAMES, references=path)
    fixed = write(*map(of, TABLE), name=f"x.{ending}")  # as it says
    assert read_nbest(OF_NAMES, references=fixed).references is not None


@pytest.mark.parametrize(
    ("name", "place", "line", "match"),
    [
        ("x.tsv", 2, "doc-2\tthe\tcat", "3 cells, but the first line has 2: write a tab"),
        ("x.tsv", 2, "doc-2 the cat", "1 cell, but the first line has 2"),
        ("x.tsv", 4, "\tthe cat", "no id with a reference"),
        ("x.csv", 2, "doc-2,the, cat", "3 cells, but the first line has 2: quote each text"),
        ("x.csv", 3, 'doc-3,"the', "not a row of cells"),
        ("x.csv", 3, 'doc-3,"the" cat', "not a row of cells"),
        ("x.jsonl", 1, '{"id": 1, "reference": "a", "references": ["b"]}', "leave one out"),
        ("x.jsonl", 2, '{"id": true, "reference": "a"}', "no id with a reference"),
        ("x.jsonl", 2, '{"id": 2.0, "reference": "a"}', "no id with a reference"),
        ("x.jsonl", 2, '{"id": "doc-2"}', "no id with a reference"),
        ("x.jsonl", 2, '{"id": "doc-2", "reference": {"text": "a"}}', "no id with a reference"),
        ("x.jsonl", 2, '"the cat"', "no id with a reference"),
        ("x.jsonl", 3, '{"id": "doc-3", "reference": NaN}', "no id with a reference"),
        ("x.jsonl", 3, '{"id": "doc-3", "reference": "a"},', "not JSON"),
        ("x.jsonl", 3, "{'id': 'doc-3', 'reference': 'a'}", "not JSON"),
    ],
)
def test_a_wrong_row(write: Write, name: str, place: int, line: str, match: str) -> None:
    lines = TABLE if name == "x.tsv" else [row.replace("\t", ",") for row in TABLE]
    if name == "x.jsonl":
        lines = ["", *(json.dumps({"id": n, "reference": "the cat"}) for n in NAMES)]
    lines = [*lines[:place], line, *lines[place + 1 :]]
    with pytest.raises(DataError, match=match) as caught:
        read_nbest(OF_NAMES, references=write(*lines, name=name))
    assert caught.value.line == place + 1


def test_other_ids_than_those_of_the_lists(write: Write) -> None:
    of_both = "no list for 'x0', 'x1', 'x2' and 1 more; no reference for 'doc-1', 'doc-2', 'doc-3' "
    others = {f"x{n}": "a" for n in range(4)}
    more = {**dict.fromkeys(NAMES, "a"), "x": "b"}
    fewer = dict.fromkeys(NAMES[1:], "a")
    cases = ((others, f"{of_both}and 1 more:"), (more, "no list for 'x': give each list its"),
             (fewer, "lists: no reference for 'doc-1': give"))  # fmt: skip
    for given, match in cases:
        table = write("id\treference", *(f"{n}\t{t}" for n, t in given.items()), name="x.tsv")
        for references in (given, table):
            with raises(DataError, "mismatch", parameter="references", match=match):
                read_nbest(OF_NAMES, references=references)
            with raises(DataError, "mismatch", parameter="references", match=match):
                list(iter_nbest(OF_NAMES, references=references, chunk=1))
        with raises(DataError, "mismatch", parameter="references", match=match):
            read_nbest(OF_NAMES).with_references(given)
    with raises(
        DataError,
        "mismatch",
        parameter="references",
        match="no list for 'doc-1'.*; no reference for 0, 1, 2 and",
    ):
        read_nbest(OF_NUMBERS, references=dict.fromkeys(NAMES, "a"))


# --- ids `0` and `00` are two texts, and one number in formats of decoders -----------------------


def test_untyped_formats() -> None:
    """Cells that print integers are integers, if all do; else all are texts."""
    for row in ("{},{},{}", "{}\t{}\t{}"):
        header = row.format("id", "text", "lm")
        for ids in (("01", "10"), ("x", "0", "00"), ("1" * 30, "7"), ("0", "0.0", "-0", "x")):
            lists = read_nbest([header, *(row.format(name, "a", 1) for name in ids)])
            assert (lists.ids, lists.sentence_ids.tolist()) == (ids, list(range(len(ids))))


def test_joins(write: Write) -> None:
    """Integers are the texts that they print."""
    ids = ["0", "00", "1.0", "-7"]
    texts = [json.dumps(record) for record in records(ids)]
    expected = tuple((f"r{name}",) for name in ids)
    by_id: dict[Any, str] = {0: "r0", "00": "r00", "1.0": "r1.0", -7: "r-7"}
    table = write("id\treference", *(f"{n}\tr{n}" for n in ids), name="x.tsv")
    objects = write(*(json.dumps({"id": n, "reference": f"r{n}"}) for n in ids), name="x.jsonl")
    for given in (by_id, table, objects):
        assert read_nbest(texts, references=given).references == expected
    assert read_nbest(texts).with_references(by_id).references == expected
    for other in ("01", 1.0, "+1"):
        with pytest.raises((DataError, UsageError), match=r"references|reference must be"):
            from_records(records([0, 1]), references={"0": "a", other: "b"})
    assert from_records(records([0, 1]), references={"0": "a", 1: "b"}).references


def test_texts_that_are_null_or_blank(write: Write) -> None:
    lists, none = OF_NUMBERS[:2], write("", " ", name="none")
    null = write('{"id": 0, "reference": null}', '{"id": 1, "reference": ""}', name="x.jsonl")
    with pytest.warns(BpaWarning, match="no reference for 1 sentence"):
        assert read_nbest(lists, references=null).references == ((), ("",))
    assert read_nbest(lists, references=none).references == (("",), ("",))
    assert read_nbest(lists, sources=none).sources == ("", "")
