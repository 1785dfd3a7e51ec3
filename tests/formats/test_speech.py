"""Lists of recognisers: lines of Kaldi with an utterance and a rank, folders of ESPnet."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import concatenate, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError

SCORED = ("a-b-1 -1.5 THE CAT  SAT ", "a-b-2\t-2.25\tA CAT", "a-10 7e-1 é", "c-1 0")


@pytest.mark.parametrize("chunk", [1, 9])
@pytest.mark.usefixtures("small_blocks")
def test_scores_before_the_words_are_detected(write: Write, chunk: int) -> None:
    lists = concatenate(iter_nbest(write(*SCORED), chunk=chunk))
    assert (lists.feature_names, lists.ids) == (("score",), ("a-b", "a", "c"))
    assert [lists.texts(s) for s in range(3)] == [["THE CAT  SAT", "A CAT"], ["é"], [""]]
    assert lists.features[:, 0].tolist() == [-1.5, -2.25, 0.7, 0]


@pytest.mark.filterwarnings("ignore:.*no reference for:bpa_ppl.errors.BpaWarning")
def test_scores_and_references_in_other_files(write: Write) -> None:
    words = write("u-1 THE CAT", "u-2 A CAT", "v-1 ", name="words")
    acoustic = write("v-1 0.5", "u-2 2", "u-1 1", "w-1 9", name="acwt")
    language = write("u-1 3", "u-2\t4", "v-1 5", name="lmwt.nolm")
    references = write("id\treference", "u\tTHE CAT", "v\t", name="text.tsv")
    format = f"kaldi:scores={acoustic},{language}"
    lists = read_nbest(words, format=format, references=references)
    assert lists.feature_names == ("acwt", "lmwt.nolm")
    assert lists.features.tolist() == [[1, 3], [2, 4], [0.5, 5]]
    assert lists.references == (("THE CAT",), ())
    with raises(UsageError, "duplicate", parameter="scores"):
        read_nbest(words, format=f"kaldi:scores={acoustic},{acoustic}")


@pytest.mark.parametrize(
    ("scores", "code", "line"),
    [
        (("u-1 1",), "mismatch", 2),
        (("u-1 1", "u-2 x"), "bad-number", 2),
        (("u-1 1", "", "u-2 1"), "bad-line", 2),
        (("u-1 1", "u-2 2", "u-1 3"), "duplicate", 3),
    ],
)
def test_bad_files_of_scores(write: Write, scores: tuple[str, ...], code: str, line: int) -> None:
    words, file = write("u-1 A", "u-2 B", name="words"), write(*scores, name="acwt")
    parameter = {"mismatch": "scores", "bad-number": "bad"}.get(code)
    with raises(DataError, code, parameter=parameter, line=line, match="acwt"):
        read_nbest(words, format=f"kaldi:scores={file}")


@pytest.mark.parametrize(
    ("lines", "doubtful"),
    [
        ("u-1 3 CATS;u-2 4 CATS;v-1 5 DOGS", True),
        ("u-1 3 CATS", True),
        ("u-1 2.5 CATS;u-2 2.5 CAT;v-1 5.5 DOGS", True),
        ("u-1 2.5 CATS;u-2 2.25 CAT;v-1 5.5 DOGS", False),
        ("u-1 2.5 CATS;v-1 5.5 DOGS", False),
        (";".join(SCORED), False),
    ],
)
def test_numbers_that_may_be_words(write: Write, lines: str, doubtful: bool) -> None:
    path = write(*lines.split(";"), name="words")
    with pytest.warns(BpaWarning, match="score=false") if doubtful else nullcontext():
        assert read_nbest(path, format="kaldi").feature_names == ("score",)
    assert read_nbest(path, format="kaldi:score=true").feature_names == ("score",)
    assert read_nbest(path, format="kaldi:score=false").feature_names == ()


def test_a_file_of_scores_has_no_words(write: Write) -> None:
    scores = write("u-1 -3.5", "u-2 -4.25", "v-1 -1.5", name="acwt")
    with pytest.warns(BpaWarning, match="no line has words: give the file of words, and name"):
        assert read_nbest(scores).texts(0) == ["", ""]
    words = write("u-1 a cat", "u-2 cat", "v-1 hello", name="words")
    assert read_nbest(words, format=f"kaldi:scores={scores}").texts(0) == ["a cat", "cat"]


def test_scores_that_are_read_as_words_are_noted(write: Write) -> None:
    keys = [line.split()[0] for line in SCORED]
    words, file = write(*SCORED, name="words"), write(*(f"{key} 1" for key in keys), name="acwt")
    with pytest.warns(BpaWarning, match="score=true"):
        assert read_nbest(words, format=f"kaldi:scores={file}").feature_names == ("acwt",)
    both = read_nbest(words, format=f"kaldi:score=true,scores={file}")
    assert both.feature_names == ("score", "acwt")
    texts = write(*(f"{key} 3 CATS" for key in keys), name="texts")
    assert read_nbest(texts, format=f"kaldi:scores={file}").texts(1) == ["3 CATS"]


# --- ESPnet: a folder for each rank ---------------------------------------------------------------

Files = dict[str, str]
FILES: Files = {
    "1best_recog/text": "u-b THE CAT SAT\nu-a HELLO\n",
    "1best_recog/score": "u-b tensor(-1.5000)\nu-a -2.0\n",
    "1best_recog/token": "u-b ▁THE ▁CAT ▁S AT\nu-a ▁HELLO\n",
    "2best_recog/text": "u-a HALLO\n",
    "2best_recog/score": "u-a tensor(-3., device='cuda:0')\n",
    "2best_recog/token": "u-a ▁HA LLO\n",
}


def write_files(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


def test_ranks_are_read(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {**FILES, "02best_recog/text": "u-a NOT A RANK\n"})
    lists = read_nbest(folder)
    assert (lists.feature_names, lists.ids) == (("score", "tokens"), ("u-b", "u-a"))
    assert lists.features.tolist() == [[-1.5, 4], [-2, 1], [-3, 2]]
    assert [lists.texts(s) for s in range(2)] == [["THE CAT SAT"], ["HELLO", "HALLO"]]
    parts = list(iter_nbest(str(folder), chunk=1, format="espnet"))
    assert [part.texts(0) for part in parts] == [["THE CAT SAT"], ["HELLO", "HALLO"]]


def test_jobs_are_read_in_order(tmp_path: Path) -> None:
    for job in (10, 2):
        files = {name: text.replace("u-", f"{job}-") for name, text in FILES.items()}
        write_files(tmp_path / f"output.{job}", files)
    write_files(tmp_path / "output.old", FILES)
    lists = read_nbest(tmp_path)
    assert lists.ids == ("2-b", "2-a", "10-b", "10-a")
    assert lists.texts(3) == ["HELLO", "HALLO"]


@pytest.mark.filterwarnings("ignore:.*no reference for:bpa_ppl.errors.BpaWarning")
def test_texts_alone_and_references(tmp_path: Path) -> None:
    texts = {name: text for name, text in FILES.items() if name.endswith("text")}
    lists = read_nbest(write_files(tmp_path, texts), references={"u-a": "HELLO", "u-b": ()})
    assert (lists.feature_names, lists.references) == ((), ((), ("HELLO",)))


@pytest.mark.parametrize(
    ("name", "content", "code", "named", "line"),
    [
        ("2best_recog/text", "u-a HALLO\nu-x NO\n", "mismatch", "2best_recog/text", 2),
        ("2best_recog/score", "u-b -1\n", "mismatch", "2best_recog/text", 1),
        ("2best_recog/score", "u-a tensor(-1\n", "bad-number", "2best_recog/score", 1),
        ("1best_recog/text", "u-b A\nu-b B\n", "duplicate", "1best_recog/text", 2),
    ],
)
def test_bad(tmp_path: Path, name: str, content: str, code: str, named: str, line: int) -> None:
    folder = write_files(tmp_path, {**FILES, name: content})
    parameter = "bad" if code == "bad-number" else None
    with raises(DataError, code, parameter=parameter, line=line, match=f"^{folder / named}:"):
        read_nbest(folder)


@pytest.mark.parametrize("absent", ["2best_recog", "1best_recog/score", "2best_recog/token"])
def test_results_that_are_not_whole_are_refused(tmp_path: Path, absent: str) -> None:
    files = {**FILES, "3best_recog/text": "", "3best_recog/score": "", "3best_recog/token": ""}
    write_files(tmp_path, {name: text for name, text in files.items() if absent not in name})
    with pytest.raises(DataError, match=absent):
        read_nbest(tmp_path)


def test_other_folders_and_files_are_refused(tmp_path: Path) -> None:
    for format in ("auto", "espnet", "moses"):
        with raises(DataError, "cannot-read"):
            read_nbest(tmp_path, format=format)
    (tmp_path / "file").write_text("a")
    with raises(DataError, "unknown-format"):
        read_nbest(tmp_path / "file", format="espnet")
    (tmp_path / "1best_recog").mkdir()
    with raises(DataError, "missing-file", match="1best_recog/text"):
        read_nbest(tmp_path)
