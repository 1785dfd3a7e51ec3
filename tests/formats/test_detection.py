"""Which format a file is in, and what is said about one that is in none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import read_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.reading import find_nearest_format

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("0 ||| a ||| F0= -1 F1= -2 ||| -3", "marian"),
        ("0 ||| a ||| 0-0 ||| F0= -1 ||| -3\r", "marian"),
        ("0 ||| a ||| F1= -1 F0= -2 ||| -3", "moses"),
        (f"0 ||| a ||| F{'1' * 5000}= -1 ||| -3", "moses"),
        ("0 ||| a ||| Glue=1 ||| -1 ||| 0-0", "moses"),
        ("a-1 -1 THE CAT", "kaldi"),
        ('{"choices": []}', "openai"),
        ('{"object": "response", "output": []}', "openai"),
        ('{"custom_id": "1", "error": {}}', "openai"),
        ('{"custom_id": "1", "body": {"messages": []}}', "openai"),
        ('{"a": ' * 9999, None),
        ('{"id": 1, "text": "a"}', "jsonl"),
        ('{"chosen": "a", "rejected": "b"}', "jsonl"),
        ("id\tmodel_a\tmodel_b\twinner", "tsv"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_first_line_shows_the_format(line: str, name: str | None) -> None:
    detects = (n for n, kind in NBEST_FORMATS.items() if kind().detect(line.encode()))
    assert next(detects, None) == name


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"PK\x03\x04\x14\x06[Content_Types].xml", "Excel"),
        ("id\ttext\n".encode("utf-16"), "UTF-16"),
        (b"id,text,lm\r0,a,1\r", "carriage returns alone"),
        (b"\r\nid,text,lm\r\n0,a,1\r\n", "blank"),
        (b"{'id': 0, 'candidates': [{'text': 'a'}]}\n", "json.dumps"),
    ],
)
def test_files_that_no_format_reads_are_named(write: Write, content: bytes, named: str) -> None:
    with raises(DataError, "unknown-format", line=1, match=named):
        read_nbest(write(content))


@pytest.mark.parametrize(
    ("name", "first", "nearest", "named"),
    [
        ("a.csv", b"segment,text,lm", "csv", "id"),
        ("a.txt", b"id\thypothesis\tlm", "tsv", "text"),
        ("a.jsonl", b'{"model": "m", "hypotheses": ["a"]}', "jsonl", "candidates"),
        ("a.jsonl", b'{"custom_id": "1", "output": []}', "openai", "response"),
        ("a.jsonl", b'data: {"choices": [{"delta": {}}]}', "openai", "stream"),
        ("a.json", b"{", "jsonl", "jq -c ."),
        ("a.json", b'[{"id": 0, "candidates": []}]', "jsonl", "jq -c '.[]'"),
        ("words", b"utt-1 a cat", "kaldi", "no scores"),
        ("a.nbest", b"0 | a cat | LM0= -1 | -1", "moses", "` ||| `"),
        ("a.txt", b"a cat sat, at last.", "plain", "list_size"),
    ],
)
def test_the_nearest_format_of_an_unknown_file_is_named(
    tmp_path: Path, name: str, first: bytes, nearest: str, named: str
) -> None:
    found, problem = find_nearest_format(first, Path(name).suffix)
    assert found == nearest
    assert named in problem.partition("(")[0]
    path = tmp_path / name
    path.write_bytes(first + b"\n")
    with raises(DataError, "unknown-format", parameter="format", line=1, match=re.escape(problem)):
        read_nbest(path)


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("fairseq", "2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model(s)"),
        ("csv", "id,text,lm"),
        ("csv", "model_a,model_b,winner"),
    ],
)
def test_a_file_without_lists(write: Write, format: str, content: str) -> None:
    with raises(DataError, "no-data"):
        read_nbest(write(content), format=format)
