"""Run the code of the tutorial and of the first page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a writable folder with the examples of a clone."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def run(page: str) -> dict[str, Any]:
    """Run the code blocks of a page in one scope, and return the scope."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    scope: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, scope)
    return scope


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_the_tutorial_prints_its_figures(clone: None, capsys: pytest.CaptureFixture[str]) -> None:
    scope = run("tutorial.md")
    printed = capsys.readouterr().out
    assert "keep this package insert to reach of the person" in printed
    ter = [float(number) for number in re.findall(r"TER\D*?(\d+\.\d+)", printed)]
    assert ter[-1] == pytest.approx(54.2, abs=0.3)
    assert ter[0] == pytest.approx(57.55, abs=0.005)
    assert Path("adapted.json").exists()
    assert scope["again"].attrs == scope["with_text"].attrs


def test_the_first_page_prints_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    run("index.md")
    printed = capsys.readouterr().out
    assert "converged" in printed
    (ter,) = re.findall(r"TER (\d+\.\d+)", printed)
    assert float(ter) == pytest.approx(55.2, abs=0.3)
