"""Missing numbers as people and programs write them."""

from __future__ import annotations

import json
import re
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.user_files import Write

import bpa_ppl as bpa
from bpa_ppl import from_records, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError

SPELLINGS = [
    *("None", "none", "nan", "NaN", "null", "NULL", "N/A", "n/a", "na", "#N/A", "<NA>", "-"),
    *(".", "..", "?", "--", "–", "—", "n.a.", "N.A.", "nil", "missing", "Missing", "unknown"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "(null)", "undefined", "\\N", "{}"),
    *("-nan", "-1.#IND", "1.#QNAN", "#NA", "not rated", "Not applicable", "skipped"),
    *("Skip", "NaT", "TBD", "pending", "refused", "No answer"),
]
#: Which say why there is no number, or are no finite number.
BAD_SPELLINGS = ["error", "failed", "inf", "-inf", "#1", "n", "no", "3 stars", "1.#", "-1-"]
READ = "is {!r}: read as missing, because other values are numbers"


#: Each spelling in one of the places of a file, with one of the separators; all pairs of these.
CELLS = [
    pytest.param(spelling, *where, id=f"{spelling} {where}")
    for spelling, where in zip(SPELLINGS, cycle(product([0, 1, 29], ",\t;")), strict=False)
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("spelling", "place", "separator"), CELLS)
def test_texts_for_missing_cells(write: Write, spelling: str, place: int, separator: str) -> None:
    rows = [f"{k // 3},t{k},{k},{k}" for k in range(30)]
    rows[place] = f"{place // 3},{spelling},{place}, {spelling}"
    lines = [line.replace(",", separator) for line in ["id,text,lm,mqm", *rows]]
    with pytest.warns(BpaWarning) as notes:
        lists = read_nbest(write(*lines))
    texts = [str(note.message) for note in notes if "separated by" not in str(note.message)]
    assert READ.format(f" {spelling}") in texts[0]
    assert re.search(f":{place + 2}: mqm is|mqm of record {place + 2} is", texts[0])
    assert "mqm is missing for 1 of 30" in texts[1]
    expected = np.where(np.arange(30) == place, np.nan, np.arange(30))
    np.testing.assert_array_equal(lists.extras["mqm"], expected)
    assert lists.text(place) == spelling  # a candidate, as it is


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("value", ["None", "n/a", float("nan")])
@pytest.mark.parametrize("first", [True, False])
def test_missing_numbers_in_json(write: Write, value: Any, first: bool) -> None:
    missing = set(range(70)) if first else {3, 60}  # many are in blocks of their own
    records = [
        {"id": k // 2, "text": "a", "mqm": value if k in missing else -k / 2} for k in range(80)
    ]
    lines = [json.dumps(record) for record in records]
    for read in (lambda: read_nbest(write(*lines)), lambda: from_records(records)):
        with pytest.warns(BpaWarning) as notes:
            lists = read()
        expected = [np.nan if k in missing else -k / 2 for k in range(80)]
        np.testing.assert_array_equal(lists.extras["mqm"], expected)
        texts = [str(note.message) for note in notes]
        assert any(f"mqm is missing for {len(missing)} of 80" in text for text in texts)
        assert [f"'{value}': read as missing" in text for text in texts].count(True) == (
            isinstance(value, str)
        )


def test_nan_in_json_is_null_and_infinity_is_an_error(write: Write) -> None:
    line = '{"id": 0, "doc": NaN, "candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": %s}]}'
    with pytest.warns(BpaWarning, match="lm is missing for 1 of 2"):
        lists = read_nbest(write(line % "NaN"))
    np.testing.assert_array_equal(lists.extras["lm"], [1, np.nan])
    assert lists.sentence_extras == {"doc": (None,)}
    with raises(DataError, "bad-data", line=1, parameter="bad", match="inf, not a finite"):
        read_nbest(write(line % "Infinity"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_texts_in_columns_of_texts_stay(write: Write, tmp_path: Path, ending: str) -> None:
    labels = ["None", "none", "-", "minor"]
    lines = [
        "id,text,lm,label,all",
        *(f"0,t{k},{k},{label},none" for k, label in enumerate(labels)),
    ]
    lists = read_nbest(write(*lines))
    assert (lists.extras["label"], lists.extras["all"]) == (tuple(labels), ("none",) * 4)
    years = {"year": ["None", "y1", "2", "n/a"]}  # numbers, or texts where they are quoted
    if ending != "csv":
        lists = lists.with_extras(**years)
    path = tmp_path / f"out.{ending}"
    if ending == "csv":
        lists = lists.without("all")  # which cannot be told from missing numbers
    write_nbest(lists, path)
    again = read_nbest(path)
    assert {n: tuple(v) for n, v in again.extras.items()} == {
        n: tuple(v) for n, v in lists.extras.items()
    }


def test_a_stream_whose_first_lists_have_texts_alone(write: Write) -> None:
    rows = [f"{k},t,{k},{'None' if k < 3 else k}" for k in range(6)]
    path = write("id,text,lm,mqm", *rows)
    with pytest.warns(BpaWarning, match="read as missing|missing for 3 of 6"):
        tables = list(iter_nbest(path, chunk=2))
    assert [table.feature_names for table in tables] == [("lm",)] * 3
    np.testing.assert_array_equal(tables[2].extras["mqm"], [4, 5])


@pytest.mark.parametrize("spelling", BAD_SPELLINGS)
def test_the_remedies_of_a_bad_cell(write: Write, spelling: str) -> None:
    rows = ["0,a,1,-5", f"0,b,2,{spelling}", "0,c,3,-1"]
    with raises(
        DataError, "bad-number", line=3, parameter="bad", match="leave the cell empty .*bad: drop"
    ):
        read_nbest(write("id,text,lm,mqm", *rows))
    with pytest.warns(BpaWarning, match="1 candidate dropped"):
        assert read_nbest(write("id,text,lm,mqm", *rows), bad="drop").texts(0) == ["a", "c"]
    with pytest.warns(BpaWarning, match="missing for 1 of 3"):
        assert len(read_nbest(write("id,text,lm,mqm", *rows[:1], "0,b,2,", rows[2])).features) == 3


def test_the_text_that_is_no_number_is_named(write: Write) -> None:
    """Not the one that would be missing among numbers."""
    lines = [json.dumps({"id": 0, "text": "a", "lm": lm}) for lm in ("None", "x", 1)]
    with raises(DataError, "bad-data", line=3, match="lm of record 2 is 'x'"):
        read_nbest(write(*lines))


def test_a_verdict_that_is_not_given_is_no_missing_number() -> None:
    rows = [{"id": 0, "text": of, "lm": 1, "ok": of} for of in ("passed", "not passed", "passed")]
    with pytest.raises(bpa.UsageError, match="'not passed', and cannot be the gain"):
        bpa.gains(from_records(rows), "ok")


@pytest.mark.filterwarnings("ignore:mqm is missing for 1 of 3")
@pytest.mark.parametrize("index", [None, "id", "system"])
def test_texts_among_the_numbers_of_a_frame(index: str | None) -> None:
    columns = {"id": [4, 4, 5], "text": list("abc"), "system": list("xyz"), 7: [1.0, 2.0, 3.0]}
    frame = pd.DataFrame({**columns, "mqm": [0.5, "N/A", 1.5]})
    frame = frame.set_index(index) if index else frame.set_index(pd.Index([5, 3, 1]))
    with pytest.warns(BpaWarning, match=r"mqm of record 2 is 'N/A': read as missing"):
        lists = from_records(frame)
    assert (lists.feature_names, lists.ids) == (("7",), (4, 5))
    assert lists.features.ravel().tolist() == [1, 2, 3]
    np.testing.assert_array_equal(lists.extras["mqm"], [0.5, np.nan, 1.5])
    assert list(lists.extras["system"]) == list("xyz")
    with raises(
        DataError, "bad-data", line=2, match="mqm of record 1 is 'cat': give the field one type"
    ):
        from_records(frame.assign(mqm=["cat", 0.5, 1.5]))
    with raises(DataError, "duplicate", match="two columns mqm"):
        from_records(frame.set_index("mqm", drop=False))
