"""What a command says on standard error: records of the logger, shown as notes and as they are."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from pathlib import Path

import pytest
from command_line import run

from bpa_ppl.cli import options
from bpa_ppl.cli.notes import shown
from bpa_ppl.notes import LOGGER, log_info, warn_user

ADAPT = ("adapt", "nbest", "-r", "long", "-w", "moses.ini", "--sampler", "map", "-o", "new.nc")
NOTE = "nbest: lists for 12 sentences, but long has 14 references: the others are not used"


@pytest.fixture
def long(folder: Path) -> None:
    """A file of more references than there are lists."""
    (folder / "long").write_text((folder / "ref").read_text() + "one\ntwo\n")


@pytest.mark.usefixtures("long")
def test_warnings_are_notes_and_the_rest_is_shown_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "bpa_ppl"):
        done = run(*ADAPT)
    first, *report = done.err.splitlines()
    assert first == f"note: {NOTE}"
    assert report[0] == "map, 1 chains × 1 draws: converged"
    assert report[1].split() == ["diagnostic", "value", "limit", "worst", "at"]
    assert len(report) == 3
    told, log, said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == ("WARNING", NOTE)
    assert said == ("INFO", "\n".join(report))
    assert log[0] == "DEBUG"
    assert re.fullmatch(r"new\.nc written on \w+ .*\d{4}", log[1])


@pytest.mark.usefixtures("long")
def test_quiet_leaves_warnings_alone() -> None:
    assert run(*ADAPT, "-q").err == f"note: {NOTE}\n"
    done = run("rerank", "nbest", "-p", "new.nc", "-o", "out", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = run("rerank", "nbest", "-p", "new.nc", "-o", "out")
    assert re.fullmatch(r"\d+ of 12 translations changed\n", done.err)


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_a_warning_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        for _ in range(3):
            warn_user("a list\nis short (known)")
            log_info("read")
        warnings.warn("from a library", FutureWarning, stacklevel=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["note: a list\\nis short (--with)", *["read"] * 3]


def test_warnings_of_libraries_are_shown_if_python_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    with shown(), pytest.raises(FutureWarning):
        warnings.warn("from a library", FutureWarning, stacklevel=1)


def test_reports_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        options.say("poor\n- draw more (draws=4000), or use sampler=nuts")
        options.say("unheard", quiet=True)
    advice = "- draw more (--set draws=4000), or use --sampler nuts"
    assert capsys.readouterr().err == f"poor\n{advice}\n"


def test_afterwards_everything_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = (LOGGER.level, list(LOGGER.handlers), list(warnings.filters))
    with shown():
        assert LOGGER.isEnabledFor(logging.INFO)
    assert (LOGGER.level, LOGGER.handlers, warnings.filters) == before
    log_info("unheard")
    assert capsys.readouterr().err == ""


def test_another_program_hears_a_command(folder: Path) -> None:
    """A program that runs a command inside itself, with a handler of its own."""
    heard: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    LOGGER.addHandler(listener)
    try:
        assert run("report", "good.nc", "-o", "page.html").err == "wrote page.html\n"
    finally:
        LOGGER.removeHandler(listener)
    assert heard == ["wrote page.html"]
    assert "page.html" in os.listdir(folder)
