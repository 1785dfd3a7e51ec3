"""The site builds without warnings or broken links and needs no network access."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", str(yaml.safe_load(CONFIG)["nav"])))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in docs.glob("notebooks/*.ipynb")}
    assert listed == pages | notebooks


def test_lines_have_at_most_100_characters() -> None:
    printed = re.compile(r"```text\n.*?```", re.DOTALL)  # the output of benchmarks
    pages = [printed.sub("", path.read_text("utf-8")) for path in PAGES]
    lines = [line for page in pages for line in page.splitlines()]
    assert [
        line for line in lines if len(line) > 100 and not line.strip().startswith(("|", "!["))
    ] == []


def test_docstring_examples_become_code_blocks() -> None:
    pytest.importorskip("griffe")
    hook = runpy.run_path(str(ROOT / "docs/hooks/examples.py"))
    text = "Add.\n\n>>> 1 + 1  # doctest: +SKIP\n2\n\nMore.\n\n>>> 3\n3"
    shown = "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.\n\n```pycon\n>>> 3\n3\n```"
    assert hook["_EXAMPLES"].sub(hook["fenced"], text) == shown


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does; warnings are errors."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    # With --quiet, --strict would ignore warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.mark.slow
def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        html = page.read_text("utf-8")
        assert re.findall(r"<(?:script|img|link)\b[^>]*(?:src|href)=\"?(?:https?:)?//", html) == []
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"@import|url\(\"?(?:https?:)?//", styles) == []


@pytest.mark.slow
def test_search_works_offline(site: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium")
    page = f"{(site / 'how-to' / 'clusters.html').as_uri()}?q=softmax-margin"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    command = [chromium, *options, "--dump-dom", page]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert re.search(r"[1-9]\d* matching document", run.stdout)


@pytest.mark.slow
def test_signatures_have_the_fields_of_options(site: Path) -> None:
    html = (site / "api/adapting.html").read_text("utf-8")
    assert "prior_only" in html
    assert "<code>options</code>" not in html
