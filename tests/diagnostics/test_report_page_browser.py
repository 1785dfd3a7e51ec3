"""The page in a real browser: no message, no request, every picture shown, nothing cut off."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from support.browser import CHROMIUM, OPTIONS
from support.external_posterior import autoregressive, external_posterior

from bpa_ppl.diagnostics.baseline_table import BaselineComparison, BaselineRow, Way
from bpa_ppl.diagnostics.pages.page import Section, Table, Verdict, side_by_side
from bpa_ppl.diagnostics.report import posterior_page

#: Measures the page, and writes what it finds into it.
MEASURE = """<script>window.onload = () => {
  const width = e => e.getBoundingClientRect().width;
  const all = name => [...document.querySelectorAll(name)];
  const images = [...document.images].map(i => [i.naturalWidth, width(i)]);
  const cut = all(".wide").map(e => e.scrollWidth - e.clientWidth);
  const root = document.documentElement;
  const found = {images, cut, sideways: root.scrollWidth - root.clientWidth,
    dark: getComputedStyle(document.body).color,
    picture: document.images[0] ? getComputedStyle(document.images[0]).filter : ""};
  document.body.innerHTML = "<code>" + JSON.stringify(found) + "</code>";
};</script>"""
NAMES = ("LM0", "<img src=http://example.org/x>", "TranslationModel0[2]", "$x$ & y")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, which is not installed")


class Visit(NamedTuple):
    """What the browser made of a page: its elements, its messages, and what it asked for."""

    dom: str
    messages: list[str]
    requests: set[str]


def visit(page: Path, *more: str) -> Visit:
    folder = page.parent
    log = folder / "net.json"
    options = [
        *OPTIONS,
        "--enable-logging=stderr",
        "--window-size=1280,900",
        *more,
        f"--user-data-dir={folder / 'profile'}",
        f"--log-net-log={log}",
    ]
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
    posterior = external_posterior(
        autoregressive(0.3, 4, 400, 4, seed=1), NAMES, acceptance_rate=rates
    )
    rows = [
        BaselineRow("adapted weights", "adapted", 40, -2.734, 0.36),
        BaselineRow(
            *("best single system", "baseline", 40, -3.34, 0.17, 0.606, 0.198, 1.015),
            weights={"X" * 30: 1.0},
        ),
        *(BaselineRow(name, "feature", 40, -2.7, 0.37, -0.034, -0.322, 0.255) for name in NAMES),
    ]
    comparison = BaselineComparison(tuple(rows), "mqm", Way.SYSTEM, "leave-one-out")
    posterior.attrs["baselines"] = json.dumps(msgspec.to_builtins(comparison))
    posterior.attrs["command"] = "bpa adapt lists </code><script>console.log('ran')</script>"
    terms = Table(("feature", "weight", "interval"), [(name, -0.25, "0 to 1") for name in NAMES])
    texts = ["他喜欢猫。" * 30, "a " * 50, "قط أبيض " * 30]
    sides = side_by_side(
        "1", [("source", "x" * 90)], ["before: " + "X" * 60, "b", "c"], texts, [terms]
    )
    section = Section("Which choices changed", [sides])
    return posterior_page(posterior, answer=(Verdict("Yes, it helped."), [section]))


LAST = "How it was made"  # the last section


@pytest.fixture(scope="module")
def html() -> str:
    return of_posterior()


def test_the_page_opens_without_messages_and_requests(html: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html, "utf-8")
    seen = visit(page)
    assert LAST in seen.dom
    assert seen.messages == []
    assert seen.requests == set()


def test_messages_and_requests_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    address = "http://127.0.0.1:9/x.png"
    page.write_text(f'<img src="{address}"><script>console.error("boom")</script>', "utf-8")
    seen = visit(page)
    assert any("boom" in message for message in seen.messages)
    assert seen.requests == {address}


def with_script(html: str) -> str:
    """Return a page that measures itself, without the policy that forbids scripts."""
    without_policy = re.sub(r"<meta http-equiv[^>]*>", "", html)
    return without_policy.replace("</body>", f"{MEASURE}</body>")


def measured(html: str, folder: Path, *options: str) -> dict[str, Any]:
    """Return what the script of a page finds."""
    page = folder / "measured.html"
    page.write_text(html, "utf-8")
    found = re.search(r"<code>(\{.*\})</code>", visit(page, *options).dom)
    assert found
    return json.loads(unescape(found[1]))


def test_every_picture_is_shown_in_full_and_dark_on_a_dark_page(html: str, tmp_path: Path) -> None:
    """All pages have the same style sheet."""
    light, dark = (
        measured(with_script(html), tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
        for scheme in (1, 0)  # by which Chromium knows them
    )
    assert len(light["images"]) == html.count("<img ") == 3
    assert all(natural > 400 and 500 < width < 1280 for natural, width in light["images"])
    assert light["cut"] == [0] * html.count('class="wide')
    assert light["sideways"] == 0
    colours = [re.findall(r"\d+", one["dark"])[:3] for one in (light, dark)]  # to 255
    on_light, on_dark = (sum(map(int, colour)) for colour in colours)
    assert on_light < 200 < 600 < on_dark  # the text
    assert (light["picture"], dark["picture"]) == ("none", "invert(0.9) hue-rotate(180deg)")


def test_the_policy_stops_what_would_run(html: str, tmp_path: Path) -> None:
    """All pages have the same one."""
    page = tmp_path / "injected.html"
    page.write_text(html.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    seen = visit(page)
    assert LAST in seen.dom
    assert any("Content Security Policy" in message for message in seen.messages)
