"""What holds in every reader and writer of lists: tables of readers, of files and of lists.

`READERS` all write the same rows; `LACKS` says which property a reader does not have, and why.
`DETECTED`, `BAD`, `REFUSED` and `USERS` are files: how they are read, or the sentence of the error.
`NOT_WRITTEN` are lists that a format does not store. What is special to one format is in a file of
its own; ESPnet's folders are in `test_speech.py`.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shlex
import subprocess
import sys
import textwrap
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.command_line import refused, run, succeed
from support.raising import capture_notes, raises
from support.table_content import table_content
from support.user_files import GOOD, Write, run_shell, write_frame

from bpa_ppl import (
    NBest,
    concatenate,
    describe,
    from_lists,
    from_records,
    iter_nbest,
    log_density,
    read_nbest,
    write_nbest,
)
from bpa_ppl.errors import BpaWarning, DataError, UsageError, escape_controls
from bpa_ppl.extending import gains
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.format import SERVERS as ALL_SERVERS
from bpa_ppl.formats.roles import Roles

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


def in_parts(source: Any, **options: Any) -> list[NBest]:
    """Return tables of a list each."""
    return list(iter_nbest(source, chunk=1, **options))


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
        error, line = caught.value, READERS[reader].line(rows, 1)
        assert (error.code, error.line) == ("bad-number", line)
        assert str(error.path) == (str(path) if READERS[reader].format else NBest.origin)
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
        scores = gains(nbest, "mqm")
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
        for read in (read_nbest, in_parts):
            with raises(DataError, "missing-feature", parameter="missing", line=line, match="lm"):
                read(path, **options)
            read(path, missing=0, **options)
        filled = read_nbest(path, missing={"lm": -9}, **options).features[:, 0]
        assert filled.tolist() == [1.5 if k in places else -9 for k in range(3)]


@having("a file", "columns")
def test_a_late_column_is_an_extra_in_a_stream_too(reader: str, tmp_path: Path) -> None:
    path, options = tmp_path / "lists", READERS[reader].options
    rows = [{"id": k, "text": "a", "lm": 1, "late": 2 if k == 2 else None} for k in range(3)]
    path.write_bytes(READERS[reader].content(without_missing(reader, rows)))
    tables, whole = list(iter_nbest(path, chunk=1, **options)), read_nbest(path, **options)
    assert [table.feature_names for table in tables] == [("lm",)] * 3
    joined = gains(concatenate(tables, fill_missing=True), "late")
    for column in (joined, gains(whole, "late")):
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
    *(
        ("openai", other, "bad-line")
        for other in (
            '{"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}',
            '{"custom_id": "r-5", "result": {"type": "succeeded"}}',
            '{"output": [{"type": "message", "content": []}], "status": "completed"}',
        )
    ),
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
    for read in (read_nbest, in_parts):
        with pytest.raises(DataError) as caught:
            read(path, **READERS[reader].options)
        assert str(caught.value).startswith(f"{path}:{number}: ")
        assert caught.value.code == code


def test_columns_in_memory_are_to_be_renamed() -> None:
    with raises(
        DataError, "missing-column", line=1, match=": rename the columns: id and text, candi"
    ):
        from_records([{"id": 7, "mt": "a"}])


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
OF_RECORDS = ["jsonl", "jsonl, blanks", "records", "parquet"]


@pytest.mark.parametrize("reader", OF_RECORDS)
def test_every_field_has_its_place(reader: str, tmp_path: Path) -> None:
    records = [GOOD, {**GOOD, "id": 2}, changed()]
    names = ["scores.lm", "scores.tm.*"]
    nbest = READERS[reader].read(records, tmp_path / "lists", features=names)
    assert nbest.sentence_ids.tolist() == [4, 2, 5]
    assert nbest.feature_names == ("scores.lm", "scores.tm.in")
    assert nbest.features.tolist() == [[-1.5, 2], [-2, 0]] * 3
    assert (nbest.texts(2), np.asarray(nbest.totals).tolist()) == (["a cat", "cat"], [-3, 1e-3] * 3)
    assert (nbest.sources, nbest.references) == (("un chat",) * 3, (("the cat", "a cat"),) * 3)
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
def test_a_wrong_record_is_named(reader: str, tmp_path: Path, record: Any, value: str) -> None:
    records = [GOOD, {**GOOD, "id": 3}, record]
    with pytest.raises(DataError, match=value) as caught:
        READERS[reader].read(records, tmp_path / "lists", features="scores.lm")
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
OF_OBJECTS: list[Row] = [
    {
        "meta": {"id": f"d{k}", "set": "x"},
        "doc": {"q": f"q{k}"},
        "ref": {"a": {"b": f"r{k}"}},
        "candidates": [{"message": {"content": f"t{k}{n}", "s": n}, "text": "no"} for n in "uv"],
    }
    for k in range(3)
]


@pytest.mark.filterwarnings("ignore:.*the column text is left out")
@pytest.mark.parametrize("reader", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", ["nope", "doc.nope", "nope.q", "doc.q.nope"])
def test_names_with_dots_are_fields_of_objects(tmp_path: Path, reader: str, name: str) -> None:
    path, settings = tmp_path / "lists", ":id=meta.id,text=message.content"
    names = f"{settings},source=doc.q,reference=ref.a.b"
    lists = READERS[reader].read(OF_OBJECTS, path, names, features=None)
    assert (lists.ids, lists.texts(1)) == (("d0", "d1", "d2"), ["t1u", "t1v"])
    assert (lists.sources, lists.references) == (("q0", "q1", "q2"), (("r0",), ("r1",), ("r2",)))
    assert lists.extras == {"message.s": ("u", "v") * 3}
    for field, shown in (("source", "doc.q"), ("reference", "ref.a.b")):
        listed = rf"no column {name} .the columns are .*{shown}.*in the format .*{field}=COLUMN"
        for read in (read_nbest, in_parts):
            with raises(DataError, "missing-column", parameter="format", match=listed):
                read(path, format=f"{reader}{settings},{field}={name}")


def test_a_field_of_sentences_and_of_candidates(write: Write) -> None:
    good, bad = {"candidates": [{"text": "a", "lm": -1}]}, {"candidates": ["a"], "lm": "x"}
    with raises(DataError, "bad-data", line=2, match="lm is a field of the sentence here, and of"):
        read_nbest(write(*json_lines([good, bad])))


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
    for read, source in ((read_nbest, path), (read_nbest, table), (from_records, records)):
        with pytest.warns(BpaWarning, match="2 sentences without candidates, the first of id 1"):
            nbest = read(source)  # type: ignore[operator]
        assert (nbest.sentence_ids.tolist(), nbest.sources) == ([0, 2], ("s0", "s2"))
    with pytest.warns(BpaWarning, match="without candidates"), raises(DataError, "no-data"):
        from_records([{"id": 0, "candidates": []}])
    empty: dict[int, str | None] = {}
    with pytest.warns(BpaWarning, match="without candidates"):
        parts = list(iter_nbest(path, chunk=1, empty=empty))
    assert [part.sentence_ids.tolist() for part in parts] == [[0], [2]]
    assert empty == {1: "s1", 3: "s3"}


# --- JSON lines -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("blocks")
def test_ids_that_are_texts_are_counted_and_kept(write: Write) -> None:
    path = write(*json_lines([{**GOOD, "id": "doc:7"}, {**GOOD, "id": "doc:3"}]))
    nbest = read_nbest(path, format="jsonl:first_id=1")
    assert nbest.sentence_ids.tolist() == [1, 2]
    assert nbest.sentence_extras["id"] == ("doc:7", "doc:3")
    again = write(*json_lines({**GOOD, "id": name} for name in "aba"))
    with raises(DataError, "duplicate", match="sentence a;", line=3):
        read_nbest(again)
    infinite = [{"text": "a", "scores": {"lm": 1, "tm": {"in": 1}}, "total": "inf"}]
    bad = json_lines([{**GOOD, "id": "a"}, {**GOOD, "id": "b", "candidates": infinite}])
    with raises(DataError, "bad-number", match="every candidate of sentence b has"):
        read_nbest(write(*bad), bad="drop")
    for odd, shown in (
        ({"candidates": []}, "1 sentence without candidates, the first of id b"),
        ({**GOOD, "references": [], "id": "b"}, "no reference for 1 sentence, the first of id b"),
    ):
        with pytest.warns(BpaWarning, match=shown):
            read_nbest(write(*json_lines([{**GOOD, "id": "a"}, {"id": "b", **odd}])))


def test_candidates_may_be_texts(write: Write) -> None:
    """Other lists of the record belong to the sentence, whatever their length."""
    more = {"source": "q", "lm": [1, 2], "tags": ["x"], "scores": {"rm": [0.5, 3]}}
    lists = read_nbest(write(*json_lines([{"id": 7, "candidates": ["a", "b"], **more}])))
    assert (lists.ids, lists.texts(0), lists.sources) == ((7,), ["a", "b"], ("q",))
    assert (lists.feature_names, lists.extras) == ((), {})
    del more["source"]
    assert {name: of for name, (of,) in lists.sentence_extras.items()} == more


def test_lists_of_numbers_beside_the_candidates_are_columns_if_they_are_named(write: Write) -> None:
    rows = [
        {"id": "u1", "text": ["a cat sat", "a cat sad"], "lm": [-1.5, -2], "judge": [5, 3]},
        {"id": "u2", "text": ["the dog"], "lm": [-0.5], "judge": None},
    ]
    path = write(*json_lines(rows))
    options: dict[str, Any] = {"format": "jsonl:candidates=text"}
    assert set(read_nbest(path, **options).sentence_extras) == {"id", "lm", "judge"}
    facts = describe(read_nbest(path, **options)).facts
    assert "columns of whole lists: lm, judge, id" in facts
    lists = read_nbest(path, features=Roles(("l*",), numbers=("judge",)), **options)
    assert (lists.feature_names, lists.features.tolist()) == (("lm",), [[-1.5], [-2], [-0.5]])
    assert lists.extras == {"judge": (5, 3, None)}
    stream = concatenate(iter_nbest(path, chunk=1, features="lm", **options), fill_missing=True)
    assert stream.features.tolist() == lists.features.tolist()
    rows[1]["lm"] = [1, 2]
    with raises(DataError, "bad-data", line=2, match="lm has 2 values, but there are 1 candidates"):
        read_nbest(write(*json_lines(rows)), features="lm", **options)


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
def test_the_text_may_be_the_source(write: Write, row: dict[str, Any], names: str) -> None:
    path = write(*json_lines([{"id": 0, "text": "Q", **row}]))
    lists = read_nbest(path, format=f"jsonl:{names}source=text", features="*")
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("Q",))
    assert lists.features.tolist() in ([[1], [2]], [[], []])
    if "text=" not in names:
        plain = read_nbest(path, format=f"jsonl:{names}".rstrip(":,"))
        assert (plain.texts(0), plain.sentence_extras["text"]) == (["a", "b"], ("Q",))


def test_a_source_of_candidates_beside_that_of_sentences(write: Write) -> None:
    both = {**GOOD, "candidates": [{"text": "a", "lm": 1, "source": "gpt"}]}
    nbest = read_nbest(write(*json_lines([both])))
    assert (nbest.sources, nbest.extras["source"]) == (("un chat",), ("gpt",))
    without = {**both, "id": 7, "source": None}
    message = r":2: no source of sentence 7, .*: give each sentence its source, or rename"
    with pytest.raises(DataError, match=message):
        read_nbest(write(*json_lines([both, without])))


# --- whole files: what they are, and what is refused ----------------------------------------------

SAID = '{"custom_id": "1", '
#: First lines, and the format that detects them.
DETECTED: list[tuple[str, str | None]] = [
    ("0 ||| a ||| F0= -1 F1= -2 ||| -3", "marian"),
    ("0 ||| a ||| 0-0 ||| F0= -1 ||| -3\r", "marian"),
    ("0 ||| a ||| F1= -1 F0= -2 ||| -3", "moses"),
    (f"0 ||| a ||| F{'1' * 5000}= -1 ||| -3", "moses"),
    ("0 ||| a ||| Glue=1 ||| -1 ||| 0-0", "moses"),
    ("a-1 -1 THE CAT", "kaldi"),
    ('{"object": "response", "output": []}', None),
    (SAID + '"error": {}}', "openai"),
    (SAID + '"body": {"messages": []}}', "openai"),
    (SAID + '"response": null, "error": {"message": "x"}}', "openai"),
    ('{"choices": [{"text": "a", "index": 0}]}', "openai"),
    ('{"choices": null, "model": "m"}', "openai"),
    ('{"error": {"message": "x"}}', "openai"),
    ('{"object": "error", "message": "x"}', "openai"),
    ('{"id": 0, "text": "a", "choices": [{"text": "x", "index": 0}]}', "jsonl"),
    ('{"id": 0, "candidates": ["a"], "choices": [{"message": {"content": "x"}}]}', "jsonl"),
    ('{"id": 0, "question": "q", "choices": ["x", "y"]}', None),
    ('{"id": 0, "question": "q", "choices": [{"label": "A", "text": "x"}]}', None),
    ('{"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}', None),
    ('{"a": ' * 9999, None),
    ('{"chosen": "a", "rejected": "b"}', "jsonl"),
]


@pytest.mark.parametrize(("line", "name"), DETECTED, ids=lambda value: str(value)[:40])
def test_the_first_line_shows_the_format(line: str, name: str | None) -> None:
    detects = (n for n, kind in NBEST_FORMATS.items() if kind().detect(line.encode()))
    assert next(detects, None) == name


#: By format: files that are refused, with the line if any, the code and a part of the sentence.
TWICE, TWO = "0 ||| a ||| {}\n0 ||| b ||| {}", "LM0= -1 TM0= -1 -2"
SOUND = "S-0\ts\nT-0\tr\nH-0\t-0.5\ta\nD-0\t-0.5\ta\nP-0\t-1\n"
QUOTES = [
    f'"id",text,lm\n0,a,1\n1,{one},2\n2,{two},3\n' + "3,x,4\n" * 70
    for one, two in (('"Yes', '"a b"'), ('"Yes', '5" disk'), ('"Yes" he', "b"))
]
REFUSED: dict[str, list[tuple[str | bytes, int, str, str]]] = {
    "auto": [
        ("a cat sat, at last.", 1, "unknown-format", "'a cat sat, at last.', is of no known"),
        ("id\thypothesis\tlm", 1, "unknown-format", r"known format \(fairseq, openai, jsonl: an"),
        ("0 | a cat | LM0= -1 | -1", 1, "unknown-format", r"if it is one of these \(--format\)"),
        ('{"model": "m", "hypotheses": []}', 1, "unknown-format", "the fields are 'model, hypoth"),
        (
            '{"data": [{"text": "a"}]}',
            1,
            "unknown-format",
            "are 'data'.: convert the file as docs/",
        ),
        ('{"a": {"b": 1}}', 1, "unknown-format", "fields are 'a.b'.: convert the file as docs/"),
        ('{"text": "a", "b": "c"}', 1, "unknown-format", "jsonl:chosen=COLUMN,rejected=COLUMN;"),
        ('{"id": {"0": 1}, "text": {"0": "a"}}', 1, "bad-data", "table in one object with the co"),
        ('{"id": {"0": 1}, "out": {"0": "a"}}', 1, "bad-line", "table in one object with the co"),
        ('{"text": [["a", "b"], ["c"]], "lm": [[1, 2], [3]]}', 1, "bad-line", "on each line, or"),
        (b'{"choices": [{"text": "caf\xe9"}]}', 1, "bad-encoding", "not UTF-8"),
        ('{"choices": [' + "1" * 5000 + "]}", 1, "bad-line", "an integer has more than 4,000 d"),
    ],
    "moses": [
        ("0 ||| a cat ||| -1.5 ||| -3", 1, "bad-line", ""),
        ("0 ||| a ||| WordScores= -1 ||| -3", 1, "bad-line", ""),
        ("0 ||| a ||| LM0= 1 LM0= 2 ||| -3", 1, "duplicate", ""),
        ("0 ||| a ||| TM0= 1 2 TM0[1]= 2 ||| -3", 1, "duplicate", ""),
        ("0 ||| a ||| LM0= nan ||| -3", 1, "bad-number", ""),
        ("0 ||| a ||| LM0= 1 total= 2 ||| -3", 1, "bad-name", ""),
        ("0 ||| a ||| alignment= 2 ||| -3 ||| 0-0", 1, "bad-name", ""),
        (TWICE.format("LM0= -1", "LM0= -1 ||| -1"), 2, "bad-line", ""),
        (TWICE.format("0-0 ||| LM0= -1 ||| -2", "LM0= -1 ||| -2"), 2, "bad-line", ""),
        (TWICE.format("0-0 ||| LM0= -1 ||| -2", "3=3 ||| LM0= -1 ||| -2"), 2, "bad-line", ""),
        (TWICE.format("LM0= -1 ||| -2 ||| 3=3", "LM0= -1 ||| -2 ||| 0-0"), 2, "bad-line", ""),
        (TWICE.format("LM0= 1 ||| -2 ||| 3=3", "LM0= 1 ||| -2 ||| 3=3 ||| 0-0"), 2, "bad-line", ""),
        (TWICE.format("LM0= 1 ||| -2 ||| 3=3 ||| 0-0", "LM0= 1 ||| -2 ||| 3=3"), 2, "bad-line", ""),
        (TWICE.format(TWO, "LM0= 1 TM0= 1"), 2, "mismatch", "TM0= has 1 value, but in the first"),
        (TWICE.format(TWO, "LM0= 1"), 2, "mismatch", "TM0= has 0 values, .* print a feature that"),
        (TWICE.format(TWO, "LM0= TM0= 1 2"), 2, "bad-line", "LM0= has no value: write one after"),
    ],
    "fairseq": [
        (f"{SOUND}S-1\ts\nT-1\tr", 6, "bad-line", ""),
        (f"{SOUND}T-1\tr\nH-1\t-1\ta\nD-1\t-1\ta\nP-1\t-1", 6, "wrong-length", ""),
        (f"{SOUND}H-1\t-1\ta\nH-1\t-1\tb\nD-1\t-1\ta", 6, "wrong-length", ""),
        (f"{SOUND}S-1\ts\nH-1\t-1\ta\nS-1\tagain", 6, "wrong-length", ""),
        (f"{SOUND}S-1\ts\nT-1\tr\nH-1\t-1\ta\nD-1\t-1\ta\nP-1\t", 8, "bad-line", ""),
        (f"{SOUND}S-1\ts\nT-1\t\xe9".encode("latin-1"), 7, "bad-encoding", ""),
        ("H-0\t-1\ta\nH-00\t-2\tb", 2, "duplicate", ""),
    ],
    **{
        f"kaldi{setting}": [(lines, line, "bad-number", "") for lines, line in rows]
        for setting, rows in {
            "": (("u-1 -3.5 PER CENT\nu-2 THE CAT\nv-1 5 DOGS", 2),),
            ":score=true": (("u-1 -3.5 PER CENT\nu-2 THE CAT", 2), ("u-1 THE CAT\nu-2 3 CATS", 1)),
        }.items()
    },
    "csv": [
        ("id,text,lm\n0,a,1\nid,text,lm\n1,b,2", 3, "bad-line", "the header is repeated: remove"),
        ("prompt,chosen,rejected\nq,a,b\nprompt,chosen,rejected", 3, "bad-line", "header is rep"),
        *((of.replace(",", ";"), 3, "bad-line", "not a row of cells") for of in QUOTES),
        *((of, 3, "bad-line", "not a row of cells") for of in QUOTES),
        ("segment,output\n7,a", 1, "missing-column", "segment"),
        ("seg.id,text\n7,a", 1, "missing-column", "no column id .*seg.id.*id=COLUMN"),
        ("0,a cat\n0,cat", 1, "missing-column", "'0, a cat'.: write the names of the columns in"),
        ("id,text,lm\n0,a;1", 2, "wrong-length", "2 cells, but the header has 3: separate cells b"),
        ("id,text,lm\n0,a,1,\n0,b,2,", 2, "wrong-length", "4 cells, .*, remove it from the ends o"),
        ("id,text,lm\n,,,,,\n0,a\n0,a,1", 3, "wrong-length", "2 cells, but the header has"),
        ("id,text,lm,lm\n0,a,1,2", 1, "bad-name", "two columns lm"),
        ("id,,text,lm\n0,0,a,1", 1, "bad-name", "a column without a name .*: name or remove it"),
        (",id,text,lm\n0,0,a,1", 1, "bad-name", "a column without a name .*: name or remove it"),
    ],
    "tsv:quoted=true": [
        (of.replace(",", "\t"), 3, "bad-line", "not a row of cells") for of in QUOTES
    ],
    "csv:id=segment,text=out": [
        ("segment,output\n7,a", 1, "missing-column", "no column out .*segment,text=COLUMN")
    ],
    **{
        f"csv:{setting}": [("id,text,lm\n0,a,1", 1, "missing-column", shown)]
        for setting, shown in (
            *((f"{role}=zz", "zz") for role in ("id", "text", "source")),
            *(("text=id", "id"), ("reference=text", "text")),
        )
    },
    "csv:id=seg,source=seg": [("id,text,lm,seg\n0,a,1,7", 0, "duplicate", "seg")],
    "jsonl:id=segment": [
        ('{"segment": 7, "output": "a"}', 1, "missing-column", "no column text .*segment,text=CO")
    ],
    "jsonl": [
        (
            '{"id": 7, "candidates": [{"hyp": "a"}]}',
            1,
            "missing-column",
            "column text .*text=COLUMN",
        ),
        ('{"id": 7, "message": {"content": "a"}}', 1, "missing-column", "message.content.*text=C"),
        ('{"id": 7, "prompt": {"content": "a"}}', 1, "missing-column", "column text .*text=COLUMN"),
        ('{"author": {"id": 1}, "text": "a"}', 1, "missing-column", "no column id .*id=COLUMN"),
        ('{"id": 0, "candidates": [{"lm": 1}], "text": "a"}', 1, "missing-column", "column text"),
        ('{"id": 7, "text": ["a", "b"]}', 1, "bad-data", "text is a list, not a text: write a te"),
        ('{"id": 0, "text": "a"} {"id": 0}', 1, "bad-line", "several objects in a line: write an"),
        ('{\n"rows": [{"id": 0}]\n}', 1, "bad-line", "several lines: write an object on each"),
        ("[[0, 1]]", 1, "bad-data", "not an object with fields: write objects such as"),
        ('{"candidates": [{"text": "a", "\\u0007": 1}]}', 0, "bad-name", r"the column \\x07 has a"),
    ],
    **{
        f"jsonl:{setting}=zz": [
            ('{"id": 0, "candidates": [{"text": "a"}]}', 1, "missing-column", "zz")
        ]
        for setting in ("id", "text", "candidates")
    },
}
#: The option that an error names, by its code.
PARAMETERS = dict.fromkeys(("unknown-format", "missing-column"), "format")


@NOTES
@pytest.mark.parametrize(
    ("format", "content", "line", "code", "shown"),
    [(format, *row) for format, rows in REFUSED.items() for row in rows],
    ids=lambda value: str(value)[:40],
)
def test_a_file_is_refused(
    write: Write, format: str, content: str | bytes, line: int, code: str, shown: str
) -> None:
    path, is_number = write(content), "nan" in str(content)
    for read, bad in product((read_nbest, in_parts), ("error", "drop")[: 2 - is_number]):
        with pytest.raises(DataError, match=shown or ".") as caught:
            read(path, format=format, bad=bad)
        error = caught.value
        assert (error.code, error.line or 0) == (code, line)
        assert error.parameter == PARAMETERS.get(code, error.parameter)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("names", [("segment", "output"), ("id", "hyp"), ("seg", "text")])
def test_the_names_of_missing_columns(tmp_path: Path, ending: str, names: tuple[str, str]) -> None:
    """What the error says, with the names of the columns in place of COLUMN, reads the file."""
    table = pd.DataFrame({names[0]: ["x", "x"], names[1]: ["a", "b"], "lm": [1.5, 2.5]})
    write_frame(table, path := tmp_path / f"lists.{ending}")
    shown = re.escape(f"'{', '.join(table)}'")
    with raises(
        DataError,
        "unknown-format" if ending == "jsonl" else "missing-column",
        parameter="format",
        line=1,
        match=shown,
    ) as caught:
        read_nbest(path)
    setting = re.findall(rf"{ending}:[\w=,]*(?:id|text)=COLUMN", caught.value.message)[0]
    for role, name in zip(("id", "text"), names, strict=True):
        setting = setting.replace(f"{role}=COLUMN", f"{role}={name}")
    lists = read_nbest(path, format=setting)
    assert (lists.ids, lists.texts(0)) == (("x",), ["a", "b"])


def test_an_ending_names_the_format_of_a_table(tmp_path: Path) -> None:
    """Its first line may be blank, or have one column, which cannot be detected."""
    (tmp_path / "a.csv").write_text("\nid,text,lm\n0,a,1\n")
    assert len(read_nbest(tmp_path / "a.csv")) == 1
    (tmp_path / "b.csv").write_text("text\na\n")
    with raises(DataError, "missing-column", parameter="format", line=1, match="no column id"):
        read_nbest(tmp_path / "b.csv")


def test_errors_name_the_input(tmp_path: Path) -> None:
    with raises(DataError, "missing-file", match="nowhere"):
        read_nbest(tmp_path / "nowhere")
    with raises(DataError, "cannot-read", match="folder"):
        read_nbest(tmp_path)
    for source, name in ((io.StringIO("0 ||| a\n"), "<file object>"), (["0 ||| a"], "<lines>")):
        with raises(DataError, "bad-line", line=1, match=name):
            read_nbest(source, format="moses")
    with raises(DataError, "bad-encoding", line=1):
        read_nbest(["0 ||| \ud800 ||| LM0= 1"])
    for odd in (3, [None]):
        with raises(UsageError, "wrong-type", parameter="path"):
            read_nbest(odd)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| LM= 1." + "0" * 200_000 + " ||| 1",
        "0 ||| a ||| " + "a=" * 100_000,
        "S-" + "1" * 200_000 + "\ta",
        "[1," * 100_000,
    ],
    ids=["Moses", "names", "fairseq", "JSON"],
)
def test_detection_takes_linear_time(line: str) -> None:
    """In quadratic time one of these lines would take minutes."""
    with suppress(DataError):
        assert len(read_nbest([line]).features) == 1


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| LM0= {} ||| -1",
        "{} ||| a ||| LM0= 1 ||| -1",
        "0 ||| a ||| LM0= 1 {}= 1 ||| -1",
        "0 ||| a ||| LM0= 1 ||| {}",
    ],
)
def test_a_message_repeats_little_of_a_huge_token(line: str, tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text("0 ||| a ||| LM0= 1 ||| -1\n" + line.format("x1" * 500_000) + "\n")
    with pytest.raises(DataError) as refused:
        read_nbest(path)
    assert len(str(refused.value)) < len(str(path)) + 250
    assert "x1" * 41 not in str(refused.value)


def test_a_message_is_one_line_whatever_it_repeats() -> None:
    message = str(DataError("no \x1b[2J\n\r\x00 name " + "x" * 50_000 + "y " * 50_000))
    assert escape_controls(message) == message
    assert len(message) < 2100
    assert "\\x1b[2J\\n" in message
    assert "\\n" in str(DataError("wrong", "a\nb", 3))


# --- writing --------------------------------------------------------------------------------------

#: The formats that write, and those with other settings; the first lack references, sources and
#: ids that are texts.
OF_LINES = ["moses", "marian", "marian:normalised=false", "plain:list_size=2"]
WHOLE = ["jsonl", "csv", "parquet"]
FORMATS = [*OF_LINES, *WHOLE, "tsv", "tsv:quoted=true"]
ODD = [
    *("a cat", "", " ", " a", "a ", "the  cat", "é 日本", "a\tb", "a\nb", "a\r\nb", "a\r", "\n"),
    *('"a"', 'a "b", c', "'", "a,b", "NA", "1.5", "0 ||| b", "a ||| b", "|||", "= 1", "LM0= 1"),
    *("\ufeffa", "\u2028", "\x1c", "\x85", "[1]", "{}", "\\n", "#", "null", "nan"),
    "\U0001f600",
]
PLAIN = ["a cat", "the cat", "é 日本", "0", "a|b", "x=1"]
IDS: list[list[Any]] = [
    *([0, 1, 2, 3], [7, 3, 100, 4], ["007", "3", "04", "5"], ["0", "1", "2", "3"], [2, 3, 4, 5]),
    *(["doc 1", "doc-2", "a b ", "x"], ["é", 'a"b', "a,b", "1.0"], ["NA", "null", "x\ty", "z"]),
    *([0, 1, 2, 10**15], ["", "b", "c", "d"], ["1e3", "nan", "-1", "+2"], [" ", "a\n", "b", "c"]),
    *(["a", "b", "c", "\1"], ["\ufeff", "b", "c", "d"], ["True", "id", "text", "1_0"]),
]


def some_lists(rng: np.random.Generator, names: list[str]) -> NBest:
    """Return one to four lists, of one size or several, with some of the columns that exist."""
    count = int(rng.integers(1, 5))
    has = rng.random(9) < 0.4
    texts = ODD if has[0] else PLAIN

    def text() -> str:
        return texts[rng.integers(len(texts))]

    sizes = rng.integers(1, 4, count) if has[1] else np.full(count, 2)
    rows = int(sizes.sum())
    features = rng.choice(
        [0, -0.0, 1, -1.5, 5e-324, 9e59, 0.1, 1e15 / 3, 1000000.01], (rows, len(names))
    )
    ids = IDS[rng.integers(len(IDS))][:count]
    starts = np.cumsum(sizes)[:-1]
    references = [("a cat", text()), *((text(), text())[: rng.integers(3)] for _ in range(count))]
    lists = from_lists(
        np.split([f"{text()}{row}" if row % 2 else text() for row in range(rows)], starts),
        np.split(features, starts),
        names,
        sentence_ids=ids if isinstance(ids[0], int) else None,
        references=references[:count] if has[2] else None,
        sources=[text() for _ in range(count)] if has[3] else None,
        totals=np.split(rng.normal(size=rows), starts) if has[4] else None,
    )
    if isinstance(ids[0], str):
        lists = lists.with_sentence_extras(id=ids)
    if has[5]:
        lists = lists.with_sentence_extras(doc=[text() for _ in range(count)])
    if has[6]:
        lists = lists.with_extras(by=[text() for _ in range(rows)])
    if has[7]:
        lists = lists.with_extras(topic=[None if row % 2 else text() for row in range(rows)])
    if has[8]:
        judged = rng.choice(np.array([np.nan, -0.5, 2, 1 / 3]), rows)
        judged[rng.integers(rows)] = np.nan
        lists = lists.with_extras(mqm=judged)
    return lists


def columns_of(lists: NBest, whole: bool) -> dict[str, Any]:
    """Return the columns of lists: of the whole, or of what formats of lines have."""
    columns = {
        "id": lists.ids if whole else tuple(lists.sentence_ids.tolist()),
        "text": [lists.texts(s) for s in range(len(lists))],
    }
    for column, values in zip(lists.feature_names, lists.features.T, strict=True):
        columns[column] = values.tobytes()
    if whole:
        columns |= {"references": lists.references, "sources": lists.sources}
        columns |= {"totals": None if lists.totals is None else lists.totals.tobytes()}
        extras = {**lists.extras, **lists.sentence_extras}
        extras.pop("id", None)
        if "mqm" in extras:  # cells of text files, or numbers
            extras["mqm"] = gains(lists, "mqm")
        columns |= {n: [None if v != v else v for v in of] for n, of in extras.items()}
    return columns


@NOTES
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("names", [[], ["lm"], ["lm", "TM0[0]", "TM0[1]"]], ids=len)
def test_lists_read_back_or_are_refused(
    name: str, names: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A column that would not read back is left out with a note."""
    path, whole = tmp_path / "lists", name not in OF_LINES
    read = 0
    for seed in range(12):
        if seed == 4:  # the first four were read as one block
            request.getfixturevalue("small_blocks")
        lists = some_lists(np.random.default_rng([seed, len(names)]), names)
        with capture_notes() as notes:
            try:
                write_nbest(lists, path, format=name)
            except (DataError, UsageError):
                continue
        expected = columns_of(lists, whole)
        options: Any = {"format": name}
        if "plain" in name:
            options["format"] = f"{name},first_id={lists.sentence_ids[0]}"
        back = read_nbest(path, **options)
        actual = columns_of(back, whole)
        for lost in expected.keys() - actual.keys():
            assert any(lost in note.message and "left out" in note.message for note in notes)
            del expected[lost]
        assert actual == expected, seed
        tables = concatenate(iter_nbest(path, chunk=1, **options), fill_missing=True)
        assert columns_of(tables, whole) == actual, seed
        read += 1
    assert (read > 2) == ("plain" not in name if names else name not in OF_LINES[:3])


@pytest.mark.parametrize("name", OF_LINES)
def test_ids_that_formats_of_lines_lack_are_noted(name: str, tmp_path: Path) -> None:
    features = [] if "plain" in name else ["F0"]
    lists = from_lists([["a", "b"]] * 2, np.ones((2, 2, len(features))), features)
    with pytest.warns(BpaWarning, match="such as '007'"):
        write_nbest(lists.with_sentence_extras(id=("007", "08")), tmp_path / "out", format=name)


@pytest.mark.parametrize("name", [*WHOLE, "tsv:quoted=true"])
def test_odd_names_and_columns_read_back(tmp_path: Path, name: str) -> None:
    nbest = from_lists([["a", "b"], ["c"]], [[[1], [2]], [[3]]], ['odd, "name"'])
    nbest = nbest.with_extras(system=["u", "5a", "w"]).with_sentence_extras(title=["t", "u"])
    if is_typed := name in ("jsonl", "parquet"):
        spans = ([[1, 2], [3]], [], [[4]])
        nbest = nbest.with_extras(spans=spans).with_sentence_extras(n=[1, 2], share=[0.5, 0.25])
    path = tmp_path / "out.gz"
    write_nbest(nbest, path, format=name)
    options: Any = {"format": name if ":" in name else "auto"}
    for back in (read_nbest(path, **options), concatenate(iter_nbest(path, chunk=1, **options))):
        assert table_content(back, "cells") == table_content(nbest, "cells")
        assert back.cells == (frozenset() if is_typed else {"system"})


# --- lists that a format cannot store ------------------------------------------------------------

#: Texts that are cut, or not read, between the fields of a line.
BETWEEN = (" a", "a ", " ", "a\rb", "a\nb")


def one(text: str, *names: str) -> NBest:
    """Return a list of a candidate, with features of some names."""
    return from_lists([[text]], [[range(len(names))]], names)


UNEVEN = from_lists([["a", "b"], ["c"]], [[[], []], [[]]], [])
ALIGNED = from_lists([["a", "b"], [""]], [[[1.0], [2.0]], [[3.0]]], ["LM0"])
#: Formats, lists that they do not store, the code of the error, and the parameter it names.
NOT_WRITTEN: list[tuple[str, NBest, str, str | None]] = [
    *((f, one(text, "LM0"), "not-supported", None) for f in OF_LINES[:2] for text in BETWEEN),
    *((f, one("a"), "not-supported", None) for f in OF_LINES[:2]),
    *(("moses", one("a", name), "bad-name", None) for name in ("a b", "", "=", "|||")),
    ("moses", one("a", "my_lm", "my.lm"), "duplicate", None),
    *(
        ("moses", ALIGNED.with_extras(alignment=["0-0", "", bad]), "not-supported", None)
        for bad in ("0=0", "0-0 ", "0-0\n", 7)
    ),
    *(("plain", one(text), "not-supported", None) for text in ("a\nb", "a\r", "\ufeffa", "a\tb")),
    ("plain", UNEVEN, "not-supported", None),
    ("plain", concatenate([UNEVEN[1:], UNEVEN[:1].truncate(1)]), "not-supported", None),
    ("plain", one("a", "lm"), "wrong-length", "scores"),
    ("jsonl", UNEVEN[[0, 0]], "duplicate", None),
    *((f, one("a", n), "bad-name", None) for f in WHOLE for n in ("text", "total")),
    *(
        (f, lists, "not-supported", None)
        for f in ("csv", "tsv", "tsv:quoted=true")
        for lists in (UNEVEN.with_extras(by=[*"ab\0"]), UNEVEN.with_sentence_extras(id=[*"a\0"]))
    ),
    *(("tsv", one(f"b{odd}c", "lm"), "not-supported", None) for odd in "\t\n\r"),
    ("csv", UNEVEN.with_references([("x",), ("y", "")]), "not-supported", None),
    *((f, UNEVEN, "not-supported", "format") for f in ("fairseq", "openai", "kaldi", "espnet")),
    ("xml", UNEVEN, "unknown-name", "format"),
]


@pytest.mark.parametrize(
    ("format", "lists", "code", "parameter"), NOT_WRITTEN, ids=lambda value: str(value)[:30]
)
def test_lists_that_a_format_does_not_store(
    tmp_path: Path, format: str, lists: NBest, code: str, parameter: str | None
) -> None:
    with raises(UsageError if parameter else DataError, code, parameter=parameter):
        write_nbest(lists, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", WHOLE)
def test_columns_that_would_not_read_back_are_left_out(tmp_path: Path, format: str) -> None:
    """Cells of text files are texts; features may be called as fields of sentences."""
    path = tmp_path / f"out.{format}"
    bare = from_lists([["a"], ["b"]], [[[1]], [[2]]], ["lm"])
    of_cells = [("", "x"), (True, False), (1, "x")] if format == "csv" else []
    for lost in ((object(), object()), *of_cells):
        with pytest.warns(BpaWarning, match="year left out, which would not read back unchanged$"):
            write_nbest(bare.with_extras(year=lost), path)
    for values in (("1", "x"), ("x", "NA"), ("x", None), (0.5, 1e-30), np.array([7, -2])):
        write_nbest(bare.with_extras(year=values), path)
        lists = read_nbest(path)
        cells = tuple(None if value is None else str(value) for value in values)
        assert (lists.feature_names, bool(lists.cells)) == (("lm",), format == "csv")
        assert tuple(lists.extras["year"]) == (cells if lists.cells else tuple(values))
    names = ["id", "source", "reference", "candidates", "features", "sentence.x", "a.b"]
    lists = from_lists([["a", "b"]], [[range(7), range(7)]], names)
    write_nbest(lists, path)
    assert table_content(read_nbest(path)) == table_content(lists)


def test_settings_are_checked_at_once() -> None:
    for name, value, code in (("bad", "ignore", "unknown-name"), ("chunk", 0, None)):
        with raises(UsageError, code, parameter=name):
            iter_nbest(["0 ||| a ||| LM0= 1"], **{name: value})
    with raises(UsageError, "invalid-setting", parameter="extract", match=r"'\('"):
        read_nbest(["{}"], format="openai:extract=(")
    csv = NBEST_FORMATS["csv"]
    for make in (lambda: csv(names=(("txt", "a"),)), lambda: NBEST_FORMATS.resolve("csv:txt=a")):
        with raises(UsageError, "unknown-setting", parameter="txt", match="did you mean text"):
            make()


def test_the_name_of_a_file_says_the_format(toy: NBest, tmp_path: Path) -> None:
    """Moses where it says none."""
    for name in ("a.tab.gz", "a.json", "a.nbest.old"):
        with raises(UsageError, "unknown-format", parameter="format"):
            write_nbest(toy, tmp_path / name)
    for name in ("a\0b", "\ud800", "a" * 5000):
        with raises(DataError, "cannot-read"):
            read_nbest(name)
        with raises(DataError, "cannot-write"):
            write_nbest(toy, tmp_path / name, format="moses")
    assert not list(tmp_path.iterdir())
    for name in ("a", "a.nbest100.gz", "a.100best", "a.txt.zst"):
        write_nbest(toy, tmp_path / name)
        lists = read_nbest(tmp_path / name, format="moses")
        assert lists.features.tolist() == toy.features.tolist()


def test_totals_of_new_weights_and_renamed_features(tmp_path: Path) -> None:
    nbest = from_lists([["a"]], [[[1, 2]]], ["my_lm", "W0"], totals=[[9]])
    with pytest.warns(BpaWarning, match="`_` written as `.` in my_lm,"):
        write_nbest(nbest, tmp_path / "out", {"W0": 0.5, "my_lm": 3})
    again = read_nbest(tmp_path / "out")
    assert again.feature_names == ("my.lm", "W0")
    assert again.totals.tolist() == [4]  # type: ignore[union-attr]


def test_cells_are_written_as_the_numbers_that_they_print(tmp_path: Path) -> None:
    """In files that distinguish numbers from texts; and as the same cells again."""
    lines = ["id,text,human,code,lr,price", "0,a,5,07,0.001,1.50", "0,b,,08,-2.5,2", "1,c,3,9,7,3"]
    lists = read_nbest(lines, format="csv")
    expected = {
        "human": (5, None, 3),
        "code": ("07", "08", "9"),
        "lr": (0.001, -2.5, 7.0),
        "price": ("1.50", "2", "3"),
    }
    for name in ("lists.jsonl", "lists.parquet"):
        write_nbest(lists, tmp_path / name)
        again = read_nbest(tmp_path / name)
        for column, values in expected.items():
            found = [None if v != v else v for v in list(again.extras[column])]
            assert found == list(values), column
    write_nbest(read_nbest(tmp_path / "lists.jsonl"), tmp_path / "again.csv")
    assert dict(read_nbest(tmp_path / "again.csv").extras) == dict(lists.extras)


# --- files of users -------------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lists.md").read_text("utf-8")
FIELD = Path(__file__).resolve().parent / "field"
ARRAY = "write one on each line, or convert the file as docs/how-to/other-files.md shows"
TOKENS = ["logprob.sum", "logprob.mean", "logprob.min", "length"]
#: Files of users: a part of what `bpa lists` says, if it refuses them; what its advice makes of the
#: call; then the first list, and the columns of its first candidate.
USERS: dict[str, tuple[str, dict[str, Any], list[str], dict[str, Any]] | str] = {
    "37/token_lists.jsonl": ("", {}, ["a cat", "the cat"], {}),
    "21/selfconsistency.jsonl": (
        "",
        {"features": "logprob"},
        ["6*7 = 42, so the answer is 42", "It is 41"],
        {"logprob": -1.5, "correct": 1},
    ),
    "13/batch.jsonl": ("Python bad='drop')", {"bad": "drop"}, ["a cat", "the cat"], {"count": 1}),
    "15/reasoning.jsonl": (f"exclude={TOKENS})", {"exclude": TOKENS}, ["42", "41"], {"count": 1}),
    "10/annotations.json": "write an object on each line, or convert the file as docs/how-to/",
    "32/run.txt": "is of no known format|docs/how-to/other-files.md",
    "41/rewardbench2.jsonl": "a list of texts, not one answer: convert the file as docs/",
    "42/min.json": ARRAY,
    "4/jq.jsonl": "JSON on several lines: write an object on each line",
    "4/turns.csv": "csv:2: chosen is |a list or an object, where a text is expected: write the ",
    "4/ultrafeedback.parquet --format jsonl": "lists in it are read in the format parquet",
    "5/completions.table.json": "one object with the columns 'step, prompt, completion, accu",
    "5/opencompass.json": ":1: a whole table in one object with the columns 'origin_prompt",
    "5/opencompass.json --format jsonl": ":1: a whole table in one object with the columns 'or",
    "5/log.eval": ":1: a zip archive of the files 'header.json, samples/1_epoch_1.json, |unpack it",
    "60/utf16.tsv": ":1: |text in UTF-16: save it as UTF-8",
}


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.parametrize("file", USERS)
def test_files_of_users(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # a binary file is recognised in a block of the usual size
    case = USERS[file]
    shown = case if isinstance(case, str) else case[0]
    done = run("lists", *shlex.split(str(FIELD / file)))
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert (done.code, len(errors)) == ((2, 1) if shown else (0, 0))
    assert all(part in done.err and len(done.err) < 900 for part in shown.split("|"))
    if isinstance(case, tuple):
        _, options, texts, columns = case
        lists = read_nbest(FIELD / file, **options)
        assert lists.texts(0) == texts
        assert not {*lists.feature_names} & {*options.get("exclude", ())}
        for name, value in columns.items():
            assert gains(lists, name)[0] == pytest.approx(value)


def test_a_workbook_is_no_other_archive(tmp_path: Path) -> None:
    path = tmp_path / "lists.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in ("[Content_Types].xml", "xl/workbook.xml"):
            archive.writestr(name, "<xml/>")
    for source, found in ((path, "a workbook, not a file"), (path.read_bytes(), "perhaps a work")):
        with raises(DataError, "bad-encoding", line=1, match=found):
            read_nbest(source)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with raises(DataError, "bad-encoding", line=1, match="perhaps a workbook"):
        read_nbest(path)


def test_fields_of_other_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = "lists.jsonl"
    succeed("convert", "ranked", FIELD / "4/rewardbench2.jsonl", "-o", path)
    kept = read_nbest(path).sentence_extras
    assert (kept["subset"][0], kept["scores"][0]) == ("Factuality", [[-2.1], [-3.4], [-7.9]])
    succeed("convert", "alpacaeval", FIELD / "10/annotations.json", "--bad", "drop", "-o", path)
    assert read_nbest(path).texts(0) == ["apple", "a carrot"]
    task, words = FIELD / "4/labelstudio_ranker.json", ("convert", "labelstudio", "-o", "x")
    refused(*words, task, mention="no field first in its data")
    refused(*words, FIELD / "42/min.json", mention="not a task of Label Studio's JSON export")


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_what_is_said_of_lists_of_other_tools() -> None:
    empty = read_nbest(FIELD / "4" / "metricx.jsonl", format="jsonl:id=source,text=hypothesis")
    assert empty.references is None
    systems = read_nbest(FIELD / "4" / "wide.csv", format="csv:id=seg_id,text=hyp.A")
    with pytest.raises(DataError, match="every list has one candidate"):
        log_density(systems, gain="esa.A", add="length", prior="isotropic:scale=0.3")


@pytest.mark.parametrize("format", ["auto:first_id=1", "moses:first_id=1"])
def test_the_first_id_is_set_as_the_message_says(format: str) -> None:
    lines = [f"{n} ||| t{n} ||| LM0= 1 ||| 1" for n in range(2)]
    with pytest.raises(DataError) as caught:
        read_nbest(lines, format=format)
    (first,) = re.findall(r"--format (\S+);", caught.value.message)
    assert read_nbest(lines, format=first).ids == (0, 1)


def test_the_page_puts_a_tab_after_the_utterance(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 THE CAT\nu2 A DOG\n")
    run_shell(re.findall(r"`(sed [^`]*text.tsv)`", PAGE)[0], tmp_path)
    lists = read_nbest(["u2-1 -1.5 DOG", "u1-1 -2.5 CAT"], references=tmp_path / "text.tsv")
    assert lists.references == (("A DOG",), ("THE CAT",))


def test_recipe_of_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = (FIELD / "44/ratings.csv").read_text().replace("judge_a", "judge")
    Path("ratings.csv").write_text(table)
    (recipe,) = re.findall(r"```python\n(.*?groupby.*?)```", PAGE, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(textwrap.dedent(recipe), scope)
    assert gains(scope["lists"], "rating") == pytest.approx([11 / 3, 3, 4.5, 1.5])


def test_reading_and_metrics_need_no_large_library(demo_data: Path, tmp_path: Path) -> None:
    tuners = "bpa_ppl.extras.tuning.tuner"
    pytest.importorskip(tuners)
    csv, plain, scores = (tmp_path / name for name in ("lists.csv", "lists", "scores"))
    csv.write_text("id,text,lm,by\n" + "0,a cat,-1.5,x\n0,a cat,-1.5,\n" * 50)
    plain.write_text("a cat\n" * 100)
    scores.write_text("lm\n" + "-1.5\n" * 100)
    code = (
        f"import sys, bpa_ppl as bpa, {tuners}\n"
        "from bpa_ppl.gains.metric import GAINS\n"
        "[GAINS.resolve(name) for name in ('ter', 'bleu', 'chrf')], bpa.read_nbest(sys.argv[1])\n"
        "print('joblib' in sys.modules)\n"
        f"lists = bpa.read_nbest({str(csv)!r}, features='lm')\n"
        f"other = bpa.read_nbest({str(plain)!r}, format='plain:list_size=100,scores={scores}')\n"
        "assert (lists.features == other.features).all() and lists.strings == other.strings\n"
        "large = 'jax', 'arviz', 'numba', 'matplotlib', 'scipy', 'pandas', 'sacrebleu'\n"
        "print([name for name in large if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, demo_data / "leaflet.nbest100.gz"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n[]\n"


@pytest.mark.parametrize("line", ["{n} ||| text {n} ||| lm= 1", '{{"id":{n},"text":"text {n}"}}'])
def test_parts_of_a_stream_have_their_own_texts_alone(line: str) -> None:
    parts = list(iter_nbest([line.format(n=n) for n in range(4)], chunk=2))
    assert [part.strings for part in parts] == [("text 0", "text 1"), ("text 2", "text 3")]


def test_lists_of_scores_are_columns_where_they_are_named() -> None:
    rows = [
        {
            "id": n,
            "candidates": ["a", "b"],
            "scores": {"large": [1, 2], "small": [n, 4]},
            "s": [[5], [6]],
        }
        for n in range(2)
    ]
    lists = read_nbest(json_lines(rows), features=["scores.large", "s"])
    assert lists.features.tolist() == [[1, 5], [2, 6]] * 2
    assert lists.sentence_extras["scores"] == ({"small": [0, 4]}, {"small": [1, 4]})
    both = [{"id": 0, "candidates": ["a", "b"], "s": [[5], [6, 7]]}]
    with raises(
        DataError, "bad-number", parameter="bad", line=1, match=r"s is \[5\], not a number"
    ):
        read_nbest(json_lines(both), features="s")


def test_a_column_of_texts_called_candidates() -> None:
    table = ["id,candidates,lm", "0,a cat,1", "0,cat,2"]
    with raises(DataError, "missing-column", parameter="format", line=1, match="csv:text=COLUMN"):
        read_nbest(table, format="csv")
    lists = read_nbest(table, format="csv:text=candidates", features="lm")
    assert (lists.texts(0), lists.features.ravel().tolist()) == (["a cat", "cat"], [1, 2])
