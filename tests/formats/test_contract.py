"""What holds in every format, however it is read: see `SAMPLES` for the files.

Lists are the same from paths, packed files, standard input, memory, and as a stream; a bad line is
named with its file, and bad numbers may be dropped.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write

from bpa_ppl import concatenate, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError, escape_controls

Line = str | bytes
NUMBERS = ("nan", "1e61", "1_0", "\u0661")
CELLS = ("inf", *NUMBERS[1:])
JSON_NUMBERS = ("Infinity", "-Infinity", "1e61")
#: Samples of which a line is a sentence.
APART = ("pairs", "arena")


class Sample(NamedTuple):
    """A file of a format.

    Attributes:
        format: its name.
        row: a line of sentence `<id>`, with the text `<text>`, the number `<value>`, and the rank.
        numbers: texts that are no finite numbers up to 1e60, in place of `<value>`.
        header: the lines before the first candidate.
        features: the columns that are features, where the format does not define them.
    """

    format: str
    row: str
    numbers: tuple[str, ...] = NUMBERS
    header: tuple[str, ...] = ()
    features: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the readers."""
        return {"format": self.format, "features": self.features}

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
    "moses": Sample("moses", "<id> ||| <text> ||| LM0= <value> TM0= 2 0 ||| 0"),
    "marian": Sample("marian", "<id> ||| <text> ||| 0-0 ||| F0= <value> ||| -2"),
    "fairseq": Sample("fairseq", "H-<id>\t<value>\t<text>", header=("log",)),
    "kaldi": Sample("kaldi:score=true", "u<id>-<rank> <value> <text>"),
    "csv": Sample("csv", '<id>,<text>,"<value>"', CELLS, ("id,text,lm",), "lm"),
    "tsv": Sample("tsv", "<id>\t<text>\t<value>", CELLS, ("id\ttext\tlm",), "lm"),
    "jsonl": Sample(
        "jsonl", '{"id": <id>, "text": "<text>", "lm": <value>}', JSON_NUMBERS, (), "lm"
    ),
    "pairs": Sample(
        "jsonl",
        '{"chosen": {"text": "<text>", "features": {"lm": <value>}}, '
        '"rejected": {"text": "z", "features": {"lm": 1}}}',
        JSON_NUMBERS,
        features="lm",
    ),
    "openai": Sample("openai", chat("r-<id>", "<text>", 12345).replace("12345", "<value>"), ()),
    "arena": Sample(
        "jsonl",
        '{"id": <id>, "model_a": "X", "model_b": "Y", "winner": "model_a", '
        '"response_a": {"text": "<text>", "features": {"rm": <value>}}, '
        '"response_b": {"text": "z", "features": {"rm": 1}}}',
        JSON_NUMBERS,
        features="rm",
    ),
}
#: Lines that a format refuses after others, with the code of the error.
BAD: list[tuple[str, Line, str]] = [
    ("moses", "", "bad-line"),
    ("moses", "9 ||| a cat", "bad-line"),
    ("moses", "x ||| a ||| LM0= 1 TM0= 2 0 ||| 0", "bad-line"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 W0= 1 ||| 0", "mismatch"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 LM0= 1 ||| 0", "duplicate"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0", "bad-line"),
    ("moses", "9 ||| a ||| LM0= 1 TM0= 2 0 ||| nan", "bad-number"),
    ("moses", b"9 ||| caf\xe9 ||| LM0= 1 TM0= 2 0 ||| 0\n", "bad-encoding"),
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
    ("csv", "9,a", "wrong-length"),
    ("csv", "x,a,1", "bad-data"),
    ("csv", '9,"a,1', "bad-line"),
    ("csv", b"9,caf\xe9,2\n", "bad-encoding"),
    ("tsv", "9\ta", "wrong-length"),
    ("jsonl", '{"id": 9, "text": "a", "lm": 1, "lm": 2}', "duplicate"),
    ("jsonl", '{"id": 9, "text": "a", "lm": }', "bad-line"),
    ("jsonl", '{"id": 9, "text": "\\ud800", "lm": 1}', "bad-encoding"),
    ("jsonl", b'{"id": 9, "text": "caf\xe9", "lm": 1}\n', "bad-encoding"),
    ("jsonl", '{"id": 9, "text": ' + 100_000 * "[", "bad-line"),
    ("jsonl", '{"id": 9, "text": "a", "lm": 1' + 5000 * "0" + "}", "bad-line"),
    ("jsonl", '{"id": 9, "text": "a", "lm": "x"}', "bad-number"),
    ("jsonl", "[1]", "bad-data"),
    ("jsonl", f'{{"id": {2**70}, "text": "a", "lm": 1}}', "bad-data"),
    ("pairs", '{"chosen": {"text": "a", "lm": 1}}', "missing-column"),
    ("pairs", '{"chosen": "a", "rejected": []}', "bad-line"),
    ("pairs", '{"chosen": "a", "rejected": "b", "preferences": []}', "bad-name"),
    ("openai", chat("r-9", "\ud800"), "bad-encoding"),
    ("openai", chat("r-9", logprob="x"), "bad-line"),
    ("openai", '{"custom_id": "9", "body": {"messages": []}}', "bad-line"),
    ("openai", '{"custom_id": "9", "response": {"body": {"object": "response"}}}', "bad-line"),
    ("openai", chat("r-9", delta={"content": "a"}, message=None), "not-supported"),
    ("arena", SAMPLES["arena"].line("a").replace('"model_a",', '"Z",'), "bad-line"),
    ("arena", '{"id": 9, "model_a": "X", "model_b": "Y", "winner": "X"}', "missing-column"),
    ("arena", '{"id": 9, "model_a": "X", "winner": "tie", "response_a": "a"}', "missing-column"),
]
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


@NOTES
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.usefixtures("small_blocks")
def test_all_ways_to_read(name: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = SAMPLES[name].lines()
    text = "".join(f"{line}\n" for line in lines)
    path = write(text.encode())
    lists = read_nbest(path, **SAMPLES[name].options)
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
        again = read_nbest(source, **SAMPLES[name].options)
        assert table_content(again) == table_content(lists)
    for chunk in (1, 2, 9):
        parts = iter_nbest(path, **SAMPLES[name].options, chunk=chunk)
        assert table_content(concatenate(parts)) == table_content(lists)


@NOTES
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("name", "bad", "code"), BAD, ids=lambda value: str(value)[:30])
def test_a_bad_line_is_named(write: Write, name: str, bad: Line, code: str) -> None:
    sample = SAMPLES[name]
    path = write(*sample.lines(), bad, sample.line("b", id=12))
    for read in (read_nbest, lambda *a, **options: list(iter_nbest(*a, chunk=1, **options))):
        with pytest.raises(DataError) as caught:
            read(path, **sample.options)
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
        read_nbest(path, **sample.options)
    assert str(caught.value).startswith(f"{path}:{len(sample.header) + 2}: ")
    with pytest.warns(BpaWarning, match="1 candidate dropped"):
        nbest = read_nbest(path, **sample.options, bad="drop")
    assert [text for text in nbest.strings if text != "z"] == ["a", "c", "d"]
    assert np.isfinite(nbest.features).all()


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


def test_a_file_without_lists(write: Write) -> None:
    contents = ["", "2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model(s)"]
    contents += ["id,text,lm", "model_a,model_b,winner"]
    empty = pa.table({"id": ["a"], "candidates": [[{"text": "u"}]]}).slice(0, 0)
    parquet.write_table(empty, file := io.BytesIO())
    for content in (*map(str.encode, contents), file.getvalue()):
        with raises(DataError, "no-data"):
            read_nbest(write(content))


@pytest.mark.parametrize(("name", "value"), [("bad", "ignore"), ("chunk", 0)])
def test_options_are_checked_at_once(name: str, value: Any) -> None:
    with raises(UsageError, "unknown-name" if name == "bad" else None, parameter=name):
        iter_nbest(["0 ||| a ||| LM0= 1"], **{name: value})


# --- input that no decoder means ------------------------------------------------------------------


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
    ids=["value", "id", "label", "total"],
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
