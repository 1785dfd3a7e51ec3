"""Lists of Moses and Marian: traps of real files, bad lines, and what Arrow reads of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write

from bpa_ppl import NBest, from_lists, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats import moses

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("line", "text", "names", "values"),
    [
        ("a ||| LM0= -1.5 TM0= -2 0.25 ||| -3.5", "a", "LM0 TM0[0] TM0[1]", [-1.5, -2, 0.25]),
        ("a cat  ||| LM0= -1 ||| -1", "a cat", "LM0", [-1]),
        ("a ||| F0=-1.5 F1=2 ||| 0", "a", "F0 F1", [-1.5, 2]),
        ("a ||| lm=-1 my_sparse_name=1 ||| 0", "a", "lm my_sparse_name", [-1, 1]),
        ("a ||| wt_x=y=3 ||| 0", "a", "wt_x=y", [3]),
        ("a ||| LM0= 1e-05 W0= +7 ||| 0", "a", "LM0 W0", [1e-5, 7]),
        ("a ||| LM0=  -1   2 ||| 0 ", "a", "LM0[0] LM0[1]", [-1, 2]),
        ("a ||| b ||| c ||| LM0= -1 ||| 0", "a ||| b ||| c", "LM0", [-1]),
        ("x= 1 ||| y= 2 ||| LM0= -1 ||| 0", "x= 1 ||| y= 2", "LM0", [-1]),
        ("a|||b ||| LM0= -1 ||| 0", "a|||b", "LM0", [-1]),
        (" ||| LM0= -1 ||| 0", "", "LM0", [-1]),
        ("||| LM0= -1 ||| 0", "", "LM0", [-1]),
        ("||| ||| LM0= -1 ||| 0", "|||", "LM0", [-1]),
        ("un\u00a0né\u2028x ||| LM0= -1 ||| 0", "un\u00a0né\u2028x", "LM0", [-1]),
        ("a ||| LM0= -1 ||| 0\r", "a", "LM0", [-1]),
    ],
)
def test_one_line(write: Write, line: str, text: str, names: str, values: list[float]) -> None:
    lists = read_nbest(write(f"  0 ||| {line}"))
    assert (lists.texts(0), lists.feature_names) == ([text], tuple(names.split()))
    assert lists.features.tolist() == [values]


S, A = "segmentation", "alignment"
AFTER, BETWEEN = "fields after the scores", "fields between the text and the features"


@pytest.mark.parametrize(
    ("line", "extras", "left_out"),
    [
        ("LM0= -1 ||| -2 ||| 0-0 1-1 ", {A: "0-0 1-1"}, None),
        ("LM0= -1 ||| -2 ||| 0-2=0-2 8=7", {S: "0-2=0-2 8=7"}, None),
        ("LM0= -1 ||| -2 ||| 3=3 8=7", {S: "3=3 8=7"}, None),  # looks like features
        ("LM0= -1 ||| -2 ||| 3=3 ||| 0-0", {S: "3=3", A: "0-0"}, None),
        ("LM0= -1 ||| -2 ||| 0-0 ||| 3=3", {S: "3=3", A: "0-0"}, None),
        ("0-0 1-1 ||| LM0= -1 ||| -2", {A: "0-0 1-1"}, None),
        ("LM0= -1 ||| -2 ||| tree", {}, AFTER),
        ("LM0= -1 ||| -2 ||| 0-0 ||| 0-1", {}, AFTER),
        ("WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2", {}, BETWEEN),
        ("0-0 ||| WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2", {}, BETWEEN),
        ("LM0= -1 WordScores= -0.5 -0.7 ||| -2", {}, "WordScores"),
    ],
)
def test_other_fields_are_extras_or_left_out_with_one_note(
    write: Write, line: str, extras: dict[str, str], left_out: str | None
) -> None:
    path = write(*(f"{i} ||| a b ||| {line}" for i in range(3)))
    match = f"dev.nbest: {left_out}.* left out"
    with pytest.warns(BpaWarning, match=match) if left_out else nullcontext() as caught:
        lists = read_nbest(path, format="moses")
    assert caught is None or len(caught) == 1
    assert (lists.texts(2), lists.feature_names) == (["a b"], ("LM0",))
    assert lists.features.tolist() == [[-1]] * 3
    assert lists.totals is not None
    assert lists.totals.tolist() == [-2] * 3
    if not left_out:
        assert dict(lists.extras) == {name: (value,) * 3 for name, value in extras.items()}


def test_later_lines_tell_what_an_empty_field_is(write: Write) -> None:
    lines = ("0 |||  ||| LM0= -1 ||| 0 |||  ||| ", "0 ||| a ||| LM0= -1 ||| 0 ||| 0=0 ||| 0-0")
    assert dict(read_nbest(write(*lines)).extras) == {S: ("", "0=0"), A: ("", "0-0")}


def test_the_golden_file_of_moses(tmp_path: Path) -> None:
    nbest = read_nbest(GOLDEN / "moses-positions.nbest")
    assert nbest.sentence_ids.tolist() == [0, 1, 3]
    assert nbest.strings == ("the black cat", "the cat , black |||  of course", "", "3=3 0-0")
    assert nbest.extras == {
        S: ("0=0 1-2=1-2", "0=0 2=1 1=2-7", "", "0-1=0-1"),
        A: ("0-0 1-2 2-1", "0-0 2-1 1-3", "", "0-0 1-1"),
    }
    assert nbest.feature_names[-1] == "TranslationModel0[1]"
    assert nbest.features[1].tolist()[-3:] == [-8, -1, -3.5]
    write_nbest(nbest, tmp_path / "again")
    assert table_content(read_nbest(tmp_path / "again")) == table_content(nbest)


def with_extras(**extras: Any) -> NBest:
    features = [[[1.0], [2.0]], [[3.0]]]
    totals = [[-1, -2], [-3]]
    return from_lists([["a", "b"], [""]], features, ["LM0"], totals=totals, extras=extras)


def test_positions_read_back(tmp_path: Path) -> None:
    alignment = {A: [["0-0", "1-1"], [""]]}
    aligned, both = with_extras(**alignment), with_extras(**alignment, **{S: [["", "3=3"], [""]]})
    for nbest in (aligned, aligned.without("totals"), both):
        write_nbest(nbest, tmp_path / "out")
        assert table_content(read_nbest(tmp_path / "out")) == table_content(nbest)
    with raises(UsageError, parameter="weights"):  # it would be read as the total
        write_nbest(both.without("totals"), tmp_path / "bare")


# --- Marian: totals that are not λ·h, and alignments ---------------------------------------------


def test_the_golden_files_of_marian() -> None:
    with pytest.warns(BpaWarning, match="between the text and the features left out") as caught:
        nbest = read_nbest(GOLDEN / "marian.nbest")
    assert len(caught) == 1
    assert nbest.strings == ("der Hund schläft", "ein Hund ||| b", "")
    assert nbest.feature_names == ("F0", "F1")
    expected = [[-0.36125, -0.402], [-2.375, -1.9e-05], [-4, -7]]
    assert nbest.features.tolist() == expected
    assert nbest.extras[A] == ("0-0 1-1 2-2 3-3", "0-0 1-1 3-4", "0-0")
    assert nbest.totals_normalised
    soft = read_nbest(GOLDEN / "marian-soft.nbest")
    assert soft.extras[A][1] == "0.5,0.5,0 0,0,1"


def test_alignments_and_the_mark_read_back_until_totals_are_new(tmp_path: Path) -> None:
    nbest = from_lists(
        [["a b", "c ||| d"], [""]],
        [[[0.1, -0.0], [1e-30, 3]], [[7, 1e30]]],
        ["F0", "F1"],
        totals=[[-0.1, 2], [3]],
        extras={A: [["0-0", "0.5,0.5 1,0"], [""]]},
    )
    write_nbest(nbest, tmp_path / "out", format="marian")
    again = read_nbest(tmp_path / "out")
    assert table_content(again, "totals_normalised") == table_content(nbest, "totals_normalised")
    assert all(part.totals_normalised for part in iter_nbest(tmp_path / "out", chunk=1))
    write_nbest(again, tmp_path / "new", {"F0": 1, "F1": 0}, format="marian")
    assert (tmp_path / "new").read_text().endswith(" ||| 7\n")


# --- what Arrow reads, and what it leaves to be read line by line -------------------------------

TEXTS = ["un café noir", "", "a | || x=", "日本 \u00a0", " 0-0 ,"]
VALUES = ["-0", "-1.76181", "1e-05", "-2.5E3", "12345678.9"]
#: A format, and a line with a text and a value.
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


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Use Arrow for blocks of any size; return the numbers of the lines that it leaves."""
    numbers: list[int] = []
    row = moses.LineParser._row

    def recorded(parser: moses.LineParser, line: bytes, number: int) -> Any:
        numbers.append(number)
        return row(parser, line, number)

    monkeypatch.setattr(moses.LineParser, "_row", recorded)
    monkeypatch.setattr(moses, "_ARROW_FROM", 0)
    return numbers


@pytest.fixture
def left_by_arrow(left: list[int]) -> Callable[..., list[int]]:
    """Return what checks that Arrow reads the same, and returns the lines that it leaves."""

    def check(lines: list[bytes], name: str = "moses") -> list[int]:
        left.clear()
        fast = read_nbest(lines, format=name)
        result = [*left]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moses, "_ARROW_FROM", 1 << 30)
            assert table_content(read_nbest(lines, format=name)) == table_content(fast)
        return result

    return check


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(("name", "line"), LINES)
def test_usual_lines_are_read_by_arrow(left_by_arrow: Any, name: str, line: str) -> None:
    pairs = zip(TEXTS, VALUES, strict=True)
    lines = [line.format(text=text, value=value).encode() for text, value in pairs]
    assert left_by_arrow(lines, name) == []


def test_odd_lines_that_arrow_reads(left_by_arrow: Any) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| 0-2=3 5=4-6"
    empty, spaces = good.replace(b" a ", b"  "), good.replace(b"= 1", b"=  7 ")
    assert left_by_arrow([good, empty, spaces + b"\r", empty.replace(b" 0-2=3 5=4-6", b"")]) == []
    for text in (b" a ||| b ", b" ||| a ||| ", b" a\rb ", b" a\x1f||| b "):
        assert left_by_arrow([good, good.replace(b" a ", text), good]) == [1, 2, 3]


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_a_block_with_fields_that_are_left_out_is_left(left_by_arrow: Any) -> None:
    good = b"0 ||| a ||| LM0= 1 ||| 2 ||| x"
    for odd in (good + b" ||| y", good.replace(b"= 1 ", b"= 1 WordScores= 2 3 ")):
        assert left_by_arrow([good, odd, good]) == [1, 2, 3]


@pytest.mark.usefixtures("left", "small_blocks")
@pytest.mark.parametrize(
    ("text", "label", "code", "shown"),
    [
        (b"a ||| 0-0", b"LM0", "bad-line", "an alignment"),
        (b"a", b"\tLM0", "bad-line", "no feature field"),
        (b"a", b"\xef\xbb\xbfLM0", "mismatch", "LM0"),
    ],
)
def test_what_arrow_leaves_to_the_message(text: bytes, label: bytes, code: str, shown: str) -> None:
    lines = [b"0 ||| %s ||| %s= 1 ||| 2" % of for of in ((b"a", b"LM0"), (text, label))]
    with raises(DataError, code, line=2, match=shown):
        read_nbest(lines, format="moses")


def test_arrow_drops_what_is_not_finite(left: list[int]) -> None:
    values = [b"1", b"nan", b"1e61", b"-inf", b"2"]
    lines = [b"0 ||| a ||| LM0= %s ||| 2" % value for value in values]
    with pytest.warns(BpaWarning, match="dropped|left out"):
        nbest = read_nbest(lines, format="moses", bad="drop")
    assert (left, nbest.features[:, 0].tolist()) == ([], [1.0, 2.0])


NUMBERS = (
    st.floats(-1e60, 1e60).map(str)
    | st.decimals(-1000, 1000, places=5).map(str)
    | st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9])?", fullmatch=True)
)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(NUMBERS, min_size=1))
def test_numbers_are_exact(left: list[int], texts: list[str]) -> None:
    lines = [f"0 ||| a ||| LM0= {text}".encode() for text in texts]
    values = read_nbest(lines).features[:, 0]
    assert (left, values.tobytes()) == ([], np.array(list(map(float, texts))).tobytes())
