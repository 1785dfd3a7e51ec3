"""Progress bars in a terminal and in a notebook."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bpa_ppl.progress import reporter

STEPS = """
import time
from bpa_ppl.progress import reporter

with reporter(True, "adapt <a>") as report:
    for done in range(1, 5):
        report(done, 4, "draws & more")
        time.sleep(0.11)
"""


def test_without_a_terminal_only_callbacks_are_called(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps: list[Any] = []
    # Under pytest standard error is not a terminal.
    for progress in (False, True, lambda *step: steps.append(step)):
        with reporter(progress, "adapt") as report:
            report(1, 4, "draws")
    assert capsys.readouterr() == ("", "")
    assert steps == [(1, 4, "draws")]


class NotebookCell:
    """The displayed output of an IPython cell and its updates."""

    def __init__(self) -> None:
        self.displays: list[dict[str, str]] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> NotebookCell:
        assert (raw, display_id, self.displays) == (True, True, []), "displayed once, then updated"
        self.displays.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.displays.append(bundle)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> NotebookCell:
    """The current notebook cell."""
    current = NotebookCell()
    module = ModuleType("IPython.display")
    module.display = current.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    shell = type("ZMQInteractiveShell", (SimpleNamespace,), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    return current


def test_notebook_bar_is_updated_in_place(
    cell: NotebookCell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, *(0.01 * step for step in range(1, 1000))])
    monkeypatch.setattr("bpa_ppl.progress.time.monotonic", lambda: next(clock))
    with reporter(True, "adapt <a>") as report:
        for done in range(1, 101):
            report(done, 100, "draws & more")
    assert capsys.readouterr() == ("", "")
    shown = [bundle["text/html"] for bundle in cell.displays]
    assert shown[0].startswith("adapt &lt;a&gt; <progress></progress> 0")
    done = [int(re.findall(r'<progress value="(\d+)" max="100">', html)[0]) for html in shown[1:]]
    assert done == sorted(done)
    assert done[-1] == 100
    assert 5 <= len(done) <= 20, "updates at intervals, not at each step"
    assert shown[-1].endswith("100/100 draws &amp; more 0:00:01")


def test_bar_remains_after_an_error(cell: NotebookCell) -> None:
    def fail() -> None:
        with reporter(True, "adapt") as report:
            report(3, 4, "draws")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert '<progress value="3" max="4">' in cell.displays[-1]["text/html"]


@pytest.mark.filterwarnings("ignore")  # Jupyter issues warnings
def test_bar_is_shown_in_jupyter() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs Jupyter's nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs Jupyter's nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs Jupyter's nbclient and ipykernel")
    messages: list[tuple[str, str]] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, msg: Any, *more: Any) -> Any:
            messages.append((msg["msg_type"], str(msg["content"].get("transient"))))
            return super().process_message(msg, *more)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(STEPS)])
    Client(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs  # one, and nothing on standard error
    assert output.output_type == "display_data"
    html = output.data["text/html"]
    assert html.startswith('adapt &lt;a&gt; <progress value="4" max="4"></progress> 4/4 draws')
    assert output.data["text/plain"].startswith("adapt <a> 4/4 draws & more 0:00:0")
    display_ids = [
        output_id for kind, output_id in messages if kind in ("display_data", "update_display_data")
    ]
    assert len(display_ids) >= 4
    assert len(set(display_ids)) == 1, "one display"
