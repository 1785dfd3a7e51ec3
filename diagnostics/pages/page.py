"""Self-contained HTML pages: a verdict, then sections of text, tables and figures, all escaped.

A page needs no network and no script: figures are embedded, and its own policy forbids the rest.
Build the blocks, put them into sections, and ask for the page:

    table = Table(("weight", "mean"), [("LM0", 0.5)], caption="Means of the posterior.")
    picture = drawn(matplotlib_figure, "LM0 keeps level at 0.5 in all four chains")
    html = page("Posterior", Verdict("converged", True), [Section("Weights", (table, picture))])
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bpa_ppl.diagnostics.pages.style import STYLE
from bpa_ppl.formats.streams import atomic_writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

#: What a browser shows as an image, and its media type.
MEDIA = {"png": "image/png", "svg": "image/svg+xml"}
_DPI = 120
_NUMBER = re.compile(r"[+−-]?\d+(\.\d+)?(e[+-]?\d+)?%?")
_SHORT = 26  # characters that are kept in one line
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def html(self) -> str:
        """Return the paragraph as HTML.

        >>> Text("a < b").html()
        '<p>a &lt; b</p>'
        """
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: Sequence[str]

    def html(self) -> str:
        """Return the list as HTML.

        >>> Items(["raise warmup"]).html()
        '<ul><li>raise warmup</li></ul>'
        """
        return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in self.items) + "</ul>"


@dataclass(frozen=True)
class Code:
    """Text to be copied as it stands, such as a command."""

    text: str

    def html(self) -> str:
        """Return the text as HTML that keeps its lines.

        >>> Code("bpa check posterior.nc").html()
        '<pre><code>bpa check posterior.nc</code></pre>'
        """
        return f"<pre><code>{escape(self.text)}</code></pre>"


@dataclass(frozen=True)
class Table:
    """A table; columns of numbers stand to the right.

    A number is shown with four significant digits; for others give it as text, which counts as a
    number too if it reads as one, with a sign or a per cent sign. A dash stands for none.

    Attributes:
        header: the names of the columns.
        rows: cells, as many a row as there are columns; the first names the row.
        caption: what the table shows.
        passed: for each row whether it keeps its limit; None, or no sequence at all, is no verdict.
            A colour is never the only sign of it: say it in a cell too.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    caption: str = ""
    passed: Sequence[bool | None] = ()

    def html(self) -> str:
        """Return the table as HTML.

        >>> Table(("weight", "mean"), [("LM0", 0.5)]).html()
        '<div class="wide"><table><thead><tr><th scope="col">weight</th><th scope="col" class=...'
        """
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        numeric = [_is_numeric([row[i] for row in self.rows]) for i in range(len(self.header))]
        head = "".join(map(_heading, self.header, numeric))
        marks = self.passed or [None] * len(self.rows)
        body = "".join(_row(row, numeric, mark) for row, mark in zip(self.rows, marks, strict=True))
        return (
            f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Figure:
    """A picture, embedded.

    Attributes:
        image: the bytes of the file.
        alternative: what the picture shows, for those who do not see it.
        caption: how to read it.
        kind: `png` or `svg`.
    """

    image: bytes
    alternative: str
    caption: str = ""
    kind: str = "png"

    def html(self) -> str:
        """Return the figure as HTML.

        >>> Figure(b"...", "level traces").html()
        '<figure><img src="data:image/png;base64,Li4u" alt="level traces"></figure>'
        """
        source = f"data:{MEDIA[self.kind]};base64,{b64encode(self.image).decode('ascii')}"
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure><img src="{source}" alt="{escape(self.alternative)}">{caption}</figure>'


Block = Text | Items | Code | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of the page with a title, listed in its contents."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


@dataclass(frozen=True)
class Verdict:
    """What the reader came for, in one sentence, with what to do about it.

    Attributes:
        text: the sentence.
        passed: good or bad; None is neither.
        advice: sentences that follow.
    """

    text: str
    passed: bool | None = None
    advice: Sequence[str] = ()


def drawn(
    figure: MatplotlibFigure, alternative: str, caption: str = "", kind: str = "png"
) -> Figure:
    """Return a matplotlib figure as a block of a page.

    Args:
        figure: about 10 inches wide, which is the width of the page.
        alternative: what it shows, for those who do not see it.
        caption: how to read it.
        kind: `png` for dense pictures such as traces, `svg` for those of few lines.
    """
    file = BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    figure.savefig(file, format=kind, dpi=_DPI, metadata=metadata)
    return Figure(file.getvalue(), alternative, caption, kind)


def page(title: str, verdict: Verdict, sections: Iterable[Section], note: str = "") -> str:
    """Return a whole HTML page.

    Args:
        title: of the page.
        verdict: what stands first.
        sections: what follows, in order.
        note: a line at the end, such as a signature.

    >>> html = page("Weights", Verdict("converged", True), [Section("All", (Text("none moved"),))])
    >>> html.startswith("<!DOCTYPE html>"), "none moved" in html, "<script" in html
    (True, True, False)
    """
    listed = list(sections)
    links = "".join(
        f'<li><a href="#s{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(listed)
    )
    body = "\n".join(_section(section, f"s{number}") for number, section in enumerate(listed))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{_verdict(verdict)}
<nav aria-label="Contents"><ul>{links}</ul></nav>
{body}
<footer>{escape(note)}</footer>
</main>
</body>
</html>
"""


def write_page(html: str, path: str | Path) -> None:
    """Write a page, beside and renamed; `-` is standard output.

    Raises:
        DataError: if the file cannot be written.
    """
    with atomic_writer(path) as file:
        file.write(html)


def _heading(name: str, numeric: bool) -> str:
    return f'<th scope="col"{_kind(numeric)}>{escape(name)}</th>'


def _row(row: Sequence[str | float], numeric: Sequence[bool], passed: bool | None) -> str:
    mark = "" if passed is None else f' class="{_class(passed)}"'
    cells = "".join(map(_cell, row, numeric, ['th scope="row"', *["td"] * (len(row) - 1)]))
    return f"<tr{mark}>{cells}</tr>"


def _cell(cell: str | float, numeric: bool, tag: str) -> str:
    shown = cell if isinstance(cell, str) else f"{cell:.4g}"
    kind = _kind(numeric, len(shown) <= _SHORT)
    return f"<{tag}{kind}>{escape(shown)}</{tag.split()[0]}>"


def _kind(numeric: bool, short: bool = False) -> str:
    return ' class="number"' if numeric else ' class="short"' if short else ""


def _is_numeric(column: Sequence[str | float]) -> bool:
    given = [cell for cell in column if cell not in ("", "–")]
    return bool(given) and all(
        not isinstance(cell, str) or _NUMBER.fullmatch(cell) is not None for cell in given
    )


def _class(passed: bool | None) -> str:
    return {True: "good", False: "bad", None: "neutral"}[passed]


def _verdict(verdict: Verdict) -> str:
    advice = Items(verdict.advice).html() if verdict.advice else ""
    text = f"<p><strong>{escape(verdict.text)}</strong></p>"
    return f'<div class="verdict {_class(verdict.passed)}">{text}{advice}</div>'


def _section(section: Section, anchor: str) -> str:
    blocks = "\n".join(block.html() for block in section.blocks)
    return f'<section id="{anchor}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'
