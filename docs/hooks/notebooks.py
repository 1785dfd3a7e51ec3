"""Show notebooks on the site, with their stored outputs.

MkDocs calls `on_files` and `on_page_markdown`. `python docs/hooks/notebooks.py` runs the notebooks
and stores their output, which the tests compare with a new run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
#: Tag of cells whose output depends on the machine.
VARIES = "varies"


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook file."""
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return cells


def printed(cell: dict[str, Any]) -> str:
    """Return the stored output of a code cell."""
    return "".join(text for output in cell.get("outputs", ()) for text in output["text"])


def run(cells: list[dict[str, Any]]) -> list[str]:
    """Run the code cells of a notebook in one scope and return the output of each."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("".join(cell["source"]), "<cell>", "exec"), scope)
        outputs.append(output.getvalue())
    return outputs


def markdown(path: Path) -> str:
    """Return a notebook as Markdown: text, code and stored output."""
    parts = [f"[Download the notebook]({path.name})"]
    for cell in cells_of(path):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        ast.parse(source)
        parts.append(f"```python\n{source}\n```")
        if printed(cell):
            parts.append(f"```text\n{printed(cell).rstrip()}\n```")
    parts[0], parts[1] = parts[1], parts[0]  # the title comes first
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content=markdown(path)))
    return files


def on_page_markdown(text: str, **others: Any) -> str:
    """Make links to notebooks lead to their pages, which a code host does not have."""
    return re.sub(r"(\]\(\.\./notebooks/[\w-]+)\.ipynb\)", r"\1.md)", text)


def main() -> None:
    """Run every notebook and store its output."""
    here = Path.cwd()
    warnings.simplefilter("ignore")
    for path in sorted(FOLDER.glob("*.ipynb")):
        content = json.loads(path.read_text("utf-8"))
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for cell, text in zip(code, run(content["cells"]), strict=True):
            lines = text.splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [stream] if text else []
        os.chdir(here)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
