"""`bpa lm`: what it prints, writes and refuses."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from command_line import run

from bpa_ppl.text.arpa import read_arpa
from bpa_ppl.text.language_model import NgramModel

TEXT = "the cat sat\na cat sat down\nthe dog sat\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("domain.txt").write_text(TEXT, "utf-8")
    Path("held-out.txt").write_text("the cat sat\na bird\n", "utf-8")


def test_a_text_becomes_an_arpa_file() -> None:
    done = run("lm", "domain.txt", "--order", 2, "-o", "domain.arpa.gz", "--test", "held-out.txt")
    assert (done.code, done.err) == (0, "")
    model = NgramModel.estimate([line.split() for line in TEXT.splitlines()], 2)
    assert read_arpa("domain.arpa.gz").log_probabilities([["a"]]) == model.log_probabilities(
        [["a"]]
    )
    scores, unknown = model.by_word([["the", "cat", "sat"], ["a", "bird"]])
    assert done.out.splitlines() == [
        "9 1-grams, 10 2-grams; too few n-grams of order 1, 2 to estimate discounts: "
        "0.5, 1, 1.5 are used",
        f"held-out.txt: perplexity {np.exp(-scores.mean()):.2f}, "
        f"{np.exp(-scores[~unknown].mean()):.2f} without the 1 unknown of 5 words",
    ]
    again = run("lm", "domain.arpa.gz", "--test", "held-out.txt", "--test", "domain.txt")
    assert again.code == 0
    assert again.out.splitlines()[0] == "9 1-grams, 10 2-grams"
    assert again.out.splitlines()[1] == done.out.splitlines()[1]
    assert again.out.splitlines()[2].startswith("domain.txt: perplexity ")


def test_its_own_text_is_judged_where_there_is_no_other() -> None:
    done = run("lm", "domain.txt")
    assert done.code == 0
    assert "the training text itself: perplexity" in done.out
    assert run("lm", "domain.txt", "-q").out == ""
    assert [path.name for path in Path().iterdir() if path.suffix == ".arpa"] == []


def test_pipes() -> None:
    done = run("lm", "-", "-o", "-", stdin=TEXT)
    assert done.code == 0
    Path("piped.arpa").write_text(done.out, "utf-8")
    assert read_arpa("piped.arpa").counts == NgramModel.train(["domain.txt"]).counts
    assert "1-grams" in done.err
    assert run("lm", "-", "-o", "-", "-q", stdin=TEXT).err == ""


def test_a_named_pipe_is_read_once() -> None:
    os.mkfifo("pipe")
    lines = TEXT * 20_000  # more than is read at once
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(Path("pipe").write_text, lines, "utf-8")
        done = run("lm", "pipe", "-o", "piped.arpa")
        writing.result()
    Path("whole.txt").write_text(lines, "utf-8")
    assert run("lm", "whole.txt", "-q", "-o", "whole.arpa").code == 0
    assert (done.code, len(done.out.splitlines())) == (0, 1)
    assert Path("piped.arpa").read_bytes() == Path("whole.arpa").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "missing.txt: no such file: check the path"),
        (["empty.txt"], "empty.txt: there is no word"),
        (
            ["domain.txt", "--order", 6],
            "the order of a language model must be 1 to 5, not 6 (--order)",
        ),
        (["domain.txt", "--test", "empty.txt", "-o", "new"], "empty.txt: there is no sentence"),
        (["domain.txt", "broken.arpa"], "broken.arpa is a finished language model"),
        (["broken.arpa"], "broken.arpa:1: expected ngram 1=NUMBER"),
        (["broken.arpa", "-o", "new.arpa"], "broken.arpa is a language model already"),
        (["domain.txt", "-o", "missing/new.arpa"], "missing/new.arpa: no such folder"),
    ],
)
def test_bad_input_is_refused(arguments: list[object], message: str) -> None:
    Path("empty.txt").write_text("", "utf-8")
    Path("broken.arpa").write_text("\\data\\\n", "utf-8")
    done = run("lm", *arguments)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert done.err.count("\n") == 1
    assert not list(Path().rglob("new*"))
