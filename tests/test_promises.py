"""The pages of promises name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize("page", ["docs/promises.md", "SECURITY.md"])
@pytest.mark.needs_extras
def test_named_tests_exist(page: str) -> None:
    text = (TESTS.parent / page).read_text("utf-8")
    named = re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", text)
    assert len(named) > 20
    sources = {file: (TESTS / file).read_text("utf-8") for file, _ in named}
    assert [
        f"{file}::{name}" for file, name in named if f"\ndef {name}(" not in sources[file]
    ] == []
    assert text.count("::") == len(named)  # none in another notation
