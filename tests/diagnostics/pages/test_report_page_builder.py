"""Pages are well-formed, escaped and self-contained; figures have the same bytes each time."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as MatplotlibFigure
from support.html_outline import Outline
from support.page_parts import BaselineComparison, BaselineRow, differences, side_by_side
from support.posteriors import Finding

from bpa_ppl import Report
from bpa_ppl.diagnostics.page import Headline, Section, Table, code, items, page
from bpa_ppl.diagnostics.pages.figures import Layer, embed_figure, empty_figure, plot, write_figure
from bpa_ppl.diagnostics.samplers.comparison import Comparison, SamplerResult

HOSTILE = """</td><script>alert("1")</script><img src='x' onerror=alert(1)>&amp;"""
PLAIN = "plain " * 12  # as long as the other: length decides how a cell is set


def example(text: str) -> str:
    """A page with one block of each kind, and the same text where text can stand."""
    blocks = (
        text,
        items([text]),
        code(text),
        Table((text, "b"), [(text, text)], caption=text, passed=[False]),
        embed_figure(MatplotlibFigure(), text, text),
        side_by_side(text, [(text, text)], (text, text), (text, f"{text} more")),
    )
    return page(text, Headline(text, False, [text]), [Section(text, blocks)], note=text)


def test_data_on_a_page_are_only_text() -> None:
    plain, hostile = Outline(example(PLAIN)), Outline(example(HOSTILE))
    assert hostile.tags == plain.tags
    assert [a[:2] for a in hostile.attributes] == [a[:2] for a in plain.attributes]
    assert hostile.texts.count(HOSTILE) == plain.texts.count(PLAIN) > 8
    assert hostile.values("img", "alt") == [HOSTILE]


def test_nothing_is_fetched_and_nothing_runs() -> None:
    outline = Outline(example("plain"))
    assert "script" not in outline.tags
    links = [v for _, name, v in outline.attributes if name in ("src", "href")]
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert "url(" not in example("plain")
    assert "default-src 'none'; img-src data:" in outline.values("meta", "content")[0]


def test_verdicts_come_first_and_the_contents_lead_to_the_sections() -> None:
    verdicts = [Headline("first", True), Headline("second", False), Headline("third", None)]
    html = page("t", verdicts, [Section("one", ["1"]), Section("two", ["2"])])
    marks = re.findall(r'class="verdict (\w+)"><p><strong>(\w+)', html)
    assert marks == [("good", "first"), ("bad", "second"), ("neutral", "third")]
    assert html.index("third") < html.index("<nav") < html.index("<section")
    outline = Outline(html)
    assert [href[1:] for href in outline.values("a", "href")] == outline.values("section", "id")
    assert outline.texts.index("one") < outline.texts.index("two")


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(2, 8, "2 5"), (1943, 98620, "3000 10000 30000"), (1, 10**6, "1 100 10000 1e6")],
)
def test_log_axes_have_several_numbers(low: float, high: float, shown: str) -> None:
    line = Layer(np.log10([low, high]), np.zeros(2), "line c0")
    html = plot("rate", [line], y_axis=False, log_x=True)
    assert re.findall(r'text-anchor="middle">([^<]+)<', html) == shown.split()


def test_rows_with_a_verdict_are_marked() -> None:
    html = Table(("a",), [("x",), ("y",), ("z",)], passed=[True, None, False]).html()
    marks = re.findall(r"<tr( class=\"\w+\")?><th scope=\"row\"", html)
    assert marks == [' class="good"', "", ' class="bad"']
    with pytest.raises(ValueError, match="zip"):
        Table(("a",), [("x",), ("y",)], passed=[True]).html()


@pytest.mark.parametrize(("kind", "start"), [("webp", b"RIFF"), ("svg", b"<?xml")])
def test_a_drawn_figure_is_embedded(kind: str, start: bytes) -> None:
    figure = MatplotlibFigure(figsize=(2, 1))
    figure.subplots().set(title="<a> & $b")
    html = embed_figure(figure, "a line", kind=kind)
    found = re.search(r"base64,([^\"]+)\" alt=\"a line\"", html)
    assert found
    assert b64decode(found[1]).startswith(start)
    assert (b">&lt;a&gt; &amp; $b</text>" in b64decode(found[1])) == (kind == "svg")


def test_words_that_differ_are_marked_by_more_than_a_colour() -> None:
    """Of a third text those that the second one lacks."""
    texts = ("a b", "a c d", "a d e")
    html = side_by_side("1", [("source", "x")], ("before", "after", "z"), texts)
    assert '<dt>source</dt><dd dir="auto">x</dd>' in html
    assert '<h4>before</h4><p dir="auto">a <del>b</del></p>' in html
    assert '<h4>after</h4><p dir="auto">a <ins>c d</ins></p>' in html
    assert re.findall("<(del|ins)>(.*?)</", html) == [("del", "b"), ("ins", "c d"), ("ins", "e")]


def test_long_texts_are_cut() -> None:
    long = " ".join(map(str, range(5000)))
    for parts in differences((long, long)):
        assert "".join(part for part, _ in parts).endswith(" 1998 1999 …")


def picture() -> MatplotlibFigure:
    figure, ((axes,),) = empty_figure(1, 1, 2.0)
    axes.hist(np.random.default_rng(0).normal(size=100))
    axes.plot([0.0, 1.0], [1.0, 0.0], "o")
    return figure


@pytest.mark.parametrize("kind", ["svg", "pdf", "png", "webp"])
def test_the_same_picture_has_the_same_bytes(kind: str, tmp_path: Path) -> None:
    if kind in ("svg", "webp"):  # in a page
        one, two = (embed_figure(picture(), "two lines", kind=kind) for _ in range(2))
        assert one == two
    for name in ("one", "two"):
        write_figure(picture(), tmp_path / f"{name}.{kind}")
    one, two = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"CreationDate" not in one
    assert b"<dc:date>" not in one


@pytest.mark.parametrize(
    "result",
    [
        BaselineComparison((BaselineRow("first candidate", gain=0.5),), "mqm"),
        Report("rwm", (4, 100), (Finding("R-hat", 1.2, "lm", "≤ 1.01", False, "draw more"),)),
        Comparison((SamplerResult("nuts", {"ess": 400.0}, "agrees", bound=0.08),)),
    ],
    ids=lambda result: type(result).__name__,
)
def test_rows_of_tables_are_records_for_data_frames(result: Any) -> None:
    (row,) = pd.DataFrame(result.rows).to_dict("records")
    assert {"gain": 0.5, "value": 1.2, "ess": 400.0}.items() & row.items()
