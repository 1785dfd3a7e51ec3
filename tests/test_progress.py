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


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (False, True):  # under pytest standard error is not a terminal
        with reporter(progress, "adapt") as report:
            report(1, 4, "draws")
    assert capsys.readouterr() == ("", "")


def test_a_callback_is_called() -> None:
    steps: list[Any] = []
    with reporter(lambda *step: steps.append(step), "adapt") as report:
        report(1, 4, "draws")
    assert steps == [(1, 4, "draws")]


class Cell:
    """The output of a cell in IPython: what is displayed, and its updates."""

    def __init__(self) -> None:
        self.pictures: list[dict[str, str]] = []

    def display(self, picture: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw
        assert display_id
        assert not self.pictures, "displayed twice instead of updated"
        self.pictures.append(picture)
        return self

    def update(self, picture: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.pictures.append(picture)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """The current cell of a notebook."""
    current = Cell()
    module = ModuleType("IPython.display")
    module.display = current.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    shell = type("ZMQInteractiveShell", (SimpleNamespace,), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    return current


def test_a_notebook_updates_one_bar(
    cell: Cell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, *(0.01 * step for step in range(1, 1000))])
    monkeypatch.setattr("bpa_ppl.progress.time.monotonic", lambda: next(clock))
    with reporter(True, "adapt <a>") as report:
        for done in range(1, 101):
            report(done, 100, "draws & more")
    assert capsys.readouterr() == ("", "")
    shown = [picture["text/html"] for picture in cell.pictures]
    assert shown[0].startswith("adapt &lt;a&gt; <progress></progress> 0")
    done = [int(re.findall(r'<progress value="(\d+)" max="100">', html)[0]) for html in shown[1:]]
    assert done == sorted(done)
    assert done[-1] == 100
    assert 5 <= len(done) <= 20, "updates at intervals, not at each step"
    assert shown[-1].endswith("100/100 draws &amp; more 0:00:01")


def test_the_bar_of_failed_work_stays(cell: Cell) -> None:
    def fail() -> None:
        with reporter(True, "adapt") as report:
            report(3, 4, "draws")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert '<progress value="3" max="4">' in cell.pictures[-1]["text/html"]


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_a_real_notebook_shows_the_bar() -> None:
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
    drawn = [place for kind, place in messages if kind in ("display_data", "update_display_data")]
    assert len(drawn) >= 4
    assert len(set(drawn)) == 1, "one place"
