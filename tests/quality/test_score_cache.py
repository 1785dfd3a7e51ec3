"""Scores on disk: found again, never trusted blindly, never too many, safe under processes."""

from __future__ import annotations

import importlib
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, caching
from bpa_ppl.caching import key_of, key_of_code, read_array, write_array
from bpa_ppl.errors import BpaWarning, UsageError
from bpa_ppl.quality import CHRF, TER, Metric, gains, oracles


@pytest.fixture
def lists() -> NBest:
    """Enough different hypotheses for their scores to be kept."""
    rng = np.random.default_rng(2)
    texts = [[" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)] for _ in range(20)]
    features = [np.zeros((60, 1))] * 20
    return NBest.from_lists(texts, features, ["LM0"], references=[[t[7] + " x"] for t in texts])


def kept(folder: Path) -> list[Path]:
    """The files of arrays in a cache folder."""
    return sorted((folder / "arrays").iterdir())


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
    assert len(kept(cache_folder)) == 1


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
    gains(lists)
    assert len(kept(cache_folder)) == 7


def test_gains_are_kept_too(lists: NBest, cache_folder: Path) -> None:
    first = gains(lists, "chrf")
    (path,) = kept(cache_folder)
    write_array(path.stem, np.arange(len(np.load(path)["values"]), dtype=float))
    assert not np.array_equal(gains(lists, "chrf"), first)
    np.testing.assert_array_equal(gains(lists, "chrf", cache=False), first)


@pytest.fixture
def editable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with a metric of one's own, and code that it calls in another."""
    (tmp_path / "own_core.py").write_text("SCALE = 1.0\n")
    path = tmp_path / "own_metric.py"
    path.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return path


OWN = """
from typing import ClassVar
import numpy as np
import own_core
from bpa_ppl.quality import Metric

class Own(Metric, frozen=True):
    key: ClassVar[str] = "own"
    computed_by: ClassVar[tuple[str, ...]] = ("own_core",)

    def sentences(self, lists, references, *, only_best):
        return np.array([own_core.SCALE * len(text) for texts in lists for text in texts])
"""


def own_metric(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """The metric as a new process imports it."""
    importlib.invalidate_caches()
    for name in ("own_metric", "own_core"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    caching._source.cache_clear()
    found: Metric = importlib.import_module("own_metric").Own()
    return found


@pytest.mark.parametrize("name", ["own_metric.py", "own_core.py"])
def test_other_code_has_other_scores(
    lists: NBest,
    cache_folder: Path,
    editable: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert (oracles(lists, own_metric(monkeypatch)).score == 11).all()
    oracles(lists, own_metric(monkeypatch))
    assert len(kept(cache_folder)) == 1
    edited = editable.with_name(name)
    source = edited.read_text()
    edited.write_text(source.replace("len(text)", "2 * len(text)").replace("1.0", "2.0"))
    assert (oracles(lists, own_metric(monkeypatch)).score == 22).all()
    assert len(kept(cache_folder)) == 2


def test_code_without_a_source_is_not_trusted(lists: NBest, cache_folder: Path) -> None:
    kind = type("Shown", (TER,), {"__module__": "typed_by_hand"}, frozen=True)
    assert oracles(lists, kind()).index.tolist() == oracles(lists, cache=False).index.tolist()
    assert not cache_folder.exists()


def test_the_code_of_ter_is_in_its_key() -> None:
    names = [*TER.computed_by, TER.__module__]
    assert None not in {key_of_code([name]) for name in names}
    assert len({key_of_code(names[:n]) for n in range(len(names) + 1)}) == len(names) + 1


def test_what_was_not_used_for_longest_goes_first(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "1")
    noise = np.random.default_rng(0).random((4, 45_000))  # 340 KiB each: three in a MiB
    for name, values in zip("abc", noise, strict=False):
        write_array(name, values)
        path = cache_folder / "arrays" / f"{name}.npz"
        os.utime(path, ns=(1, 10**9 * ord(name)))
    assert read_array("a", 45_000) is not None  # used last now
    write_array("d", noise[3])
    assert [path.stem for path in kept(cache_folder)] == ["a", "c", "d"]
    assert sum(path.stat().st_size for path in kept(cache_folder)) <= 1 << 20
    np.testing.assert_array_equal(read_array("d", 45_000), noise[3])


def test_what_is_larger_than_the_limit_is_not_kept(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "1")
    write_array("small", np.zeros(3))
    write_array("large", np.random.default_rng(0).random(200_000))
    assert [path.stem for path in kept(cache_folder)] == ["small"]


def test_a_limit_of_zero_keeps_nothing(
    lists: NBest, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "0")
    oracles(lists)
    assert not cache_folder.exists()
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "much")
    with pytest.raises(UsageError, match="BPA_PPL_CACHE_LIMIT is 'much': give a whole number"):
        oracles(lists)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other size"])
def test_a_damaged_file_is_written_again(
    lists: NBest, counted: list[int], cache_folder: Path, damage: str
) -> None:
    wanted = oracles(lists)
    (path,) = kept(cache_folder)
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-40], "empty": b"", "text": b"not a zip"}.get(damage, b""))
    if damage == "other size":
        np.savez(path, values=np.zeros(3))
    assert oracles(lists).index.tolist() == wanted.index.tolist()
    assert oracles(lists).index.tolist() == wanted.index.tolist()
    assert sum(counted) == 40
    assert kept(cache_folder) == [path]


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
    assert caching.cache_folder().name == "bpa_ppl"


def test_texts_that_are_no_proper_unicode_have_a_key() -> None:
    assert key_of(["\ud800"]) != key_of(["\ud801"])


def _write_and_read(number: int) -> bool:
    wanted = np.arange(5000, dtype=np.float64)
    for _ in range(20):
        write_array("shared", wanted)
        found = read_array("shared", 5000)
        if found is None or not np.array_equal(found, wanted):
            return False
    return True


def test_two_processes_at_once(cache_folder: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert all(pool.map(_write_and_read, range(4)))
    assert [path.name for path in kept(cache_folder)] == ["shared.npz"]


@pytest.mark.parametrize("values", [np.full(9, np.nan), np.r_[np.zeros(8), np.nan]])
def test_numbers_that_are_none_are_never_believed(cache_folder: Path, values: np.ndarray) -> None:
    write_array("key", values)
    assert read_array("key", 9) is None


def test_every_flipped_bit_is_found_or_harmless(cache_folder: Path) -> None:
    write_array("key", np.arange(9.0))
    (path,) = kept(cache_folder)
    content = path.read_bytes()
    rng = np.random.default_rng(4)
    for place in rng.integers(0, len(content), size=300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        found = read_array("key", 9)
        assert found is None or found.tolist() == list(range(9))


def test_what_killed_processes_left_is_removed(cache_folder: Path) -> None:
    write_array("key", np.arange(9.0))
    (path,) = kept(cache_folder)
    old, new = path.with_name("old.part"), path.with_name("new.part")
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    write_array("other", np.arange(9.0))
    assert not old.exists()
    assert new.exists()
