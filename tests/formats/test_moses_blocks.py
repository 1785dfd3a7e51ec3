"""The compiled parser against the one that reads line by line: same rows, or the same error."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from bpa_ppl import read_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats import moses
from bpa_ppl.formats.base import ReadOptions, Rows
from bpa_ppl.formats.block_fields import number_at, numbers
from bpa_ppl.formats.moses_blocks import BlockParser
from bpa_ppl.formats.moses_lines import LineParser

NEVER = 10**9
WORDS = ["un", "café", "noir", "a", ",", "|", "||", "x=", "", "\u00a0", "日本", "0-0"]
VALUES = ["0", "-0", "-1.76181", "3", "-100", "1e-05", "-2.5E3", "0.1", "12345678.9", "1e+02"]
HARD = ["1e30", "0.12345678901234567890", "+1", ".5", "5.", "1e400", "nan", "1_0", "--1", "1e", ""]
SEGMENTED = ["0-2=0-2", "3=3", "8=7", "10-11=0"]
ALIGNED = ["0-0", "12-3", "1-2"]
SPICE = b"0123456789.-+eE|= \t\n\r_x\xc3\xa9\xff"
#: What is put into a file where chance says so: whole tokens find other faults than single bytes.
TOKENS = [b" ||| ", b"|||", b"LM0=", b" LM0= 1", b"  ", b"\n", b" ||| 0-0 1-1", b" ||| -1", b"nan"]


def outcome(blocks: list[bytes], plain_blocks: int, **options: Any) -> list[Any]:
    """Return the rows, the warnings and the error that reading gives, as they can be compared."""
    result: list[Any] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        patch.setattr(moses, "_PLAIN_BLOCKS", plain_blocks)
        try:
            for rows in moses.Moses().parse(blocks, ReadOptions("dev", **options)):
                result.append(comparable(rows))
        except DataError as error:
            result.append(str(error))
    return [*result, *(str(warning.message) for warning in caught)]


def comparable(rows: Rows) -> list[Any]:
    """Return all that rows hold, arrays by type and bits."""
    return [
        (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        for value in (list(part) if isinstance(part, tuple) else part for part in rows)
    ]


def assert_agree(lines: list[bytes], **options: Any) -> None:
    blocks = [lines[0] + b"\n", b"\n".join(lines[1:]) + b"\n"]
    assert outcome(blocks, 1, **options) == outcome(blocks, NEVER, **options)


def compiled(lines: list[bytes]) -> Rows | None:
    """Return what the compiled parser says to lines that are as the first one."""
    plain = LineParser(ReadOptions("dev"))
    plain.rows(lines[0] + b"\n", 1)
    assert plain.layout is not None
    return BlockParser(plain.layout).rows(b"\n".join(lines) + b"\n", 1)


def positions(rng: random.Random, tokens: list[str], line: int) -> str:
    """Return a field of positions, with the spaces before and after it; the first is not empty."""
    count = rng.randint(line == 0, 3)
    return "".join(f" {rng.choice(tokens)}" for _ in range(count)) + rng.choice([" ", "  ", ""])


def printed(rng: random.Random, total: str, glued: bool, hard: bool) -> list[bytes]:
    """Return the lines of a random file that is as it should be, or has unusual numbers."""
    shape = [("LM0", 1), ("TM0", rng.randint(1, 3)), ("été", 1)]
    both = rng.random() < 0.5
    values = VALUES + HARD if hard else VALUES
    lines = []
    for i in range(rng.randint(2, 12)):
        labels = " ".join(
            f"{label}={'' if glued else ' '}{' '.join(rng.choice(values) for _ in range(count))}"
            for label, count in shape
        )
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 3)))
        tail = ""
        if total != "none":
            tail = f" ||| {rng.choice(values)}"
        if total == "segmented":
            tail += f" |||{positions(rng, SEGMENTED, i)}"
        if total == "segmented" and both:
            tail += f" |||{positions(rng, ALIGNED, i)}"
        between = f" |||{positions(rng, ALIGNED, i)}" if total == "between" else ""
        lines.append(f"{i // 3} ||| {text}{between} ||| {labels}{tail}".encode())
    return lines


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return data with up to three small faults in it."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        new = rng.choice(TOKENS) if rng.random() < 0.5 else bytes([rng.choice(SPICE)])
        data = data[:at] + (new if rng.random() < 0.7 else b"") + data[at + rng.randint(0, 4) :]
    return data


KINDS = pytest.mark.parametrize(
    ("total", "glued"),
    [
        ("after", False),
        ("segmented", False),
        ("between", False),
        ("none", False),
        ("after", True),
        ("none", True),
    ],
)


@KINDS
@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_read_the_same(total: str, glued: bool, seed: int) -> None:
    assert_agree(printed(random.Random(seed), total, glued, hard=True))


@KINDS
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), drop=st.booleans(), strict=st.booleans())
def test_both_say_the_same_about_faults(
    total: str, glued: bool, seed: int, drop: bool, strict: bool
) -> None:
    rng = random.Random(seed)
    first, *rest = printed(rng, total, glued, hard=False)
    lines = [first, *mutated(b"\n".join(rest), rng).split(b"\n")]
    assert_agree(lines, bad="drop" if drop else "error", strict=strict)


@KINDS
def test_usual_files_are_not_given_up(total: str, glued: bool) -> None:
    for seed in range(20):
        lines = printed(random.Random(seed), total, glued, hard=False)
        assert compiled(lines) is not None


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| b ||| LM0= 1 ||| 2",
        b"0 ||| a |||  LM0= 1 ||| 2",
        b"0 ||| a ||| LM0= 1  ||| 2",
        b"0 ||| a ||| LM0=1 ||| 2",
        b"0 ||| a ||| LM0= 1 ||| 2\r",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| x",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 |||3=3",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3x",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 1-2-3=3",
        b"0 ||| a ||| LM0= 1",
        b"0 ||| \xff ||| LM0= 1 ||| 2",
        b"1234567890123456789 ||| a ||| LM0= 1 ||| 2",
        b" ||| a ||| LM0= 1 ||| 2",
        b"",
    ],
)
def test_anything_unusual_gives_the_block_up(line: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    assert compiled([good, good]) is not None
    assert compiled([good, line]) is None


def test_fields_of_positions_are_kept() -> None:
    lines = [
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-1=0  2=1-2 ||| 0-0 1-0 ",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| ||| ",
        b"0 ||| a ||| LM0= 1 ||| 2 |||  0=0 ||| ",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| ||| 1-1",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| |||",
    ]
    rows = compiled(lines)
    assert rows is not None
    assert rows.extras == {
        "segmentation": ["0-1=0  2=1-2", "", "0=0", "", ""],
        "alignment": ["0-0 1-0", "", "", "1-1", ""],
    }
    assert_agree(lines)


def test_irregular_columns_are_left_to_the_other_parser() -> None:
    with pytest.warns(BpaWarning, match="between"):
        assert compiled([b"0 ||| a ||| WordScores= -1 ||| LM0= 1 ||| 2"]) is None
    with pytest.warns(BpaWarning, match="after"):
        assert compiled([b"0 ||| a ||| LM0= 1 ||| 2 ||| x"]) is None
    assert compiled([b"0 ||| a ||| 2 ||| LM0= 1"]) is None


@njit(nogil=True)
def first_number(data: np.ndarray) -> tuple[float, int]:
    return number_at(data, 0)


def number(text: str) -> tuple[float, int]:
    value, end = first_number(np.frombuffer(f"{text} \n".encode(), dtype=np.uint8))
    return float(value), int(end)


@settings(max_examples=150, deadline=None)
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
def test_numbers_are_those_that_python_reads(text: str) -> None:
    value, end = number(text)
    if end == len(text):
        assert value.hex() == float(text).hex()
    else:
        assert end < 0


@settings(max_examples=80, deadline=None)
@given(printed=st.lists(st.sampled_from([*VALUES, *HARD, "1\n2", "2 3"])))
def test_many_numbers_are_those_that_python_reads(printed: list[str]) -> None:
    values = numbers(" ".join(printed).encode(), len(printed))
    if values is not None:
        assert values.tobytes() == np.array(list(map(float, printed))).tobytes()
    else:
        assert not set(printed) <= set(VALUES)


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "-3.98253", "3.5e-05", "1e22", "1e-22", "9007199254740992", "007", "5.", ".5"],
)
def test_usual_numbers_are_read(text: str) -> None:
    value, end = number(text)
    assert (value.hex(), end) == (float(text).hex(), len(text))


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1e", "1e23", "1e-23", "9007199254740993", "nan", "+1", "x"]
)
def test_unusual_numbers_are_given_up(text: str) -> None:
    assert number(text)[1] < 0


def test_texts_of_one_hash_slot_are_told_apart() -> None:
    lines = [f"0 ||| t{i % 700} ||| LM0= 1 ||| 2".encode() for i in range(1000)]
    rows = compiled(lines)
    assert rows is not None
    assert list(rows.strings) == [f"t{i}" for i in range(700)]
    assert rows.string_index.tolist() == [i % 700 for i in range(1000)]


def test_both_read_the_real_lists_alike(demo_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = demo_data / "leaflet.nbest100.gz"
    calls = recorded_calls(monkeypatch)
    fast = read_nbest(path)
    assert calls
    assert all(calls)
    monkeypatch.setattr(moses, "_PLAIN_BLOCKS", NEVER)
    plain = read_nbest(path)
    assert fast.strings == plain.strings
    assert fast.string_index.tolist() == plain.string_index.tolist()
    assert fast.features.tobytes() == plain.features.tobytes()
    assert fast.offsets.tolist() == plain.offsets.tolist()


def recorded_calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which each call of the compiled parser adds whether it read its block."""
    calls: list[bool] = []
    original = BlockParser.rows

    def rows(self: BlockParser, *args: Any) -> Rows | None:
        read = original(self, *args)
        calls.append(read is not None)
        return read

    monkeypatch.setattr(BlockParser, "rows", rows)
    return calls
