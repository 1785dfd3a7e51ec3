"""The notebooks reproduce their outputs and have the code of their how-to pages."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
#: Notebooks that take long.
LONG = {"own-model"}
by_name = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in NOTEBOOKS
    ],
)


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The mkdocs hook that renders notebooks."""
    spec = importlib.util.spec_from_file_location("hook", ROOT / "docs/hooks/notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nearly_equal(output: str, expected_text: str) -> bool:
    """Return whether two texts have the same words and nearly the same numbers."""
    number = r"-?\d+(?:\.\d+)?"
    result, expected = (
        [float(x) for x in re.findall(number, text)] for text in (output, expected_text)
    )
    words = re.sub(number, "#", output) == re.sub(number, "#", expected_text)
    return words and result == pytest.approx(expected, rel=0.02, abs=0.3)


@by_name
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter", "ignore::DeprecationWarning")
def test_notebook_reproduces_its_outputs(
    path: Path, hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # monkeypatch also restores the folder if the notebook changes it
    cells = [cell for cell in hook.cells_of(path) if cell["cell_type"] == "code"]
    for cell, output in zip(cells, hook.run(cells), strict=True):
        if hook.VARIES in cell["metadata"].get("tags", ()):
            assert bool(output) == bool(hook.printed(cell))
            assert ("NOT converged" in output, "FAILED" in output) == (False, False)
        else:
            assert nearly_equal(output, hook.printed(cell)), output


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_has_the_code_of_its_how_to(path: Path, hook: ModuleType) -> None:
    page = (ROOT / "docs" / "how-to" / f"{path.stem}.md").read_text("utf-8")
    snippets = [code.strip() for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
    assert snippets
    cells = ["".join(cell["source"]) for cell in hook.cells_of(path)]
    assert [code for code in snippets if code not in cells] == []
    assert f"../notebooks/{path.stem}.md" in page
    assert f"../how-to/{path.stem}.md" in "".join(cells)


def test_markdown_of_notebook_has_text_code_and_output(hook: ModuleType, tmp_path: Path) -> None:
    output = {"name": "stdout", "output_type": "stream", "text": ["1\n", "2\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# A title"]},
        {"cell_type": "code", "source": ["print(1)\n", "print(2)"], "outputs": [output]},
    ]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert hook.markdown(path) == (
        "# A title\n\n[Download the notebook](one.ipynb)\n\n"
        "```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n2\n```\n"
    )
    assert hook.run(cells) == ["1\n2\n"]


@pytest.mark.slow
def test_notebooks_run_in_jupyter(tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    pytest.importorskip("ipykernel")
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        nbclient.NotebookClient(notebook, resources={"metadata": {"path": tmp_path}}).execute()
