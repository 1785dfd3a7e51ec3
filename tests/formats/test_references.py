from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import read_nbest, read_posterior, read_references, write_weights
from bpa_ppl.errors import DataError, UsageError

Write = Callable[..., Path]


def test_one_file(write: Write) -> None:
    path = write("a cat ", "", "un café", name="ref")
    assert read_references(path) == [("a cat",), ("",), ("un café",)]
    assert read_references(str(path)) == read_references([path])


def test_several_files_compressed_or_not(write: Write) -> None:
    files = [write("a", "b", name="0"), write(gzip.compress(b"A\r\nB\r\n"), name="1")]
    assert read_references(files) == [("a", "A"), ("b", "B")]


def test_different_line_counts_are_told(write: Write) -> None:
    files = [write("a", "b", name="ref0"), write("a", "b", "c", name="ref1")]
    with raises(DataError, "wrong-length"):
        read_references(files)


def test_no_references(write: Write, tmp_path: Path) -> None:
    with raises(DataError, "no-data"):
        read_references(write(name="ref"))
    with raises(DataError, "missing-file"):
        read_references(tmp_path / "ref9")
    with raises(UsageError, "no-data", parameter="paths"):
        read_references([])


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 5000])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with raises(DataError, "cannot-read"):
        read_references(name)
    with raises(DataError, "cannot-write"):
        write_weights({"LM0": 1.0}, tmp_path / name, format="json")
    with raises(DataError, "missing-file"):
        read_posterior(name)
    lists = tmp_path / "lists"
    lists.write_text("0 ||| a ||| LM0= 1 ||| 1\n")
    with raises(UsageError, "missing-file", parameter="references"):
        read_nbest(lists, references=[name])


@pytest.mark.parametrize("references", [1.5, {"a"}, np.zeros(())])
def test_references_of_another_type(write: Write, references: Any) -> None:
    lists = write("0 ||| a ||| LM0= 1 ||| 1", name="lists")
    with raises(UsageError, "wrong-type", parameter="references"):
        read_nbest(lists, references=references)


def test_a_line_that_is_not_utf8(write: Write) -> None:
    with raises(DataError, "bad-encoding", line=2):
        read_references(write("a", b"caf\xe9\n", name="ref"))


def test_real_references(demo_data: Path) -> None:
    references = read_references(demo_data / "leaflet.ref")
    assert len(references) == 240
    assert references[3] == ("the leaflet has been updated since your last prescription .",)
