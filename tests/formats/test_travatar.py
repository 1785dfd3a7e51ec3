"""Lists with sparse features, of Travatar and of cdec: what is absent is zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.travatar import Cdec, Travatar

GOLDEN = Path(__file__).parent / "golden"
Write = Callable[..., Path]


def lines(name: str, *parts: tuple[str, str, str]) -> list[str]:
    """Return lines of (text, features, score) in the order of the format."""
    return [
        f"0 ||| {text} ||| {score} ||| {features}"
        if name == "travatar"
        else f"0 ||| {text} ||| {features} ||| {score}"
        for text, features, score in parts
    ]


def test_the_golden_file_of_travatar() -> None:
    nbest = read_nbest(GOLDEN / "travatar.nbest", strict=True)
    assert nbest.feature_names == ("egfl", "lm", "p", "w", "unk", "wt_x=y")
    assert nbest.features.tolist() == [
        [-0.5, -4.25, 3, 3, 0, 0],
        [0, -5, 2, 4, 1, 0],
        [0] * 6,
        [0, -0.5, 0, 0, 0, 1],
    ]
    assert nbest.totals is not None
    assert nbest.totals.tolist() == np.float32([-3.5, -4, 0, -1e-5]).tolist()
    assert nbest.strings == ("a black cat", "a cat ||| black", "", "tree")
    assert nbest.sentence_ids.tolist() == [0, 1, 2]


def test_the_golden_file_of_cdec() -> None:
    nbest = read_nbest(GOLDEN / "cdec.nbest", strict=True)
    names = ("EgivenFCoherent", "Glue", "LanguageModel", "WordPenalty", "PassThrough")
    assert nbest.feature_names == names
    assert (
        nbest.features.tolist()
        == np.float32(
            [[1.25, 2, -9.5, -1.30288, 0], [1.5, 0, -10, -1.73718, 1], [0] * 5, [0, 1, 0, 0, 0]]
        ).tolist()
    )
    assert nbest.totals is not None
    assert nbest.totals.tolist() == np.float32([-7.5, -8.25, 0, 1e-5]).tolist()
    assert nbest.strings == ("a black cat", "a cat ||| black", "", "x=1")


@pytest.mark.parametrize("format", ["travatar", "cdec"])
@pytest.mark.parametrize("order", ["travatar", "cdec"])
def test_the_order_of_the_columns_is_told_by_content(write: Write, format: str, order: str) -> None:
    path = write(*lines(order, ("a", "", "-1"), ("7", "lm=-3", "-2"), ("", "unk=1", "-3")))
    if format != order:  # a first line without features does not tell
        path.write_text(path.read_text().partition("\n")[2])
    nbest = read_nbest(path, format=format)
    assert nbest.feature_names == ("lm", "unk")
    assert nbest.features[-2:].tolist() == [[-3, 0], [0, 1]]
    assert nbest.totals is not None
    assert nbest.totals[-2:].tolist() == [-2, -3]


@pytest.mark.parametrize(
    ("line", "travatar", "cdec"),
    [
        ("0 ||| a ||| -1 ||| lm=-3", True, False),
        ("0 ||| a ||| Glue=1 ||| -1", False, True),
        ("0 ||| a ||| PhraseModel_0=1 X=2 ||| -1\r", False, True),
        ("0 ||| a ||| lm=-3 ||| -1", False, False),
        ("0 ||| a ||| -1 ||| LM0= -3", False, False),
        ("0 ||| a ||| Glue= 1 ||| -1", False, False),
        ("0 ||| a ||| Glue=1 ||| -1 ||| 0-0", False, False),
        ("0 ||| a ||| b ||| -1 ||| lm=-3", False, False),
        ("lm=3", False, False),
    ],
)
def test_they_are_found_where_that_is_certain(line: str, travatar: bool, cdec: bool) -> None:
    assert Travatar().detect(line.encode()) is travatar
    assert Cdec().detect(line.encode()) is cdec


def test_names_are_those_of_the_first_lines(write: Write) -> None:
    path = write(*lines("cdec", *((f"t{i}", f"f{i}=1", "0") for i in range(5))))
    assert read_nbest(path, format="cdec").feature_names == tuple(f"f{i}" for i in range(5))
    with raises(DataError, "mismatch", line=4, match="f3 .* first 3 lines"):
        read_nbest(path, format=Cdec(first=3))


def test_no_features_and_no_totals(write: Write, tmp_path: Path) -> None:
    with raises(DataError, "no-data", line=1):
        read_nbest(write("0 ||| a |||  ||| 0", "0 ||| b |||  ||| 1"), format="cdec")
    for name in ("travatar", "cdec"):
        with raises(UsageError, parameter="weights"):
            write_nbest(NBest.from_lists([["a"]], [[[1.0]]], ["lm"]), tmp_path / "out", format=name)


def test_names_do_not_depend_on_blocks(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl.formats.streams._BLOCK", 30)
    monkeypatch.setattr("bpa_ppl.formats.streams._CHUNK", 20)
    path = write(*(f"{i} ||| a ||| f{i // 10}=1 ||| {i}" for i in range(40)))
    parts = list(iter_nbest(path, chunk=7, format="cdec"))
    assert {part.feature_names for part in parts} == {("f0", "f1", "f2", "f3")}
    assert NBest.concatenate(parts).features.sum(axis=0).tolist() == [10] * 4
    with raises(DataError, "mismatch", line=31, match="f3 is not among the 3 in the first 25"):
        list(iter_nbest(path, chunk=1, format="cdec:first=25"))
