"""Scores on disk: found again, never trusted blindly, safe under several processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, cache
from bpa_ppl.errors import BpaWarning
from bpa_ppl.quality import CHRF, TER, oracles
from bpa_ppl.quality.cache import key_of, read, write


@pytest.fixture
def lists() -> NBest:
    """Enough different hypotheses for their scores to be kept."""
    rng = np.random.default_rng(2)
    texts = [[" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)] for _ in range(20)]
    features = [np.zeros((60, 1))] * 20
    return NBest.from_lists(texts, features, ["LM0"], references=[[t[7] + " x"] for t in texts])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each group of sentences that TER is computed of."""
    calls: list[int] = []
    original = TER.sentences

    def counting(self: TER, lists: Any, references: Any, *, only_best: bool) -> Any:
        calls.append(len(lists))
        return original(self, lists, references, only_best=only_best)

    monkeypatch.setattr(TER, "sentences", counting)
    return calls


def test_scores_are_computed_once(lists: NBest, counted: list[int], cache_folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = oracles(lists)
    again = oracles(lists, progress=lambda done, total, note: seen.append((done, total)))
    assert sum(counted) == 20
    assert again.index.tolist() == first.index.tolist()
    assert again.score.tolist() == first.score.tolist()
    assert seen == [(20, 20)]
    assert len(list(cache_folder.iterdir())) == 1


def test_the_cache_can_be_left_alone(lists: NBest, counted: list[int], cache_folder: Path) -> None:
    oracles(lists, cache=False)
    oracles(lists, cache=False)
    assert sum(counted) == 40
    assert not cache_folder.exists()


def test_few_hypotheses_are_not_worth_a_file(toy: NBest, cache_folder: Path) -> None:
    oracles(toy)
    assert not cache_folder.exists()


def test_anything_else_has_a_file_of_its_own(lists: NBest, cache_folder: Path) -> None:
    assert lists.references is not None
    oracles(lists)
    oracles(lists, TER(case_sensitive=True))
    oracles(lists, CHRF(beta=2))
    oracles(lists, CHRF(beta=3))
    oracles(lists.with_references([(*r, "a b") for r in lists.references]))
    oracles(lists.select(np.arange(19)))
    assert len(list(cache_folder.iterdir())) == 6


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other size"])
def test_a_damaged_file_is_written_again(
    lists: NBest, counted: list[int], cache_folder: Path, damage: str
) -> None:
    wanted = oracles(lists)
    (path,) = cache_folder.iterdir()
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-40], "empty": b"", "text": b"not a zip"}.get(damage, b""))
    if damage == "other size":
        np.savez(path, scores=np.zeros(3))
    assert oracles(lists).index.tolist() == wanted.index.tolist()
    assert oracles(lists).index.tolist() == wanted.index.tolist()
    assert sum(counted) == 40
    assert [p.name for p in cache_folder.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_written(
    lists: NBest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "file" / "below"))
    with pytest.warns(BpaWarning, match="BPA_PPL_CACHE"):
        found = oracles(lists)
    assert found.index.tolist() == oracles(lists, cache=False).index.tolist()


def test_the_users_folder_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BPA_PPL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.cache_folder().name == "bpa_ppl"


def test_texts_that_are_no_proper_unicode_have_a_key() -> None:
    assert key_of(["\ud800"]) != key_of(["\ud801"])


def _write_and_read(number: int) -> bool:
    wanted = np.arange(5000, dtype=np.float64)
    for _ in range(20):
        write("shared", wanted)
        found = read("shared", 5000)
        if found is None or not np.array_equal(found, wanted):
            return False
    return True


def test_two_processes_at_once(cache_folder: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert all(pool.map(_write_and_read, range(4)))
    assert [path.name for path in cache_folder.iterdir()] == ["scores-shared.npz"]
