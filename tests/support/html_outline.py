"""Parse HTML pages: elements, texts, attributes and table cells."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser

from bpa_ppl.diagnostics.page import Headline, Section, page

VOID = {"meta", "link", "img"}


class Outline(HTMLParser):
    """The elements, texts and attributes of a page; asserts that the tags match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tables: list[list[list[str]]] = []
        self.feed(html.replace("<wbr>", ""))  # a line may end there
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def values(self, tag: str, name: str) -> list[str]:
        """Return the values of an attribute over all elements with this tag."""
        return [v for t, n, v in self.attributes if (t, n) == (tag, name)]

    def column(self, table: int, header: str) -> dict[str, str]:
        """Return a column of a table as a dictionary from row name to cell."""
        head, *rows = self.tables[table]
        return {row[0]: row[head.index(header)] for row in rows}


def render(sections: Iterable[Section]) -> str:
    """Return a page of these sections."""
    return page("Sections", Headline("better"), sections)
