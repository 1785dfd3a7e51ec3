"""The cache folders: where they are, and when they are not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numba
import pytest

from bpa_ppl import BpaWarning
from bpa_ppl._runtime import cache as caching


def test_without_a_folder_nothing_is_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "file" / "below"))
    with pytest.warns(BpaWarning, match="BPA_PPL_CACHE"):
        assert caching.create_cache_folder() is None
    assert caching.create_cache_folder() is None  # it warns once
    for name in ("BPA_PPL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "expanduser", Mock(side_effect=RuntimeError))
    with pytest.warns(BpaWarning, match=r"no home folder: .* BPA_PPL_CACHE"):
        assert caching.create_cache_folder() is None


def test_the_default_folder_is_that_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    monkeypatch.delenv("BPA_PPL_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert caching.cache_folder() == tmp_path / "bpa_ppl"
    monkeypatch.delenv(variable)
    assert caching.cache_folder() == Path.home() / ".cache" / "bpa_ppl"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_folder_that_others_can_write_into_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BPA_PPL_CACHE", str(folder))
    assert caching.create_cache_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    with pytest.warns(BpaWarning, match="chmod"):
        assert caching.create_cache_folder() is None
    folder.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(BpaWarning, match="another user"):
        assert caching.create_cache_folder() is None


def test_code_is_compiled_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def refused(*function: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*function, **options)

    monkeypatch.setattr(numba, "njit", refused)
    with pytest.warns(BpaWarning, match="NUMBA_CACHE_DIR") as notes:
        assert [caching.compiled(_double)(number) for number in (2, 3)] == [4, 6]
    assert len(notes) == 1


def _double(value: int) -> int:
    return 2 * value
