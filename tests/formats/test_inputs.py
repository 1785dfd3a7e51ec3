"""What lists are read from: paths, open files, bytes and lines."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from raising import raises

from bpa_ppl import DataError, UsageError, iter_nbest, read_nbest, read_weights

TEXTS = {
    "moses": "0 ||| a cat ||| LM0= -1.5 ||| -1\n0 ||| the cat ||| LM0= -1 ||| -1\n",
    "jsonl": '{"id": 0, "candidates": [{"text": "a cat", "lm": 1}, {"text": "é", "lm": 2}]}\n',
    "csv": "id,text,lm\n0,a cat,1\n0,the cat,2\n",
}
INPUTS: dict[str, Callable[[str], Any]] = {
    "StringIO": io.StringIO,
    "BytesIO": lambda text: io.BytesIO(text.encode()),
    "bytes": str.encode,
    "gzip bytes": lambda text: gzip.compress(text.encode()),
    "gzip file": lambda text: io.BytesIO(gzip.compress(text.encode())),
    "lines": lambda text: text.splitlines(),
    "lines with ends": lambda text: iter(text.splitlines(keepends=True)),
    "lines of bytes": lambda text: (line.encode() for line in text.splitlines()),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("source", INPUTS.values(), ids=INPUTS)
def test_all_inputs_give_the_lists_of_the_file(
    source: Callable[[str], Any], text: str, tmp_path: Path
) -> None:
    (tmp_path / "lists").write_text(text, "utf-8")
    expected = read_nbest(tmp_path / "lists")
    for lists in (read_nbest(source(text)), *iter_nbest(source(text))):
        assert lists.texts(0) == expected.texts(0)
        assert lists.features.tobytes() == expected.features.tobytes()


def test_open_files_and_parquet(tmp_path: Path) -> None:
    path = tmp_path / "lists.nbest"
    path.write_text(TEXTS["moses"], "utf-8")
    with path.open(encoding="utf-8") as text, path.open("rb") as binary:
        assert read_nbest(text).texts(0) == read_nbest(binary).texts(0) == ["a cat", "the cat"]
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [1.0, 2.0]}), buffer)
    assert read_nbest(buffer.getvalue()).texts(0) == ["a", "b"]


def test_errors_name_the_input() -> None:
    for source, name in ((io.StringIO("0 ||| a\n"), "<file object>"), (["0 ||| a"], "<lines>")):
        with raises(DataError, "bad-line", line=1, match=name):
            read_nbest(source, format="moses")
    with raises(DataError, "no-data"):
        read_nbest([])
    with raises(DataError, "bad-encoding", line=1):
        read_nbest(["0 ||| \ud800 ||| LM0= 1"])


@pytest.mark.parametrize("source", [None, 3, [3], [None]])
def test_other_types_are_errors(source: Any) -> None:
    with raises(UsageError, "wrong-type", parameter="path"):
        read_nbest(source)


def test_weights_are_read_from_memory() -> None:
    assert read_weights(io.StringIO("LM0= 0.5\n")) == {"LM0": 0.5}
    assert read_weights(b"LM0= 0.5") == read_weights(["LM0= 0.5"]) == {"LM0": 0.5}
