"""What Arrow reads of Moses lists, and what it leaves to be read line by line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises
from support.table_content import table_content

from bpa_ppl import BpaWarning, DataError, read_nbest
from bpa_ppl.formats import moses_blocks
from bpa_ppl.formats.block import ReadOptions
from bpa_ppl.formats.moses_blocks import LineParser, parse_block

TEXTS = ["un café noir", "", "a | || x=", "日本 \u00a0", " 0-0 ,"]
VALUES = ["-0", "-1.76181", "1e-05", "-2.5E3", "12345678.9"]
#: The format, and a line with a text and a value.
LINES = [
    ("moses", "0 ||| {text} ||| LM0= {value} TM0= 2 {value} été= 1 ||| {value}"),
    ("moses", "0 ||| {text} ||| LM0={value} TM0=2 {value} ||| {value}"),
    ("moses", "0 ||| {text} ||| LM0= {value}"),
    ("moses", "0 ||| {text} ||| LM0= {value} ||| 1 ||| 0-2=0-2 10-11=0 ||| 0-0  12-3 "),
    ("moses", "0 ||| {text} ||| LM0= {value} ||| 1 ||| (S x=1 a)"),
    ("marian", "0 ||| {text} ||| 0-0 1-2 ||| F0={value} ||| 1"),
    ("marian", "0 ||| {text} ||| 0.5,0.5 1e-05,1 ||| F0= {value} ||| 1"),
    ("marian", "0 ||| {text} ||| WordScores= -0.5 x 1e400 ||| F0= {value} ||| 1"),
]


@contextmanager
def read_by_arrow() -> Iterator[list[int]]:
    """Use Arrow for blocks of any size; provide the numbers of the lines that it leaves."""
    left: list[int] = []
    row = LineParser._row

    def recorded(self: LineParser, line: bytes, number: int) -> Any:
        left.append(number)
        return row(self, line, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LineParser, "_row", recorded)
        patch.setattr(moses_blocks, "_ARROW_FROM", 0)
        yield left


def left_by_arrow(lines: list[bytes], name: str = "moses") -> list[int]:
    """Check that Arrow reads the same; return the numbers of the lines that it leaves."""
    with read_by_arrow() as left:
        fast = read_nbest(lines, format=name)
    assert table_content(read_nbest(lines, format=name)) == table_content(fast)
    return left


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(("name", "line"), LINES)
def test_usual_lines_are_read_by_arrow(name: str, line: str) -> None:
    pairs = zip(TEXTS, VALUES, strict=True)
    lines = [line.format(text=text, value=value).encode() for text, value in pairs]
    assert left_by_arrow(lines, name) == []


def test_odd_lines_that_arrow_reads() -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    odd = [(b" a ", b" a ||| b "), (b" a ", b" ||| a ||| "), (b" a ", b"  "), (b" a ", b" a\rb ")]
    lines = [good, *(good.replace(*pair) for pair in odd), good.replace(b"= 1", b"=  7 ") + b"\r"]
    assert left_by_arrow(lines) == []


@pytest.mark.parametrize(
    "odd",
    [
        b"0 ||| a ||| LM0= 1 ||| 2 ||| x ||| y",  # fields that are left out
        b"0 ||| a ||| LM0= 1 WordScores= 2 3 ||| 2 ||| x",
    ],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_a_block_with_another_odd_line_is_left(odd: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| x"
    assert left_by_arrow([good, odd, good]) == [1, 2, 3]


def test_arrow_leaves_an_alignment_at_the_end_of_a_text_to_the_message() -> None:
    lines = [b"0 ||| a ||| LM0= 1 ||| 2", b"0 ||| a ||| 0-0 ||| LM0= 1 ||| 2"]
    with read_by_arrow(), raises(DataError, "bad-line", line=2, match="an alignment"):
        read_nbest(lines, format="moses")


def test_arrow_drops_what_is_not_finite() -> None:
    values = [b"1", b"nan", b"1e99", b"-inf", b"2"]
    lines = [b"0 ||| a ||| LM0= %s ||| 2" % value for value in values]
    with read_by_arrow() as left, pytest.warns(BpaWarning, match="dropped|left out"):
        nbest = read_nbest(lines, format="moses", bad="drop")
    assert (left, nbest.features[:, 0].tolist()) == ([], [1.0, 2.0])


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(
        st.one_of(
            st.floats(width=32, allow_nan=False, allow_infinity=False).map(
                lambda v: str(np.float32(v))
            ),
            st.decimals(-1000, 1000, places=5).map(str),
            st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9])?", fullmatch=True),
        ),
        min_size=1,
    )
)
def test_numbers_are_exact_to_32_bits(texts: list[str]) -> None:
    lines = [f"0 ||| a ||| LM0= {text}".encode() for text in texts]
    with read_by_arrow() as left:
        values = read_nbest(lines).features[:, 0]
    assert left == []
    assert values.tobytes() == np.array(list(map(float, texts)), np.float32).tobytes()


def test_both_read_the_real_lists_alike(demo_data: Path) -> None:
    with gzip.open(demo_data / "leaflet.nbest100.gz") as file:
        assert left_by_arrow(file.read().splitlines()) == []


def test_messages_name_the_lines_of_later_blocks() -> None:
    usual = "{} ||| a cat {} ||| LM0= -1.5 ||| -1.5"
    lines = [usual.format(s, k).encode() for s in (*range(4), 1) for k in range(5)]
    lines[12] = lines[12].replace(b"-1.5 |||", b"-1.5e0 |||")  # left to the other reader
    with read_by_arrow(), raises(DataError, line=21):
        read_nbest(lines, format="moses")


@pytest.mark.parametrize("before", [b"\t", b"\xef\xbb\xbf"])
def test_what_arrow_would_skip_before_a_label_is_left_to_the_line_parser(before: bytes) -> None:
    lines = b"0 ||| a ||| LM0= -1 ||| -1\n"
    parser = LineParser(ReadOptions("dev"), lines)
    with pytest.raises(ValueError, match=r"byte-order mark|CSV conversion error"):
        parse_block(lines.replace(b"LM0", before + b"LM0"), 2, parser)
