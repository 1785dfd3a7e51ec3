"""The pictures of the documentation are those that the tools draw."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
#: Pictures of the code and of data; the others of this tool need runs.
STRUCTURE = (
    "additions",
    "architecture",
    "interface",
    "vocabulary",
    "promises",
    "lists",
    "other-tools",
)
RESULTS = sorted(path.stem for path in (ASSETS / "results").glob("*.svg"))


@pytest.fixture
def import_tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module


def assert_is_drawn(figure: Figure, path: Path, save: Callable[[Figure, BytesIO], None]) -> None:
    """Compare texts, which differ between versions of Matplotlib."""
    stored, drawn = path.read_text("utf-8"), BytesIO()
    save(figure, drawn)
    if f"Matplotlib v{mpl.__version__}," not in stored:
        pytest.skip("drawn by another version of Matplotlib")
    advice = f"draw {path.relative_to(ROOT)} again by tools/draw_results.py or tools/draw_pages.py"
    assert without_hashes(drawn.getvalue().decode()) == without_hashes(stored), advice


def without_hashes(svg: str) -> str:
    """Leave out the names of clipping paths: hashes of coordinates that are rounded in the file."""
    return re.sub(r"\bp[0-9a-f]{10}\b", "p", svg)


@pytest.mark.parametrize("name", STRUCTURE)
def test_a_picture_shows_the_code(name: str, import_tool: Callable[[str], ModuleType]) -> None:
    tool = import_tool("draw_pages")
    assert_is_drawn(tool.PICTURES[name](), ASSETS / "pages" / f"{name}.svg", tool.save)


@pytest.mark.parametrize("name", RESULTS)
def test_a_picture_shows_its_table(name: str, import_tool: Callable[[str], ModuleType]) -> None:
    tool = import_tool("draw_results")
    assert_is_drawn(tool.draw(name), ASSETS / "results" / f"{name}.svg", tool.save)
