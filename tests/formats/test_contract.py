"""What holds in every format, however it is read: see `SAMPLES` for the files.

Lists are the same from paths, packed files, standard input, memory, and as a stream; what is
written reads back; a bad line is named with its file, and bad numbers may be dropped.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises
from support.table_content import table_content

from bpa_ppl import (
    NBest,
    concatenate,
    from_lists,
    from_records,
    iter_nbest,
    read_nbest,
    to_arrow,
    write_nbest,
)
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.moses import Marian
from bpa_ppl.formats.separated import Tsv

Write = Callable[..., Path]
Format = str | NBestFormat
Line = str | bytes
NUMBERS = ("nan", "1e39", "1_0", "\u0661")
CELLS = ("inf", *NUMBERS[1:])
JSON_NUMBERS = ("Infinity", "-Infinity", "1e39")


#: Samples of which a line is a sentence.
APART = ("pairs", "arena")


class Sample(NamedTuple):
    """A file of a format.

    Attributes:
        format: its name.
        header: the lines before the first candidate.
        row: a line of sentence `{id}`, with the text `{text}`, the number `{value}`, and the rank.
        bad: lines that the format refuses, with the code of the error.
        numbers: texts that are no finite numbers of 32 bits, in place of `{value}`.
    """

    format: str
    header: list[str]
    row: str
    bad: list[tuple[Line, str]]
    numbers: tuple[str, ...] = NUMBERS

    def line(self, text: str, value: object = 1, id: int = 0, rank: int = 1) -> str:
        """Return a line."""
        fields = {"id": id, "text": text, "value": value, "rank": rank}
        row = self.row
        for name, field in fields.items():
            row = row.replace(f"<{name}>", str(field))
        return row

    def lines(self) -> list[str]:
        """Return a file of three sentences, of two candidates where a line is one."""
        ranks = (1,) if self in map(SAMPLES.get, APART) else (1, 2)
        rows = (self.line(f"a cat {n}", k + n, id=k, rank=n) for k in range(3) for n in ranks)
        return [*self.header, *rows]


def chat(name: Any, content: Any = "a", logprob: Any = -1, **choice: Any) -> str:
    """Return a line of a batch of chats."""
    logged = {"content": [{"token": "t", "logprob": logprob}]}
    choices = [{"message": {"content": content}, "logprobs": logged, "finish_reason": "stop"}]
    body = {"model": "m", "choices": [choices[0] | choice]}
    return json.dumps({"custom_id": name, "response": {"status_code": 200, "body": body}})


SAMPLES = {
    "moses": Sample(
        "moses",
        [],
        "<id> ||| <text> ||| LM0= <value> TM0= 2 0 ||| 0",
        [
            ("", "bad-line"),
            ("9 ||| a cat", "bad-line"),
            ("x ||| a ||| LM0= 1 TM0= 2 0 ||| 0", "bad-line"),
            ("9 ||| a ||| LM0= 1 TM0= 2 0 W0= 1 ||| 0", "mismatch"),
            ("9 ||| a ||| LM0= 1 TM0= 2 0 LM0= 1 ||| 0", "duplicate"),
            ("9 ||| a ||| LM0= 1 TM0= 2 0", "bad-line"),
            ("9 ||| a ||| LM0= 1 TM0= 2 0 ||| nan", "bad-number"),
            (b"9 ||| caf\xe9 ||| LM0= 1 TM0= 2 0 ||| 0\n", "bad-encoding"),
        ],
    ),
    "marian": Sample(
        "marian",
        [],
        "<id> ||| <text> ||| 0-0 ||| F0= <value> ||| -2",
        [
            ("9 ||| a ||| F0= -1 ||| -2", "bad-line"),
            ("9 ||| a ||| x ||| F0= -1 ||| -2", "bad-line"),
            ("9 ||| a ||| 0-0 ||| F1= -1 ||| -2", "mismatch"),
            ("9 ||| a ||| 0-0 ||| F0= -1 |||", "bad-number"),
        ],
    ),
    "fairseq": Sample(
        "fairseq",
        ["log"],
        "H-<id>\t<value>\t<text>",
        [
            ("H-9\tb", "bad-number"),
            ("  7%|#  | 1/20 [00:00<?]H-9\t-1\ta", "bad-line"),
            ("H-" + "1" * 30 + "\t1\ts", "bad-line"),
        ],
    ),
    "kaldi": Sample(
        "kaldi:score=true",
        [],
        "u<id>-<rank> <value> <text>",
        [
            ("", "bad-line"),
            ("u -2 A CAT", "bad-line"),
            ("u9-1 A CAT", "bad-number"),
            ("u1-1 2 A CAT", "duplicate"),
        ],
    ),
    "csv": Sample(
        "csv",
        ["id,text,lm"],
        '<id>,<text>,"<value>"',
        [
            ("9,a", "wrong-length"),
            ('9,"a,1', "wrong-length"),
            (b"9,caf\xe9,2\n", "bad-encoding"),
        ],
        CELLS,
    ),
    "tsv": Sample(
        "tsv",
        ["id\ttext\tlm"],
        "<id>\t<text>\t<value>",
        [("9\ta", "wrong-length")],
        CELLS,
    ),
    "jsonl": Sample(
        "jsonl",
        [],
        '{"id": <id>, "text": "<text>", "lm": <value>}',
        [
            ('{"id": 9, "text": "a", "lm": 1, "lm": 2}', "duplicate"),
            ('{"id": 9, "text": "a", "lm": }', "bad-line"),
            ('{"id": 9, "text": "\\ud800", "lm": 1}', "bad-encoding"),
            (b'{"id": 9, "text": "caf\xe9", "lm": 1}\n', "bad-encoding"),
            ('{"id": 9, "text": ' + 100_000 * "[", "bad-line"),
            ('{"id": 9, "text": "a", "lm": 1' + 5000 * "0" + "}", "bad-line"),
            ('{"id": 9, "text": "a", "lm": "x"}', "bad-data"),
            ("[1]", "bad-data"),
        ],
        JSON_NUMBERS,
    ),
    "pairs": Sample(
        "jsonl",
        [],
        '{"chosen": {"text": "<text>", "lm": <value>}, "rejected": {"text": "z", "lm": 1}}',
        [
            ('{"chosen": {"text": "a", "lm": 1}}', "missing-column"),
            ('{"chosen": "a", "rejected": []}', "bad-line"),
            ('{"chosen": "a", "rejected": "b", "preferences": []}', "bad-name"),
        ],
        JSON_NUMBERS,
    ),
    "openai": Sample(
        "openai",
        [],
        chat("r-<id>", "<text>", 12345).replace("12345", "<value>"),
        [
            (chat("r-9", "\ud800"), "bad-encoding"),
            (chat("r-9", logprob="x"), "bad-line"),
            ('{"custom_id": "9", "body": {"messages": []}}', "bad-line"),
            ('{"custom_id": "9", "response": {"body": {"object": "response"}}}', "bad-line"),
            (chat("r-9", delta={"content": "a"}, message=None), "not-supported"),
        ],
        (),
    ),
    "arena": Sample(
        "jsonl",
        [],
        '{"id": <id>, "model_a": "X", "model_b": "Y", "winner": "model_a", "response_a": "<text>", '
        '"response_b": "z", "rm_a": <value>, "rm_b": 1}',
        [
            (
                '{"id": 9, "model_a": "X", "model_b": "Y", "winner": "Z", "response_a": "a", '
                '"response_b": "b"}',
                "bad-line",
            ),
            ('{"id": 9, "model_a": "X", "model_b": "Y", "winner": "X"}', "missing-column"),
            ('{"id": 9, "model_a": "X", "winner": "tie", "response_a": "a"}', "missing-column"),
        ],
        JSON_NUMBERS,
    ),
}
EVERY = pytest.mark.parametrize("name", SAMPLES)
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


@NOTES
@EVERY
@pytest.mark.usefixtures("small_blocks")
def test_lists_are_the_same_however_they_are_read(
    name: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = SAMPLES[name].lines()
    text = "".join(f"{line}\n" for line in lines)
    path = write(text.encode())
    lists = read_nbest(path, format=SAMPLES[name].format)
    assert lists.sizes.sum() >= len(lists) == 3
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    sources: list[Any] = [
        write(gzip.compress(text.encode()), name="packed"),
        write(text.replace("\n", "\r\n").encode(), name="windows"),
        write(text.rstrip("\n").encode(), name="no line end"),
        "-",
        text.encode(),
        io.BytesIO(gzip.compress(text.encode())),
        io.StringIO(text),
        lines,
        (line.encode() for line in text.splitlines(keepends=True)),
    ]
    for source in sources:
        again = read_nbest(source, format=SAMPLES[name].format)
        assert table_content(again) == table_content(lists)
    for chunk in (1, 2, 9):
        parts = iter_nbest(path, format=SAMPLES[name].format, chunk=chunk)
        assert table_content(concatenate(parts)) == table_content(lists)


@NOTES
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "bad", "code"),
    [(name, *bad) for name, sample in SAMPLES.items() for bad in sample.bad],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_line_is_named(write: Write, name: str, bad: Line, code: str) -> None:
    sample = SAMPLES[name]
    path = write(*sample.lines(), bad, sample.line("b", id=12))
    for read in (read_nbest, lambda *a, **options: list(iter_nbest(*a, chunk=1, **options))):
        with pytest.raises(DataError) as caught:
            read(path, format=sample.format)
        assert str(caught.value).startswith(f"{path}:{len(sample.lines()) + 1}: ")
        assert caught.value.code == code


@NOTES
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, sample in SAMPLES.items() for value in sample.numbers],
)
def test_a_bad_number_is_named_or_dropped(write: Write, name: str, value: str) -> None:
    sample = SAMPLES[name]
    rows = [
        sample.line(text, value if text == "b" else 1, id=rank if name in APART else 0, rank=rank)
        for rank, text in enumerate("abcd", 1)
    ]
    path = write(*sample.header, *rows)
    with pytest.raises(DataError) as caught:
        read_nbest(path, format=sample.format)
    assert str(caught.value).startswith(f"{path}:{len(sample.header) + 2}: ")
    with pytest.warns(BpaWarning, match="1 candidate dropped"):
        nbest = read_nbest(path, format=sample.format, bad="drop")
    assert [text for text in nbest.strings if text != "z"] == ["a", "c", "d"]
    assert np.isfinite(nbest.features).all()


@NOTES
@EVERY
def test_good_numbers_of_any_shape(write: Write, name: str) -> None:
    sample, values = SAMPLES[name], ["-1.5e-05", "-3", "0", "1E2", "0.75"]
    rows = [sample.line(f"t{n}", v, id=n) for n, v in enumerate(values)]
    nbest = read_nbest(write(*sample.header, *rows), format=sample.format)
    kept = [text != "z" for text in map(nbest.text, range(len(nbest.features)))]
    columns = [abs(column[kept]) for column in nbest.features.T]
    assert any(np.array_equal(column, abs(np.float32(values))) for column in columns)


def test_errors_name_the_input(tmp_path: Path) -> None:
    with raises(DataError, "missing-file", match="nowhere"):
        read_nbest(tmp_path / "nowhere")
    with raises(DataError, "cannot-read", match="folder"):
        read_nbest(tmp_path)
    for source, name in ((io.StringIO("0 ||| a\n"), "<file object>"), (["0 ||| a"], "<lines>")):
        with raises(DataError, "bad-line", line=1, match=name):
            read_nbest(source, format="moses")
    with raises(DataError, "no-data"):
        read_nbest([])
    with raises(DataError, "bad-encoding", line=1):
        read_nbest(["0 ||| \ud800 ||| LM0= 1"])
    for odd in (3, [None]):
        with raises(UsageError, "wrong-type", parameter="path"):
            read_nbest(odd)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("bad", "ignore"), ("chunk", 0), ("first_id", "x")])
def test_options_are_checked_at_once(name: str, value: Any) -> None:
    with raises(UsageError, "unknown-name" if name == "bad" else None, parameter=name):
        iter_nbest(["0 ||| a ||| LM0= 1"], **{name: value})


# --- what is written -----------------------------------------------------------------------------

#: Formats of lines with features and totals alone.
SCORED: list[Format] = ["moses", Marian(normalised=False)]
#: Formats that keep everything.
TABLES: list[Format] = [Tsv(quoted=True), "csv"]
WHOLE: list[Format] = ["jsonl", *TABLES, "parquet"]


#: Texts that are cut, or not read, between the fields of a line.
BETWEEN = (" a", "a ", " ", "a\0b", "a\rb")
FLOATS = st.just(0.0) | st.floats(width=32, allow_nan=False, allow_infinity=False)


@NOTES
@pytest.mark.parametrize("format", [*SCORED, *WHOLE], ids=repr)
@settings(max_examples=12, deadline=None)
@given(
    values=st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=5),
    text=st.text(st.characters(exclude_characters="\n\r|\0", exclude_categories=["Cs"])),
    identifier=st.integers(0, 10**12),
)
def test_any_texts_and_numbers_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    format: Format,
    values: list[tuple[float, ...]],
    text: str,
    identifier: int,
) -> None:
    path = tmp_path_factory.mktemp("out") / "nbest"
    table = np.array(values, np.float32)
    nbest = from_lists(
        [[text.strip(" "), *(f"t{i}" for i in range(1, len(values)))]],
        [table[:, 1:]],
        ["score[0]", "score[1]"],
        totals=[table[:, 0]],
        sentence_ids=[identifier],
    )
    write_nbest(nbest, path, format=format)
    assert table_content(read_nbest(path, format=format)) == table_content(nbest)


@NOTES
@pytest.mark.parametrize("format", WHOLE, ids=repr)
def test_odd_texts_and_all_columns_read_back(tmp_path: Path, format: Format) -> None:
    nbest = from_lists(
        [['a "b"\n\t', "é,\\"], ["c\r"]],
        [[[0.1, -0.0], [1e-45, 3e38]], [[1, 2]]],
        ["lm", 'odd, "name"'],
        references=[("x", "y"), ("z", "\n")],
        sources=["s", "t"],
        totals=[[1, 2], [-0.0]],
        extras={"system": [["u", "5a"], ["w"]]},
        sentence_extras={"doc": ["d", "e"]},
        sentence_ids=[7, 3],
    )
    if format not in TABLES:
        spans = ([[1, 2], [3]], [], [[4]])
        nbest = nbest.with_extras(spans=spans).with_sentence_extras(n=[1, 2], share=[0.5, 0.25])
    path = tmp_path / "out.gz"
    write_nbest(nbest, path, format=format)
    reader = format if isinstance(format, Tsv) else "auto"
    for read in (read_nbest, lambda *a, **k: concatenate(iter_nbest(*a, **k, chunk=1))):
        assert table_content(read(path, format=reader)) == table_content(nbest)


@NOTES
@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv"], ids=repr)
def test_missing_values_read_back(tmp_path: Path, format: Format) -> None:
    nbest = from_lists(
        [["a", "b"], ["c"]],
        [[[1], [2]], [[3]]],
        ["lm"],
        references=[("x", "y"), ()],
    ).with_extras(mqm=np.float32([np.nan, -0.5, np.nan]))
    if format != "csv":  # an empty cell among texts is an empty text
        nbest = nbest.with_extras(by=["x", None, ""]).with_sentence_extras(topic=[None, "t"])
    write_nbest(nbest, tmp_path / "out", format=format)
    assert table_content(read_nbest(tmp_path / "out")) == table_content(nbest)


@pytest.mark.parametrize(
    ("format", "text", "names", "code"),
    [
        *((format, "a\nb", ["LM0"], "not-supported") for format in SCORED),
        *((format, "a", [n], "bad-name") for format in SCORED for n in ("a b", "", "=", "|||")),
        *((format, text, ["LM0"], "not-supported") for format in SCORED for text in BETWEEN),
        *((format, "a", [], "not-supported") for format in SCORED),
        *((format, "a\0", ["LM0"], "not-supported") for format in (*TABLES, "tsv")),
        *(("plain", text, [], "not-supported") for text in ("a\nb", "a\r", "a\0", "\ufeffa")),
        ("moses", "a", ["my_lm", "my.lm"], "duplicate"),
        ("jsonl", "a", ["text", "lm"], "bad-name"),
        ("parquet", "a", ["lm", "source"], "bad-name"),
    ],
    ids=repr,
)
def test_what_a_format_cannot_store(
    tmp_path: Path, format: Format, text: str, names: list[str], code: str
) -> None:
    nbest = from_lists([[text]], [[range(len(names))]], names, totals=[[1]])
    with raises(DataError, code):
        write_nbest(nbest, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 5000])
def test_names_that_no_file_can_have(toy: NBest, tmp_path: Path, name: str) -> None:
    with raises(DataError, "cannot-read"):
        read_nbest(name)
    with raises(DataError, "cannot-write"):
        write_nbest(toy, tmp_path / name, format="moses")


@pytest.mark.parametrize("format", ["fairseq", "openai", "kaldi", "espnet"])
def test_formats_that_are_only_read(tmp_path: Path, toy: NBest, format: str) -> None:
    with raises(UsageError, "not-supported", parameter="format"):
        write_nbest(toy, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


def test_real_lists_are_the_same_in_every_table(demo_data: Path, tmp_path: Path) -> None:
    files = {
        n: demo_data / f"leaflet.{end}" for n, end in (("references", "ref"), ("sources", "src"))
    }
    nbest = read_nbest(demo_data / "leaflet.nbest100.gz", **files)[:40]
    nbest = nbest.with_extras(system=[f"by {h % 3}" for h in range(len(nbest.features))])
    for name in ("jsonl", "tsv", "csv", "parquet"):
        write_nbest(nbest, tmp_path / name, format=name)
        assert table_content(read_nbest(tmp_path / name)) == table_content(nbest)
        streamed = concatenate(iter_nbest(tmp_path / name, chunk=7))
        assert table_content(streamed) == table_content(nbest)
    plain = f"plain:list_size=100,scores={tmp_path / 'scores.txt'}"
    write_nbest(nbest, tmp_path / "plain", format=plain)
    again = read_nbest(
        tmp_path / "plain", format=plain, references=nbest.references, sources=nbest.sources
    )
    assert table_content(again) == table_content(nbest.without("totals", "system"))
    frame = to_arrow(nbest).to_pandas()
    assert table_content(from_records(frame)) == table_content(nbest)
