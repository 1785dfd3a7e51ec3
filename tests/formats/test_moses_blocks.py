"""What compiled code reads of Moses lists, and what it leaves to be read line by line."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from table_content import table_content

from bpa_ppl import read_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats import moses
from bpa_ppl.formats.moses_blocks import _number
from bpa_ppl.formats.moses_lines import LineParser, Row

WORDS = ["un", "café", "noir", "a", ",", "|", "||", "x=", "", "\u00a0", "日本", "0-0"]
VALUES = ["0", "-0", "-1.76181", "3", "-100", "1e-05", "-2.5E3", "0.1", "12345678.9", "1e+02"]
#: Tokens of fields beside the text, the features and the total.
TOKENS = {
    "segmentation": ["0-2=0-2", "3=3", "8=7", "10-11=0"],
    "alignment": ["0-0", "12-3", "1-2"],
    "soft": ["0.5,0.5", "1e-05,1", "1"],
    "scores": ["-0.5", "x", "1e400"],
    "tree": ["(S", "x=1", "a)", "3"],
}
ALIGNED = "{start} |||{alignment} ||| {features} ||| {value}"
#: The format, whether values are glued to their labels, and one line.
KINDS = {
    "a total": ("moses", False, "{start} ||| {features} ||| {value}"),
    "glued": ("moses", True, "{start} ||| {features} ||| {value}"),
    "no total": ("moses", False, "{start} ||| {features}"),
    "a total first": ("moses", False, "{start} ||| {value} ||| {features}"),
    "positions": (
        "moses",
        False,
        "{start} ||| {features} ||| {value} |||{segmentation} |||{alignment}",
    ),
    "an alignment": ("marian", True, ALIGNED),
    "a soft alignment": ("marian", False, ALIGNED.replace("alignment", "soft")),
    "a tree": ("moses", False, "{start} ||| {features} ||| {value} ||| ({tree}"),
    "word scores between": ("marian", False, "{start} ||| {words} ||| {features} ||| {value}"),
    "sparse, score first": ("travatar", True, "{start} ||| {value} ||| {features}"),
    "sparse": ("cdec", True, "{start} ||| {features} ||| {value}"),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
QUIET = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


@contextmanager
def compiled_from(blocks: int) -> Iterator[list[int]]:
    """Use compiled code after some blocks; provide the numbers of the lines that it leaves."""
    left: list[int] = []
    row = LineParser._row

    def recorded(self: LineParser, line: bytes, number: int) -> Row:
        left.append(number)
        return row(self, line, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LineParser, "_row", recorded)
        patch.setattr(moses, "_PLAIN_BLOCKS", blocks)
        yield left


def compiled(lines: list[bytes], name: str = "moses") -> list[int]:
    """Check that compiled code reads the same; return the numbers of the lines that it leaves."""
    with compiled_from(0) as left:
        fast = read_nbest(lines, format=name)
    with compiled_from(10):
        assert table_content(read_nbest(lines, format=name)) == table_content(fast)
    return left[: len(lines)]


def printed(rng: random.Random, kind: str) -> tuple[str, list[bytes]]:
    """Return the format and the lines of a random file."""
    name, glued, line = KINDS[kind]
    sparse = name in ("travatar", "cdec")
    shape = [("LM0", 1), ("TM0", 1 if sparse else rng.randint(1, 3)), ("été", 1)]
    lines = []
    for i in range(rng.randint(2, 12)):
        groups = [
            f"{label}={'' if glued else ' '}{' '.join(rng.choice(VALUES) for _ in range(count))}"
            for label, count in shape
        ]
        if sparse and i:
            groups = rng.sample(groups, rng.randint(1, 3))
        others = {  # the first line shows what each field is
            field: "".join(f" {rng.choice(tokens)}" for _ in range(rng.randint(i == 0, 3)))
            + rng.choice([" ", "  ", ""])
            for field, tokens in TOKENS.items()
        }
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 3)))
        parts = {
            "start": f"{i // 3} ||| {text}",
            "features": " ".join(groups),
            "value": rng.choice(VALUES),
            "words": f"WordScores={others['scores']}",
            **others,
        }
        lines.append(line.format_map(parts).encode())
    return name, lines


@QUIET
@EVERY_KIND
def test_usual_lines_are_compiled(kind: str) -> None:
    for seed in range(10):
        name, lines = printed(random.Random(seed), kind)
        assert compiled(lines, name) == []


@QUIET
@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| b ||| LM0= 1 ||| 2 ||| 3=3",
        b"0 ||| a ||| LM0= 0.12345678901234567890 ||| 2 ||| 3=3",
        b" 0 ||| \xc3\xa9 ||| LM0= 1 ||| 2 ||| 3=3",
        b"0 ||| ||| ||| LM0= 1 ||| 2 ||| 3=3",
    ],
)
def test_only_the_odd_line_is_left(line: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    lines = [good, good, line, good.replace(b" a ", b"  "), good.replace(b"= 1", b"=  7 ") + b"\r"]
    assert compiled(lines) == [3]


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| LM0= nan ||| 2 ||| 3=3",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3x",
        b"0 ||| a ||| LM0= 1",
        b"0 ||| \xff ||| LM0= 1 ||| 2 ||| 3=3",
        b"1234567890123456789 ||| a ||| LM0= 1 ||| 2 ||| 3=3",
        b"",
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    with compiled_from(0), pytest.raises(DataError) as caught:
        read_nbest([good, good, line, good, line])
    assert caught.value.line == 3


@QUIET
def test_a_later_field_that_looks_like_a_total_is_an_error() -> None:
    with compiled_from(0), pytest.raises(DataError, match="a total score, but"):
        read_nbest([b"0 ||| a ||| LM0= 1 ||| 1:2", b"0 ||| b ||| LM0= 1 ||| 2.5"])


@njit(nogil=True)
def first_number(data: np.ndarray) -> tuple[float, int]:
    return _number(data, 0)


def number(text: str) -> tuple[float, int]:
    value, end = first_number(np.frombuffer(f"{text} \n".encode(), dtype=np.uint8))
    return float(value), int(end)


@settings(max_examples=40, deadline=None)
@given(
    text=st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.floats(width=32, allow_nan=False, allow_infinity=False).map(
            lambda v: str(np.float32(v))
        ),
        st.decimals(-1000, 1000, places=5).map(str),
        st.from_regex(r"-?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{0,3})?", fullmatch=True),
    )
)
def test_numbers_are_those_that_python_reads_to_32_bits(text: str) -> None:
    value, end = number(text)
    if end == len(text):
        assert np.float32(value).tobytes() == np.float32(float(text)).tobytes()
    else:
        assert end < 0


# Next to 1 + 2^-24, between two 32-bit floats, which may be rounded either way.
BETWEEN = "1.00000005960464477"
USUAL = ["0", "-0", "-3.98253", "3.5e-05", "1e22", "1e30", "-0.12345678901234567", "+1", "5.", ".5"]
UNUSUAL = ["", "-", ".", "e5", "1e", "1e39", "1e-70", "0.1234567890123456789", "nan", BETWEEN]


def test_usual_numbers_are_read_and_others_are_given_up() -> None:
    for text in USUAL:
        value, end = number(text)
        assert (np.float32(value), end) == (np.float32(float(text)), len(text))
    assert all(number(text)[1] < 0 for text in UNUSUAL)


def test_texts_of_one_hash_slot_are_distinguished() -> None:
    with compiled_from(0) as left:
        lists = read_nbest([f"0 ||| t{i % 700} ||| LM0= 1 ||| 2" for i in range(1000)])
    assert left == []
    assert lists.strings == tuple(f"t{i}" for i in range(700))
    assert lists.string_index.tolist() == [i % 700 for i in range(1000)]


def test_both_read_the_real_lists_alike(demo_data: Path) -> None:
    path = demo_data / "leaflet.nbest100.gz"
    with compiled_from(1) as left:
        fast = read_nbest(path)
    assert left == []
    with compiled_from(10**9):
        assert table_content(read_nbest(path)) == table_content(fast)
