"""Files to read, written by the tests themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.user_files import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes lines, or bytes as they are, and returns the path."""

    def write_file(*lines: str | bytes, name: str = "dev.nbest") -> Path:
        path = tmp_path / name
        parts = [line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines]
        path.write_bytes(b"".join(parts))
        return path

    return write_file


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files in blocks of a few lines."""
    monkeypatch.setattr("bpa_ppl._runtime.streams._BLOCK", 1)
    monkeypatch.setattr("bpa_ppl.formats.jsonl._PIECE", 1)
    monkeypatch.setattr("bpa_ppl.formats.separated._AT_ONCE", 3)
    monkeypatch.setattr("bpa_ppl._runtime.streams._CHUNK", 40)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest) -> None:
    """Read files as one block, and in blocks of a few lines."""
    if request.param == "many blocks":
        request.getfixturevalue("small_blocks")
