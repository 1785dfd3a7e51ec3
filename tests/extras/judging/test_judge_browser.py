"""The page of a session in Chromium: keys, undo, a killed server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.browser import CTRL, SHIFT, Browser, Page
from support.judge_lists import judge_lists, running

import bpa_ppl as bpa
from bpa_ppl.extras.judging.session import Session

pytest.importorskip("starlette", reason="the extra `judge` is not installed")
pytest.importorskip("uvicorn", reason="the extra `judge` is not installed")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(judge_lists(), journal=tmp_path / "j.jsonl")


def text(page: Page, selector: str) -> str:
    found = page.get(f"document.querySelector({json.dumps(selector)}).textContent")
    assert isinstance(found, str)
    return found


def article(place: int, part: str = ".text") -> str:
    """Return the selector of a part of a candidate."""
    return f"article:nth-child({place + 1}) {part}"


def wait_for(page: Page, selector: str, part: str) -> None:
    """Wait until an element contains a text."""
    element = f"document.querySelector({json.dumps(selector)})"
    page.wait(f"{element}?.textContent.includes({json.dumps(part)})")


def opened(browser: Browser, url: str, question: int = 1) -> Page:
    """Open the page, and wait until it shows a question and the state of the session."""
    page = browser.open(url)
    wait_for(page, "#heading", f"Question {question}")
    wait_for(page, "#numbers", "Answers")
    return page


def test_keys(browser: Browser, session: Session, tmp_path: Path) -> None:
    def recorded() -> list[Any]:
        lines = map(json.loads, (tmp_path / "j.jsonl").read_text("utf-8").splitlines()[1:])
        return [x.get("undo") or (x["answer"], x.get("correction")) for x in lines]

    with running(session) as url:
        page = opened(browser, url)
        for number, key in enumerate(("ArrowLeft", "ArrowRight", "ArrowDown", "s"), 2):
            first, second = session.next().texts
            assert (text(page, article(0)), text(page, article(1))) == (first, second)
            page.key(key)
            wait_for(page, "#heading", f"Question {number}")
        answers = ["first", "second", "tie", "skip"]
        assert recorded() == [(name, None) for name in answers]
        assert page.get("document.activeElement.id") == "heading"

        page.key("u")
        wait_for(page, "#status", "Taken back: skipped")
        page.key("ArrowRight")
        wait_for(page, "#status", "Saved: the second is better")
        assert recorded()[4:] == [5, ("second", None)]

        page.key("ArrowLeft", SHIFT)
        page.wait("document.activeElement.matches('textarea')")
        better = session.next().texts[0]
        assert page.get("document.activeElement.value") == better
        page.key("?")  # a character here, not help
        page.key("Enter", CTRL)
        wait_for(page, "#heading", "Question 6")
        assert recorded()[-1] == ("first", f"{better}?")

        page.key("?")
        page.wait("document.querySelector('#help').open")
        page.key("ArrowLeft")  # no answer while the help is open
        page.key("Escape")
        page.wait("!document.querySelector('#help').open")
        page.click(article(1, ".best"))
        wait_for(page, "#heading", "Question 7")
        wait_for(page, "#numbers dd", "6")
        assert len(recorded()) == 8
        assert page.messages == []
        assert all(address.startswith(url) for address in page.requests)


@pytest.mark.slow
def test_a_killed_server_is_resumed(browser: Browser, tmp_path: Path) -> None:
    lists, journal = tmp_path / "lists.jsonl", tmp_path / "j.jsonl"
    bpa.write_nbest(judge_lists(), lists)
    words = ("judge", str(lists), "-o", str(journal), "--port", "0")
    command = [sys.executable, "-m", "bpa_ppl", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line for line in process.stderr if " at http" in line).split()[-1]
            page = opened(browser, url)
            for number in (2, 3):
                page.key("ArrowLeft")
                wait_for(page, "#heading", f"Question {number}")
            asked = text(page, article(0))
        finally:
            process.kill()
    page.key("ArrowRight")
    wait_for(page, "#error", "not confirmed")
    session = Session(bpa.read_nbest(lists), journal=journal)
    assert [judgement.answer for judgement in session.judgements] == ["first", "first"]
    with running(session) as url:
        page.go(url)
        wait_for(page, "#heading", "Question 3")
        assert text(page, article(0)) == asked
        page.key("u")
        wait_for(page, "#heading", "Question 2")
