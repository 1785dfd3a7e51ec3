"""Any lists in every format that writes: they read back the same, or writing refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from support.raising import raises
from support.table_content import table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.format import NBEST_FORMATS, NBestFormat
from bpa_ppl.formats.in_memory import concatenate, from_lists
from bpa_ppl.formats.moses import Marian
from bpa_ppl.formats.separated import Tsv
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.lists.candidate_columns import read_column

#: The formats that write, and those with other settings.
FORMATS: dict[str, NBestFormat] = {
    name: kind(list_size=2) if name == "plain" else kind()
    for name, kind in NBEST_FORMATS.items()
    if kind.write is not NBestFormat.write or kind.write_file is not NBestFormat.write_file
}
FORMATS |= {"tsv, quoted": Tsv(quoted=True), "marian, sums": Marian(normalised=False)}
#: Formats without references, sources and ids that are texts.
LINES = ("moses", "marian", "marian, sums", "plain")
ODD = [
    *("a cat", "", " ", " a", "a ", "the  cat", "é 日本", "a\tb", "a\nb", "a\r\nb", "a\r", "\n"),
    *('"a"', 'a "b", c', "'", "a,b", "NA", "1.5", "0 ||| b", "a ||| b", "|||", "= 1", "LM0= 1"),
    *("\ufeffa", "\u2028", "\x1c", "\x85", "[1]", "{}", "\\n", "#", "null", "nan"),
    "\U0001f600",
]
PLAIN = ["a cat", "the cat", "é 日本", "0", "a|b", "x=1"]
IDS: list[list[Any]] = [
    *([0, 1, 2, 3], [7, 3, 100, 4], ["007", "3", "04", "5"], ["0", "1", "2", "3"], [2, 3, 4, 5]),
    *(["doc 1", "doc-2", "a b ", "x"], ["é", 'a"b', "a,b", "1.0"], ["NA", "null", "x\ty", "z"]),
    *([0, 1, 2, 10**15], ["", "b", "c", "d"], ["1e3", "nan", "-1", "+2"], [" ", "a\n", "b", "c"]),
    *(["a", "b", "c", "\1"], ["\ufeff", "b", "c", "d"], ["True", "id", "text", "1_0"]),
]
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


def some_lists(rng: np.random.Generator, names: list[str]) -> NBest:
    """Return one to four lists, of one size or several, with some of the columns that exist."""
    count = int(rng.integers(1, 5))
    has = rng.random(9) < 0.4
    texts = ODD if has[0] else PLAIN

    def text() -> str:
        return texts[rng.integers(len(texts))]

    sizes = rng.integers(1, 4, count) if has[1] else np.full(count, 2)
    rows = int(sizes.sum())
    features = rng.choice(
        [0, -0.0, 1, -1.5, 5e-324, 9e59, 0.1, 1e15 / 3, 1000000.01], (rows, len(names))
    )
    ids = IDS[rng.integers(len(IDS))][:count]
    starts = np.cumsum(sizes)[:-1]
    references = [("a cat", text()), *((text(), text())[: rng.integers(3)] for _ in range(count))]
    lists = from_lists(
        np.split([f"{text()}{row}" if row % 2 else text() for row in range(rows)], starts),
        np.split(features, starts),
        names,
        sentence_ids=ids if isinstance(ids[0], int) else None,
        references=references[:count] if has[2] else None,
        sources=[text() for _ in range(count)] if has[3] else None,
        totals=np.split(rng.normal(size=rows), starts) if has[4] else None,
    )
    if isinstance(ids[0], str):
        lists = lists.with_sentence_extras(id=ids)
    if has[5]:
        lists = lists.with_sentence_extras(doc=[text() for _ in range(count)])
    if has[6]:
        lists = lists.with_extras(by=[text() for _ in range(rows)])
    if has[7]:
        lists = lists.with_extras(topic=[None if row % 2 else text() for row in range(rows)])
    if has[8]:
        judged = rng.choice(np.array([np.nan, -0.5, 2, 1 / 3]), rows)
        judged[rng.integers(rows)] = np.nan
        lists = lists.with_extras(mqm=judged)
    return lists


def content(lists: NBest, whole: bool) -> dict[str, Any]:
    """Return the columns of lists: of the whole, or of what formats of lines have."""
    columns = {
        "id": lists.ids if whole else tuple(lists.sentence_ids.tolist()),
        "text": [lists.texts(s) for s in range(len(lists))],
    }
    for column, values in zip(lists.feature_names, lists.features.T, strict=True):
        columns[column] = values.tobytes()
    if whole:
        columns |= {"references": lists.references, "sources": lists.sources}
        columns |= {"totals": None if lists.totals is None else lists.totals.tobytes()}
        extras = {**lists.extras, **lists.sentence_extras}
        extras.pop("id", None)
        if "mqm" in extras:  # cells of text files, or numbers
            extras["mqm"] = read_column(lists, "mqm")
        columns |= {n: [None if v != v else v for v in of] for n, of in extras.items()}
    return columns


@NOTES
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("names", [[], ["lm"], ["lm", "TM0[0]", "TM0[1]"]], ids=len)
def test_lists_read_back_or_are_refused(
    name: str, names: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A column that would not read back is left out with a note."""
    format, path, whole = FORMATS[name], tmp_path / "lists", name not in LINES
    read = 0
    for seed in range(12):
        if seed == 4:  # the first four were read as one block
            request.getfixturevalue("small_blocks")
        lists = some_lists(np.random.default_rng([seed, len(names)]), names)
        with capture_notes() as notes:
            try:
                write_nbest(lists, path, format=format)
            except (DataError, UsageError):
                continue
        expected = content(lists, whole)
        options: Any = {"format": format}
        if name == "plain":
            options["format"] = structs.replace(format, first_id=int(lists.sentence_ids[0]))
        back = read_nbest(path, **options)
        actual = content(back, whole)
        for lost in expected.keys() - actual.keys():
            assert any(lost in note.message and "left out" in note.message for note in notes)
            del expected[lost]
        assert actual == expected, seed
        tables = concatenate(iter_nbest(path, chunk=1, **options), fill_missing=True)
        assert content(tables, whole) == actual, seed
        read += 1
    assert (read > 2) == (name != "plain" if names else name not in LINES[:3])


@pytest.mark.parametrize("name", LINES)
def test_ids_that_formats_of_lines_lack_are_noted(name: str, tmp_path: Path) -> None:
    features = [] if name == "plain" else ["F0"]
    lists = from_lists([["a", "b"]] * 2, np.ones((2, 2, len(features))), features)
    with pytest.warns(BpaWarning, match="such as '007'"):
        write_nbest(
            lists.with_sentence_extras(id=("007", "08")), tmp_path / "out", format=FORMATS[name]
        )


@pytest.mark.parametrize("name", ["jsonl", "parquet", "csv", "tsv, quoted"])
def test_odd_names_and_columns_read_back(tmp_path: Path, name: str) -> None:
    nbest = from_lists([["a", "b"], ["c"]], [[[1], [2]], [[3]]], ['odd, "name"'])
    nbest = nbest.with_extras(system=["u", "5a", "w"]).with_sentence_extras(title=["t", "u"])
    if name in ("jsonl", "parquet"):
        spans = ([[1, 2], [3]], [], [[4]])
        nbest = nbest.with_extras(spans=spans).with_sentence_extras(n=[1, 2], share=[0.5, 0.25])
    write_nbest(nbest, tmp_path / "out.gz", format=FORMATS[name])
    options: Any = {"format": FORMATS[name] if name == "tsv, quoted" else "auto"}
    lists = read_nbest(tmp_path / "out.gz", **options)
    parts = concatenate(iter_nbest(tmp_path / "out.gz", chunk=1, **options))
    for back in (lists, parts):
        assert table_content(back, "cells") == table_content(nbest, "cells")
        assert back.cells == (frozenset() if name in ("jsonl", "parquet") else {"system"})


# --- what is not written -------------------------------------------------------------------------

#: Texts that are cut, or not read, between the fields of a line.
BETWEEN = (" a", "a ", " ", "a\rb", "a\nb")


@pytest.mark.parametrize(
    ("format", "text", "names", "code"),
    [
        *((f, text, ["LM0"], "not-supported") for f in ("moses", "marian") for text in BETWEEN),
        *(("moses", "a", [n], "bad-name") for n in ("a b", "", "=", "|||")),
        *((f, "a", [], "not-supported") for f in ("moses", "marian")),
        *(("plain", text, [], "not-supported") for text in ("a\nb", "a\r", "\ufeffa")),
        ("moses", "a", ["my_lm", "my.lm"], "duplicate"),
        ("jsonl", "a", ["text", "lm"], "bad-name"),
        *(
            (f, "a", [n], "bad-name")
            for f in ("jsonl", "csv", "parquet")
            for n in ("text", "total")
        ),
    ],
    ids=repr,
)
def test_texts_and_names_not_stored(
    tmp_path: Path, format: str, text: str, names: list[str], code: str
) -> None:
    nbest = from_lists([[text]], [[range(len(names))]], names)
    with raises(DataError, code):
        write_nbest(nbest, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["csv", "tsv", "tsv:quoted=true"])
def test_a_column_with_nul_is_not_written(tmp_path: Path, format: str) -> None:
    nbest = from_lists([["a"]], [[[1]]], ["lm"])
    for lists in (nbest.with_extras(by=["a\0"]), nbest.with_sentence_extras(id=["a\0"])):
        with raises(DataError, "not-supported", match="NUL"):
            write_nbest(lists, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


def test_lists_that_plain_text_cannot_store(tmp_path: Path) -> None:
    uneven = from_lists([["a", "b"], ["c"]], [[[], []], [[]]], [])
    for lists in (uneven, concatenate([uneven[1:], uneven[:1].truncate(1)])):
        with raises(DataError, "not-supported"):
            write_nbest(lists, tmp_path / "out", format="plain")
    scored = uneven[[1]].truncate(1).with_features("lm", [1])
    with raises(UsageError, "wrong-length", parameter="scores"):
        write_nbest(scored, tmp_path / "out", format="plain")
    assert list(tmp_path.iterdir()) == []


def test_columns_that_would_not_read_back_are_left_out(tmp_path: Path) -> None:
    extras = {"comet": np.array([0.5, 0.25]), "thing": (object(), object())}
    nbest = from_lists([["a", "b"]], [[[1], [2]]], ["lm"]).with_extras(**extras)
    with pytest.warns(BpaWarning, match="thing left out, which would not read back unchanged"):
        write_nbest(nbest, tmp_path / "out.jsonl")
    assert read_nbest(tmp_path / "out.jsonl").extras == {"comet": (0.5, 0.25)}
    with raises(DataError, "duplicate"):
        write_nbest(nbest[[0, 0]], tmp_path / "out.jsonl")


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_features_may_be_called_as_fields_of_sentences(tmp_path: Path, format: str) -> None:
    names = ["id", "source", "reference", "candidates", "features", "sentence.x", "a.b"]
    nbest = from_lists([["a", "b"]], [[range(7), range(7)]], names)
    write_nbest(nbest, tmp_path / "out", format=format)
    assert table_content(read_nbest(tmp_path / "out")) == table_content(nbest)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 5000])
def test_names_that_no_file_can_have(toy: NBest, tmp_path: Path, name: str) -> None:
    with raises(DataError, "cannot-read"):
        read_nbest(name)
    with raises(DataError, "cannot-write"):
        write_nbest(toy, tmp_path / name, format="moses")


@pytest.mark.parametrize("format", ["fairseq", "openai", "kaldi", "espnet"])
def test_formats_that_are_only_read(tmp_path: Path, toy: NBest, format: str) -> None:
    with raises(UsageError, "not-supported", parameter="format"):
        write_nbest(toy, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "a.nbest100.gz", "a.100best", "a.txt.zst"])
def test_moses_where_the_name_says_no_format(toy: NBest, tmp_path: Path, name: str) -> None:
    write_nbest(toy, tmp_path / name)
    assert b" ||| " in InputFile(tmp_path / name).first_line


@pytest.mark.parametrize("name", ["a.tab.gz", "a.json", "a.nbest.old"])
def test_a_name_that_ends_otherwise_is_refused(toy: NBest, tmp_path: Path, name: str) -> None:
    with raises(UsageError, "unknown-format", parameter="format"):
        write_nbest(toy, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_totals_of_new_weights_and_renamed_features(tmp_path: Path) -> None:
    nbest = from_lists([["a"]], [[[1, 2]]], ["my_lm", "W0"], totals=[[9]])
    with pytest.warns(BpaWarning, match="`_` written as `.` in my_lm,"):
        write_nbest(nbest, tmp_path / "out", {"W0": 0.5, "my_lm": 3})
    again = read_nbest(tmp_path / "out")
    assert again.feature_names == ("my.lm", "W0")
    assert again.totals.tolist() == [4]  # type: ignore[union-attr]


def test_cells_are_written_as_the_numbers_that_they_print(tmp_path: Path) -> None:
    """In files that distinguish numbers from texts; and as the same cells again."""
    lines = ["id,text,human,code,lr,price", "0,a,5,07,0.001,1.50", "0,b,,08,-2.5,2", "1,c,3,9,7,3"]
    lists = read_nbest(lines, format="csv")
    expected = {
        "human": (5, None, 3),
        "code": ("07", "08", "9"),
        "lr": (0.001, -2.5, 7.0),
        "price": ("1.50", "2", "3"),
    }
    for name in ("lists.jsonl", "lists.parquet"):
        write_nbest(lists, tmp_path / name)
        again = read_nbest(tmp_path / name)
        for column, values in expected.items():
            found = [None if v != v else v for v in list(again.extras[column])]
            assert found == list(values), column
    write_nbest(read_nbest(tmp_path / "lists.jsonl"), tmp_path / "again.csv")
    assert dict(read_nbest(tmp_path / "again.csv").extras) == dict(lists.extras)
