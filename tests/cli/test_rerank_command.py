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
    monkeypatch.setattr(reranking, "pool", refuse)
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
        (("--jobs", "0"), "0 jobs do no work"),
        (("--backend", "slurm"), "choose one of local, dask"),
        (("--backend", "dask"), "go together: give both"),
    ],
)
def test_workers_that_cannot_be(folder: Path, wrong: tuple[str, ...], told: str) -> None:
    done = run(*RERANK, "-o", "out", *wrong)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert not Path("out").exists()
