"""Ids of one file that look the same, or are the same number, are an error."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.user_files import ALIKE, Write

from bpa_ppl import (
    BayesianRanker,
    DataError,
    UsageError,
    from_records,
    read_nbest,
)


def as_jsonl(ids: list[str]) -> list[str]:
    return [json.dumps({"id": one, "candidates": [{"text": "a", "lm": 1}]}) for one in ids]


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
