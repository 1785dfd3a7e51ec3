"""The page that compares our numbers with those of the papers."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "published.md"
HEAD = "| the paper reports | on our lists | verdict |"


def test_each_claim_of_a_paper_has_numbers_and_one_verdict() -> None:
    tables = [block.splitlines() for block in PAGE.read_text("utf-8").split("\n\n")]
    tables = [lines for lines in tables if lines[0] == HEAD]
    assert len(tables) == 3
    for line in (line for lines in tables for line in lines[2:]):
        claim, ours, verdict = (c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1])
        assert verdict in {"confirmed", "not confirmed", "open"}, claim
        assert claim, line
        assert ours, claim
