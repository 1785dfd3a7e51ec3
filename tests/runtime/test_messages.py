"""Messages: records of one logger, or Python warnings without logging; tables and progress."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from joblib import delayed

from bpa_ppl import BpaWarning, from_lists
from bpa_ppl._runtime.messages import LOGGER, Note, capture_notes, format_table, log_info, replay
from bpa_ppl._runtime.progress import reporter
from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.extending import WarningsHandler, match, warn_user

NOTE = Note(logging.WARNING, "the list is short")


LISTS = from_lists([["a", "b"]], [[[1], [2]]], ["LM0"])


def test_captured_messages_can_be_replayed(caplog: pytest.LogCaptureFixture) -> None:
    with capture_notes() as notes:
        warn_user(NOTE.message)
        with capture_notes() as inner:
            warn_user("inside")
    assert (notes, [one.message for one in inner]) == ([NOTE], ["inside"])
    assert not caplog.records
    with pytest.warns(BpaWarning, match=NOTE.message):
        replay(notes)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == ("bpa_ppl", *NOTE)
    assert Path(record.pathname) == Path(__file__), "that of the caller"


@pytest.fixture
def unconfigured_logger(monkeypatch: pytest.MonkeyPatch) -> logging.Handler:
    """The package's logger in a program that has not configured logging."""
    (handler,) = [h for h in LOGGER.handlers if type(h).__name__ == "_FallbackHandler"]
    monkeypatch.setattr(LOGGER, "handlers", [handler])
    monkeypatch.setattr(LOGGER, "parent", logging.Logger("another root"))
    return handler


@pytest.mark.usefixtures("unconfigured_logger")
class TestWithoutLogging:
    def test_warnings_are_shown_once_per_location(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(globals(), "__warningregistry__", {})
        with warnings.catch_warnings(record=True) as result:
            warnings.simplefilter("default")
            for _ in range(3):
                match({"LM0": 1.0, "W0": 1.0}, LISTS)
            warn_user(NOTE.message)
            log_info("done")
        assert [one.filename for one in result] == [__file__] * 2  # the user's code
        assert "W0 left out" in str(result[0].message)

    def test_handler_receives_records_instead_of_warnings(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        records: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = records.append  # type: ignore[method-assign]
        assert LOGGER.parent is not None
        monkeypatch.setattr(LOGGER.parent, "handlers", [handler])
        warn_user(NOTE.message)  # a warning would be an error here
        assert [record.getMessage() for record in records] == [NOTE.message]
        LOGGER.addHandler(WarningsHandler())
        with pytest.warns(BpaWarning, match="short"):
            warn_user(NOTE.message)
        assert len(records) == 2


def test_warnings_on_standard_error(tmp_path: Path) -> None:
    script = "import bpa_ppl._runtime.messages as n\n"
    script += "n.warn_user('the list is short')\nn.log_info('done')\n"
    for more, expected in (
        ("", f"{tmp_path / 'mine.py'}:2: BpaWarning: the list is short"),
        ("import logging; logging.basicConfig()\n", "WARNING:bpa_ppl:the list is short"),
    ):
        (tmp_path / "mine.py").write_text(more + script)
        done = subprocess.run(
            [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        first, *rest = done.stderr.splitlines()
        assert first == expected
        assert all("short'" in line for line in rest), "Python prints the source line"


def test_messages_of_workers_are_logged_in_the_main_process(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def warn_about(item: int) -> int:
        warn_user(f"item {item}")
        return item

    with pytest.warns(BpaWarning), parallel_workers(2) as parallel:
        assert list(parallel(delayed(warn_about)(n) for n in range(3))) == [0, 1, 2]
    assert [record.getMessage() for record in caplog.records] == ["item 0", "item 1", "item 2"]
    assert capfd.readouterr().err == "", "no Python warning of the worker"


def test_without_a_terminal_only_callbacks_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[Any] = []
    # Under pytest standard error is not a terminal.
    for progress in (False, True, lambda *step: steps.append(step)):
        with reporter(progress, "adapt") as report:
            report(1, 4, "draws")
    assert capsys.readouterr() == ("", "")
    assert steps == [(1, 4, "draws")]


def test_line_shows_steps_and_note_and_is_removed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with reporter(True, "adapt") as report:
        report(0, 0, "compiling")
        for done in range(1, 5):
            time.sleep(0.11)  # lines are written ten times a second
            report(done, 4, "acceptance 0.30")
    shown = re.sub(r"0:00:\d\d", "time", terminal.getvalue())
    _, first, *lines, removed, last = map(str.rstrip, shown.split("\r"))
    assert first == "adapt: 0, time, compiling"
    assert lines[1] == "adapt: 50%, 2/4, time, time left, acceptance 0.30"
    assert lines[3] == "adapt: 100%, 4/4, time, acceptance 0.30"
    assert (removed, last) == ("", "")


def test_a_line_is_removed_before_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    handler = logging.StreamHandler(terminal)
    LOGGER.addHandler(handler)
    level = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    try:
        with reporter(True, "compare", even=False) as report:
            report(0, 4, "warm-up")
            log_info("sampling takes about 3 minutes")
            time.sleep(0.11)
            report(2, 4, "draws")
            log_info("a list is empty")
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
    lines = [line.rpartition("\r")[2] for line in terminal.getvalue().split("\n")]
    assert lines == ["sampling takes about 3 minutes", "a list is empty", ""]
    shown = terminal.getvalue().split("\r")
    assert [part for part in shown if "compare:" in part and "\n" in part] == []


def test_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    with reporter(True, "sweep", even=False) as report:
        report(2, 1000, "imh:steps=100,draws=1000")
    assert terminal.getvalue().split("\r")[1] == "sweep: 0%, 2/1,000,"


ROWS = [("LM0", "0.020", "–"), ("TM0[3]", "007", ""), ("λ é", "", " x ")]
HEADERS = ("", "prior", "conflict")


@pytest.mark.parametrize(
    ("rows", "options", "lines"),
    [
        (ROWS, {}, ["LM0     0.020  –", "TM0[3]  007", "λ é             x"]),
        (ROWS[:1], {"align": "lrr"}, ["LM0  0.020  –"]),
        (ROWS[:2], {"headers": HEADERS, "align": "lr"},
         ["        prior  conflict", "LM0     0.020  –", "TM0[3]    007"]),
        ([("TER", "61.2")], {"align": "rr", "least": 6}, ["   TER    61.2"]),
        ([], {"headers": ("weight", "mean")}, ["weight  mean"]),
        ([], {}, [""]),
    ],
)  # fmt: skip
def test_cells_are_padded_to_the_widest_of_their_column(
    rows: list[tuple[str, ...]], options: dict[str, Any], lines: list[str]
) -> None:
    assert format_table(rows, **options).split("\n") == lines
