"""A separate cache folder for the scores of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BPA_PPL_CACHE", str(folder))
    return folder
