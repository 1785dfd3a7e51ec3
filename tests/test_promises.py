"""The pages of promises name tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PAGES = ("docs/promises.md", "SECURITY.md")


def named_tests(page: str) -> list[tuple[str, str]]:
    """Return the file and the function of each test that a page names."""
    text = (TESTS.parent / page).read_text("utf-8")
    return re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", text)


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_exist(page: str) -> None:
    named = named_tests(page)
    assert len(named) > 20
    assert [f"{file}::{name}" for file, name in named if name not in functions(file)] == []
    text = (TESTS.parent / page).read_text("utf-8")
    assert text.count("::") == len(named)  # none in another notation
