"""The pages of the documentation, and the code in their sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NUMBER = r"-?\d+(?:\.\d+)?"
_FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def without_blocks(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return _FENCED.sub("", page.read_text("utf-8"))


def without_code(page: Path) -> str:
    """Return the text of a page without any code."""
    return _SPAN.sub("", without_blocks(page))


def inline_code(page: Path) -> list[str]:
    """Return the code in the sentences of a page, each on one line."""
    return sorted({" ".join(code.split()) for _, code in _SPAN.findall(without_blocks(page))})


#: Each page and each of its code in sentences.
INLINE_CODE = [(str(page.relative_to(ROOT)), code) for page in PAGES for code in inline_code(page)]


def assert_prints(printed: str, expected: str) -> None:
    """Compare a block with the first lines that were printed; … is the rest of a word or line."""
    for line, stored in zip(printed.splitlines(), expected.splitlines(), strict=False):
        for word, other in zip(line.split(), stored.split(), strict=not stored.endswith("…")):
            if re.fullmatch(NUMBER, other):
                assert float(word) == pytest.approx(float(other), rel=0.1, abs=0.02), line
            else:
                assert re.fullmatch(re.escape(other).replace("…", r"\S+"), word), line
