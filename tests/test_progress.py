"""Progress bars in a terminal, and callbacks."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from bpa_ppl._runtime.progress import reporter


def test_without_a_terminal_only_callbacks_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[Any] = []
    # Under pytest standard error is not a terminal.
    for progress in (False, True, lambda *step: steps.append(step)):
        with reporter(progress, "adapt") as report:
            report(1, 4, "draws")
    assert capsys.readouterr() == ("", "")
    assert steps == [(1, 4, "draws")]


def test_bar_shows_steps_and_note_and_is_removed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with reporter(True, "adapt") as report:
        report(0, 0, "compiling")
        for done in range(1, 5):
            time.sleep(0.11)  # bars are drawn ten times a second
            report(done, 4, "acceptance 0.30")
    lines = terminal.getvalue().split("\r")
    assert any("adapt" in line and "4/4" in line and "acceptance 0.30" in line for line in lines)
    assert not lines[-1].strip()
