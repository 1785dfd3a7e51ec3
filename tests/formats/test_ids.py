"""Ids of one file that look the same, or are the same number, are an error."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import (
    BayesianRanker,
    DataError,
    UsageError,
    from_records,
    iter_nbest,
    read_nbest,
)

#: Two ids, and how the message shows the second one.
ALIKE = {
    "trailing blank": ("doc1", "doc1 ", "'doc1 '"),
    "no-break space": ("doc 1", "doc\u00a01", r"'doc\xa01'"),
    "two blanks": ("doc 1", "doc  1", "'doc  1'"),
    "forms of Unicode": ("caf\u00e9", "cafe\u0301", r"'cafe\u0301'"),
    "both odd": ("doc1 ", " doc1", "' doc1'"),
}


def as_jsonl(ids: list[str]) -> list[str]:
    return [json.dumps({"id": one, "candidates": [{"text": "a", "lm": 1}]}) for one in ids]


def as_long_jsonl(ids: list[str]) -> list[str]:
    return [json.dumps({"id": one, "text": "a", "lm": 1}) for one in ids]


def as_csv(ids: list[str]) -> list[str]:
    return ["id,text,lm", *(f'"{one}",a,1' for one in ids)]


def as_tsv(ids: list[str]) -> list[str]:
    return ["id\ttext\tlm", *(f"{one}\ta\t1" for one in ids)]


def as_parquet(ids: list[str]) -> bytes:
    file = io.BytesIO()
    pd.DataFrame({"id": ids, "text": "a", "lm": 1.5}).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("write", [as_jsonl, as_long_jsonl, as_csv, as_tsv, as_parquet])
@pytest.mark.parametrize("pair", ALIKE.values(), ids=ALIKE)
@pytest.mark.usefixtures("small_blocks")
def test_ids_that_look_the_same(
    pair: tuple[str, str, str], write: Callable[[list[str]], Any], swapped: bool
) -> None:
    one, other, shown = pair
    ids = [one, *(f"other{k}" for k in range(40)), other]
    content = write(ids[::-1] if swapped else ids)
    line = len(ids) + (write in (as_csv, as_tsv))
    for read in (read_nbest, lambda content: list(iter_nbest(content, chunk=1))):
        with raises(DataError, "duplicate", line=line, match="look the same: write") as found:
            read(content)
        assert shown in str(found.value)


@pytest.mark.parametrize("pair", ALIKE.values(), ids=ALIKE)
def test_references_and_labels_that_look_the_same(pair: tuple[str, str, str], write: Write) -> None:
    one, other, shown = pair
    lists = from_records([{"id": name, "text": "a", "lm": 1.5} for name in (one, "b")])
    with raises(UsageError, "duplicate", parameter="references", match="look the same"):
        lists.with_references({one: "x", other: "y"})
    table = write("id\treference", f"{one}\tx", f"{other}\ty", name="references.tsv")
    with raises(DataError, "duplicate", line=3, match="look the same"):
        read_nbest(as_jsonl([one, "b"]), references=table)
    for labels in ([one, other], pd.Series([one, other]), np.array([one, other])):
        with raises(DataError, "duplicate", parameter="qid", match="look the same") as found:
            BayesianRanker().fit(np.zeros((2, 1)), [0.0, 1.0], qid=labels)
        assert shown in str(found.value).replace("\\\\", "\\")


def test_ids_that_look_different_are_kept() -> None:
    ids = ["doc1", "doc 1", "Doc1", "doc1.", "ｄoc1", "doc\u0131", "café", "cafe", "k\u0307", "k"]
    assert read_nbest(as_jsonl(ids)).ids == tuple(ids)
