"""What holds in every reader, whatever holds the lists: see `READERS`, which all write the same.

`LACKS` says which property a reader does not have, and why. ESPnet's folders are in
`test_speech.py`. Then follows what holds for records, which may have any fields.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.raising import raises
from support.table_content import table_content
from support.user_files import GOOD, Write

from bpa_ppl import NBest, concatenate, describe, from_records, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats import jsonl
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.format import SERVERS as ALL_SERVERS
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.roles import Roles
from bpa_ppl.formats.separated import Csv
from bpa_ppl.lists.candidate_columns import read_column

#: A candidate, with the fields of its sentence.
Row = dict[str, Any]
#: In place of a number or a text that JSON and Arrow would not write.
PLACE, NUMBER = "PLACE", 54321
NUMBERS = ("nan", "1e61", "1_0", "\u0661")
CELLS = ("inf", *NUMBERS[1:])
JSON_NUMBERS = ("Infinity", "-Infinity", "1e61")
PYTHON_NUMBERS = (float("inf"), 1e61)


class Reader(NamedTuple):
    """How rows are written and read.

    Attributes:
        write: returns the lines of a file with some rows, its bytes, or a value in memory.
        format: the name of the format; empty in memory.
        numbers: texts, or numbers of Python, that are no finite numbers up to 1e60.
        header: the number of lines before the first row.
        features: the columns that are features, where the format does not define them.
        nested: whether a line is a sentence.
    """

    write: Callable[[list[Row]], Any]
    format: str = ""
    numbers: tuple[str, ...] | tuple[float, ...] = ()
    header: int = 0
    features: str | None = None
    nested: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the functions that read files."""
        return {"format": self.format, "features": self.features}

    def content(self, rows: list[Row], number: Any = NUMBER) -> Any:
        """Return a file with some rows, as bytes, or a value in memory; NUMBER is replaced."""
        if number != NUMBER and not isinstance(number, str):
            rows = [{n: number if v == NUMBER else v for n, v in row.items()} for row in rows]
        written = self.write(rows)
        if not self.format or isinstance(written, bytes):
            return written
        text = "".join(f"{line}\n" for line in written)
        return (text.replace(str(NUMBER), number) if isinstance(number, str) else text).encode()

    def read(self, rows: list[Row], path: Path, settings: str = "", **options: Any) -> NBest:
        """Return the lists of some rows, in a file or in memory."""
        number = options.pop("number", NUMBER)
        options = {"features": self.features, **options}
        content = self.content(rows, number)
        if not self.format:
            return from_records(content, **options)
        path.write_bytes(content)
        return read_nbest(path, format=self.format + settings, **options)

    def line(self, rows: list[Row], place: int) -> int:
        """Return the number of the line of a row."""
        if not self.nested:
            return self.header + place + 1
        return list(dict.fromkeys(row["id"] for row in rows)).index(rows[place]["id"]) + 1


def lines(template: str, *header: str) -> Callable[[list[Row]], list[str]]:
    """Return what writes rows as lines of `<id>`, `<text>`, `<lm>` and the rank."""

    def write(rows: list[Row]) -> list[str]:
        ranks: Counter[Any] = Counter()
        result = [*header]
        for row in rows:
            ranks[row["id"]] += 1
            line = template
            for name, field in {**row, "rank": ranks[row["id"]]}.items():
                line = line.replace(f"<{name}>", str(field))
            result.append(line)
        return result

    return write


def cells(delimiter: str) -> Callable[[list[Row]], list[str]]:
    """Return what writes rows with empty cells for missing values."""

    def write(rows: list[Row]) -> list[str]:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0] if rows else ROWS[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().splitlines()

    return write


#: Fields of a sentence.
OF_SENTENCE = ("source", "reference", "src", "ref")


def nest(rows: list[Row], candidates: str = "candidates") -> list[Row]:
    """Return a record for each sentence, of adjacent rows; its id is the first field of a row."""
    lists: list[Row] = []
    for row in rows:
        identifier = next(iter(row))
        own = {n: v for n, v in row.items() if n in (identifier, *OF_SENTENCE)}
        of_candidate = {n: v for n, v in row.items() if n not in own}
        if not lists or lists[-1][identifier] != row[identifier]:
            lists.append({**own, candidates: []})
        lists[-1][candidates].append(of_candidate)
    return lists


def json_lines(rows: Iterable[Row]) -> list[str]:
    return list(map(json.dumps, rows))


def spaced(rows: Iterable[Row]) -> list[str]:
    """Return JSON lines with blanks before the colons, which Python decodes."""
    return [json.dumps(row).replace('": ', '" : ') for row in rows]


def parquet_file(rows: list[Row], sample: list[Row]) -> bytes:
    """Return a file with some rows, which may be none, of the columns of others."""
    table = pa.Table.from_pylist(rows or sample).slice(0, len(rows))
    parquet.write_table(table, file := io.BytesIO())
    return file.getvalue()


def pair(rows: list[Row], *names: str, **fields: Any) -> list[str]:
    """Return pairs of the two candidates of each sentence, of which the first is preferred."""
    texts = [
        [{"text": c["text"], "features": {"lm": c["lm"]}} for c in of["candidates"]]
        for of in nest(rows)
    ]
    ids = [{"id": of["id"]} if fields else {} for of in nest(rows)]
    return json_lines(
        {**known, **fields, **dict(zip(names, both, strict=True))}
        for known, both in zip(ids, texts, strict=True)
    )


def chat(name: Any, content: Any = "a", logprob: Any = -1, **choice: Any) -> str:
    """Return a line of a batch of chats."""
    logged = {"content": [{"token": "t", "logprob": logprob}]}
    choices = [{"message": {"content": content}, "logprobs": logged, "finish_reason": "stop"}]
    body = {"model": "m", "choices": [choices[0] | choice]}
    return json.dumps({"custom_id": name, "response": {"status_code": 200, "body": body}})


def answer(row: Row) -> str:
    """Return a line of a batch of answers of Ollama."""
    body = {"model": "m", "response": row["text"], "done": True, "done_reason": "stop"}
    body["logprobs"] = [{"logprob": row["lm"]}]
    return json.dumps({"custom_id": f"r-{row['id']}", "response": body})


ROWS: list[Row] = [
    {"id": s, "text": f"a cat {s}{'ab'[k]}", "lm": -s - k} for s in range(3) for k in (0, 1)
]
LM: dict[str, Any] = {"features": "lm"}
OF_JSON: dict[str, Any] = {"format": "jsonl", "numbers": JSON_NUMBERS, **LM}
OF_PARQUET: dict[str, Any] = {"format": "parquet", "numbers": PYTHON_NUMBERS, **LM}
IN_MEMORY: dict[str, Any] = {"numbers": PYTHON_NUMBERS, **LM}
ARENA = {"model_a": "X", "model_b": "Y", "winner": "model_a"}
READERS = {
    "moses": Reader(lines("<id> ||| <text> ||| LM0= <lm> TM0= 2 0 ||| 0"), "moses", NUMBERS),
    "marian": Reader(lines("<id> ||| <text> ||| 0-0 ||| F0= <lm> ||| -2"), "marian", NUMBERS),
    "fairseq": Reader(lines("H-<id>\t<lm>\t<text>", "log"), "fairseq", NUMBERS, 1),
    "kaldi": Reader(lines("u<id>-<rank> <lm> <text>"), "kaldi:score=true", NUMBERS),
    "plain": Reader(lines("<text>"), "plain:list_size=2"),
    "csv": Reader(cells(","), "csv", CELLS, 1, "lm"),
    "tsv": Reader(cells("\t"), "tsv", CELLS, 1, "lm"),
    "jsonl": Reader(json_lines, **OF_JSON),
    "jsonl, blanks": Reader(spaced, **OF_JSON),
    "jsonl, nested": Reader(lambda rows: json_lines(nest(rows)), nested=True, **OF_JSON),
    "pairs": Reader(lambda rows: pair(rows, "chosen", "rejected"), nested=True, **OF_JSON),
    "arena": Reader(
        lambda rows: pair(rows, "response_a", "response_b", **ARENA), nested=True, **OF_JSON
    ),
    "parquet": Reader(lambda rows: parquet_file(rows, ROWS), **OF_PARQUET),
    "parquet, nested": Reader(
        lambda rows: parquet_file(nest(rows), nest(ROWS)), nested=True, **OF_PARQUET
    ),
    "openai": Reader(
        lambda rows: [chat(f"r-{row['id']}", row["text"], row["lm"]) for row in rows], "openai"
    ),
    "ollama": Reader(lambda rows: list(map(answer, rows)), "ollama"),
    "records": Reader(list, **IN_MEMORY),
    "records, nested": Reader(nest, nested=True, **IN_MEMORY),
    "columns": Reader(lambda rows: {n: [row[n] for row in rows] for n in rows[0]}, **IN_MEMORY),
    "pandas": Reader(pd.DataFrame, **IN_MEMORY),
    "arrow": Reader(pa.Table.from_pylist, **IN_MEMORY),
}
MEMORY = [name for name, reader in READERS.items() if not reader.format]
DECODERS = ["moses", "marian", "fairseq", "kaldi", "plain"]
SERVERS = ["openai", "ollama"]
PAIRS = ["pairs", "arena"]
#: By property: why some readers do not have it.
LACKS: dict[str, dict[str, str]] = {
    "a file": dict.fromkeys(MEMORY, "a value in memory is no file"),
    "lines": dict.fromkeys((*MEMORY, "parquet", "parquet, nested"), "no text"),
    "an end that is noticed": {
        **dict.fromkeys(MEMORY, "a value in memory is no file"),
        **dict.fromkeys(("fairseq", "kaldi", "plain"), "a line ends with the text, of any length"),
    },
    "numbers": {
        "plain": "scores are in another file",
        **dict.fromkeys(SERVERS, "a number that is not finite is an unknown one"),
    },
    "ids in any place": {
        **dict.fromkeys(SERVERS, "answers are collected from the whole file"),
        **dict.fromkeys(("plain", "pairs"), "lists are counted"),
    },
    "ids of texts": {
        **dict.fromkeys(("moses", "marian", "fairseq"), "ids are integers"),
        **dict.fromkeys(("plain", "pairs"), "lists are counted"),
        **dict.fromkeys(("kaldi", *SERVERS), "names of utterances and requests may be alike"),
    },
    "columns": {
        **dict.fromkeys((*DECODERS, *SERVERS), "the format defines the columns"),
        **dict.fromkeys(PAIRS, "a candidate is a text"),
    },
}
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


def having(*properties: str) -> pytest.MarkDecorator:
    """Return a mark by which a test runs with each reader that has some properties."""
    lacking = {name for of in properties for name in LACKS[of]}
    assert lacking <= READERS.keys()
    return pytest.mark.parametrize("reader", [name for name in READERS if name not in lacking])


pytestmark = pytest.mark.usefixtures("small_blocks")

# --- every reader --------------------------------------------------------------------------------


@NOTES
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_reads_the_same_lists(reader: str, tmp_path: Path) -> None:
    lists = READERS[reader].read(ROWS, tmp_path / "lists")
    assert lists.sentence_ids.tolist() == [0, 1, 2]
    assert [lists.texts(s) for s in range(3)] == [[f"a cat {s}a", f"a cat {s}b"] for s in range(3)]
    if reader != "plain":
        assert lists.features[:, 0].tolist() == [row["lm"] for row in ROWS]


@NOTES
@having("a file")
def test_a_file_is_read_in_the_same_way_from_everywhere_and_as_a_stream(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = READERS[reader].content(ROWS), READERS[reader].options
    path, packed, windows, without = (tmp_path / name for name in ("as is", "gz", "dos", "no end"))
    path.write_bytes(data)
    lists = read_nbest(path, **options)
    packed.write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    sources: list[Any] = [packed, "-", data, io.BytesIO(gzip.compress(data))]
    if reader not in LACKS["lines"]:
        windows.write_bytes(data.replace(b"\n", b"\r\n"))
        without.write_bytes(data.removesuffix(b"\n"))
        text = data.decode()
        sources += [windows, without, io.StringIO(text), text.splitlines()]
        sources.append(line.encode() for line in text.splitlines(keepends=True))
    for source in sources:
        assert table_content(read_nbest(source, **options)) == table_content(lists)
    for chunk in (1, 2, 9):
        parts = iter_nbest(path, **options, chunk=chunk)
        assert table_content(concatenate(parts)) == table_content(lists)


@having("a file")
def test_a_packed_file_that_is_cut_short_is_refused(reader: str, write: Write) -> None:
    packed = gzip.compress(READERS[reader].content(ROWS))
    with raises(DataError, "damaged", match=r"dev\.nbest"):
        read_nbest(write(packed[:-9]), **READERS[reader].options)


@NOTES
@having("an end that is noticed")
def test_a_file_that_is_cut_short_is_refused(reader: str, write: Write) -> None:
    path = write(READERS[reader].content(ROWS)[:-9])
    with pytest.raises(DataError) as caught:
        read_nbest(path, **READERS[reader].options)
    line = "" if reader in LACKS["lines"] else f":{READERS[reader].line(ROWS, len(ROWS) - 1)}"
    assert str(caught.value).startswith(f"{path}{line}: ")


@NOTES
@having("lines")
def test_bytes_that_are_no_utf_8_are_refused(reader: str, write: Write) -> None:
    rows = [*ROWS[:-1], {**ROWS[-1], "text": PLACE}]
    path = write(READERS[reader].content(rows).replace(PLACE.encode(), b"caf\xe9"))
    with raises(DataError, "bad-encoding", line=READERS[reader].line(rows, len(rows) - 1)):
        read_nbest(path, **READERS[reader].options)


@having("a file")
def test_a_file_without_candidates_has_no_lists(reader: str, tmp_path: Path) -> None:
    with raises(DataError, "no-data"):
        READERS[reader].read([], tmp_path / "lists")


@NOTES
@having("numbers")
def test_a_bad_number_is_named_or_dropped(reader: str, tmp_path: Path) -> None:
    rows = [{"id": s, "text": "abcd"[2 * s + k], "lm": 1} for s in (0, 1) for k in (0, 1)]
    rows[1]["lm"] = NUMBER
    read, path = READERS[reader].read, tmp_path / "lists"
    for number in READERS[reader].numbers:
        with pytest.raises(DataError) as caught:
            read(rows, path, number=number)
        assert (caught.value.code, caught.value.line) == (
            "bad-number",
            READERS[reader].line(rows, 1),
        )
        assert str(caught.value.path) == (str(path) if READERS[reader].format else NBest.origin)
        with pytest.warns(BpaWarning, match="1 candidate dropped"):
            lists = read(rows, path, number=number, bad="drop")
        assert lists.strings == ("a", "c", "d")
        assert np.isfinite(lists.features).all()


@having("ids in any place")
def test_lists_in_several_places_are_joined_or_refused(reader: str, tmp_path: Path) -> None:
    """They are joined by order of first appearance where a row is a candidate of a table."""
    rows = [
        {"id": s, "text": f"{s} {k}", "reference": f"the {s}", "lm": k + 0.5}
        for k, s in enumerate((7, 2, 1, 2, 7, 1))
    ]
    path, of_reader = tmp_path / "lists", READERS[reader]
    if of_reader.nested or reader in ("moses", "marian", "fairseq"):
        rows = [row for row in rows for _ in range(1 + (reader in PAIRS))]
        line = 4 if of_reader.nested else of_reader.line(rows, 3)
        with pytest.raises(DataError, match=r"sentence 2[;,]") as caught:
            of_reader.read(rows, path)
        assert caught.value.line == line
        return
    with pytest.warns(BpaWarning, match="grouped by id") as notes:
        lists = of_reader.read(rows, path)
    assert [str(name).removeprefix("u") for name in lists.ids] == ["7", "2", "1"]
    assert [lists.texts(s) for s in range(3)] == [["7 0", "7 4"], ["2 1", "2 3"], ["1 2", "1 5"]]
    assert lists.features[:, 0].tolist() == [0.5, 4.5, 1.5, 3.5, 2.5, 5.5]
    if reader != "kaldi":
        assert lists.references == (("the 7",), ("the 2",), ("the 1",))
    if of_reader.format:
        shown = f"(lines {of_reader.line(rows, 1)} and {of_reader.line(rows, 3)})"
        assert shown in str(notes[0].message)
        with pytest.raises(DataError, match=r"sort the rows by id, or .*read_nbest") as caught:
            list(iter_nbest(path, **of_reader.options))
        assert caught.value.line == of_reader.line(rows, 3)


#: Sentence and fields of each candidate; None is a value that is missing.
NAMES = ("id", "text", "lm", "mqm", "by")
PARTLY: list[Row] = [
    dict(zip(NAMES, row, strict=True))
    for row in [
        *((0, "a", -1.0, None, "x"), (0, "b", -2.5, 0.0, "y"), (1, "c", -3.0, None, "x")),
        *((1, "d", 4.0, None, "z"), (2, "e", 0.5, -5.0, "x"), (2, "f", 0.25, -1.0, "y")),
    ]
]
#: What is missing may also be; ... is a field that is absent.
MISSING: dict[str, tuple[Any, ...]] = {
    "jsonl, nested": (None, ...),
    "parquet": (None, float("nan")),
    "records, nested": (None, float("nan")),
}


@having("columns")
def test_a_number_that_is_missing_for_some(reader: str, tmp_path: Path) -> None:
    """It is a judgement, or a feature if there is a value in place of the missing ones."""
    make, path = READERS[reader].read, tmp_path / "lists"
    line = READERS[reader].line(PARTLY, 0)
    shown = (
        r"mqm is missing for 3 of 6 .*\(--missing mqm=VALUE; .* leave it out \(--exclude mqm; in"
    )
    for missing in MISSING.get(reader, (None,)):
        rows = [{n: missing if v is None else v for n, v in row.items()} for row in PARTLY]
        rows = [{n: v for n, v in row.items() if v is not ...} for row in rows]
        nbest = make(rows, path)
        assert nbest.feature_names == ("lm",)
        assert nbest.features[:, 0].tolist() == [row["lm"] for row in PARTLY]
        scores = read_column(nbest, "mqm")
        np.testing.assert_array_equal(scores, [np.nan, 0, np.nan, np.nan, -5, -1])
        assert nbest.extras["by"] == ("x", "y", "x", "z", "x", "y")
        for features in ("mqm", "*"):
            with raises(DataError, "missing-feature", parameter="missing", line=line, match=shown):
                make(rows, path, features=features)
        filled = make(rows, path, features="*", missing={"mqm": -9})
        assert filled.feature_names == ("lm", "mqm")
        assert filled.features[:, 1].tolist() == [-9, 0, -9, -9, -5, -1]
        assert make(rows, path, features="*", exclude="mqm").feature_names == ("lm",)


def without_missing(reader: str, rows: list[Row]) -> list[Row]:
    """Return rows whose missing fields are absent where the file may lack them."""
    is_json = reader.startswith("jsonl")
    return [{n: v for n, v in row.items() if v is not None or not is_json} for row in rows]


@having("a file", "columns")
def test_a_feature_that_is_missing_anywhere_is_an_error_in_a_stream_too(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # in blocks of a line, the first one may lack the column
    path, options = tmp_path / "lists", READERS[reader].options
    for places in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2)):
        rows = [{"id": k, "text": "a", "lm": 1.5 if k in places else None} for k in range(3)]
        line = READERS[reader].line(rows, next(k for k in range(3) if k not in places))
        path.write_bytes(READERS[reader].content(without_missing(reader, rows)))
        for read in (read_nbest, lambda *of, **more: list(iter_nbest(*of, chunk=1, **more))):
            with raises(DataError, "missing-feature", parameter="missing", line=line, match="lm"):
                read(path, **options)
            read(path, missing=0, **options)
        filled = read_nbest(path, missing={"lm": -9}, **options).features[:, 0]
        assert filled.tolist() == [1.5 if k in places else -9 for k in range(3)]


@having("a file", "columns")
def test_a_column_that_appears_late_is_an_extra_in_a_stream_too(
    reader: str, tmp_path: Path
) -> None:
    path, options = tmp_path / "lists", READERS[reader].options
    rows = [{"id": k, "text": "a", "lm": 1, "late": 2 if k == 2 else None} for k in range(3)]
    path.write_bytes(READERS[reader].content(without_missing(reader, rows)))
    tables, whole = list(iter_nbest(path, chunk=1, **options)), read_nbest(path, **options)
    assert [table.feature_names for table in tables] == [("lm",)] * 3
    joined = read_column(concatenate(tables, fill_missing=True), "late")
    for column in (joined, read_column(whole, "late")):
        np.testing.assert_array_equal(column, [np.nan, np.nan, 2])


@having("a file", "columns")
def test_named_columns_are_the_usual_ones(reader: str, tmp_path: Path) -> None:
    whole = {"segment": 7, "src": "un chat", "ref": "the cat"}
    rows = [{**whole, "output": "a cat", "lm": -1.5, "by": "x"}]
    rows.append({**whole, "output": "cat", "lm": -2, "by": "y"})
    names = ":id=segment,text=output,source=src,reference=ref"
    of_reader = READERS[reader]
    if of_reader.nested:
        flat = READERS[reader.partition(",")[0]]
        of_reader = of_reader._replace(write=lambda rows: flat.write(nest(rows, "hyps")))
        names += ",candidates=hyps"
    lists = of_reader.read(rows, tmp_path / "lists", names)
    assert (lists.ids, lists.texts(0), lists.feature_names) == ((7,), ["a cat", "cat"], ("lm",))
    assert (lists.sources, lists.references) == (("un chat",), (("the cat",),))
    assert dict(lists.extras) == {"by": ("x", "y")}
    assert lists.features[:, 0].tolist() == [-1.5, -2]


@having("columns")
@pytest.mark.parametrize("column", ["text", "source", "reference", "id"])
def test_no_text_has_nul(reader: str, column: str, tmp_path: Path) -> None:
    fields = ("id", "text", "source", "reference")
    rows = [{name: f"{name} {k}" for name in fields} | {"lm": 1} for k in range(3)]
    rows[2][column] += "\0"
    line = READERS[reader].line(rows, 2)
    with raises(DataError, "bad-encoding", line=line, match="a NUL (byte|character)"):
        READERS[reader].read(rows, tmp_path / "lists")


ANSWERED = {**ARENA, "response_a": "a", "response_b": "b"}
#: Lines that a format refuses after others, with the code of the error.
BAD: list[tuple[str, str, str]] = [
    ("moses", "", "bad-line"),
    ("moses", "9 ||| a cat", "bad-line"),
    ("moses", "x ||| a ||| LM0= 1 TM0= 2 0 ||| 0", "bad-line"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 W0= 1 ||| 0", "mismatch"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 LM0= 1 ||| 0", "duplicate"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0", "bad-line"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 ||| nan", "bad-number"),
    ("marian", "9 ||| a ||| F0= -1 ||| -2", "bad-line"),
    ("marian", "9 ||| a ||| x ||| F0= -1 ||| -2", "bad-line"),
    ("marian", "9 ||| a ||| 0-0 ||| F1= -1 ||| -2", "mismatch"),
    ("marian", "9 ||| a ||| 0-0 ||| F0= -1 |||", "bad-number"),
    ("fairseq", "H-9\tb", "bad-number"),
    ("fairseq", "  7%|#  | 1/20 [00:00<?]H-9\t-1\ta", "bad-line"),
    ("fairseq", "H-" + "1" * 30 + "\t1\ts", "bad-line"),
    ("kaldi", "", "bad-line"),
    ("kaldi", "u -2 A CAT", "bad-line"),
    ("kaldi", "u9-1 A CAT", "bad-number"),
    ("kaldi", "u1-1 2 A CAT", "duplicate"),
    ("plain", "a cat\t-1.5", "bad-line"),
    ("csv", "9,a", "wrong-length"),
    ("csv", '9,"a,1', "bad-line"),
    ("tsv", "9\ta", "wrong-length"),
    ("jsonl", '{"id": 9, "text": "a", "lm": }', "bad-line"),
    ("jsonl", '{"id": 9, "text": "\\ud800", "lm": 1}', "bad-encoding"),
    ("jsonl", '{"id": 9, "text": ' + 100_000 * "[", "bad-line"),
    ("jsonl", '{"id": 9, "text": "a", "lm": 1' + 5000 * "0" + "}", "bad-line"),
    ("jsonl", '{"id": 9, "text": "a", "lm": "x"}', "bad-number"),
    ("jsonl", "[1]", "bad-data"),
    ("pairs", '{"chosen": {"text": "a", "lm": 1}}', "missing-column"),
    ("pairs", '{"chosen": "a", "rejected": []}', "bad-line"),
    ("pairs", '{"chosen": "a", "rejected": "b", "preferences": []}', "bad-name"),
    ("openai", chat("r-9", "\ud800"), "bad-encoding"),
    ("openai", chat("r-9", logprob="x"), "bad-line"),
    ("openai", '{"custom_id": "9", "body": {"messages": []}}', "bad-line"),
    ("openai", '{"custom_id": "9", "response": {"body": {"object": "response"}}}', "bad-line"),
    ("openai", chat("r-9", delta={"content": "a"}, message=None), "not-supported"),
    ("ollama", chat("r-9"), "bad-line"),
    ("arena", json.dumps({"id": 9, **ANSWERED, "winner": "Z"}), "bad-line"),
    ("arena", '{"id": 9, "model_a": "X", "model_b": "Y", "winner": "X"}', "missing-column"),
    ("arena", '{"id": 9, "model_a": "X", "winner": "tie", "response_a": "a"}', "missing-column"),
]


@NOTES
@pytest.mark.parametrize(("reader", "bad", "code"), BAD, ids=lambda value: str(value)[:30])
def test_a_bad_line_is_named(write: Write, reader: str, bad: str, code: str) -> None:
    later = [{**row, "id": 12} for row in ROWS[:2]]
    sound, rest = (READERS[reader].content(rows).decode() for rows in (ROWS, later))
    rest = "".join(rest.splitlines(keepends=True)[READERS[reader].header :])
    path, number = write((sound + f"{bad}\n" + rest).encode()), sound.count("\n") + 1
    for read in (read_nbest, lambda *a, **options: list(iter_nbest(*a, chunk=1, **options))):
        with pytest.raises(DataError) as caught:
            read(path, **READERS[reader].options)
        assert str(caught.value).startswith(f"{path}:{number}: ")
        assert caught.value.code == code


def test_every_format_is_a_reader_here() -> None:
    """All servers share a reader, that of `ollama`."""
    formats = {reader.format.partition(":")[0] for reader in READERS.values()}
    assert formats >= {*NBEST_FORMATS} - {"auto", "espnet", *ALL_SERVERS}


# --- fields --------------------------------------------------------------------------------------


def changed(**fields: Any) -> dict[str, Any]:
    """Return the good sentence, one on, with other fields of its second candidate."""
    first, second = GOOD["candidates"]  # type: ignore[misc]
    return {**GOOD, "id": 5, "candidates": [first, {**second, **fields}]}  # type: ignore[dict-item]


#: Readers of records of any form.
OF_RECORDS = ["jsonl", "jsonl, blanks", "jsonl, by Python", "records", "parquet"]


#: Reads records, with options.
Read = Callable[..., NBest]


@pytest.fixture
def read_records(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return what reads records; Python may have to decode JSON."""
    if reader == "jsonl, by Python":
        monkeypatch.setattr(jsonl, "_DECODER", msgspec.json.Decoder(bytes))
        reader = "jsonl"
    return lambda rows, **options: READERS[reader].read(rows, tmp_path / "lists", **options)


@pytest.mark.parametrize("reader", OF_RECORDS)
def test_every_field_has_its_place(read_records: Read) -> None:
    records = [GOOD, {**GOOD, "id": 2}, changed()]
    nbest = read_records(records, features=["scores.lm", "scores.tm.*"])
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
    ({**GOOD, "id": [5]}, r"sentence id \[5\] is not an integer or a text: write it as one"),
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


@pytest.mark.parametrize("reader", OF_RECORDS[:-1])
@pytest.mark.parametrize(("record", "value"), WRONG)
def test_what_is_wrong_is_named_with_line_and_field(
    read_records: Read, record: Any, value: str
) -> None:
    with pytest.raises(DataError, match=value) as caught:
        read_records([GOOD, {**GOOD, "id": 3}, record], features="scores.lm")
    assert caught.value.line == 3


# --- sentences and names of columns --------------------------------------------------------------


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


#: Lists of which each field is in an object.
RECORDS: list[Row] = [
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
    for make in (READERS["jsonl"].read, READERS["parquet"].read):
        settings = f":id=meta.id,text=message.content,{other}"
        lists = make(RECORDS, path, settings, features=None)
        assert (lists.ids, lists.texts(1)) == (("d0", "d1", "d2"), ["t1u", "t1v"])
        assert lists.references == ((("r0",), ("r1",), ("r2",)) if field == "source" else None)
        assert lists.sources == (None if field == "source" else ("q0", "q1", "q2"))
        assert lists.extras == {"message.s": ("u", "v") * 3}
        with raises(DataError, "missing-column", parameter="format", match=listed):
            make(RECORDS, path, f"{settings},{field}={name}", features=None)
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
        (['{"id": 0, "candidates": [{"lm": 1}], "text": "a"}'], "jsonl", "no column text"),
        (["0,a cat", "0,cat"], "csv", "no columns id and text .*'0, a cat'.*csv:id=NAME,text=NAME"),
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


def test_the_long_form_states_what_belongs_to_a_sentence_once(write: Write) -> None:
    lines: list[Row] = [{"id": k // 3, "text": "abcd"[k], "lm": k} for k in range(4)]
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
def test_sentences_without_candidates(write: Write, tmp_path: Path, nothing: Row) -> None:
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


# --- JSON lines -----------------------------------------------------------------------------------


def json_rows(*records: Any) -> list[str]:
    return json_lines(records)


@pytest.mark.usefixtures("blocks")
def test_ids_that_are_texts_are_counted_and_kept(write: Write) -> None:
    path = write(*json_rows({**GOOD, "id": "doc:7"}, {**GOOD, "id": "doc:3"}))
    nbest = read_nbest(path, format="jsonl:first_id=1")
    assert nbest.sentence_ids.tolist() == [1, 2]
    assert nbest.sentence_extras["id"] == ("doc:7", "doc:3")
    write_nbest(nbest, path, format="jsonl")
    assert json.loads(path.read_text().splitlines()[1])["id"] == "doc:3"
    again = write(*json_rows(*({**GOOD, "id": name} for name in "aba")))
    with raises(DataError, "duplicate", match="sentence a;", line=3):
        read_nbest(again)
    (candidate, _) = GOOD["candidates"]  # type: ignore[misc]
    infinite = {**candidate, "total": "inf"}  # type: ignore[dict-item]
    bad = json_rows({**GOOD, "id": "a"}, {**GOOD, "id": "b", "candidates": [infinite]})
    with raises(DataError, "bad-number", match="every candidate of sentence b has"):
        read_nbest(write(*bad), bad="drop")
    empty = json_rows({**GOOD, "id": "a"}, {"id": "b", "candidates": []})
    with pytest.warns(BpaWarning, match="1 sentence without candidates, the first of id b"):
        read_nbest(write(*empty))
    one = json_rows({**GOOD, "id": "a"}, {**GOOD, "id": "b", "references": []})
    with pytest.warns(BpaWarning, match="no reference for 1 sentence, the first of id b"):
        read_nbest(write(*one))


def test_candidates_may_be_texts(write: Write) -> None:
    """Other lists of the record belong to the sentence, whatever their length."""
    more = {"source": "q", "lm": [1, 2], "tags": ["x"], "scores": {"rm": [0.5, 3]}}
    lists = read_nbest(write(*json_rows({"id": 7, "candidates": ["a", "b"], **more})))
    assert (lists.ids, lists.texts(0), lists.sources) == ((7,), ["a", "b"], ("q",))
    assert (lists.feature_names, lists.extras) == ((), {})
    del more["source"]
    assert {name: of for name, (of,) in lists.sentence_extras.items()} == more
    with raises(
        DataError, "bad-data", line=1, match="text is a list of texts: name it as the cand"
    ):
        read_nbest(write(*json_rows({"id": 7, "text": ["a", "b"]})))


def test_lists_of_numbers_beside_the_candidates_are_columns_if_they_are_named(write: Write) -> None:
    rows = [
        {"id": "u1", "text": ["a cat sat", "a cat sad"], "lm": [-1.5, -2], "judge": [5, 3]},
        {"id": "u2", "text": ["the dog"], "lm": [-0.5], "judge": None},
    ]
    path = write(*json_rows(*rows))
    options: dict[str, Any] = {"format": "jsonl:candidates=text"}
    assert set(read_nbest(path, **options).sentence_extras) == {"id", "lm", "judge"}
    assert describe(read_nbest(path, **options)).choices == ("lm", "judge")
    lists = read_nbest(path, features=Roles(("l*",), numbers=("judge",)), **options)
    assert (lists.feature_names, lists.features.tolist()) == (("lm",), [[-1.5], [-2], [-0.5]])
    assert lists.extras == {"judge": (5, 3, None)}
    stream = concatenate(iter_nbest(path, chunk=1, features="lm", **options), fill_missing=True)
    assert stream.features.tolist() == lists.features.tolist()
    rows[1]["lm"] = [1, 2]
    with raises(DataError, "bad-data", line=2, match="lm has 2 values, but there are 1 candidates"):
        read_nbest(write(*json_rows(*rows)), features="lm", **options)


def test_tables_by_columns_are_explained(write: Write) -> None:
    frame = pd.DataFrame({"id": ["q1", "q1"], "text": ["a", "b"], "score": [0.9, 0.2]})
    explained = r"write an object for each row, in pandas with frame.to_json\(PATH, orient='record"
    with raises(DataError, "bad-data", line=1, match=explained):
        read_nbest(write(frame.to_json()))
    with raises(DataError, "bad-line", line=1, match=explained):
        read_nbest(write(frame.rename(columns={"text": "out"}).to_json()))
    with raises(DataError, "bad-line", line=1, match=explained):
        read_nbest(write(*json_rows({"text": [["a", "b"], ["c"]], "lm": [[1, 2], [3]]})))
    frame.to_json(path := write("").parent / "rows.jsonl", orient="records", lines=True)
    assert read_nbest(path).texts(0) == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"hyps": ["a", "b"]}, "candidates=hyps,"),
        ({"hyps": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, "candidates=hyps,"),
        ({"hyps": [{"hyp": "a", "lm": 1}, {"hyp": "b", "lm": 2}]}, "candidates=hyps,text=hyp,"),
        ({"candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, ""),
        ({"candidates": ["a", "b"]}, ""),
    ],
)
def test_the_text_of_a_record_may_be_the_source(
    write: Write, row: dict[str, Any], names: str
) -> None:
    path = write(*json_rows({"id": 0, "text": "Q", **row}))
    lists = read_nbest(path, format=f"jsonl:{names}source=text", features="*")
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("Q",))
    assert lists.features.tolist() in ([[1], [2]], [[], []])
    if "text=" not in names:
        plain = read_nbest(path, format=f"jsonl:{names}".rstrip(":,"))
        assert (plain.texts(0), plain.sentence_extras["text"]) == (["a", "b"], ("Q",))


def test_a_source_of_candidates_beside_that_of_sentences(write: Write) -> None:
    both = {**GOOD, "candidates": [{"text": "a", "lm": 1, "source": "gpt"}]}
    nbest = read_nbest(write(*json_rows(both)))
    assert (nbest.sources, nbest.extras["source"]) == (("un chat",), ("gpt",))
    without = {**both, "id": 7, "source": None}
    message = r":2: no source of sentence 7, .*: give each sentence its source, or rename"
    with pytest.raises(DataError, match=message):
        read_nbest(write(*json_rows(both, without)))
