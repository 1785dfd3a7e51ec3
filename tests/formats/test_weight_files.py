from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import NBest, from_lists, read_weights, write_weights
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.extending import match

INI = f"""\
# my system
[input-factors]
0

[feature]
KENLM name=LM0 order=5  # LM0= 3
[weight]{" "}
# tuned on Monday
LM0= 0.5
  TM0=   0.10  2 -3e-1\t# four, once
Unknown0= 1.000

[threads]
4"""


# --- reading --------------------------------------------------------------------------------------


def test_moses_ini(write: Write) -> None:
    weights = read_weights(write(INI.encode(), name="moses.ini"))
    expected = {"LM0": 0.5, "TM0[0]": 0.1, "TM0[1]": 2.0, "TM0[2]": -0.3, "Unknown0": 1.0}
    assert dict(weights) == expected
    assert weights.origin.endswith("moses.ini")
    assert weights == read_weights(io.StringIO(INI)) == read_weights(INI.split("\n"))


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("LM0= 0.5\nTM0= 1 -2e-3\n", {"LM0": 0.5, "TM0[0]": 1.0, "TM0[1]": -0.002}),
        ("LM0 0.5\nTM0[1]\t1\n", {"LM0": 0.5, "TM0[1]": 1.0}),
        ("# tuned\n\nLM0=0.5 # good\r\n", {"LM0": 0.5}),
        ('{"LM0": 0.5, "TM0": [1, -2e-3]}', {"LM0": 0.5, "TM0[0]": 1.0, "TM0[1]": -0.002}),
        (' \n{"été": 1}', {"été": 1.0}),
    ],
)
def test_other_formats(write: Write, content: str, values: dict[str, float]) -> None:
    assert dict(read_weights(write(content.encode(), name="w"))) == values


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ("[feature]\nDistortion\n", "no-data", None),
        ("[weight]\nLM0= one", "bad-number", 2),
        ("[weight]\nLM0=", "bad-line", 2),
        ("LM0= 1\nTM0 inf", "bad-number", 2),
        ("LM0 1\nLM0 2", "duplicate", None),
        (b"LM0 1\n\xff 2", "bad-encoding", 2),
        ('{"LM0": 1,\n7}', "bad-line", 2),
        ('{"LM0": 1,\n"TM0": "2"}', "bad-number", 2),
        ('{"LM0": true}', "bad-number", 1),
        ('{\n"LM0": 1e999}', "bad-number", 2),
        ('{"LM0": 1,\n"LM0": 2}', "duplicate", None),
        ('{"\\ud800": 1}', "bad-encoding", None),
        ("[1, [2]]", "bad-number", None),
        ("[" * 100_000, "bad-line", 1),
        ("0.5\n1", "bad-line", 1),
        ("LM0: 0.5", "bad-line", 1),
    ],
)
def test_bad_files(write: Write, content: str | bytes, code: str, line: int | None) -> None:
    data = content.encode() if isinstance(content, str) else content
    with raises(DataError, code, line=line):
        read_weights(write(data, name="w"))


def test_a_list_of_numbers_is_in_the_order_of_columns(write: Write, toy: NBest) -> None:
    bare = read_weights(write("[0.5, -1e-3, 2]", name="w"))
    assert match(bare, toy).values.tolist() == [0.5, -0.001, 2.0]
    with pytest.raises(DataError, match=r"w: 3 weights without names, but 2 features.*LM0, TM0"):
        match(bare, toy.without("TM0[1]"))


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.json", '{\n  "LM0": 0.5,\n  "TM0[0]": 1.0,\n  "TM0[1]": -2.0\n}\n'),
        ("moses.ini", "[weight]\nLM0= 0.5\nTM0= 1 -2\n"),
        ("w", "LM0= 0.5\nTM0= 1 -2\n"),
    ],
)
def test_the_suffix_says_the_format(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    write_weights({"LM0": 0.5, "TM0[0]": 1, "TM0[1]": -2}, path)
    assert path.read_text() == content
    values = [0.1, 1 / 3, -1e30, 5e-324, -0.0, 2**53 + 1.0]
    write_weights({f"TM0[{place}]": value for place, value in enumerate(values)}, path)
    again = dict(read_weights(path)).values()
    assert [value.hex() for value in again] == [value.hex() for value in values]


def test_unknown_formats_and_unwritable_files(tmp_path: Path) -> None:
    with raises(UsageError, "unknown-name", parameter="format"):
        write_weights({"LM0": 1}, tmp_path / "w", format="xml")
    with raises(UsageError, "unknown-format", parameter="format"):
        write_weights({"LM0": 1}, tmp_path / "w.xml")
    with raises(DataError, "bad-name"):
        write_weights({"system=A": 1}, tmp_path / "w.txt")
    with raises(DataError, "cannot-write"):
        write_weights({"LM0": 1}, tmp_path / "none" / "w")
    assert os.listdir(tmp_path) == []


# --- templates ------------------------------------------------------------------------------------


def test_only_the_numbers_that_change_are_replaced(write: Write) -> None:
    template = write(INI.encode(), name="moses.ini")
    out = template.with_name("new.ini")
    write_weights({"LM0": 0.5, "TM0[0]": 0.1, "TM0[2]": 1 / 3}, out, template=template)
    assert out.read_bytes() == INI.replace("-3e-1", "0.3333333333333333").encode()


def test_line_ends_and_labels_stay(write: Write) -> None:
    for text in (b"[weight]\r\nLM0= 0.5\r\n", b"[weight]\nLM0 0.5"):
        path = write(text, name="moses.ini")
        write_weights({"LM0": 9}, path, template=path)
        assert path.read_bytes() == text.replace(b"0.5", b"9")


def test_a_feature_that_it_does_not_weigh(write: Write) -> None:
    template = write(INI.encode(), name="moses.ini")
    with raises(DataError, "missing-weight"):
        write_weights({"LM0": 1, "New0": 1}, template.with_name("o"), template=template)
    assert os.listdir(template.parent) == ["moses.ini"]


def test_any_name_of_a_feature_is_read_as_it_was_written(tmp_path: Path) -> None:
    names = ["a: b", "#", '"', "'", "\\", '\\"', "{a}", "[0]x", "null", "a" * 1000, "a b", "="]
    names += ["\ufeff", "\u00a0", "é", "😀"]
    from_lists([["a"]], [[range(len(names))]], names)
    weights = {name: float(i) for i, name in enumerate(names)}
    write_weights(weights, tmp_path / "weights", format="json")
    assert dict(read_weights(tmp_path / "weights")) == weights
