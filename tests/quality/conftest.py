"""Keep the scores that these tests compute out of the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh, still missing folder that scores are kept in."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BPA_PPL_CACHE", str(folder))
    return folder
