"""`bpa subdomains`: from two texts to a file, and what it refuses."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import run, start

from bpa_ppl.models.subdomains import induce
from bpa_ppl.phrases import Subdomains

LAW = [("la loi du pays", "the law of the land"), ("un article de loi", "a section of law")]
TALK = [("je vous remercie", "i thank you"), ("je dis merci", "i say thank you")]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a corpus of two kinds, which is the current one."""
    monkeypatch.chdir(tmp_path)
    pairs = (LAW + TALK) * 10
    for side, name in enumerate(("fr", "en")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    return tmp_path


def test_from_texts_to_subdomains(work: Path) -> None:
    done = run("subdomains", "fr", "en", "-k", "2", "-o", "sub.parquet", "--jobs", "2")
    assert (done.code, done.out) == (0, "")
    assert done.err == "40 sentence pairs in 2 subdomains: 50 %, 50 %\n"
    found = Subdomains.load(work / "sub.parquet")
    winners = found.winners().tolist()
    assert winners == winners[:4] * 10
    assert winners[0] == winners[1] != winners[2] == winners[3]
    assert (found.hard, found.settings["iterations"]) == (True, 3)
    assert sorted(p.name for p in work.iterdir()) == ["en", "fr", "sub.parquet"]


def test_options_are_those_of_python(work: Path) -> None:
    options = ("--soft", "--iterations", "1", "--set", "order=2", "--set", "folds=2", "--seed", "3")
    done = run("subdomains", "fr", "en", "-k", "2", "-o", "sub.parquet", "-q", *options)
    assert (done.code, done.err) == (0, "")
    found = Subdomains.load(work / "sub.parquet")
    same = induce("fr", "en", 2, em="soft", iterations=1, order=2, folds=2, seed=3)
    np.testing.assert_array_equal(found.posteriors(), same.posteriors())
    assert found.settings == same.settings


def test_topics(work: Path) -> None:
    done = run("subdomains", "fr", "en", "-k", "2", "-o", "sub.parquet", "--induction", "lda")
    assert done.code == 0, done.err
    assert Subdomains.load(work / "sub.parquet").settings["side"] == "target"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("fr", "absent"), "error: absent: no such file"),
        (("fr", "short"), "error: fr: 40 sentences, and short has 1"),
        (("fr", "en", "-k", "41"), "error: fr: 40 sentences with words, too few for 41 subdomains"),
        (("fr", "en", "-k", "1"), "k must be an integer ≥ 2"),
        (("fr", "en", "--set", "mass=1"), "has no setting mass: it has k, em, iterations"),
        (("fr", "en", "--set", "k=3"), "--set k has its own option: -k"),
        (("fr", "en", "--set", "state=s"), "has no setting state"),
        (("fr", "en", "--set", "order=9"), "order must be an integer ≥ 1 and ≤ 5"),
        (("fr", "en", "--induction", "gibbs"), "unknown induction 'gibbs': choose one of em, lda"),
        (("fr", "en", "--induction", "lda", "--soft"), "em: settings of EM, not LDA"),
        (("fr", "en", "--jobs", "0"), "jobs must be at least 1"),
        (("fr", "en", "--seed", "-1"), "a seed is an integer from 0"),
        (("fr", "en", "--backend", "dask"), "the backend dask and the address of a scheduler"),
    ],
)
def test_bad_input(work: Path, line: tuple, message: str) -> None:
    (work / "short").write_text("a b\n")
    done = run("subdomains", *line, "-o", "sub.parquet")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert sorted(p.name for p in work.iterdir()) == ["en", "fr", "short"]


def test_the_output_is_checked_first(work: Path) -> None:
    done = run("subdomains", "fr", "en", "-o", "no/folder/sub.parquet")
    assert (done.code, "no such folder" in done.err) == (2, True)
    done = run("subdomains", "fr", "en", "-o", "-")
    assert (done.code, "subdomains are written to a file" in done.err) == (2, True)


def test_a_state_of_other_settings_is_refused(work: Path) -> None:
    induce("fr", "en", 2, state="sub.parquet.state")
    done = run("subdomains", "fr", "en", "-k", "3", "-o", "sub.parquet")
    assert done.code == 0
    assert "note: sub.parquet.state belongs to other text or other settings" in done.err
    induce("fr", "en", 2, state="sub.parquet.state")
    done = run("subdomains", "fr", "en", "-k", "3", "-o", "sub.parquet", "--no-resume")
    assert "belongs" not in done.err
    assert not (work / "sub.parquet.state").exists()


@pytest.mark.slow
def test_resumes_after_a_kill(work: Path) -> None:
    for name in ("fr", "en"):
        (work / name).write_text((work / name).read_text() * 200)
    line = ("subdomains", "fr", "en", "-k", "4", "--soft", "--iterations", "30", "-o")
    assert run(*line, "whole.parquet").code == 0
    process, state = start(*line, "sub.parquet"), work / "sub.parquet.state"
    while not state.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (work / "sub.parquet").exists()
    assert run(*line, "sub.parquet").code == 0
    whole, found = (Subdomains.load(work / f"{name}.parquet") for name in ("whole", "sub"))
    assert whole.assignment.tobytes() == found.assignment.tobytes()
    assert not state.exists()
