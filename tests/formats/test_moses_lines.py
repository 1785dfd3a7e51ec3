"""Traps of real files, and what is said about each line that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import NBest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError

GOOD = "0 ||| a cat ||| LM0= -1.5 TM0= -2 0.25 ||| -3.5"


def only(nbest: NBest) -> tuple[str, tuple[str, ...], list[float]]:
    """Return text, names and features of the only hypothesis."""
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
        (
            "0 ||| un\u00a0café\u2028noir ||| LM0= -1 ||| 0",
            "un\u00a0café\u2028noir",
            ("LM0",),
            [-1],
        ),
        ("0 ||| a ||| LM0= -1 ||| 0\r", "a", ("LM0",), [-1]),
    ],
)
def test_one_line(
    write: Callable[..., Path], line: str, text: str, names: tuple[str, ...], values: list[float]
) -> None:
    assert only(read_nbest(write(line))) == (text, names, values)


@pytest.mark.parametrize(
    ("line", "total"),
    [
        ("0 ||| a ||| LM0= -1 ||| -2.5", [-2.5]),
        ("0 ||| a ||| LM0= -1", None),
        ("0 ||| a ||| -2.5 ||| LM0= -1", [-2.5]),  # Travatar
        ("0 ||| a ||| b ||| -2.5 ||| LM0= -1", [-2.5]),
    ],
)
def test_the_total_is_found_by_content(
    write: Callable[..., Path], line: str, total: list[float] | None
) -> None:
    nbest = read_nbest(write(line))
    assert nbest.feature_names == ("LM0",)
    assert (None if nbest.totals is None else nbest.totals.tolist()) == total
    assert nbest.text(0) == ("a ||| b" if " b " in line else "a")


S, A = "segmentation", "alignment"
KEPT = {
    "alignment after": ("{id} ||| a b ||| LM0= -1 ||| -2 ||| 0-0 1-1 ", {A: "0-0 1-1"}),
    "segmentation after": ("{id} ||| a b ||| LM0= -1 ||| -2 ||| 0-2=0-2 8=7", {S: "0-2=0-2 8=7"}),
    "segmentation that looks like features": (
        "{id} ||| a b ||| LM0= -1 ||| -2 ||| 3=3 8=7",
        {S: "3=3 8=7"},
    ),
    "both": ("{id} ||| a b ||| LM0= -1 ||| -2 ||| 3=3 ||| 0-0", {S: "3=3", A: "0-0"}),
    "both in the other order": (
        "{id} ||| a b ||| LM0= -1 ||| -2 ||| 0-0 ||| 3=3",
        {S: "3=3", A: "0-0"},
    ),
    "alignment between": ("{id} ||| a b ||| 0-0 1-1 ||| LM0= -1 ||| -2", {A: "0-0 1-1"}),
}


@pytest.mark.parametrize("kind", KEPT)
def test_positions_are_kept_as_extras(write: Callable[..., Path], kind: str) -> None:
    line, extras = KEPT[kind]
    nbest = read_nbest(write(*(line.format(id=i) for i in range(3))), strict=True)
    assert nbest.texts(2) == ["a b"]
    assert nbest.features.tolist() == [[-1]] * 3
    assert nbest.totals is not None
    assert nbest.totals.tolist() == [-2] * 3
    assert dict(nbest.extras) == {name: (value,) * 3 for name, value in extras.items()}


def test_positions_without_totals(write: Callable[..., Path]) -> None:
    nbest = read_nbest(write("0 ||| a ||| LM0= -1 ||| 3=3", "0 |||  ||| LM0= -1 ||| "))
    assert nbest.totals is None
    assert nbest.extras["segmentation"] == ("3=3", "")


def test_later_lines_tell_what_an_empty_field_is(write: Callable[..., Path]) -> None:
    lines = ("0 |||  ||| LM0= -1 ||| 0 |||  ||| ", "0 ||| a ||| LM0= -1 ||| 0 ||| 0=0 ||| 0-0")
    nbest = read_nbest(write(*lines))
    assert dict(nbest.extras) == {"segmentation": ("", "0=0"), "alignment": ("", "0-0")}


DROPPED = {
    "a field that nobody knows": (
        "{id} ||| a b ||| LM0= -1 ||| -2 ||| tree",
        "fields after the scores",
    ),
    "a second alignment": (
        "{id} ||| a b ||| LM0= -1 ||| -2 ||| 0-0 ||| 0-1",
        "fields after the scores",
    ),
    "word scores between": (
        "{id} ||| a b ||| WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2",
        "fields between the text and the features",
    ),
    "both between": (
        "{id} ||| a b ||| 0-0 ||| WordScores= -0.5 -0.7 ||| LM0= -1 ||| -2",
        "fields between the text and the features",
    ),
    "word scores among the features": (
        "{id} ||| a b ||| LM0= -1 WordScores= -0.5 -0.7 ||| -2",
        "WordScores",
    ),
}


@pytest.mark.parametrize("kind", DROPPED)
def test_fields_that_cannot_be_kept_are_left_out_with_one_notice(
    write: Callable[..., Path], kind: str
) -> None:
    line, what = DROPPED[kind]
    path = write(*(line.format(id=i) for i in range(3)))
    with pytest.warns(BpaWarning, match=f"dev.nbest: {what}.* left out") as caught:
        nbest = read_nbest(path, format="moses")
    assert len(caught) == 1
    assert nbest.texts(2) == ["a b"]
    assert nbest.feature_names == ("LM0",)
    assert nbest.features.tolist() == [[-1]] * 3
    assert nbest.totals is not None
    assert nbest.totals.tolist() == [-2] * 3


@pytest.mark.parametrize("kind", DROPPED)
def test_they_are_an_error_when_strict(write: Callable[..., Path], kind: str) -> None:
    line, what = DROPPED[kind]
    path = write(line.format(id=0))
    with pytest.raises(DataError, match=f"dev.nbest:1: {what}.*strict"):
        read_nbest(path, strict=True)


def test_word_scores_follow_the_number_of_words(write: Callable[..., Path]) -> None:
    path = write(
        "0 ||| a b ||| F0= -1 WordScores= -0.5 -0.7 ||| -2",
        "0 ||| a ||| F0= -1 WordScores= -0.5 ||| -2",
        "0 |||  ||| F0= -1 WordScores= ||| -2",
    )
    with pytest.warns(BpaWarning, match="WordScores"):
        assert read_nbest(path).features.tolist() == [[-1]] * 3


def test_an_empty_alignment_of_an_empty_text(write: Callable[..., Path]) -> None:
    path = write("0 ||| a ||| 0-0 ||| F0= -1 ||| -2", "0 |||  |||  ||| F0= -1 ||| -2")
    nbest = read_nbest(path)
    assert nbest.texts(0) == ["a", ""]
    assert nbest.extras["alignment"] == ("0-0", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "only 1 fields, but a line must read `id"),
        ("0 ||| a cat", "only 2 fields"),
        ("0 ||| a ||| -1.5 -2 0.25 ||| -3.5", "no feature field"),
        ("x ||| a ||| LM0= -1.5 TM0= -2 0 ||| 0", "sentence id 'x' is not an integer"),
        ("-1 ||| a ||| LM0= -1.5 TM0= -2 0 ||| 0", "sentence id '-1' is not"),
        (f"{10**30} ||| a ||| LM0= -1.5 TM0= -2 0 ||| 0", "sentence id '1000+' is not"),
        (b"\xe9 ||| a ||| LM0= 1 TM0= -2 0 ||| 0\n", "sentence id .* is not an integer"),
        ("0 ||| a ||| LM0= -1.5 TM0= -2 ||| 0", "TM0= has 1 values, but in the first line 2"),
        ("0 ||| a ||| LM0= -1.5 TM0= -2 0 0 ||| 0", "TM0= has 3 values, but in the first line 2"),
        ("0 ||| a ||| LM0= -1.5 ||| 0", "TM0= is missing, but the first line has it"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0 W0= 1 ||| 0", "W0= is not in the first line"),
        ("0 ||| a ||| TM0= -2 0 LM0= 1 ||| 0", "the features are in another order"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0 LM0= 1 ||| 0", "LM0= occurs twice"),
        ("0 ||| a ||| LM0= TM0= -2 0 ||| 0", "LM0= has no value after it"),
        ("0 ||| a ||| LM0= 1 =3 TM0= -2 0 ||| 0", "a feature has no name before its `=`"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0", "no total score, but the first line has one"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0 ||| ", "'' is not a number"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0 ||| high", "'high' is not a number"),
        ("0 ||| a ||| LM0= one TM0= -2 0 ||| 0", "'one' is not a number: correct it, or drop"),
        ("0 ||| a ||| LM0= 1_0 TM0= -2 0 ||| 0", "'1_0' is not a number"),
        ("0 ||| a ||| LM0= 1,5 TM0= -2 0 ||| 0", "'1,5' is not a number"),
        ("0 ||| a ||| LM0= 0x10 TM0= -2 0 ||| 0", "'0x10' is not a number"),
        ("0 ||| a ||| LM0= \u0661 TM0= -2 0 ||| 0", "'\u0661' is not a number"),
        ("0 ||| a ||| LM0= nan TM0= -2 0 ||| 0", "'nan' is not a finite 32-bit number"),
        ("0 ||| a ||| LM0= -inf TM0= -2 0 ||| 0", "'-inf' is not a finite"),
        ("0 ||| a ||| LM0= 1e39 TM0= -2 0 ||| 0", "'1e39' is not a finite"),
        ("0 ||| a ||| LM0= 1 TM0= -2 0 ||| inf", "'inf' is not a finite"),
        (b"0 ||| caf\xe9 ||| LM0= 1 TM0= -2 0 ||| 0\n", "byte 0xe9 is not UTF-8 text"),
        (b"0 ||| a ||| LM0= 1 TM0= -2 0 \xe9= 1 ||| 0\n", "byte 0xe9 is not UTF-8 text"),
    ],
)
def test_a_bad_line_is_named(write: Callable[..., Path], line: str | bytes, message: str) -> None:
    path = write(GOOD, GOOD, line, GOOD)
    with pytest.raises(DataError, match=rf"dev\.nbest:3: {message}"):
        read_nbest(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 a cat LM0= -1", "not an n-best list in a known format"),
        ('{"id": 0}', "not an n-best list in a known format"),
        ("0 ||| a cat ||| -1.5 ||| -3", "no feature field"),
        ("0 ||| a ||| WordScores= -1 ||| -3", "no features but word scores"),
        ("0 ||| a ||| LM0= 1 LM0= 2 ||| -3", "LM0= occurs twice"),
        ("0 ||| a ||| TM0= 1 2 TM0[1]= 2 ||| -3", "two features have the same name"),
        ("0 ||| a ||| LM0= nan ||| -3", "'nan' is not a finite"),
    ],
)
def test_a_bad_first_line_is_named(write: Callable[..., Path], line: str, message: str) -> None:
    with (
        warnings.catch_warnings(action="ignore", category=BpaWarning),
        pytest.raises(DataError, match=rf"dev\.nbest:1: {message}"),
    ):
        read_nbest(write(line))


def test_a_total_that_only_later_lines_have(write: Callable[..., Path]) -> None:
    path = write("0 ||| a ||| LM0= -1", "0 ||| a ||| LM0= -1 ||| -1")
    with pytest.raises(DataError, match=":2: a total score, but the first line has none"):
        read_nbest(path)


def test_an_alignment_that_a_later_line_lacks(write: Callable[..., Path]) -> None:
    path = write("0 ||| a ||| 0-0 ||| F0= -1 ||| -2", "0 ||| a ||| F0= -1 ||| -2")
    with pytest.raises(DataError, match=":2: expected 1 alignment or word-score fields"):
        read_nbest(path)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("", " ||| 0-0", "an alignment or word-score field, but the first line has none"),
        (" ||| 0-0", " ||| 3=3", "'3=3', but the first line has the alignment there: it must read"),
    ],
)
def test_fields_before_the_features_that_are_not_as_in_the_first_line(
    write: Callable[..., Path], first: str, second: str, message: str
) -> None:
    path = write(*(f"0 ||| a{field} ||| LM0= -1 ||| -2" for field in (first, second)))
    with pytest.raises(DataError, match=rf"dev\.nbest:2: {message}"):
        read_nbest(path)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("3=3", "0-0", "'0-0', but the first line has the segmentation there: it must read"),
        ("3=3", "3=3 x", "'3=3 x', but the first line has the segmentation"),
        ("0-0", "0-0 1", "'0-0 1', but the first line has the alignment"),
        ("3=3", "3=3 ||| 0-0", "2 fields after the scores, but the first line has 1"),
        ("3=3 ||| 0-0", "3=3", "1 fields after the scores, but the first line has 2"),
    ],
)
def test_positions_that_are_not_as_in_the_first_line(
    write: Callable[..., Path], first: str, second: str, message: str
) -> None:
    path = write(*(f"0 ||| a ||| LM0= -1 ||| -2 ||| {field}" for field in (first, second)))
    with pytest.raises(DataError, match=rf"dev\.nbest:2: {message}"):
        read_nbest(path)


@pytest.mark.parametrize("value", ["nan", "-inf", "1e39", "none"])
@pytest.mark.parametrize("where", ["feature", "total"])
def test_bad_values_may_be_dropped_with_a_count(
    write: Callable[..., Path], value: str, where: str
) -> None:
    bad = GOOD.replace("-1.5" if where == "feature" else "-3.5", value)
    path = write(GOOD, bad.replace("a cat", "a dog"), bad, GOOD)
    with pytest.warns(BpaWarning, match="2 hypotheses dropped"):
        nbest = read_nbest(path, bad="drop")
    assert nbest.texts(0) == ["a cat", "a cat"]
    assert np.isfinite(nbest.features).all()


def test_a_list_dropped_altogether_is_an_error(write: Callable[..., Path]) -> None:
    path = write(GOOD, GOOD.replace("0 |||", "1 |||").replace("-1.5", "nan"))
    with pytest.raises(DataError, match="every hypothesis of sentence 1 has a value"):
        read_nbest(path, bad="drop")


def test_dropping_does_not_forgive_a_wrong_count(write: Callable[..., Path]) -> None:
    path = write(GOOD, "0 ||| a ||| LM0= nan ||| 0")
    with pytest.raises(DataError, match=":2: TM0= is missing"):
        read_nbest(path, bad="drop")
