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

from bpa_ppl import from_lists, read_nbest, write_nbest
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


def test_rows_are_those_of_the_strict_csv_module(write: Write) -> None:
    rng, counts = np.random.default_rng(0), Counter[bool]()
    for _ in range(300):
        text = "".join(rng.choice(list('ab,""\n'), rng.integers(1, 14))) + "\n"
        try:
            rows = list(filter(any, csv.reader(io.StringIO(text, newline=""), strict=True)))
        except csv.Error:
            rows = []
        path = write(f"id,text\n{text}".encode(), name="lists.csv")
        if sound := bool(rows) and all(len(row) == 2 and row[0] for row in rows):
            lists = read_nbest(path)
            read = [(str(i), t) for s, i in enumerate(lists.ids) for t in lists.texts(s)]
            assert sorted(read) == sorted(map(tuple, rows))
        else:
            with pytest.raises(DataError):
                read_nbest(path)
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
    assert read_nbest(write(*rows), format="csv").extras["by"][-1] == "x"
