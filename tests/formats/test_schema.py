"""Columns of Arrow as arrays, tables without pandas, and messages about records in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.raising import raises

from bpa_ppl import BpaWarning, DataError, Draws, from_records, iter_nbest, rerank
from bpa_ppl.formats.values import to_numpy

COLUMNS = {
    "floats": pa.array([1.5, -0.0, 1e300]),
    "whole numbers": pa.array([1, -2, 3], pa.int32()),
    "with gaps": pa.array([None, 1.5, None, 2.5]),
    "nothing": pa.array([], pa.float64()),
    "a part": pa.array([0.0, None, 1.5, None, 2.5])[1:4],
    "two pieces": pa.chunked_array([[1.5], [None, 2.5]]),
    "no piece": pa.chunked_array([], pa.float64()),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_numbers_as_pyarrow_gives_them(column: pa.Array | pa.ChunkedArray) -> None:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    np.testing.assert_array_equal(to_numpy(column), whole.to_numpy(zero_copy_only=False))


def test_whole_numbers_stay_so_where_one_is_missing() -> None:
    values = to_numpy(pa.array([3, None], pa.int32()), missing=0)
    assert (values.tolist(), values.dtype.kind) == ([3, 0], "i")


def test_tables_are_read_without_pandas(tmp_path: Path) -> None:
    csv, plain, scores = (tmp_path / name for name in ("lists.csv", "lists", "scores"))
    csv.write_text("id,text,lm\n" + "0,a cat,-1.5\n" * 100)
    plain.write_text("a cat\n" * 100)
    scores.write_text("lm\n" + "-1.5\n" * 100)
    code = (
        "import sys; from bpa_ppl import read_nbest\n"
        f"lists = read_nbest({str(csv)!r})\n"
        f"other = read_nbest({str(plain)!r}, format='plain:list_size=100,scores={scores}')\n"
        "assert (lists.features == other.features).all() and lists.strings == other.strings\n"
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]


def test_references_share_characters_where_nothing_separates_words() -> None:
    """A warning, which is an error here, says that they have no word in common."""
    words = [chr(0x4E00 + n) for n in range(12)]
    records = [
        {"id": n, "text": f"{word}猫", "reference": f"小{word}"} for n, word in enumerate(words)
    ]
    assert len(from_records(records)) == 12
    other = [{**record, "reference": "狗"} for record in records]
    with pytest.warns(BpaWarning, match="12 of 12 lists have no word in common"):
        from_records(other)


@pytest.mark.parametrize(
    "line", ["{n} ||| text {n} ||| lm= {n}", '{{"id": {n}, "text": "text {n}"}}']
)
def test_parts_of_a_stream_have_their_own_texts_alone(line: str) -> None:
    parts = list(iter_nbest([line.format(n=n) for n in range(4)], chunk=2))
    assert [part.strings for part in parts] == [("text 0", "text 1"), ("text 2", "text 3")]


def test_a_text_among_numbers_is_named_with_a_number() -> None:
    """Either of them may be the wrong one; data in memory have records, and no file."""
    candidates = [{"text": "a", "lm": "high"}, {"text": "b", "lm": 2}]
    records = [{"id": 0, "candidates": candidates[1:]}, {"id": 1, "candidates": candidates}]
    with raises(
        DataError,
        "bad-data",
        parameter="bad",
        line=2,
        match=r"^record 2: candidates\[0\].lm is 'high'",
    ):
        from_records(records)
    match = r"^record 1: candidates\[1\].lm is 2.* candidates\[0\].lm of record 1 is 'high'"
    with raises(DataError, "bad-data", line=1, match=match):
        from_records(records[1:])


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, r"candidates\[1\] of list doc-7 has no lm"),
        (True, r"lm of candidates\[0\] of list doc-7 is true, not a number"),
    ],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_the_candidate_without_a_feature_is_named(value: object, named: str) -> None:
    """All values are true, or one is missing."""
    odd = {"text": "b", "lm": value}
    first = odd if value else {"text": "a", "lm": 0.5}
    lists = from_records([{"id": "doc-7", "candidates": [first, odd]}])
    draws = Draws({"weights": np.ones((1, 4, 1))}, ("lm",))
    with raises(DataError, "missing-feature", parameter="without", match=f"^{named}"):
        rerank(lists, draws, unchecked=True)


def test_notes_on_data_in_memory_name_no_file() -> None:
    records = [{"id": 0, "text": text, "lm": lm} for text, lm in (("a", 1.0), ("b", None))]
    with pytest.warns(BpaWarning, match="^lm is missing for 1 of 2"):
        from_records(records)
