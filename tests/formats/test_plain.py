"""Plain text of candidates, and scores in files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write

from bpa_ppl import concatenate, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError


@pytest.fixture
def texts(write: Write) -> Path:
    return write(*(f"t {k}" for k in range(6)), name="hyps")


@pytest.mark.parametrize("chunk", [1, 2, 9])
@pytest.mark.usefixtures("small_blocks")
def test_scores_of_several_kinds(texts: Path, write: Write, tmp_path: Path, chunk: int) -> None:
    np.save(tmp_path / "comet.npy", np.arange(6.0) / 4)
    np.save(tmp_path / "tm.npy", np.arange(12).reshape(6, 2))
    write(*(f"{-k}" for k in range(6)), name="lm.txt")
    write("one other", *(f"{k} {k}e1" for k in range(6)), name="two")
    files = ",".join(str(tmp_path / name) for name in ("comet.npy", "tm.npy", "lm.txt", "two"))
    parts = iter_nbest(texts, format=f"plain:first_id=1,list_size=2,scores={files}", chunk=chunk)
    nbest = concatenate(parts)
    assert nbest.feature_names == ("comet", "tm[0]", "tm[1]", "lm", "one", "other")
    k = np.arange(6)
    expected = np.stack([k / 4, 2 * k, 2 * k + 1, -k, k, 10 * k], axis=1)
    assert nbest.features.tolist() == expected.tolist()
    assert nbest.sentence_ids.tolist() == [1, 2, 3]
    assert nbest.texts(2) == ["t 4", "t 5"]
    one_file = f"plain:list_size=2,scores={tmp_path}/all.gz"
    with pytest.warns(BpaWarning, match="first_id=1"):
        write_nbest(nbest, tmp_path / "again", format=one_file)
    again = read_nbest(tmp_path / "again", format=f"{one_file},first_id=1")
    assert table_content(again) == table_content(nbest)


@pytest.mark.parametrize(
    ("scores", "code", "line"),
    [
        (b"1\n2\n3\n", "wrong-length", None),
        (b"1\n" * 7, "wrong-length", None),
        (b"1\n1\nnan\n" + b"1\n" * 3, "bad-number", 3),
        (b"", "no-data", None),
        ("a\n\ufeff1\n".encode() + b"1\n" * 5, "bad-number", 2),
        (b"a a\n" + b"1 1\n" * 6, "duplicate", 1),
        (None, "missing-file", None),
        (b"no array", "damaged", None),
        (np.array(["a"] * 6), "bad-number", None),
        (np.array([1, np.inf, 1, 1, 1, 1]), "bad-number", 2),
    ],
)
def test_bad_scores(texts: Path, scores: Any, code: str, line: int | None) -> None:
    is_binary = code in ("damaged", "missing-file") or isinstance(scores, np.ndarray)
    path = texts.with_name("scores.npy" if is_binary else "scores")
    if isinstance(scores, np.ndarray):
        np.save(path, scores)
    elif scores is not None:
        path.write_bytes(scores)
    options: dict[str, Any] = {"format": f"plain:list_size=2,scores={path}"}
    parameter = "bad" if line and code == "bad-number" else None
    with raises(DataError, code, parameter=parameter, line=line, match="scores"):
        read_nbest(texts, **options)
    if parameter and isinstance(scores, np.ndarray):
        with pytest.warns(BpaWarning, match="1 candidate dropped"):
            assert read_nbest(texts, **options, bad="drop").sizes.tolist() == [1, 2, 2]


def test_lines_that_are_not_whole_lists(texts: Path) -> None:
    with raises(DataError, "wrong-length", parameter="list_size"):
        read_nbest(texts, format="plain:list_size=4")
    with raises(UsageError, "missing-setting", parameter="list_size"):
        read_nbest(texts, format="plain")
    with raises(UsageError, "invalid-setting", parameter="list_size"):
        read_nbest(texts, format="plain:list_size=x")


@pytest.mark.parametrize("format", ["plain:list_size=2", "plain:list_size=2,scores={}"])
@pytest.mark.usefixtures("small_blocks")
def test_scores_behind_a_tab_are_no_text(write: Write, format: str) -> None:
    path = write(*["a cat"] * 9, "the cat\t-1.5", name="hyps")
    scores = write(*"1234567890", name="scores")
    with raises(DataError, "bad-line", parameter="scores", line=10, match="to two files, as docs"):
        read_nbest(path, format=format.format(scores))
