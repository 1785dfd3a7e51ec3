"""Self-contained HTML pages: a verdict, then sections of text, tables and figures, all escaped.

A page needs no network and no script: figures are embedded, and its content security policy forbids
everything else. A section has blocks, which are paragraphs (texts), tables, or HTML:

    table = Table(("weight", "mean"), [("LM0", 0.5)], caption="Means of the posterior.")
    picture = embed_figure(figure, "traces of LM0 in four chains")
    sections = [Section("Weights", ("No weight moved.", table, picture))]
    html = page("Posterior", Headline("converged", True), sections)

The templates are `page.html`, `blocks.html` and `style.css` in templates/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

from bpa_ppl._runtime.messages import format_table
from bpa_ppl._runtime.streams import atomic_writer

if TYPE_CHECKING:
    from jinja2 import Environment

#: HTML of a template, which other templates do not escape.
Html = NewType("Html", str)
#: A paragraph, a table, or HTML.
Block: TypeAlias = "str | Html | Table"

# A number, or two of an interval or a change; a limit has a sign before it.
_ONE = r"[+−-]?\d+(\.\d+)?(e[+-]?\d+)?%?"
_NUMBER = re.compile(f"([≤≥] )?{_ONE}(( [±→] | to |–){_ONE})?")
_LONG_CELL = 60  # characters; the column is then wide enough for several words
#: How the template marks results that are good, bad or neither.
_MARKS = {True: "good", False: "bad", None: "neutral"}


@cache
def _templates() -> Environment:
    """Return the environment of the templates, which escape all values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bpa_ppl.diagnostics"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def render(macro: str, *arguments: Any) -> Html:
    """Return the HTML of a macro of blocks.html; texts are escaped, and such HTML is not."""
    blocks = _templates().get_template("blocks.html").module
    html: Html = getattr(blocks, macro)(*arguments)
    return html


def items(sentences: Sequence[str]) -> Html:
    """Return a list of sentences.

    >>> print(items(["raise warmup", "a < b"]))
    <ul><li>raise warmup</li><li>a &lt; b</li></ul>
    """
    return render("items", sentences)


def code(text: str) -> Html:
    """Return verbatim text, such as a command.

    >>> print(code("bpa check posterior.nc"))
    <pre><code>bpa check posterior.nc</code></pre>
    """
    return render("code", text)


@dataclass(frozen=True)
class Table:
    """A table; columns of numbers are aligned to the right.

    Numbers are shown with four significant digits. For another format, pass a text: a text that
    looks like a number, or a dash for a missing one, is treated as a number.

    Attributes:
        header: the names of the columns.
        rows: cells, one a column; the first names the row.
        caption: describes the table.
        passed: for each row whether it is within its limit; None, or an empty sequence, is no
            verdict. The colour must not be the only sign: repeat it in a cell.

    >>> print(Table(("weight", "mean"), [("LM0", 0.5)]).html())
    <div class="wide"><table><thead><tr><th scope="col">weight</th>...
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    caption: str = ""
    passed: Sequence[bool | None] = ()

    def html(self) -> Html:
        """Return the table as HTML."""
        columns = zip(*self.rows, strict=True) if self.rows else [() for _ in self.header]
        kinds = [_find_kind(column) for column in columns]
        body = []
        for row, passed in zip(self.rows, self.passed or [None] * len(self.rows), strict=True):
            texts = [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row]
            mark = "" if passed is None else _MARKS[passed]
            body.append((mark, list(zip(texts, kinds, strict=True))))
        return render("table", self.caption, list(zip(self.header, kinds, strict=True)), body)

    #: By this name, templates recognise that a block is HTML, and do not escape it.
    __html__ = html

    def without_empty(self) -> Table:
        """Return the table without columns of dashes only.

        >>> Table(("way", "gain", "log loss"), [("first", "0.5", "–")]).without_empty().header
        ['way', 'gain']
        """
        columns = zip(self.header, *self.rows, strict=True)
        kept = (column for column in columns if {*column[1:]} != {"–"})
        header, *rows = map(list, zip(*kept, strict=True))
        return replace(self, header=header, rows=rows)


def _find_kind(column: Sequence[str | float]) -> str:
    """Return whether a column has numbers only, missing ones aside, or long texts."""
    present = [cell for cell in column if cell not in ("", "–")]
    if present and all(not isinstance(c, str) or _NUMBER.fullmatch(c) for c in present):
        return "number"
    return "long" if any(len(str(cell)) > _LONG_CELL for cell in present) else ""


class Outcome:
    """A result that is shown as a table with notes, in a terminal and in a notebook."""

    @property
    def passed(self) -> bool:
        """The verdict, which is also that of `bool`; true for results without one.

        >>> Outcome().passed
        True
        """
        return True

    def __bool__(self) -> bool:
        return self.passed

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
        """Return a title, or an empty text, the table, and notes on it."""
        raise NotImplementedError

    def __str__(self) -> str:
        title, table, notes = self._summarise()
        rows = [list(map(str, row)) for row in table.rows]
        text = format_table(rows, table.header) if rows else ""
        return "\n".join([*filter(None, [title, text]), *(f"- {note}" for note in notes)])

    def _repr_html_(self) -> str:
        title, table, notes = self._summarise()
        heading = render("paragraph", title) if title else ""
        return heading + table.html() + (items(notes) if notes else "")


@dataclass(frozen=True)
class Section:
    """A section of a page: a title that is listed in the contents, and blocks."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Headline:
    """The main result of a page in one sentence, with advice.

    Attributes:
        text: the sentence.
        passed: whether it is good or bad; None is neither.
        advice: further sentences.
    """

    text: str
    passed: bool | None = None
    advice: Sequence[str] = ()

    @property
    def mark(self) -> str:
        """How it is marked: good, bad or neutral."""
        return _MARKS[self.passed]


def page(
    title: str,
    verdict: Headline | Sequence[Headline],
    sections: Iterable[Section],
    note: str = "",
) -> str:
    """Return a whole HTML page, with a verdict and a note at its end.

    >>> html = page("Weights", Headline("converged", True), [Section("All", ["none moved"])])
    >>> html.startswith("<!DOCTYPE html>"), "none moved" in html, "<script" in html
    (True, True, False)
    """
    verdicts = [verdict] if isinstance(verdict, Headline) else verdict
    template = _templates().get_template("page.html")
    return template.render(title=title, verdicts=verdicts, sections=list(sections), note=note)


def describe_provenance(
    rows: Mapping[str, str], command: str = "", notes: Sequence[str] = ()
) -> Section:
    """Return the last section of a page: data, settings, versions, seed, and the command."""
    blocks: list[Block] = [*notes, Table(("what", "value"), list(rows.items()))]
    return Section("How it was made", [*blocks, *([code(command)] if command else [])])


def write_page(html: str, path: str | Path) -> None:
    """Write a page atomically; `-` is standard output.

    Raises:
        DataError: if the file cannot be written.

    >>> write_page("<p>nothing to see</p>", "report.html")
    >>> Path("report.html").read_text("utf-8")
    '<p>nothing to see</p>'
    """
    with atomic_writer(path) as file:
        file.write(html)
