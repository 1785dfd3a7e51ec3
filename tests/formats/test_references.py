from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raising import raises

from bpa_ppl import (
    BpaWarning,
    NBest,
    iter_nbest,
    read_nbest,
    read_references,
)
from bpa_ppl.errors import DataError, UsageError

Write = Callable[..., Path]


def test_files_that_are_no_references(write: Write, tmp_path: Path) -> None:
    with raises(DataError, "wrong-length"):
        read_references([write("a", "b", name="ref0"), write("a", "b", "c", name="ref1")])
    with raises(DataError, "no-data"):
        read_references(write(name="ref"))
    with raises(DataError, "missing-file"):
        read_references(tmp_path / "ref9")
    with raises(UsageError, "no-data", parameter="paths"):
        read_references([])


def test_references_of_another_type() -> None:
    with raises(UsageError, "wrong-type", parameter="references"):
        read_nbest(["0 ||| a ||| LM0= 1 ||| 1"], references=1.5)  # type: ignore[arg-type]


LINES = ["r0", "r1", "r2"]


def records(ids: list[Any]) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"t{place}", "lm": 1.0} for place, i in enumerate(ids)]


class TestPairing:
    """References belong to lists by their ids, never by chance of the order."""

    @pytest.mark.parametrize(
        ("ids", "expected", "numbers"),
        [
            ([0, 1, 2], "012", [0, 1, 2]),
            (["2", "0", "1"], "201", [2, 0, 1]),
            (["2.0", "00"], "20", [2, 0]),
            (["1", "3", "2"], "021", [0, 2, 1]),  # as many references as ids from 1
            (["7", "8", "9"], "012", [0, 1, 2]),
            (["a", "b", "c"], "012", [0, 1, 2]),
        ],
    )
    @pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
    def test_by_value(self, ids: list[Any], expected: str, numbers: list[int]) -> None:
        lists = NBest.from_records(records(ids), references=LINES, sources=LINES)
        assert lists.references == tuple((LINES[int(i)],) for i in expected)
        assert lists.sources == tuple(LINES[int(i)] for i in expected)
        assert lists.sentence_ids.tolist() == numbers
        lines = [json.dumps(record) for record in records(ids)]
        if numbers[0] == int(float(ids[0]) if str(ids[0])[0].isdigit() else 0):
            parts = iter_nbest(lines, references=[(line,) for line in LINES], chunk=1)
            assert tuple(part.references[0] for part in parts) == lists.references

    @pytest.mark.parametrize(
        ("ids", "line", "parameter"),
        [
            ([1, 2, 3], 3, "first_id"),
            (["4", "9"], 1, "references"),
            (["a", "b"], None, "references"),  # which of the three is missing?
            (["s0", "s2", "s0", "s1", "s2"], None, "references"),  # by system, one lacks s1
        ],
    )
    @pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
    def test_doubtful_order_is_refused(
        self, ids: list[Any], line: int | None, parameter: str
    ) -> None:
        with raises(DataError, parameter=parameter, line=line):
            NBest.from_records(records(ids), references=LINES)
        if isinstance(ids[0], str):
            some = NBest.from_records(records(ids), references={ids[1]: ["x", "y"]}).references
            assert some is not None
            assert some[:2] == ((), ("x", "y"))

    def test_the_order_of_texts_is_reported(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, "bpa_ppl"):
            NBest.from_records(records(["d1", "d2", "d10"]), references=LINES)
        assert "'d1' with line 1, …, 'd10' with line 3" in caplog.text
        with pytest.warns(BpaWarning, match="'d10' with line 1, …, 'd2' with line 3"):
            NBest.from_records(records(["d10", "d1", "d2"]), references=LINES)

    @pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
    def test_references_with_ids(self, write: Write) -> None:
        text = [f"{i} ||| t ||| LM0= 1 ||| 1" for i in range(4)]
        tabs = write("id\ttext", "3\td", "", "0\ta ", "3\tD", name="tabs")
        objects = write(
            '{"id": "3", "references": ["d", "D"]}', '{"id": 0, "reference": "a"}', name="j"
        )
        expected = (("a",), (), (), ("d", "D"))
        for given in (tabs, objects, {0: "a", "3": ["d", "D"]}, {0.0: ("a",), 3: ("d", "D")}):
            with pytest.warns(BpaWarning, match="no reference for 2 sentences"):
                lists = read_nbest(write(*text), references=given)
            assert lists.references == expected
        assert lists.with_references({3: ["d", "D"], 0: "a"}).references == expected
        with pytest.warns(BpaWarning, match="no list for 1 of 2 ids in the references"):
            read_nbest(text, references={9: "x", 1: "y"})

    @pytest.mark.parametrize("line", ["doc-1\ta", '{"id": 0, "text": "a"}', '{"id": 0}'])
    def test_unusable_ids(self, write: Write, line: str) -> None:
        references = write(line, name="ref")
        with pytest.raises(DataError):
            read_nbest(["0 ||| t ||| LM0= 1"], references=references)

    def test_files_with_and_without_ids(self, write: Write) -> None:
        files = [write("0\ta", name="0"), write("a", name="1")]
        with raises(DataError, "mismatch"):
            read_nbest(["0 ||| t ||| LM0= 1"], references=files)
        with raises(DataError, "mismatch"):
            read_references(files[0])
        lists = NBest.from_lists([["a"]], [[[1.0]]], ["LM0"])
        with raises(DataError, "mismatch", parameter="references"):
            lists.with_references({"x": "a"})


def test_files_compressed_or_not(write: Write) -> None:
    path = write("a cat ", "", "un café", name="ref")
    assert read_references(path) == [("a cat",), ("",), ("un café",)]
    assert read_references(str(path)) == read_references([path])
    files = [write("a", "b", name="0"), write(gzip.compress(b"A\r\nB\r\n"), name="1")]
    assert read_references(files) == [("a", "A"), ("b", "B")]
