"""Files appear whole: all together, never half."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from raising import raises

from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import (
    atomic_writer,
    atomic_writers,
    require_writable,
)


def test_two_files_are_replaced_together(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text("old")
    with atomic_writers(tmp_path / "first", tmp_path / "second") as files:
        for file in files:
            file.write("new")
        assert (tmp_path / "first").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]
    assert {(tmp_path / name).read_text() for name in ("first", "second")} == {"new"}


def test_whether_a_file_can_be_written_is_asked_without_a_trace(tmp_path: Path) -> None:
    require_writable(tmp_path / "new")
    require_writable(os.devnull)
    require_writable("-")
    assert os.listdir(tmp_path) == []
    with raises(DataError, "cannot-write"):
        require_writable(tmp_path / "missing" / "new")
    with raises(DataError, "cannot-write"):
        require_writable(tmp_path)


def test_a_device_that_is_full_is_named() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs the device /dev/full of Linux")
    with raises(DataError, "cannot-write"):  # noqa: SIM117
        with atomic_writer("/dev/full") as file:
            file.write("whole")
