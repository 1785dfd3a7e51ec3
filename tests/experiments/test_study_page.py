"""The page on studies lists the fields of study files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bpa_ppl.experiments.studies.study import ListFiles, Method, Study, StudyDomain, Sweep
from bpa_ppl.experiments.tuning.redecoding import Decoder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "studies.md"


@pytest.mark.parametrize(
    ("section", "table", "elsewhere"),
    [
        ("Study", Study, {"development", "domains", "sweeps", "decoder"}),
        ("Domains", StudyDomain, {"name"}),
        ("Sweeps", Sweep, set()),
        ("Development lists", ListFiles, set()),
        ("Decoder", Decoder, {"folder"}),
    ],
)
def test_fields_are_listed(section: str, table: Any, elsewhere: set[str]) -> None:
    assert listed(section) == set(table.__struct_fields__) - elsewhere


def test_settings_of_variants_are_listed() -> None:
    settings = {name for name in Method.__struct_fields__ if not name.endswith("settings")}
    assert listed("Methods") >= settings - {"name", "kind", "engine"} | {"like"}


def listed(section: str) -> set[str]:
    """Return the names in the first columns of the tables of a section."""
    text = PAGE.read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", text, re.M))
