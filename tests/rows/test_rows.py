"""Columns of Arrow as arrays, and words that lists share with their references."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bpa_ppl.rows.gathering import _related
from bpa_ppl.rows.readers import single_array, values_of

COLUMNS = {
    "floats": pa.array([1.5, -0.0, 1e300]),
    "whole numbers": pa.array([1, -2, 3], pa.int32()),
    "with gaps": pa.array([None, 1.5, None, 2.5]),
    "nothing": pa.array([], pa.float64()),
    "only gaps": pa.nulls(3).cast(pa.float64()),
    "a part": pa.array([0.0, None, 1.5, None, 2.5])[1:4],
    "small": pa.array([1.5, None], pa.float32()),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("cut", [False, True], ids=["one piece", "two pieces"])
def test_numbers_as_pyarrow_gives_them(column, cut):
    given = pa.chunked_array([column[:1], column[1:]]) if cut else column
    np.testing.assert_array_equal(values_of(given), column.to_numpy(zero_copy_only=False))


def test_whole_numbers_stay_so_where_one_is_missing():
    values = values_of(pa.array([3, None], pa.int32()), missing=0)
    assert (values.tolist(), values.dtype.kind) == ([3, 0], "i")


@pytest.mark.parametrize("parts", [[], [["a"]], [["a"], [None, "b"]]])
def test_columns_in_one_piece(parts):
    column = pa.chunked_array(parts, pa.string())
    assert single_array(column).to_pylist() == column.to_pylist()


def test_tables_are_read_without_pandas(tmp_path: Path):
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


def words(text: str) -> set[str]:
    """Return the words of a text, or its characters where nothing separates words."""
    folded = text.lower()
    split = folded.isascii() or " " in folded.strip()
    return set(folded.split()) if split else set(folded)


@pytest.mark.parametrize("seed", range(20))
def test_a_word_in_common_is_found_in_any_text(seed: int) -> None:
    rng = random.Random(seed)
    pieces = ["Cat", "category", "a", "the", "Σας", "ΟΔΟΣ", "οδος", "猫", "犬です", "é", "3", "33"]
    seen = set()
    for _ in range(200):
        texts = [" ".join(rng.choices(pieces, k=rng.randint(1, 2))) for _ in range(3)]
        references = [" ".join(rng.choices(pieces, k=rng.randint(1, 2)))]
        known = words(references[0])
        expected = any(known & words(text) for text in texts)
        assert _related(references, texts) is expected
        seen.add(expected)
    assert seen == {True, False}
