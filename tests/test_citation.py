"""CITATION.cff is valid, and names the papers that the package implements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import bpa_ppl

ROOT = Path(__file__).resolve().parent.parent
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
#: The papers whose methods `docs/published.md` compares with ours.
PAPERS = [
    ("Sanchis-Trilles", "Casacuberta", "S+SSPR", 2010),
    ("Sanchis-Trilles", "Casacuberta", "COLING", 2010),
    ("Sanchis-Trilles", "Casacuberta", "Computer Speech & Language", 2015),
    ("Foster", "Goutte", "Kuhn", "EMNLP", 2010),
    ("Cuong", "Sima'an", "Titov", "Transactions of the Association", 2016),
]


def test_fields_of_the_software() -> None:
    """The required ones of version 1.2.0 of the format, and the version of the package."""
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys()
    assert (CITATION["cff-version"], CITATION["type"]) == ("1.2.0", "software")
    assert CITATION["version"] == bpa_ppl.__version__


def test_the_papers_are_those_that_the_package_implements() -> None:
    cited = [
        (*(author["family-names"] for author in one["authors"]), venue(one), one["year"])
        for one in CITATION["references"]
    ]
    for (*names, place, year), (*cited_names, cited_place, cited_year) in zip(
        PAPERS, cited, strict=True
    ):
        assert (cited_names, cited_year) == (names, year)
        assert place in cited_place


def venue(reference: dict[str, Any]) -> str:
    """Return the journal or the conference."""
    is_article = reference["type"] == "article"
    return str(reference["journal"] if is_article else reference["conference"]["name"])


@pytest.mark.parametrize("reference", CITATION["references"], ids=lambda one: one["title"][:20])
def test_a_paper_is_among_the_sources_of_the_method(reference: dict[str, Any]) -> None:
    """With the same authors, title and year."""
    page = " ".join((ROOT / "docs" / "method.md").read_text("utf-8").split())
    sources = re.findall(r"\* ([^*:]+): \*([^*]+)\.\* ([^*]+?)\.(?= \*|$)", page)
    (found,) = [source for source in sources if source[1] == reference["title"]]
    authors, _, place = found
    names = [f"{one['given-names'][0]}. {one['family-names']}" for one in reference["authors"]]
    assert authors == ", ".join(names)
    assert place.endswith(str(reference["year"]))
