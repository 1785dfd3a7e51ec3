"""Block that are named in the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import DataError, read_nbest

Write = Callable[..., Path]

LINES = {
    "csv": ["id,text,lm,seg", "0,a,1,7", "0,b,2,7"],
    "jsonl": ['{"id": 0, "source": "s", "candidates": [{"text": "a", "lm": 1}]}'],
}


@pytest.mark.parametrize(
    ("format", "columns"),
    [
        ("csv", "id=zz"),
        ("csv", "text=zz"),
        ("csv", "source=zz"),
        ("csv", "text=id"),
        ("csv", "reference=text"),
        ("jsonl", "id=zz"),
        ("jsonl", "text=zz"),
        ("jsonl", "source=zz"),
        ("jsonl", "candidates=zz"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is left out")
def test_a_column_that_is_named_and_absent_is_refused(
    write: Write, format: str, columns: str
) -> None:
    with raises(DataError, "missing-column", line=1, parameter="format"):
        read_nbest(write(*LINES[format]), format=f"{format}:{columns}")


def test_a_column_with_two_names_is_refused(write: Write) -> None:
    with raises(DataError, "duplicate", parameter="format", match="seg"):
        read_nbest(write(*LINES["csv"]), format="csv:id=seg,source=seg")
