"""The cache of scores: reuse, damaged files, size limit and concurrent processes."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, caching
from bpa_ppl.caching import read_array, write_array
from bpa_ppl.errors import BpaWarning, UsageError
from bpa_ppl.quality import CHRF, TER, gains, oracles


@pytest.fixture
def lists() -> NBest:
    """Lists with enough different hypotheses for caching."""
    rng = np.random.default_rng(2)
    texts = [[" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)] for _ in range(20)]
    features = [np.zeros((60, 1))] * 20
    return NBest.from_lists(texts, features, ["LM0"], references=[[t[7] + " x"] for t in texts])


def files(folder: Path) -> list[Path]:
    """Return the array files in a cache folder."""
    return sorted((folder / "arrays").iterdir())


@pytest.fixture
def ter_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of sentences in each computation of TER."""
    calls: list[int] = []
    original = TER.counts

    def count_calls(self: TER, lists: Any, references: Any) -> Any:
        calls.append(len(lists))
        return original(self, lists, references)

    monkeypatch.setattr(TER, "counts", count_calls)
    return calls


def test_scores_are_computed_once(lists: NBest, ter_calls: list[int], cache_folder: Path) -> None:
    reports: list[tuple[int, int]] = []
    first = oracles(lists)
    again = oracles(lists, progress=lambda done, total, note: reports.append((done, total)))
    assert sum(ter_calls) == 20
    assert again.index.tolist() == first.index.tolist()
    assert again.score.tolist() == first.score.tolist()
    assert reports == [(20, 20)]
    assert len(files(cache_folder)) == 1


def test_what_is_not_cached(
    toy: NBest, lists: NBest, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_source = type("Shown", (TER,), {"__module__": "typed_by_hand"}, frozen=True)()
    expected = oracles(lists, cache=False).index.tolist()
    assert oracles(lists, without_source).index.tolist() == expected
    oracles(toy)  # few hypotheses
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "0")
    oracles(lists)
    assert not cache_folder.exists()
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "much")
    with raises(UsageError, parameter="BPA_PPL_CACHE_LIMIT"):
        oracles(lists)


def test_key_depends_on_all_inputs(lists: NBest, cache_folder: Path) -> None:
    assert lists.references is not None
    oracles(lists)
    oracles(lists, TER(case_sensitive=True))
    oracles(lists, CHRF(beta=2))
    oracles(lists, CHRF(beta=3))
    oracles(lists.with_references([(*r, "a b") for r in lists.references]))
    oracles(lists.select(np.arange(19)))
    assert len(files(cache_folder)) == 6
    gains(lists)  # from the same file as the oracles
    assert len(files(cache_folder)) == 6


CUSTOM = """
from typing import ClassVar
import numpy as np
import custom_core
from bpa_ppl.quality import Averaged

class Custom(Averaged, frozen=True):
    key: ClassVar[str] = "custom"
    computed_by: ClassVar[tuple[str, ...]] = ("custom_core",)

    def sentences(self, lists, references):
        return np.array([custom_core.SCALE * len(text) for texts in lists for text in texts])
"""


@pytest.mark.parametrize("name", ["custom_metric.py", "custom_core.py"])
def test_changed_code_invalidates_scores(
    lists: NBest, cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "custom_core.py").write_text("SCALE = 1.0\n")
    (tmp_path / "custom_metric.py").write_text(CUSTOM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def scores_of_new_process() -> set[float]:
        importlib.invalidate_caches()
        for module in ("custom_metric", "custom_core"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        caching._source.cache_clear()
        return set(oracles(lists, importlib.import_module("custom_metric").Custom()).score)

    assert scores_of_new_process() == scores_of_new_process() == {11.0}
    assert len(files(cache_folder)) == 1
    source = (tmp_path / name).read_text()
    source = source.replace("len(text)", "2 * len(text)").replace("1.0", "2.0")
    (tmp_path / name).write_text(source)
    assert scores_of_new_process() == {22.0}
    assert len(files(cache_folder)) == 2


def test_least_recently_used_file_is_deleted_first(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPA_PPL_CACHE_LIMIT", "1")
    noise = np.random.default_rng(0).random((4, 45_000))  # 340 KiB each: three fit in a MiB
    for name, values in zip("abc", noise, strict=False):
        write_array(name, values)
        path = cache_folder / "arrays" / f"{name}.npz"
        os.utime(path, ns=(1, 10**9 * ord(name)))
    assert read_array("a", 45_000) is not None  # now the most recently used
    write_array("d", noise[3])
    assert [path.stem for path in files(cache_folder)] == ["a", "c", "d"]
    assert sum(path.stat().st_size for path in files(cache_folder)) <= 1 << 20
    np.testing.assert_array_equal(read_array("d", 45_000), noise[3])
    write_array("large", noise.ravel())
    assert [path.stem for path in files(cache_folder)] == ["a", "c", "d"]


@pytest.mark.parametrize("problem", ["not a folder", "no home folder"])
def test_without_a_folder_nothing_is_cached(
    lists: NBest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    if problem == "not a folder":
        (tmp_path / "file").touch()
        monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "file" / "below"))
    else:
        for name in ("BPA_PPL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(Path, "expanduser", no_home)
    match = "no home folder: .* BPA_PPL_CACHE" if "home" in problem else "BPA_PPL_CACHE"
    with pytest.warns(BpaWarning, match=match):
        result = oracles(lists)
    assert result.index.tolist() == oracles(lists, cache=False).index.tolist()


def test_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    monkeypatch.delenv("BPA_PPL_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert caching.cache_folder() == tmp_path / "bpa_ppl"
    monkeypatch.delenv(variable)
    assert caching.cache_folder() == Path.home() / ".cache" / "bpa_ppl"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_folder_that_others_can_write_into_is_not_used(
    lists: NBest, cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder.mkdir()
    cache_folder.chmod(0o777)
    with pytest.warns(BpaWarning, match="chmod"):
        oracles(lists)
    oracles(lists)  # it warns once
    assert list(cache_folder.iterdir()) == []
    other = tmp_path / "other"
    monkeypatch.setenv("BPA_PPL_CACHE", str(other))
    oracles(lists)
    assert (stat.S_IMODE(other.stat().st_mode), len(files(other))) == (0o700, 1)
    monkeypatch.setattr(os, "geteuid", lambda: other.stat().st_uid + 1)
    link = tmp_path / "link"
    link.symlink_to(other)
    monkeypatch.setenv("BPA_PPL_CACHE", str(link))
    with pytest.warns(BpaWarning, match="another user"):
        oracles(lists)


def _write_and_read(number: int) -> bool:
    expected = np.arange(5000, dtype=np.float64)
    results = []
    for _ in range(20):
        write_array("shared", expected)
        results.append(read_array("shared", 5000))
    return all(r is not None and np.array_equal(r, expected) for r in results)


def test_concurrent_processes(cache_folder: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert all(pool.map(_write_and_read, range(4)))
    assert [path.name for path in files(cache_folder)] == ["shared.npz"]


def test_damage_is_detected_or_harmless(cache_folder: Path) -> None:
    write_array("key", np.r_[np.zeros(8), np.nan])
    assert read_array("key", 9) is None  # NaN is damage
    write_array("key", np.arange(9.0))
    assert read_array("key", 3) is None
    (path,) = files(cache_folder)
    content = path.read_bytes()
    damaged = [content[:-40], b"", b"not a zip"]
    for place in range(len(content)):
        flipped = content[place] ^ 1 << place % 8
        damaged.append(content[:place] + bytes([flipped]) + content[place + 1 :])
    for wrong in damaged:
        path.write_bytes(wrong)
        result = read_array("key", 9)
        assert result is None or result.tolist() == list(range(9))
