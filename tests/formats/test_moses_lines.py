"""Traps of real files, and what is said about each line that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.table_content import table_content

from bpa_ppl import NBest, from_lists, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError

Write = Callable[..., Path]
GOLDEN = Path(__file__).parent / "golden"
GOOD = "0 ||| a cat ||| LM0= -1.5 TM0= -2 0.25 ||| -3.5"


def only(nbest: NBest) -> tuple[str, tuple[str, ...], list[float]]:
    """Return text, names and features of the only candidate."""
    assert len(nbest.features) == 1
    return nbest.text(0), nbest.feature_names, nbest.features[0].tolist()


@pytest.mark.parametrize(
    ("line", "text", "names", "values"),
    [
        (GOOD, "a cat", ("LM0", "TM0[0]", "TM0[1]"), [-1.5, -2, 0.25]),
        ("0 ||| a cat  ||| LM0= -1 ||| -1", "a cat", ("LM0",), [-1]),
        ("0 ||| a ||| F0=-1.5 F1=2 ||| 0", "a", ("F0", "F1"), [-1.5, 2]),
        ("0 ||| a ||| lm=-1 my_sparse_name=1 ||| 0", "a", ("lm", "my_sparse_name"), [-1, 1]),
        ("0 ||| a ||| wt_x=y=3 ||| 0", "a", ("wt_x=y",), [3]),
        ("0 ||| a ||| LM0= 1e-05 W0= +7 ||| 0", "a", ("LM0", "W0"), [np.float32(1e-5), 7]),
        ("  0 ||| a ||| LM0=  -1   2 ||| 0 ", "a", ("LM0[0]", "LM0[1]"), [-1, 2]),
        ("0 ||| a ||| b ||| c ||| LM0= -1 ||| 0", "a ||| b ||| c", ("LM0",), [-1]),
        ("0 ||| x= 1 ||| y= 2 ||| LM0= -1 ||| 0", "x= 1 ||| y= 2", ("LM0",), [-1]),
        ("0 ||| a|||b ||| LM0= -1 ||| 0", "a|||b", ("LM0",), [-1]),
        ("0 |||  ||| LM0= -1 ||| 0", "", ("LM0",), [-1]),
        ("0 ||| ||| LM0= -1 ||| 0", "", ("LM0",), [-1]),
        ("0 ||| ||| ||| LM0= -1 ||| 0", "|||", ("LM0",), [-1]),
        ("0 ||| un\u00a0né\u2028x ||| LM0= -1 ||| 0", "un\u00a0né\u2028x", ("LM0",), [-1]),
        ("0 ||| a ||| LM0= -1 ||| 0\r", "a", ("LM0",), [-1]),
    ],
)
def test_one_line(
    write: Write, line: str, text: str, names: tuple[str, ...], values: list[float]
) -> None:
    assert only(read_nbest(write(line))) == (text, names, values)


S, A = "segmentation", "alignment"
KEPT = [
    ("0-0 1-1 ", {A: "0-0 1-1"}),
    ("0-2=0-2 8=7", {S: "0-2=0-2 8=7"}),
    ("3=3 8=7", {S: "3=3 8=7"}),  # looks like features
    ("3=3 ||| 0-0", {S: "3=3", A: "0-0"}),
    ("0-0 ||| 3=3", {S: "3=3", A: "0-0"}),
]


@pytest.mark.parametrize(("after", "extras"), KEPT)
def test_positions_are_kept_as_extras(write: Write, after: str, extras: dict[str, str]) -> None:
    nbest = read_nbest(write(*(f"{i} ||| a b ||| LM0= -1 ||| -2 ||| {after}" for i in range(3))))
    assert nbest.texts(2) == ["a b"]
    assert nbest.features.tolist() == [[-1]] * 3
    assert nbest.totals is not None
    assert nbest.totals.tolist() == [-2] * 3
    assert dict(nbest.extras) == {name: (value,) * 3 for name, value in extras.items()}


def test_an_alignment_before_the_features(write: Write) -> None:
    nbest = read_nbest(write("0 ||| a b ||| 0-0 1-1 ||| LM0= -1 ||| -2"))
    assert (nbest.texts(0), nbest.extras[A]) == (["a b"], ("0-0 1-1",))


def test_later_lines_tell_what_an_empty_field_is(write: Write) -> None:
    lines = ("0 |||  ||| LM0= -1 ||| 0 |||  ||| ", "0 ||| a ||| LM0= -1 ||| 0 ||| 0=0 ||| 0-0")
    nbest = read_nbest(write(*lines))
    assert dict(nbest.extras) == {"segmentation": ("", "0=0"), "alignment": ("", "0-0")}


AFTER, BETWEEN = "fields after the scores", "fields between the text and the features"
DROPPED = [
    ("a b ||| LM0= -1 ||| -2 ||| tree", AFTER),
    ("a b ||| LM0= -1 ||| -2 ||| 0-0 ||| 0-1", AFTER),
    ("a b ||| WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2", BETWEEN),
    ("a b ||| 0-0 ||| WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2", BETWEEN),
    ("a b ||| LM0= -1 WordScores= -0.5 -0.7 ||| -2", "WordScores"),
]


@pytest.mark.parametrize(("line", "what"), DROPPED)
def test_fields_that_cannot_be_kept_are_left_out_with_one_note(
    write: Write, line: str, what: str
) -> None:
    path = write(*(f"{i} ||| {line}" for i in range(3)))
    with pytest.warns(BpaWarning, match=f"dev.nbest: {what}.* left out") as caught:
        nbest = read_nbest(path, format="moses")
    assert len(caught) == 1
    assert nbest.texts(2) == ["a b"]
    assert nbest.feature_names == ("LM0",)
    assert nbest.features.tolist() == [[-1]] * 3
    assert nbest.totals is not None
    assert nbest.totals.tolist() == [-2] * 3


@pytest.mark.parametrize(
    ("line", "code", "parameter"),
    [
        ("0 a cat LM0= -1", "unknown-format", "format"),
        ("0 ||| a cat ||| -1.5 ||| -3", "bad-line", None),
        ("0 ||| a ||| WordScores= -1 ||| -3", "bad-line", None),
        ("0 ||| a ||| LM0= 1 LM0= 2 ||| -3", "duplicate", None),
        ("0 ||| a ||| TM0= 1 2 TM0[1]= 2 ||| -3", "duplicate", None),
        ("0 ||| a ||| LM0= nan ||| -3", "bad-number", "bad"),
        ("0 ||| a ||| LM0= 1 total= 2 ||| -3", "bad-name", None),
        ("0 ||| a ||| alignment= 2 ||| -3 ||| 0-0", "bad-name", None),
    ],
)
def test_a_bad_first_line_is_named(
    write: Write, line: str, code: str, parameter: str | None
) -> None:
    with (
        warnings.catch_warnings(action="ignore", category=BpaWarning),
        raises(DataError, code, parameter=parameter, line=1),
    ):
        read_nbest(write(line))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a ||| LM0= -1", "a ||| LM0= -1 ||| -1"),
        ("a ||| 0-0 ||| LM0= -1 ||| -2", "a ||| LM0= -1 ||| -2"),
        ("a ||| 0-0 ||| LM0= -1 ||| -2", "a ||| 3=3 ||| LM0= -1 ||| -2"),
        ("a ||| LM0= -1 ||| -2 ||| 3=3", "a ||| LM0= -1 ||| -2 ||| 0-0"),
        ("a ||| LM0= -1 ||| -2 ||| 3=3", "a ||| LM0= -1 ||| -2 ||| 3=3 ||| 0-0"),
        ("a ||| LM0= -1 ||| -2 ||| 3=3 ||| 0-0", "a ||| LM0= -1 ||| -2 ||| 3=3"),
    ],
)
def test_fields_that_are_not_as_in_the_first_line(write: Write, first: str, second: str) -> None:
    with raises(DataError, "bad-line", line=2):
        read_nbest(write(f"0 ||| {first}", f"0 ||| {second}"))


def with_extras(**extras: Any) -> NBest:
    texts = [["a", "b"], [""]]
    return from_lists(
        texts, [[[1.0], [2.0]], [[3.0]]], ["LM0"], totals=[[-1, -2], [-3]], extras=extras
    )


def test_the_golden_file(tmp_path: Path) -> None:
    nbest = read_nbest(GOLDEN / "moses-positions.nbest")
    assert nbest.sentence_ids.tolist() == [0, 1, 3]
    assert nbest.strings == ("the black cat", "the cat , black |||  of course", "", "3=3 0-0")
    assert nbest.extras == {
        "segmentation": ("0=0 1-2=1-2", "0=0 2=1 1=2-7", "", "0-1=0-1"),
        "alignment": ("0-0 1-2 2-1", "0-0 2-1 1-3", "", "0-0 1-1"),
    }
    assert nbest.feature_names[-1] == "TranslationModel0[1]"
    assert nbest.features[1].tolist()[-3:] == [-8, -1, -3.5]
    write_nbest(nbest, tmp_path / "again")
    assert table_content(read_nbest(tmp_path / "again")) == table_content(nbest)


@pytest.mark.parametrize(
    "extras", [{A: [["0-0", "1-1"], [""]]}, {A: [["0-0", "1-1"], [""]], S: [["", "3=3"], [""]]}]
)
def test_positions_read_back(tmp_path: Path, extras: dict[str, Any]) -> None:
    nbest = with_extras(**extras)
    write_nbest(nbest, tmp_path / "out")
    assert table_content(read_nbest(tmp_path / "out")) == table_content(nbest)
    bare = nbest.without("totals")
    if S in extras:  # an empty segmentation would be read as the total
        with raises(UsageError, parameter="weights"):
            write_nbest(bare, tmp_path / "bare")
    else:
        write_nbest(bare, tmp_path / "bare")
        assert table_content(read_nbest(tmp_path / "bare")) == table_content(bare)


@pytest.mark.parametrize("bad", ["0=0", "0-0 ", "0-0\n", 7])
def test_positions_that_would_not_read_back(tmp_path: Path, bad: Any) -> None:
    with raises(DataError, "not-supported", match="of sentence 1 "):
        write_nbest(with_extras(alignment=[["0-0", ""], [bad]]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
