"""Tables as text: header, quoting, kinds of columns, numbers of lines."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write

from bpa_ppl import from_lists, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError

pytestmark = pytest.mark.usefixtures("small_blocks")


def test_cells_are_quoted_as_by_the_csv_module(write: Write) -> None:
    rows = ['0,"a, ""b""\nc",1', '0,5" disk,2', '0,d"e,"3"', '1,"\n\n",4', "1,  f ,5", "1,,6"]
    texts = ['a, "b"\nc', '5" disk', 'd"e', "\n\n", "  f ", ""]
    tabs = [row.replace(",", "\t").replace("a\t", "a,") for row in rows]
    for nbest in (
        read_nbest(write("id,text,lm", *rows), features="lm"),
        read_nbest(write("id\ttext\tlm", *tabs), format="tsv:quoted=true", features="lm"),
        read_nbest(write('"id"\ttext\tlm', *tabs), features="lm"),
    ):
        assert [nbest.text(h) for h in range(6)] == texts
        assert nbest.features[:, 0].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("opened", "closed"), [('"Yes', '"a b"'), ('"Yes', '5" disk'), ('"Yes" he', "b")]
)
def test_a_quotation_mark_that_is_not_closed_where_a_cell_ends(
    write: Write, separator: str, opened: str, closed: str
) -> None:
    texts = [f"text {k}" for k in range(70)]
    texts[3], texts[5] = opened, closed
    lines = ['"id",text,lm', *(f"{k},{text},{k}" for k, text in enumerate(texts))]
    path = write(*(line.replace(",", separator) for line in lines))
    for read in (read_nbest, lambda path: list(iter_nbest(path, chunk=1))):
        with raises(DataError, "bad-line", line=5, match="not a row of cells"):
            read(path)


def test_rows_are_those_of_the_strict_csv_module(write: Write) -> None:
    rng, counts = np.random.default_rng(0), Counter[bool]()
    for _ in range(300):
        text = "".join(rng.choice(list('ab,""\n'), rng.integers(1, 14))) + "\n"
        try:
            rows = [
                row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if any(row)
            ]
        except csv.Error:
            rows = []
        content = "id,text\n" + text
        if sound := bool(rows) and all(len(row) == 2 and row[0] for row in rows):
            lists = read_nbest(write(content.encode(), name="lists.csv"), format="csv")
            read = [(str(i), t) for s, i in enumerate(lists.ids) for t in lists.texts(s)]
            assert sorted(read) == sorted(map(tuple, rows))
        else:
            with pytest.raises(DataError):
                read_nbest(write(content.encode(), name="lists.csv"), format="csv")
        counts[sound] += 1
    assert min(counts.values()) > 10


def test_cells_of_tsv_that_look_quoted_are_noted(write: Write, tmp_path: Path) -> None:
    path = write("id\ttext\tlm", "0\ta\t1", '0\t"""Yes"" he said"\t2', '0\t"a ""b"""\t2')
    with pytest.warns(BpaWarning, match=f"^{path}:3: .* as tsv:quoted=true$") as notes:
        nbest = read_nbest(path)
    assert (len(notes), nbest.texts(0)[1]) == (1, '"""Yes"" he said"')
    assert read_nbest(path, format="tsv:quoted=true").texts(0)[1] == '"Yes" he said'
    with pytest.raises(DataError, match=r":3: 2 cells, .* as tsv:quoted=true"):
        read_nbest(write("id\ttext\tlm", "0\ta\t1", '0\t"a', 'b"\t2'))
    quotes = from_lists([['"a" b', '"', '""c""']], [[[1], [2], [3]]], ["lm"])
    write_nbest(quotes, tmp_path / "out.tsv")
    assert table_content(read_nbest(tmp_path / "out.tsv")) == table_content(quotes)
    for odd in "\t\n\r":
        broken = from_lists([["a", f"b{odd}c"]], [[[1], [2]]], ["lm"], sentence_ids=[7])
        with raises(DataError, "not-supported", match="sentence 7 has .* write csv or jsonl"):
            write_nbest(broken, tmp_path / "other.tsv")


@pytest.mark.parametrize("header", ["id,text,lm", "id,text,system", "prompt,chosen,rejected"])
@pytest.mark.parametrize("bad", ["error", "drop"])
def test_a_header_is_not_repeated(write: Write, header: str, bad: str) -> None:
    """As in files that were joined by `cat`."""
    rows = [f"q{k // 2},{k % 2},{k}" for k in range(60)]
    with raises(DataError, "bad-line", line=52, match="the header is repeated: remove the line"):
        read_nbest(write(header, *rows[:50], header, *rows[50:]), bad=bad)


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["id,text,lm", "0,a;1"], ":2: 2 cells, but the header has 3: separate cells by ','"),
        (["id,text,lm", "0,a,1,", "0,b,2,"], ":2: 4 cells, .*, remove it from the ends of lines"),
        (["id,text,lm,lm", "0,a,1,2"], ":1: two columns lm"),
        (["id,,text,lm", "0,0,a,1"], ":1: a column without a name .* index=False"),
        ([",id,text,lm", "0,0,a,1"], ":1: a column without a name .* index=False"),
    ],
)
def test_what_does_not_fit_the_schema_is_named_with_its_line(
    write: Write, lines: list[str], match: str
) -> None:
    with pytest.raises(DataError, match=match):
        read_nbest(write(*lines), format="csv")


def test_what_would_not_read_back(tmp_path: Path) -> None:
    nbest = from_lists([["a"], ["b"]], [[[1]], [[2]]], ["lm"])
    for year in (("", "x"), (True, False), (1, "x"), (object(), "x")):
        with pytest.warns(BpaWarning, match="year left out, which would not read back unchanged$"):
            write_nbest(nbest.with_extras(year=year), tmp_path / "out.csv")
    for values in (("1", "x"), ("x", "NA"), ("x", None), (0.5, 1e-30), np.array([7, -2])):
        write_nbest(nbest.with_extras(year=values), tmp_path / "out.csv")
        lists = read_nbest(tmp_path / "out.csv")
        assert (lists.feature_names, lists.cells) == (("lm",), {"year"})
        cells = tuple(None if value is None else str(value) for value in values)
        assert lists.extras["year"] == cells
    empty = nbest.with_references([("x",), ("y", "")])
    with raises(DataError, "not-supported"):
        write_nbest(empty, tmp_path / "other.csv")
    assert not (tmp_path / "other.csv").exists()


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_semicolons(write: Write, start: str) -> None:
    rows = ["id;text;lm;by", *(f"{k // 2};a, {k};{k}.25;x" for k in range(120))]
    path = write((start + "\r\n".join(rows)).encode())
    nbest = read_nbest(path, features="lm")
    assert nbest.features[:, 0].tolist() == [k + 0.25 for k in range(120)]
    assert (nbest.text(7), set(nbest.extras["by"])) == ("a, 7", {"x"})
    assert read_nbest(path, features="*").feature_names == ("lm",)


@pytest.mark.parametrize("place", [2, 49, 55])
def test_line_breaks_in_cells_count_as_lines(write: Write, place: int) -> None:
    rows = [f"{k // 7},t {k},{k / 8}" for k in range(100)]
    rows[place] = f'{place // 7},"two\nlines",{place / 8}'
    nbest = read_nbest(write("id,text,lm", *rows), features="lm")
    texts = [nbest.text(k) for k in range(len(rows))]
    assert texts == ["two\nlines" if k == place else f"t {k}" for k in range(len(rows))]
    assert nbest.features[:, 0].tolist() == [k / 8 for k in range(len(rows))]
    rows[-1] = "14,t,x"
    with raises(DataError, "bad-number", parameter="bad", line=102):
        read_nbest(write("id,text,lm", *rows), features="lm")


@pytest.mark.parametrize("quote", ["", '"'])
def test_carriage_returns(write: Write, quote: str) -> None:
    rows = ["id,text,lm", *(f"{k},{quote}t {k}{quote},{k}" for k in range(60))]
    lists = read_nbest(write("\r\r\n".join([*rows, ""]).encode()), format="csv")
    assert [lists.text(k) for k in range(60)] == [f"t {k}" for k in range(60)]
    rows[40] = '39,"a\rb",39'
    assert read_nbest(write("\n".join([*rows, ""]).encode()), format="csv").text(39) == "a\rb"
    rows[50] = "49,a\rb,49"
    with raises(DataError, "bad-line", line=51, match="carriage returns"):
        read_nbest(write("\n".join([*rows, ""]).encode()), format="csv")
    tabs = "\n".join([*rows, ""]).replace(",", "\t").replace('"', "").encode()
    with raises(DataError, "bad-line", line=41, match="carriage returns"):
        read_nbest(write(tabs), format="tsv")


def test_lines_of_empty_cells_need_no_number_of_cells(write: Write) -> None:
    rows = [",,", "", "id,text,by", *(f"{k},t,{'x' * (k == 9)}" for k in range(10))]
    with raises(DataError, "wrong-length", line=3, match="2 cells, but the header has"):
        read_nbest(write("id,text,lm", ",,,,,", "0,a", "0,a,1"), format="csv")
    assert read_nbest(write(*rows), format="csv").extras["by"][-1] == "x"
