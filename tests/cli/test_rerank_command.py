"""`bpa rerank` by several workers, and the files that it writes or does not write."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

from bpa_ppl import UsageError
from bpa_ppl.decoding import reranking

RERANK = ("rerank", "nbest", "-p", "good.nc")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("--jobs", "3"), (3, "local", None)),
        (("--backend", "dask", "--scheduler", "tcp://here:1"), (1, "dask", "tcp://here:1")),
    ],
)
def test_workers_are_asked_for(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    asked: tuple[int, str, str | None],
) -> None:
    def refuse(*given: object) -> None:
        raise UsageError(f"asked for {given}")

    monkeypatch.setattr(reranking, "_SMALL", 1)
    monkeypatch.setattr(reranking, "parallel_workers", refuse)
    assert run(*RERANK, *options, "-q").err == f"error: asked for {asked}\n"


def test_few_lists_need_no_workers(folder: Path) -> None:
    assert run(*RERANK, "--jobs", "2") == run(*RERANK)


def test_an_error_writes_neither_file(folder: Path) -> None:
    with open("nbest", "a", encoding="utf-8") as file:
        file.write("99 ||| cut off")
    done = run(*RERANK, "-o", "out", "--details", "details")
    assert (done.code, done.out) == (2, "")
    assert "nbest:121: " in done.err
    assert not list(Path().glob("*out*"))
    assert not list(Path().glob("*details*"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--jobs", "0"), "jobs must be at least 1"),
        (("--backend", "slurm"), "choose one of local, dask"),
        (("--backend", "dask"), "go together: give both"),
    ],
)
def test_workers_that_cannot_be(folder: Path, wrong: tuple[str, ...], told: str) -> None:
    done = run(*RERANK, "-o", "out", *wrong)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert not Path("out").exists()


@pytest.mark.parametrize("rule", ["mbr", "mbr:gain=bleu", "mbr:gain=chrf"])
def test_minimum_risk_by_name_and_setting(folder: Path, rule: str) -> None:
    done = run(*RERANK, "--rule", rule, "-r", "ref")
    assert done.code == 0
    assert "translations changed" in done.err
    listed = {
        line.split(" ||| ")[1].strip() for line in Path("nbest").read_text("utf-8").splitlines()
    }
    assert set(done.out.splitlines()) <= listed


def test_details_say_what_is_expected_and_only_sure_changes_are_made(folder: Path) -> None:
    done = run(*RERANK, "--sure", "0.5", "-o", "out", "--details", "details")
    assert done.code == 0
    assert "expected TER (within-list oracle): " in done.err
    header, *rows = [row.split("\t") for row in Path("details").read_text("utf-8").splitlines()]
    better, changed = header.index("better"), header.index("changed")
    assert all(float(row[better]) > 0.5 for row in rows if row[changed] == "1")
    assert header[-2:] == ["expected_ter", "canonical_expected_ter"]
    none = run(*RERANK, "--sure", "1", "-o", "out")
    assert "0 of 12 translations changed" in none.err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--rule", "mbr:gain=meteor"), "gain must be one of ter, bleu, chrf"),
        (("--rule", "mbr:metric=ter"), "has no setting metric"),
        (("--sure", "2"), "sure is a probability from 0 to 1"),
        (("--temperature", "0"), "a temperature is a number above 0"),
    ],
)
def test_settings_that_cannot_be(folder: Path, wrong: tuple[str, ...], told: str) -> None:
    done = run(*RERANK, "-o", "out", *wrong)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert not Path("out").exists()
