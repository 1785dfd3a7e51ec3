"""The page in a real browser: no message, no request, every picture shown, nothing cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.browser import Browser, Page
from support.page_parts import Headline, Section, Table, side_by_side
from support.posteriors import autoregressive, external_posterior

from bpa_ppl.evaluation.compare_ways import BaselineComparison, to_record
from bpa_ppl.evaluation.report import posterior_page
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way

#: Measures the page.
MEASURE = """(() => {
  const width = e => e.getBoundingClientRect().width;
  const root = document.documentElement;
  return {
    images: [...document.images].map(i => [i.naturalWidth, width(i), i.y]),
    cut: [...document.querySelectorAll(".wide")].map(e => e.scrollWidth - e.clientWidth),
    sideways: root.scrollWidth - root.clientWidth,
    colour: getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).map(Number),
    picture: getComputedStyle(document.images[0]).filter,
  };
})()"""
NAMES = ("LM0", "<img src=http://example.org/x>", "TranslationModel0[2]", "$x$ & y")


def opened(browser: Browser, html: str, folder: Path) -> Page:
    """Open a page from a file, and wait until it is loaded."""
    path = folder / "report.html"
    path.write_text(html, "utf-8")
    page = browser.open(path.as_uri())
    page.wait("location.protocol == 'file:' && document.readyState == 'complete'")
    return page


def requests(page: Page) -> list[str]:
    """Return what a page asked for: neither the file itself nor the pictures in it."""
    return [url for url in page.requests if not url.startswith(("file:", "data:"))]


@pytest.fixture(scope="module")
def html() -> str:
    posterior = external_posterior(autoregressive(0.3, 4, 400, 4, seed=1), NAMES)
    numbers = (40, -3.34, 0.17, 0.606, 0.198, 1.015)
    rows = (
        BaselineRow(Way.ADAPTED, "adapted", 40, -2.734, 0.36),
        BaselineRow(Way.SYSTEM, "baseline", *numbers, weights={"X" * 30: 1.0}),
        *(BaselineRow(name, "feature", *numbers) for name in NAMES),
    )
    comparison = BaselineComparison(rows, "mqm", Way.SYSTEM, "leave-one-out")
    posterior.attrs["baselines"] = json.dumps(to_record(comparison))
    posterior.attrs["command"] = "bpa adapt lists </code><script>console.log('ran')</script>"
    terms = Table(("feature", "weight", "interval"), [(name, -0.25, "0 to 1") for name in NAMES])
    texts = ["他喜欢猫。" * 30, "a " * 50, "قط أبيض " * 30]
    sides = side_by_side("1", [("source", "x" * 90)], ["before: " + "X" * 60, "b", "c"], texts)
    section = Section("Which choices changed", [sides, terms])
    return posterior_page(posterior, answer=(Headline("Yes, it helped."), [section]))


def test_the_page_opens_without_messages_and_requests(
    browser: Browser, html: str, tmp_path: Path
) -> None:
    page = opened(browser, html, tmp_path)
    assert "How it was made" in page.get("document.body.textContent")  # the last section
    assert (page.messages, requests(page)) == ([], [])


def test_messages_and_requests_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    address = "http://127.0.0.1:9/x.png"
    bad = f'<img src="{address}"><script>console.error("boom")</script>'
    page = opened(browser, bad, tmp_path)
    assert any("boom" in message for message in page.messages)
    assert requests(page) == [address]


def test_every_picture_is_shown_in_full_and_dark_on_a_dark_page(
    browser: Browser, html: str, tmp_path: Path
) -> None:
    """All pages have the same style sheet."""
    page = opened(browser, html, tmp_path)
    page.resize(390, 900)
    phone = page.get(MEASURE)
    page.resize(1200, 900)
    found = []
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        found.append(page.get(MEASURE))
    light, dark = found
    assert len(light["images"]) == html.count("<img ") == 5
    for images in (phone["images"], light["images"]):
        assert all(natural > 350 and 350 < width < 390 for natural, width, _ in images)
    rows = [len({y for *_, y in of["images"][-3:]}) for of in (phone, light)]
    assert rows == [3, 1]  # densities, traces and ranks
    assert light["cut"] == [0] * html.count('class="wide')
    assert (phone["sideways"], light["sideways"]) == (0, 0)
    assert sum(light["colour"]) < 200 < 600 < sum(dark["colour"])  # the text, to 3 × 255
    assert (light["picture"], dark["picture"]) == ("none", "invert(0.9) hue-rotate(180deg)")


def test_the_policy_stops_what_would_run(browser: Browser, html: str, tmp_path: Path) -> None:
    """All pages have the same one."""
    script = "<script>document.title = 'ran'</script>"
    page = opened(browser, html.replace("</body>", f"{script}</body>"), tmp_path)
    assert page.get("document.title") != "ran"
    assert any("Content Security Policy" in message for message in page.messages)
