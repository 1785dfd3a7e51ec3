"""Lists of ESPnet: a folder for each rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import iter_nbest, read_nbest
from bpa_ppl.errors import DataError

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
    folder = write_files(tmp_path / "decoded", FILES)
    write_files(folder, {"02best_recog/text": "u-a NOT A RANK\n"})
    lists = read_nbest(folder)
    assert lists.feature_names == ("score", "tokens")
    assert lists.features.tolist() == [[-1.5, 4], [-2, 1], [-3, 2]]
    assert [lists.texts(s) for s in range(2)] == [["THE CAT SAT"], ["HELLO", "HALLO"]]
    assert lists.sentence_extras["id"] == ("u-b", "u-a")
    parts = list(iter_nbest(str(folder), chunk=1, format="espnet"))
    assert [part.texts(0) for part in parts] == [["THE CAT SAT"], ["HELLO", "HALLO"]]


def test_jobs_are_read_in_order(tmp_path: Path) -> None:
    for job in (10, 2):
        files = {name: text.replace("u-", f"{job}-") for name, text in FILES.items()}
        write_files(tmp_path / f"output.{job}", files)
    write_files(tmp_path / "output.old", FILES)
    lists = read_nbest(tmp_path)
    assert lists.sentence_extras["id"] == ("2-b", "2-a", "10-b", "10-a")
    assert lists.texts(3) == ["HELLO", "HALLO"]


@pytest.mark.filterwarnings("ignore:.*no reference for:bpa_ppl.errors.BpaWarning")
def test_texts_alone_and_references(tmp_path: Path) -> None:
    texts = {name: text for name, text in FILES.items() if name.endswith("text")}
    folder = write_files(tmp_path / "decoded", texts)
    lists = read_nbest(folder, references={"u-a": "HELLO"})
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
def test_bad_files_are_named(
    tmp_path: Path, name: str, content: str, code: str | None, named: str, line: int
) -> None:
    folder = write_files(tmp_path, {**FILES, name: content})
    parameter = "bad" if code == "bad-number" else None
    with raises(DataError, code, parameter=parameter, line=line) as refused:
        read_nbest(folder)
    assert str(refused.value).startswith(f"{folder / named}:{line}:")


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
