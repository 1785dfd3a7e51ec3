"""Relative links of pages lead to files of the tree, and to sections that these have."""

from __future__ import annotations

import re
import runpy
import unicodedata
from pathlib import Path

import pytest
from support.pages import PAGES, ROOT, without_blocks, without_code

#: All pages that are read on a code host; the site has those in docs/.
READ = sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md")})
HOOK = runpy.run_path(str(ROOT / "docs" / "hooks" / "notebooks.py"))


def links(page: Path) -> list[str]:
    """Return the relative links of a page."""
    found = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def on_code_host(heading: str) -> str:
    """Return the anchor of a heading on GitHub: signs are removed, and blanks become hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_site(heading: str) -> str:
    """Return the anchor that MkDocs gives: of ASCII, without repeated hyphens."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page has both on a code host and on the site."""
    headings = re.findall(r"^#+ +(.*)$", without_blocks(page), re.MULTILINE)
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip() for heading in headings]
    return {on_site(text) for text in texts if on_site(text) == on_code_host(text)}


def problem(page: Path, link: str) -> str | None:
    """Return what is wrong with a link; None if it is right."""
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return f"{page.relative_to(ROOT)}: there is no file {link}"
    if anchor and anchor not in anchors(target):
        return f"{page.relative_to(ROOT)}: there is no section {link}"
    return None


@pytest.mark.needs_extras
def test_links_lead_to_files_and_sections() -> None:
    found = [(page, link) for page in READ for link in links(page)]
    assert len(found) > 400
    assert [text for page, link in found if (text := problem(page, link))] == []
    assert problem(ROOT / "README.md", "docs/no-such-page.md")
    assert problem(ROOT / "README.md", "docs/model.md#no-such-section")
    assert problem(ROOT / "docs" / "index.md", "../../outside.md")


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=lambda p: p.stem
)
def test_links_to_notebooks_lead_to_their_pages_on_the_site(page: Path) -> None:
    text = page.read_text("utf-8")
    on_site = HOOK["on_page_markdown"](text)
    assert "notebooks/" not in text or f"(../notebooks/{page.stem}.md)" in on_site
    assert (
        on_site.replace(f"../notebooks/{page.stem}.md", f"../notebooks/{page.stem}.ipynb") == text
    )
