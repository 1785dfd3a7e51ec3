"""The cache folder: which results it keeps, and when it is not used."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import caching
from bpa_ppl.arrays import Float64
from bpa_ppl.caching import limit_results, recalled
from bpa_ppl.errors import BpaWarning

CALLS: list[int] = []


def squares(count: int, key: str = "") -> Float64:
    """Return the first squares, and record the call."""
    CALLS.append(count)
    return np.arange(count, dtype=np.float64) ** 2


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def stored(folder: Path) -> list[Path]:
    """Return the results in a cache folder."""
    return sorted((folder / "results").rglob("output.pkl"))


def test_results_are_computed_once_for_equal_arguments(cache_folder: Path) -> None:
    for count, key in ((3, ""), (3, ""), (4, ""), (3, "version 2")):
        assert recalled(squares, count, key).tolist() == (np.arange(count) ** 2.0).tolist()
    assert CALLS == [3, 4, 3]
    assert len(stored(cache_folder)) == 3


def test_results_used_least_recently_are_deleted_first(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count, accessed in ((20_000, 1), (20_001, 3), (20_002, 2)):  # 160 kB each
        before = {*stored(cache_folder)}
        recalled(squares, count)
        (path,) = {*stored(cache_folder)} - before
        os.utime(path, (accessed, accessed))
    monkeypatch.setattr(caching, "_LIMIT", 200_000)
    limit_results()
    assert [path.stat().st_atime for path in stored(cache_folder)] == [3]


def test_a_damaged_result_is_computed_again(cache_folder: Path) -> None:
    recalled(squares, 3)
    (path,) = stored(cache_folder)
    for content in (b"", path.read_bytes()[:-9], b"no pickle"):
        path.write_bytes(content)
        assert recalled(squares, 3).tolist() == [0, 1, 4]
    assert CALLS == [3] * 4


def _recall(_: int) -> list[float]:
    return [recalled(squares, count)[-1] for count in range(2, 22)]


def test_processes_share_results(cache_folder: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_recall, range(4)))
    assert found == [[(count - 1) ** 2 for count in range(2, 22)]] * 4
    assert len(stored(cache_folder)) == 20


@pytest.mark.parametrize("problem", ["not a folder", "no home folder"])
def test_without_a_folder_nothing_is_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
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
        recalled(squares, 3)
    recalled(squares, 3)
    limit_results()
    assert CALLS == [3, 3]


def test_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    monkeypatch.delenv("BPA_PPL_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert caching.cache_folder() == tmp_path / "bpa_ppl"
    monkeypatch.delenv(variable)
    assert caching.cache_folder() == Path.home() / ".cache" / "bpa_ppl"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_folder_that_others_can_write_into_is_not_used(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder.mkdir()
    cache_folder.chmod(0o777)
    with pytest.warns(BpaWarning, match="chmod"):
        recalled(squares, 3)
    recalled(squares, 3)  # it warns once
    assert list(cache_folder.iterdir()) == []
    other = tmp_path / "other"
    monkeypatch.setenv("BPA_PPL_CACHE", str(other))
    recalled(squares, 3)
    assert (stat.S_IMODE(other.stat().st_mode), len(stored(other))) == (0o700, 1)
    monkeypatch.setattr(os, "geteuid", lambda: other.stat().st_uid + 1)
    link = tmp_path / "link"
    link.symlink_to(other)
    monkeypatch.setenv("BPA_PPL_CACHE", str(link))
    with pytest.warns(BpaWarning, match="another user"):
        recalled(squares, 3)
