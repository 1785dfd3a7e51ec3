"""The compiled parser against the one that reads line by line: same rows, or the same error."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from table_content import bits, table_content

from bpa_ppl import read_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats import moses
from bpa_ppl.formats.base import ReadOptions, Rows
from bpa_ppl.formats.moses_blocks import _number
from bpa_ppl.formats.moses_lines import LineParser
from bpa_ppl.registry import NBEST_FORMATS

NEVER = 10**9
WORDS = ["un", "café", "noir", "a", ",", "|", "||", "x=", "", "\u00a0", "日本", "0-0"]
VALUES = ["0", "-0", "-1.76181", "3", "-100", "1e-05", "-2.5E3", "0.1", "12345678.9", "1e+02"]
HARD = ["1e30", "0.12345678901234567890", "+1", ".5", "5.", "1e400", "nan", "1_0", "--1", "1e", ""]
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
    "word scores": ("moses", False, "{start} ||| {features} {words} ||| {value}"),
    "word scores first": ("moses", True, "{start} ||| {words} {features} ||| {value}"),
    "word scores between": ("marian", False, "{start} ||| {words} ||| {features} ||| {value}"),
    "sparse, score first": ("travatar", True, "{start} ||| {value} ||| {features}"),
    "sparse": ("cdec", True, "{start} ||| {features} ||| {value}"),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
QUIET = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
SPICE = b"0123456789.-+eE|= \t\n\r_x\xc3\xa9\xff"
#: What is put into a file at random: whole tokens find other faults than single bytes.
FAULTS = [b" ||| ", b"|||", b"LM0=", b" LM0= 1", b"  ", b"\n", b" ||| 0-0 1-1", b" ||| -1", b"nan"]


@contextmanager
def compiled_from(blocks: int) -> Iterator[list[int]]:
    """Use compiled code after some blocks; provide the numbers of the lines that it leaves."""
    left: list[int] = []
    rows = LineParser.rows

    def recorded(self: LineParser, lines: Any, numbers: Any) -> Rows:
        left.extend(numbers.tolist())
        return rows(self, lines, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LineParser, "rows", recorded)
        patch.setattr(moses, "_PLAIN_BLOCKS", blocks)
        yield left


def outcome(name: str, lines: list[bytes], plain_blocks: int, **options: Any) -> list[Any]:
    """Return the rows, the warnings and the error of reading, in a form that can be compared."""
    blocks = [lines[0] + b"\n", b"\n".join(lines[1:]) + b"\n"]
    settings = {"first": 1} if name in ("travatar", "cdec") else {}
    result: list[Any] = []
    with (
        compiled_from(plain_blocks),
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        try:
            parser = NBEST_FORMATS.resolve(name, settings)
            for rows in parser.parse(blocks, ReadOptions("dev", **options)):
                texts = [rows.strings[i] for i in rows.string_index.tolist()]
                rows = rows._replace(strings=texts, string_index=np.arange(len(texts)))
                result.append([bits(list(v) if isinstance(v, tuple) else v) for v in rows])
        except DataError as error:
            result.append((str(error), error.code, error.parameter))
    return [*result, *(str(warning.message) for warning in caught)]


def assert_agree(name: str, lines: list[bytes], **options: Any) -> None:
    assert outcome(name, lines, 0, **options) == outcome(name, lines, NEVER, **options)


def compiled(lines: list[bytes], name: str = "moses") -> tuple[Rows, list[int]]:
    """Return the rows of some lines, and the numbers of those that compiled code has left."""
    with compiled_from(0) as left:
        (rows,) = NBEST_FORMATS.resolve(name).parse([b"\n".join(lines) + b"\n"], ReadOptions("dev"))
    return rows, left


def printed(rng: random.Random, kind: str, hard: bool = False) -> tuple[str, list[bytes]]:
    """Return the format and the lines of a random file, as it should be or with odd numbers."""
    name, glued, line = KINDS[kind]
    sparse = name in ("travatar", "cdec")
    shape = [("LM0", 1), ("TM0", 1 if sparse else rng.randint(1, 3)), ("été", 1)]
    values = VALUES + HARD if hard else VALUES
    lines = []
    for i in range(rng.randint(2, 12)):
        groups = [
            f"{label}={'' if glued else ' '}{' '.join(rng.choice(values) for _ in range(count))}"
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
            "value": rng.choice(values),
            "words": f"WordScores={others['scores']}",
            **others,
        }
        lines.append(line.format_map(parts).encode())
    return name, lines


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return data with up to three small faults in it."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        new = rng.choice(FAULTS) if rng.random() < 0.5 else bytes([rng.choice(SPICE)])
        data = data[:at] + (new if rng.random() < 0.7 else b"") + data[at + rng.randint(0, 4) :]
    return data


@EVERY_KIND
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_read_the_same(kind: str, seed: int) -> None:
    assert_agree(*printed(random.Random(seed), kind, hard=True))


@EVERY_KIND
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), drop=st.booleans(), strict=st.booleans())
def test_both_say_the_same_about_faults(kind: str, seed: int, drop: bool, strict: bool) -> None:
    rng = random.Random(seed)
    name, (first, *rest) = printed(rng, kind)
    lines = [first, *mutated(b"\n".join(rest), rng).split(b"\n")]
    assert_agree(name, lines, bad="drop" if drop else "error", strict=strict)


@QUIET
@EVERY_KIND
def test_usual_lines_are_compiled(kind: str) -> None:
    for seed in range(20):
        name, lines = printed(random.Random(seed), kind)
        assert compiled(lines, name)[1] == []


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| b ||| LM0= 1 ||| 2 ||| 3=3",
        b"0 ||| a ||| LM0= 0.12345678901234567890 ||| 2 ||| 3=3",
        b"1 |||  ||| LM0= 1 WordScores= 1 2 ||| 2 ||| 3=3",
        b" 1 ||| \xc3\xa9 ||| LM0= 1 ||| 2 ||| 3=3",
    ],
)
@QUIET
def test_only_the_odd_line_is_left(line: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    lines = [good, good, line, good.replace(b"0 |||", b"1 |||"), good.replace(b"= 1", b"= 7")]
    assert compiled(lines)[1] == [3]
    assert_agree("moses", lines)


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| LM0= nan ||| 2 ||| 3=3",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| x",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3 ||| 0-0",
        b"0 ||| a ||| LM0= 1 ||| 2 |||3=3",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 3=3x",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 1-2-3=3",
        b"0 ||| a ||| LM0= 1",
        b"0 ||| \xff ||| LM0= 1 ||| 2 ||| 3=3",
        b"1234567890123456789 ||| a ||| LM0= 1 ||| 2 ||| 3=3",
        b" ||| a ||| LM0= 1 ||| 2 ||| 3=3",
        b"",
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: bytes) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    lines = [good, good, line, good, line]
    ((message, *_),) = outcome("moses", lines, 0)[1:]
    assert message.startswith("dev:3: ")
    assert_agree("moses", lines)


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a |||  LM0= 1 ||| 2",
        b"0 ||| a ||| LM0=  1  ||| 2 ",
        b"0 ||| a ||| LM0=1 ||| 2",
        b"0 ||| a ||| LM0= 1 ||| 2\r",
        b"0 ||| a ||| LM0= 0.10000000149011612 ||| 2",
    ],
)
def test_spaces_and_line_ends_do_not_matter(line: bytes) -> None:
    lines = [b"0 ||| a ||| LM0= 1 ||| 2", line, line]
    assert compiled(lines)[1] == []
    assert_agree("moses", lines)


def test_fields_of_positions_are_kept() -> None:
    lines = [
        b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-1=0  2=1-2 ||| 0-0 1-0 ",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| ||| ",
        b"0 ||| a ||| b ||| LM0= 1 ||| 2 ||| 7=7 ||| 7-7",
        b"0 ||| a ||| LM0= 1 ||| 2 |||  0=0 ||| ",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| ||| 1-1",
        b"0 ||| a ||| LM0= 1 ||| 2 ||| |||",
    ]
    rows, left = compiled(lines)
    assert left == [3]
    assert rows.extras == {
        "segmentation": ["0-1=0  2=1-2", "", "7=7", "0=0", "", ""],
        "alignment": ["0-0 1-0", "", "7-7", "", "1-1", ""],
    }
    assert_agree("moses", lines)


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
    lines = [f"0 ||| t{i % 700} ||| LM0= 1 ||| 2".encode() for i in range(1000)]
    rows, _ = compiled(lines)
    assert list(rows.strings) == [f"t{i}" for i in range(700)]
    assert rows.string_index.tolist() == [i % 700 for i in range(1000)]


def test_both_read_the_real_lists_alike(demo_data: Path) -> None:
    path = demo_data / "leaflet.nbest100.gz"
    with compiled_from(1) as left:
        fast = read_nbest(path)
    assert left == []
    with compiled_from(NEVER):
        assert table_content(read_nbest(path)) == table_content(fast)
