"""Lists of Kaldi, whose lines begin with an utterance and a rank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import concatenate, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.speech import Kaldi

Write = Callable[..., Path]
SCORED = ("a-b-1 -1.5 THE CAT  SAT ", "a-b-2\t-2.25\tA CAT", "a-10 7e-1 é", "c-1 0")
TEXTS = [["THE CAT  SAT", "A CAT"], ["é"], [""]]


@pytest.mark.parametrize("chunk", [1, 9])
@pytest.mark.usefixtures("small_blocks")
def test_scores_before_the_words_are_detected(write: Write, chunk: int) -> None:
    lists = concatenate(iter_nbest(write(*SCORED), chunk=chunk))
    assert lists.feature_names == ("score",)
    assert [lists.texts(s) for s in range(3)] == TEXTS
    expected = np.array([[-1.5], [-2.25], [0.7], [0]], np.float32)
    assert lists.features.tolist() == expected.tolist()
    assert lists.sentence_extras["id"] == ("a-b", "a", "c")


@pytest.mark.filterwarnings("ignore:.*no reference for:bpa_ppl.errors.BpaWarning")
def test_scores_and_references_in_other_files(write: Write, tmp_path: Path) -> None:
    words = write("u-1 THE CAT", "u-2 A CAT", "v-1 ", name="words")
    write("v-1 0.5", "u-2 2", "u-1 1", "w-1 9", name="acwt")
    write("u-1 3", "u-2\t4", "v-1 5", name="lmwt.nolm")
    references = write("u\tTHE CAT", name="text")
    scores = (str(tmp_path / "acwt"), str(tmp_path / "lmwt.nolm"))
    lists = read_nbest(words, format=Kaldi(scores=scores), references=references)
    assert lists.feature_names == ("acwt", "lmwt.nolm")
    assert lists.features.tolist() == [[1, 3], [2, 4], [0.5, 5]]
    assert lists.references == (("THE CAT",), ())
    bare = read_nbest(words, format="kaldi:score=false")
    assert (bare.feature_names, bare.texts(0)) == ((), ["THE CAT", "A CAT"])


@pytest.mark.parametrize(
    ("scores", "code", "line"),
    [
        (("u-1 1",), "mismatch", 2),
        (("u-1 1", "u-2 x"), "bad-number", 2),
        (("u-1 1", "", "u-2 1"), "bad-line", 2),
        (("u-1 1", "u-2 2", "u-1 3"), "duplicate", 3),
    ],
)
def test_bad_files_of_scores_are_named(
    write: Write, scores: tuple[str, ...], code: str | None, line: int
) -> None:
    words, file = write("u-1 A", "u-2 B", name="words"), write(*scores, name="acwt")
    parameter = {"mismatch": "scores", "bad-number": "bad"}.get(str(code))
    with raises(DataError, code, parameter=parameter, line=line) as refused:
        read_nbest(words, format=f"kaldi:scores={file}")
    assert "acwt" in str(refused.value)


def test_two_scores_of_one_name_are_refused(write: Write) -> None:
    words, file = write("u-1 A", name="words"), write("u-1 1", name="acwt")
    with raises(UsageError, "duplicate", parameter="scores"):
        read_nbest(words, format=f"kaldi:scores={file},{file}")


@pytest.mark.parametrize("bad", ["error", "drop"])
@pytest.mark.parametrize("setting", ["kaldi", "kaldi:score=true", "auto"])
def test_a_first_word_is_no_score(write: Write, bad: str, setting: str) -> None:
    """Whatever is done about bad numbers, one file has one form."""
    words = write("u-1 -3.5 PER CENT", "u-2 THE CAT", "v-1 5 DOGS", name="words")
    with raises(DataError, "bad-number", line=2):
        read_nbest(words, format=setting, bad=bad)
    texts = write("u-1 THE CAT", "u-2 3 CATS", "v-1 5 DOGS", name="texts")
    if setting != "auto":
        with raises(DataError, "bad-number", line=1):
            read_nbest(texts, format=setting, bad=bad)
    lists = read_nbest(texts, format="kaldi:score=false", bad=bad)
    assert (lists.feature_names, lists.texts(0)) == ((), ["THE CAT", "3 CATS"])


@pytest.mark.parametrize(
    ("lines", "doubtful"),
    [
        (("u-1 3 CATS", "u-2 4 CATS", "v-1 5 DOGS"), True),
        (("u-1 3 CATS",), True),
        (("u-1 2.5 CATS", "u-2 2.5 CAT", "v-1 5.5 DOGS"), True),
        (("u-1 2.5 CATS", "u-2 2.25 CAT", "v-1 5.5 DOGS"), False),
        (("u-1 2.5 CATS", "v-1 5.5 DOGS"), False),
        (SCORED, False),
    ],
)
def test_numbers_that_may_be_words(write: Write, lines: tuple[str, ...], doubtful: bool) -> None:
    path = write(*lines, name="words")
    with pytest.warns(BpaWarning, match="score=false") if doubtful else nullcontext():
        lists = read_nbest(path, format="kaldi")
    assert lists.feature_names == ("score",)
    assert read_nbest(path, format="kaldi:score=true").feature_names == ("score",)
    assert read_nbest(path, format="kaldi:score=false").feature_names == ()


def test_scores_that_are_read_as_words_are_noted(write: Write) -> None:
    keys = [line.split()[0] for line in SCORED]
    words, file = write(*SCORED, name="words"), write(*(f"{key} 1" for key in keys), name="acwt")
    with pytest.warns(BpaWarning, match="score=true"):
        assert read_nbest(words, format=f"kaldi:scores={file}").feature_names == ("acwt",)
    lists = read_nbest(words, format=f"kaldi:score=true,scores={file}")
    assert lists.feature_names == ("score", "acwt")
    texts = write(*(f"{key} 3 CATS" for key in keys), name="texts")
    assert read_nbest(texts, format=f"kaldi:scores={file}").texts(1) == ["3 CATS"]
