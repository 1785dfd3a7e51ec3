"""Lists with sparse features, of Travatar and of cdec: what is absent is zero."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_content import bits, table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats import moses
from bpa_ppl.formats.base import ReadOptions
from bpa_ppl.formats.moses_blocks import BlockParser
from bpa_ppl.formats.moses_lines import Layout
from bpa_ppl.formats.travatar import Cdec, Travatar
from bpa_ppl.registry import NBEST_FORMATS

GOLDEN = Path(__file__).parent / "golden"
FORMATS = pytest.mark.parametrize("name", ["travatar", "cdec"])
Write = Callable[..., Path]
VALUES = ["0", "-0", "-1.76181", "3", "1e-05", "-2.5E3", "0.1"]


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
    with pytest.raises(DataError, match=r":4: the feature f3 .* the 3 in the first 3 lines: read"):
        read_nbest(path, format=Cdec(first=3))
    named = read_nbest(path, format=Cdec(names=("f4", "f0", "f1", "f2", "f3")))
    assert named.features[:2].tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    with pytest.raises(DataError, match=r":1: the feature f0 .* the 1 that are set: read more"):
        read_nbest(path, format=Cdec(names=("f4",)))
    with pytest.raises(UsageError, match="'a b' cannot be the name of a feature"):
        read_nbest(path, format=Cdec(names=("a b",)))
    with pytest.raises(UsageError, match="two of the names that are set"):
        read_nbest(path, format=Cdec(names=("f4", "f4")))


def test_names_do_not_depend_on_blocks(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl.formats.streams._BLOCK", 30)
    monkeypatch.setattr("bpa_ppl.formats.streams._CHUNK", 20)
    path = write(*(f"{i} ||| a ||| f{i // 10}=1 ||| {i}" for i in range(40)))
    parts = list(iter_nbest(path, chunk=7, format="cdec"))
    assert {part.feature_names for part in parts} == {("f0", "f1", "f2", "f3")}
    assert NBest.concatenate(parts).features.sum(axis=0).tolist() == [10] * 4
    with pytest.raises(DataError, match=r":31: the feature f3 is not among the 3 in the first 25"):
        list(iter_nbest(path, chunk=1, format="cdec:first=25"))


def outcome(name: str, blocks: list[bytes], plain_blocks: int, bad: str) -> list[Any]:
    """Return the rows and the error that reading gives, as they can be compared."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_PLAIN_BLOCKS", plain_blocks)
        format = NBEST_FORMATS.resolve(name, {"first": 1})
        try:
            for rows in format.parse(blocks, ReadOptions("dev", bad)):
                texts = [rows.strings[i] for i in rows.string_index.tolist()]
                rows = rows._replace(strings=texts, string_index=np.arange(len(texts)))
                parts = [list(part) if isinstance(part, tuple) else part for part in rows]
                found.append([bits(part) for part in parts])
        except DataError as error:
            found.append(str(error))
    return found


def printed(rng: random.Random, name: str) -> list[bytes]:
    """Return lines that are as they should be, or nearly."""
    features = [f"{label}={rng.choice(VALUES)}" for label in ("lm", "wt_x", "wt_x=y", "été")]
    parts = [("a", " ".join(features), "0")]
    for _ in range(rng.randint(1, 8)):
        some = rng.sample(features, rng.randint(1, 4)) + rng.choices(
            ["", "lm=3", "new=1"], [50, 1, 1]
        )
        text = " ".join(rng.choice(["a", "cat", "=", "|", "", "x=1"]) for _ in range(3))
        parts.append((text, " ".join(filter(None, some)), rng.choice(VALUES)))
    return [line.encode() for line in lines(name, *parts)]


@FORMATS
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), damaged=st.booleans(), drop=st.booleans())
def test_the_compiled_parser_reads_the_same(
    name: str, seed: int, damaged: bool, drop: bool
) -> None:
    rng = random.Random(seed)
    first, *rest = printed(rng, name)
    data = b"\n".join(rest)
    at = rng.randrange(len(data))
    if damaged:
        data = (
            data[:at] + rng.choice([b" ", b"=", b" ||| ", b"\n", b"1", b"e", b"\xff"]) + data[at:]
        )
    blocks, bad = [first + b"\n", data + b"\n"], "drop" if drop else "error"
    assert outcome(name, blocks, 1, bad) == outcome(name, blocks, 10**9, bad)


@FORMATS
def test_usual_blocks_are_not_given_up(name: str) -> None:
    total = "before" if name == "travatar" else "after"
    parser = BlockParser(Layout((("lm", 1), ("unk", 1)), total, sparse=True))
    usual = lines(
        name, ("a", "lm=-1 unk=2", "0"), ("b  ", "unk=1 lm=3", "-1e-05"), ("", "lm=0", "1")
    )
    rows = parser.rows("".join(f"{line}\n" for line in usual).encode(), 7)
    assert rows is not None
    assert rows.features.tolist() == [[-1, 2], [3, 1], [0, 0]]
    assert rows.totals is not None
    assert rows.totals.tolist() == np.float32([0, -1e-5, 1]).tolist()
    assert (list(rows.strings), rows.lines.tolist()) == (["a", "b", ""], [7, 8, 9])


@FORMATS
@pytest.mark.parametrize(
    ("part", "message"),
    [
        (("b", "lm=x", "-1"), "'x' is not a number: correct it, or drop"),
        (("b", "lm=1_0", "-1"), "'1_0' is not a number"),
        (("b", "lm=nan", "-1"), "'nan' is not a finite"),
        (("b", "lm=-1", "inf"), "'inf' is not a finite"),
        (("b", "lm=-1", "x"), "'x' is not a number"),
        (("b", "lm=1e39", "0"), "'1e39' is not a finite"),
    ],
)
def test_bad_values(write: Write, name: str, part: tuple[str, str, str], message: str) -> None:
    path = write(*lines(name, ("a", "lm=-1", "0"), part, ("c", "lm=-1", "0")))
    with pytest.raises(DataError, match=rf"dev\.nbest:2: {message}") as found:
        read_nbest(path, format=name)
    assert found.value.parameter == "bad"
    with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
        assert read_nbest(path, format=name, bad="drop").texts(0) == ["a", "c"]


@FORMATS
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "only 1 columns, but a line must read `id"),
        ("0 ||| b ||| lm=-1", "only 3 columns"),
        ("x ||| b ||| 0 ||| 0", "sentence id 'x' is not an integer"),
        ("9999999999999999999 ||| b ||| 0 ||| 0", "sentence id '9+' is not"),
        ("0 ||| b ||| lm ||| lm", "'lm' is not a list of features"),
        ("0 ||| b ||| lm=1 lm=2 ||| lm=1 lm=2", "lm= occurs twice in the line"),
        (b"0 ||| \xff ||| lm=1 ||| 0\n", "byte 0xff is not UTF-8"),
        (b"0 ||| b ||| \xff=1 ||| \xff=1\n", "byte 0xff is not UTF-8"),
    ],
)
def test_a_bad_line_is_named(write: Write, name: str, line: str | bytes, message: str) -> None:
    good = lines(name, ("a", "lm=-1", "0"))[0]
    if name == "travatar" and isinstance(line, bytes):
        line = line.replace(b" ||| lm=1 ||| 0", b" ||| 0 ||| lm=1")
    with pytest.raises(DataError, match=rf"dev\.nbest:2: {message}"):
        read_nbest(write(good, line), format=name)


def test_no_features_at_all(write: Write) -> None:
    with pytest.raises(DataError, match=r"dev\.nbest:1: no features: a line must read"):
        read_nbest(write("0 ||| a |||  ||| 0", "0 ||| b |||  ||| 1"), format="cdec")


@FORMATS
@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(
        st.lists(
            st.one_of(st.just(0.0), st.floats(width=32, allow_nan=False, allow_infinity=False)),
            min_size=4,
            max_size=4,
        ),
        min_size=1,
    ),
    text=st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])),
)
def test_any_lists_read_back_with_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, name: str, values: list[Any], text: str
) -> None:
    path = tmp_path_factory.mktemp("out") / "nbest"
    table = np.array(values, np.float32)
    texts = [text.strip(" "), *(f"t{i}" for i in range(1, len(values)))]
    nbest = NBest.from_lists([texts], [table[:, 1:]], ["lm", "TM0[0]", "x=y"], totals=[table[:, 0]])
    write_nbest(nbest, path, format=name)
    assert table_content(read_nbest(path, format=name)) == table_content(nbest)


@FORMATS
def test_real_lists_read_back_with_the_same_bits(
    demo_data: Path, tmp_path: Path, name: str
) -> None:
    nbest = next(iter_nbest(demo_data / "leaflet.nbest100.gz", chunk=40))
    write_nbest(nbest, tmp_path / "out", format=name)
    assert table_content(read_nbest(tmp_path / "out", format=name)) == table_content(nbest)


@FORMATS
def test_what_cannot_be_written(tmp_path: Path, name: str) -> None:
    for bad in ("a b", "", "=x", "|||"):
        nbest = NBest.from_lists([["a"]], [[[1.0]]], [bad], totals=[[1]])
        with pytest.raises(DataError, match="cannot be written before a `=`: rename it"):
            write_nbest(nbest, tmp_path / "out", format=name)
    with pytest.raises(UsageError, match="the lists have no totals: write them with weights"):
        write_nbest(NBest.from_lists([["a"]], [[[1.0]]], ["lm"]), tmp_path / "out", format=name)
    nbest = NBest.from_lists([["a\nb"]], [[[1.0]]], ["lm"], totals=[[1]])
    with pytest.raises(DataError, match="a text of sentence 0 has a line break"):
        write_nbest(nbest, tmp_path / "out", format=name)
    assert list(tmp_path.iterdir()) == []
