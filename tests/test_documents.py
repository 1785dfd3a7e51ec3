"""What a reader would notice: dead links and names, pictures and figures without their record."""

from __future__ import annotations

import importlib
import pkgutil
import re
import runpy
import unicodedata
from functools import cache
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import pytest
import yaml
from support.pages import INLINE_CODE, PAGES, ROOT, without_blocks, without_code
from support.registries import REGISTRIES

import bpa_ppl
from bpa_ppl import UsageError
from bpa_ppl.extending import StartingWeights

DOCS = ROOT / "docs"
#: All pages that are read on a code host; the site has those in docs/.
READ = sorted(
    {*PAGES, *ROOT.glob("*.md"), *ROOT.glob(".github/*.md"), *ROOT.glob("examples/**/*.md")}
)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that a page has both on a code host and on the site."""
    headings = re.findall(r"^#+ +(.*)$", without_blocks(page), re.MULTILINE)
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip() for heading in headings]
    on_host = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts]
    plain = [unicodedata.normalize("NFKD", text).encode("ascii", "ignore") for text in texts]
    words = [re.sub(r"[^\w\s-]", "", text.decode()).strip().lower() for text in plain]
    return {*on_host} & {re.sub(r"[-\s]+", "-", text) for text in words}


def is_dead(page: Path, link: str) -> bool:
    """Return whether a relative link leads to no file of the tree, or to no section."""
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    exists = target.is_relative_to(ROOT) and target.exists()
    return not exists or bool(anchor and anchor not in anchors(target))


@pytest.mark.needs_extras
def test_links_and_pictures_lead_to_files_and_sections() -> None:
    pattern = re.compile(r"\]\((?![a-z]+:)([^)\s]+)\)")
    relative = [(page, link) for page in READ for link in pattern.findall(without_code(page))]
    assert len(relative) > 400
    assert [(str(page), link) for page, link in relative if is_dead(page, link)] == []
    for link in ("docs/no-such-page.md", "docs/model.md#no-such-section", "../outside.md"):
        assert is_dead(ROOT / "README.md", link)


def test_links_to_notebooks_lead_to_their_pages_on_the_site() -> None:
    hook = runpy.run_path(str(DOCS / "hooks" / "notebooks.py"))["on_page_markdown"]
    texts = {page.stem: page.read_text("utf-8") for page in (DOCS / "how-to").glob("*.md")}
    linking = {stem: text for stem, text in texts.items() if "notebooks/" in text}
    assert linking
    for stem, text in linking.items():
        assert f"(../notebooks/{stem}.md)" in hook(text)


@pytest.mark.needs_extras
def test_names_in_sentences_exist() -> None:
    """Names of the package, with the modules that they are in, and groups of entry points."""
    groups = {registry.group for registry in REGISTRIES.values()} | {"bpa_ppl.commands"}
    dotted, lost = re.compile(r"\bbpa(?:_ppl)?(?:\.[A-Za-z_]\w*)+"), []
    for page, span in INLINE_CODE:
        for name in set(dotted.findall(span)) - groups:
            try:
                pkgutil.resolve_name(re.sub(r"^bpa\.", "bpa_ppl.", name))
            except (AttributeError, ImportError):
                lost.append((page, name))
    assert lost == []


def resolves(text: str) -> bool:
    for registry in REGISTRIES.values():
        try:
            registry.resolve(text)
        except UsageError:
            continue
        return True
    return text.startswith(("none:", "equal:")) and bool(StartingWeights.of(text))


@pytest.mark.needs_extras
def test_settings_in_sentences_exist() -> None:
    """Names of components with settings, `margin:gamma=4`, alone or as the value of an option."""
    written = re.compile(r"(?:^|(?<=[\s'\"]))[a-z-]+(?::\w+)?[:,][a-z_]+=[^\s'\"]+")
    shown = [(page, text) for page, span in INLINE_CODE for text in written.findall(span)]
    assert len(shown) > 30
    assert [pair for pair in shown if not resolves(pair[1])] == []
    assert not resolves("margin:no_such_setting=4")


def test_equations_name_the_year_of_their_paper() -> None:
    """In the same sentence or formula; in docs/published.md a claim names its paper."""
    folders = ("bpa_ppl", "models", "diagnostics", "tests", "benchmarks", "tools", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")] + READ
    unnamed, count = [], 0
    for path in {*files} - {DOCS / "published.md"}:
        text = re.sub(r"[\s#]+", " ", path.read_text("utf-8"))
        for found in re.finditer(r"\bEqs?\. ?\d", text):
            count += 1
            if not re.search(
                r"\b(?:19|20)\d\d\b", text[max(0, found.start() - 80) : found.end() + 60]
            ):
                unnamed.append((path.name, text[found.start() - 80 : found.end() + 60]))
    assert count > 20
    assert unnamed == []


@pytest.mark.parametrize("page", ["docs/promises.md", ".github/SECURITY.md"])
@pytest.mark.needs_extras
def test_promises_name_tests_that_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", text)
    assert len(named) == text.count("::") > 20
    sources = {file: (ROOT / "tests" / file).read_text("utf-8") for file, _ in named}
    assert [pair for pair in named if f"\ndef {pair[1]}(" not in sources[pair[0]]] == []


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == bpa_ppl.__version__


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("assets/results/*.svg")))
def test_a_picture_shows_its_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool, drawn = importlib.import_module("draw_results"), BytesIO()
    tool.save(tool.draw(name), drawn)
    stored = (DOCS / f"assets/results/{name}.svg").read_text("utf-8")
    if f"Matplotlib v{mpl.__version__}," not in stored:
        pytest.skip("drawn by another version of Matplotlib")
    # Names of clipping paths are hashes of coordinates that are rounded in the file.
    svgs = (drawn.getvalue().decode(), stored)
    one, other = (re.sub(r"\bp[0-9a-f]{10}\b", "p", svg) for svg in svgs)
    assert one == other, f"draw {name} again by tools/draw_results.py"
