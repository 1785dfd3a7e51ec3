"""The codes of errors: all that the package uses are listed, and none else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from bpa_ppl import errors
from bpa_ppl.errors import CODES

ROOT = Path(__file__).resolve().parent.parent
#: Codes that are put together from parts.
COMPOSED = {"missing-references", "missing-sources"}


def texts_of(folder: str) -> set[str]:
    """Return the texts in the modules of a folder, except for keys of the table of codes."""
    nodes = (
        node
        for path in (ROOT / folder).rglob("*.py")
        if path != ROOT / "bpa_ppl" / "errors.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def codes_of(folder: str) -> set[str]:
    """Return the codes that errors of a folder are raised with, as far as they are texts."""
    calls = (
        node.value
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "code"
    )
    return {str(value.value) for value in calls if isinstance(value, ast.Constant)}


def test_the_codes_in_use_are_listed() -> None:
    folders = ("bpa_ppl", "models", "diagnostics")
    assert set().union(*map(codes_of, folders)) <= set(CODES)
    classes = (kind for kind in vars(errors).values() if isinstance(kind, type))
    of_classes = {str(kind.code) for kind in classes if issubclass(kind, errors.BpaError)}
    used = set().union(*map(texts_of, folders)) | of_classes | COMPOSED
    assert set(CODES) <= used


def test_the_reference_lists_the_codes() -> None:
    page = (ROOT / "docs" / "api" / "extending.md").read_text("utf-8")
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.M)) == CODES
