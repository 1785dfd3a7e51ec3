"""The page in a real browser: no message, no request, every picture shown, nothing cut off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from foreign import autoregressive, foreign

from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page
from bpa_ppl.diagnostics.subdomains_page import subdomains_page
from bpa_ppl.phrases import NumberedText, Subdomains

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # which root has no use of
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--window-size=1280,900",
)
#: Measures the page, and writes what it finds into it.
MEASURE = """<script>window.onload = () => {
  const images = [...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width]);
  const cut = [...document.querySelectorAll(".wide")].map(e => e.scrollWidth - e.clientWidth);
  const root = document.documentElement;
  const found = {images, cut, sideways: root.scrollWidth - root.clientWidth};
  document.body.innerHTML = "<code>" + JSON.stringify(found) + "</code>";
};</script>"""
NAMES = ("LM0", "<img src=http://example.org/x>", "TranslationModel0[2]", "$x$ & y")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed")


class Visit(NamedTuple):
    """What the browser made of a page: its elements, its messages, and what it asked for."""

    dom: str
    messages: list[str]
    requests: set[str]


def visit(page: Path) -> Visit:
    folder = page.parent
    log = folder / "net.json"
    options = [*OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}"]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    messages = [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]
    return Visit(done.stdout, messages, _requests(json.loads(log.read_text("utf-8"))))


def _requests(log: dict[str, Any]) -> set[str]:
    """Return the addresses that the page asked for; what the browser does of itself has no origin.

    The page itself is a file, and its pictures are in it: neither is a request.
    """
    events = [event.get("params", {}) for event in log["events"]]
    return {
        event["url"]
        for event in events
        if event.get("initiator", "not an origin") != "not an origin"
        and not event["url"].startswith(("file:", "data:"))
    }


def of_posterior() -> str:
    rates = np.full((4, 400), 0.3)
    posterior = foreign(autoregressive(0.3, 4, 400, 4, seed=1), NAMES, acceptance_rate=rates)
    posterior.attrs["command"] = "bpa adapt lists </code><script>console.log('ran')</script>"
    return posterior_page(posterior)


def of_subdomains() -> str:
    words = [f"{word}{z}" for z in range(12) for word in ("<script>alert(1)</script>", "$x$&", "a")]
    text = NumberedText.of([words[3 * z : 3 * z + 3] * 4 for z in range(12)] * 3)
    settings = {"command": "</code><script>console.log('ran')</script>", "seed": 1}
    weights, winners = np.full(12, 1 / 12), np.tile(np.arange(12), 3)
    return subdomains_page(Subdomains(text, text, winners, weights, settings), least=2, shown=30)


#: Page -> its last section, and how many pictures it has.
PAGES = {of_posterior: ("How it was made", 5), of_subdomains: ("How they were induced", 1)}


@pytest.fixture(scope="module", params=PAGES, ids=lambda make: make.__name__)
def made(request: pytest.FixtureRequest) -> tuple[str, str, int]:
    """A page, the title of its last section, and how many pictures it has."""
    return request.param(), *PAGES[request.param]


def test_the_page_opens_without_messages_and_requests(
    made: tuple[str, str, int], tmp_path: Path
) -> None:
    html, last, _ = made
    page = tmp_path / "report.html"
    page.write_text(html, "utf-8")
    seen = visit(page)
    assert last in seen.dom
    assert seen.messages == []
    assert seen.requests == set()


def test_messages_and_requests_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    address = "http://127.0.0.1:9/x.png"
    page.write_text(f'<img src="{address}"><script>console.error("boom")</script>', "utf-8")
    seen = visit(page)
    assert any("boom" in message for message in seen.messages)
    assert seen.requests == {address}


def test_every_picture_is_shown_and_nothing_is_cut_off(
    made: tuple[str, str, int], tmp_path: Path
) -> None:
    html, _, pictures = made
    page = tmp_path / "measured.html"
    without_policy = re.sub(r"<meta http-equiv[^>]*>", "", html)
    page.write_text(without_policy.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    found = re.search(r"<code>(\{.*\})</code>", visit(page).dom)
    assert found
    measured = json.loads(found[1])
    assert len(measured["images"]) == html.count("<img ") == pictures
    assert all(natural > 600 and 1000 < width < 1280 for natural, width in measured["images"])
    assert measured["cut"] == [0] * html.count('class="wide"')
    assert measured["sideways"] == 0


def test_the_policy_stops_what_would_run(made: tuple[str, str, int], tmp_path: Path) -> None:
    html, last, _ = made
    page = tmp_path / "injected.html"
    page.write_text(html.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    seen = visit(page)
    assert last in seen.dom
    assert any("Content Security Policy" in message for message in seen.messages)
