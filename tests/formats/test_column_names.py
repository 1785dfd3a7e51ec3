"""Tables and JSON lines whose columns have other names than usual."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from raising import raises

from bpa_ppl import read_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.separated import Csv, Tsv

Write = Callable[..., Path]
NAMES = {"id": "segment", "text": "output", "source": "src", "reference": "ref"}
CANDIDATES = [{"output": "a cat", "lm": -1.5, "by": "x"}, {"output": "cat", "lm": -2, "by": "y"}]
WHOLE = {"segment": 7, "src": "un chat", "ref": "the cat"}
SETTINGS = ",".join(f"{usual}={name}" for usual, name in NAMES.items())


def written(form: str, path: Path) -> Path:
    """Write a list of two candidates in some format."""
    rows = [{**WHOLE, **candidate} for candidate in CANDIDATES]
    lines = [json.dumps(row) for row in rows]
    if form.startswith("parquet"):
        nested = [{**WHOLE, "hyps": CANDIDATES}]
        parquet.write_table(pa.Table.from_pylist(nested if "hyps" in form else rows), path)
        return path
    if "hyps" in form:
        lines = [json.dumps({**WHOLE, "hyps": CANDIDATES})]
    if form.startswith(("csv", "tsv")):
        mark = "," if form.startswith("csv") else "\t"
        lines = [mark.join(rows[0]), *(mark.join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "jsonl-hyps", "parquet-hyps"])
def test_named_columns_are_the_usual_ones(form: str, tmp_path: Path) -> None:
    name, _, nested = form.partition("-")
    format = f"{name}:{SETTINGS}" + (",candidates=hyps" if nested else "")
    lists = read_nbest(written(form, tmp_path / "lists"), format=format)
    assert (lists.ids, lists.texts(0), lists.feature_names) == ((7,), ["a cat", "cat"], ("lm",))
    assert (lists.sources, lists.references) == (("un chat",), (("the cat",),))
    assert dict(lists.extras) == {"by": ("x", "y")}
    assert lists.features[:, 0].tolist() == [-1.5, -2]


@pytest.mark.parametrize(
    "lines",
    [
        ["id,segment,output,lm,text", "0,7,a cat,-1,un chat", "1,7,cat,-2,un chat"],
        [
            json.dumps({"id": n, "segment": 7, "output": t, "lm": -n, "text": "un chat"})
            for n, t in enumerate(["a cat", "cat"], 1)
        ],
    ],
)
def test_a_column_whose_place_is_taken_is_left_out(write: Write, lines: list[str]) -> None:
    name = "csv" if lines[0].startswith("id") else "jsonl"
    with pytest.warns(BpaWarning) as caught:
        lists = read_nbest(write(*lines), format=f"{name}:id=segment,text=output")
    assert sorted("column text" in str(one.message) for one in caught) == [False, True]
    assert (lists.ids, lists.texts(0), lists.feature_names) == ((7,), ["a cat", "cat"], ("lm",))


@pytest.mark.parametrize(
    ("lines", "format", "shown"),
    [
        (["segment,output", "7,a"], "csv", "segment"),
        (["id,words,lm", "0,a,1"], "csv", "no column text .*words"),
        (["segment,output", "7,a"], Csv(id="segment", text="out"), "no column out .*text=output"),
        (["segment\toutput", "7\ta"], Tsv(id="seg", text="output"), "no column seg .*id=segment"),
        (['{"segment": 7, "output": "a"}'], Jsonl(id="segment"), "no column text .*text=output"),
        (
            ['{"segment": 7, "candidates": ["a"]}'],
            Jsonl(id="sentence"),
            "no column sentence .*id=segment",
        ),
        (['{"id": 7, "candidates": [{"hyp": "a"}]}'], "jsonl", "no column text .*text=hyp"),
    ],
)
def test_an_absent_column_is_named_with_the_nearest(
    write: Write, lines: list[str], format: Any, shown: str
) -> None:
    with raises(DataError, "missing-column", parameter="format", line=1, match=shown):
        read_nbest(write(*lines), format=format)


@pytest.mark.parametrize("settings", [{"id": "text"}, {"id": ""}, {"id": "a", "text": "a"}])
def test_names_differ(settings: dict[str, str]) -> None:
    with raises(UsageError, "invalid-setting", parameter="format"):
        Csv(**settings)
