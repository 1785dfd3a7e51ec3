"""Lists of cdec, in which a feature that a line lacks is zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats import cdec

GOLDEN = Path(__file__).parent / "golden"
Write = Callable[..., Path]


def test_the_golden_file() -> None:
    nbest = read_nbest(GOLDEN / "cdec.nbest", strict=True)
    names = ("EgivenFCoherent", "Glue", "LanguageModel", "WordPenalty", "PassThrough")
    assert nbest.feature_names == names
    rows = [[1.25, 2, -9.5, -1.30288, 0], [1.5, 0, -10, -1.73718, 1], [0] * 5, [0, 1, 0, 0, 0]]
    assert nbest.features.tolist() == np.float32(rows).tolist()
    assert nbest.totals is not None
    assert nbest.totals.tolist() == np.float32([-7.5, -8.25, 0, 1e-5]).tolist()
    assert nbest.strings == ("a black cat", "a cat ||| black", "", "x=1")


def test_names_are_those_of_the_first_lines(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl.formats.streams._BLOCK", 30)
    monkeypatch.setattr("bpa_ppl.formats.streams._CHUNK", 20)
    path = write(*(f"{i} ||| a ||| f{i // 10}=1 ||| {i}" for i in range(40)))
    parts = list(iter_nbest(path, chunk=7, format="cdec"))
    assert {part.feature_names for part in parts} == {("f0", "f1", "f2", "f3")}
    assert NBest.concatenate(parts).features.sum(axis=0).tolist() == [10] * 4
    monkeypatch.setattr(cdec, "_FIRST", 25)
    with raises(DataError, "mismatch", line=31, match="f3 is not in the first lines"):
        list(iter_nbest(path, chunk=1, format="cdec"))


def test_lists_without_totals_are_not_written(tmp_path: Path) -> None:
    lists = NBest.from_lists([["a"]], [[[1.0]]], ["lm"])
    with raises(UsageError, parameter="weights"):
        write_nbest(lists, tmp_path / "out", format="cdec")
