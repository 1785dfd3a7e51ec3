"""The site: options in signatures, and a search without the network.

`make docs` itself fails on warnings, broken links, and pages that load from the network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.browser import CHROMIUM

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    package = [sys.executable, "-c", "import setuptools; setuptools.setup()", "build_py"]
    subprocess.run(package, cwd=ROOT, check=True)
    # With --quiet, --strict would ignore warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


def test_reference_has_arguments_and_examples(site: Path) -> None:
    html = (site / "api" / "adapting.html").read_text("utf-8")
    assert "lower_is_better" in html
    assert "&gt;&gt;&gt;" in html
    assert "doctest:" not in html


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed")
def test_search_works_offline(site: Path) -> None:
    page = f"{(site / 'how-to' / 'clusters.html').as_uri()}?q=softmax-margin"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    command = [str(CHROMIUM), *options, "--dump-dom", page]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert re.search(r"[1-9]\d* matching document", run.stdout)
