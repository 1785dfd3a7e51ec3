"""`bpa rerank` keeps its lines aligned with those of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

RERANK = ("rerank", "lists", "-p", "good.nc", "-o", "new.txt")


@pytest.fixture
def sources(folder: Path) -> list[str]:
    """Twelve sources, and lists of all but the fourth and the last."""
    texts = [f"source {n}" for n in range(12)]
    (folder / "src").write_text("".join(f"{text}\n" for text in texts))
    lines = (folder / "nbest").read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.split(" ||| ")[0] not in ("3", "11")]
    (folder / "lists").write_text("".join(kept), "utf-8")
    return texts


@pytest.mark.filterwarnings("ignore:.*the others are not used:bpa_ppl.errors.BpaWarning")
def test_gaps(folder: Path, sources: list[str]) -> None:
    refused = run(*RERANK)
    assert refused.code == 2
    assert "error: no list for sentence 3, so the lines" in refused.err
    assert "(--gaps)" in refused.err
    assert not Path("new.txt").exists()
    assert run(*RERANK, "--gaps", "empty").code == 0
    empty = Path("new.txt").read_text("utf-8").splitlines()
    assert (len(empty), empty[3]) == (11, "")
    done = run(*RERANK, "--gaps", "source", "-s", "src")
    assert "2 sentences without a list: source line" in done.err
    filled = Path("new.txt").read_text("utf-8").splitlines()
    assert (filled[3], filled[11]) == (sources[3], sources[11])
    assert [t for n, t in enumerate(filled) if n not in (3, 11)] == [
        t for n, t in enumerate(empty) if n != 3
    ]
    assert "(--sources)" in run(*RERANK, "--gaps", "source").err


def test_lists_out_of_order(folder: Path) -> None:
    assert run("rerank", "nbest", "-p", "good.nc", "-o", "sorted.txt").code == 0
    lines = Path("nbest").read_text("utf-8").splitlines(keepends=True)
    Path("lists").write_text("".join(lines[20:] + lines[:20]), "utf-8")
    assert run(*RERANK).code == 0
    assert Path("new.txt").read_text("utf-8") == Path("sorted.txt").read_text("utf-8")
