"""Streamed output: the same files and scores as from a whole table."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from external_posterior import external_posterior

from bpa_ppl import DataError, NBest, UsageError, rerank
from bpa_ppl.decoding.outputs import rerank_to, scoreboard, write_details, write_texts
from bpa_ppl.options import RerankOptions

NAMES = ("LM0", "TM0", "WP0")
UNCHECKED = RerankOptions(unchecked=True)
WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "of", "house", ",", "."]


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Ninety lists with one reference, every third with two."""
    rng = np.random.default_rng(4)

    def text() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(3, 12)))

    sizes = rng.integers(1, 9, size=90)
    return NBest.from_lists(
        [[text() for _ in range(n)] for n in sizes],
        [rng.normal(-20, 4, size=(n, 3)) for n in sizes],
        NAMES,
        references=[(text(), text()) if s % 3 == 0 else (text(),) for s in range(90)],
    )


@pytest.fixture(scope="module")
def posterior() -> Any:
    return external_posterior(np.random.default_rng(6).normal(0, 0.5, size=(2, 40, 3)), NAMES)


def folder_of(path: Path) -> list[str]:
    return sorted(os.listdir(path))


@pytest.mark.parametrize("piece", [1, 7, 64, 90])
def test_files_and_scores_agree_with_rerank(
    lists: NBest, posterior: Any, piece: int, tmp_path: Path
) -> None:
    # Other chunks have other padding, which may change the last bits.
    reranked = rerank(lists.chunks(piece), posterior, unchecked=True, confidence=True)
    write_texts(reranked, tmp_path / "texts")
    write_details(reranked, tmp_path / "details")
    paths = tmp_path / "ours", tmp_path / "our details"
    summary = rerank_to(lists.chunks(piece), posterior, *paths, options=UNCHECKED)
    assert paths[0].read_bytes() == (tmp_path / "texts").read_bytes()
    assert paths[1].read_bytes() == (tmp_path / "details").read_bytes()
    board = scoreboard(reranked)
    assert str(summary.scores) == str(board)
    assert reranked.confidence is not None
    assert str(summary.expected) == str(reranked.confidence.corpus)
    assert (summary.sentences, summary.changed) == (90, board.changed)
    assert summary.scores is not None
    for ours, theirs in (
        (summary.scores.before, board.before),
        (summary.scores.after, board.after),
    ):
        assert [score.metric for score in ours] == ["ter", "bleu"]
        assert ours[0].value == theirs[0].value
        assert ours[1].value == pytest.approx(theirs[1].value, rel=1e-12)


def test_no_scores_without_references(lists: NBest, posterior: Any, tmp_path: Path) -> None:
    bare = lists.without("references")
    summary = rerank_to(bare, posterior, tmp_path / "out", options=UNCHECKED)
    assert summary.scores is None
    assert summary.sentences == 90
    assert folder_of(tmp_path) == ["out"]


def test_texts_to_standard_output(
    lists: NBest, posterior: Any, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rerank_to(lists, posterior, tmp_path / "out.gz", options=UNCHECKED)
    rerank_to(lists, posterior, "-", options=UNCHECKED)
    expected = "\n".join(rerank(lists, posterior, unchecked=True).texts) + "\n"
    assert capfdbinary.readouterr().out == expected.encode()


def test_error_keeps_existing_files(
    lists: NBest, posterior: Any, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def broken() -> Iterator[NBest]:
        yield lists
        raise DataError("the rest is unreadable", "dev.nbest", 7)

    (tmp_path / "out").write_text("old")
    for output in (tmp_path / "out", "-"):
        with pytest.raises(DataError, match="unreadable"):
            rerank_to(broken(), posterior, output, tmp_path / "details", options=UNCHECKED)
    assert (tmp_path / "out").read_text() == "old"
    assert folder_of(tmp_path) == ["out"]
    assert capfdbinary.readouterr().out == b""


def test_unwritable_file_prevents_the_other_file(
    lists: NBest, posterior: Any, tmp_path: Path
) -> None:
    details = tmp_path / "nowhere" / "details"
    with pytest.raises(DataError, match="no such folder"):
        rerank_to(lists, posterior, tmp_path / "out", details, options=UNCHECKED)
    assert folder_of(tmp_path) == []


def test_empty_input_writes_no_file(posterior: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no list to rerank"):
        rerank_to([], posterior, tmp_path / "out", options=UNCHECKED)
    assert folder_of(tmp_path) == []


def test_stream_is_not_kept_in_memory(lists: NBest, posterior: Any, tmp_path: Path) -> None:
    """A table is released before the third table after it is read."""
    alive: list[weakref.ref[NBest]] = []
    most = 0

    def stream() -> Iterator[NBest]:
        nonlocal most
        for _ in range(20):
            table = lists[:10]
            alive.append(weakref.ref(table))
            yield table
            del table
            most = max(most, sum(ref() is not None for ref in alive))

    rerank_to(stream(), posterior, tmp_path / "out", options=UNCHECKED)
    assert most <= 2
