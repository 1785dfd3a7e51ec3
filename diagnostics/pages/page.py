"""Self-contained HTML pages: a verdict, then sections of text, tables and figures, all escaped.

A page needs no network and no script: figures are embedded, and its own policy forbids the rest.
Build the blocks, put them into sections, and ask for the page:

    table = Table(("weight", "mean"), [("LM0", 0.5)], caption="Means of the posterior.")
    picture = drawn(matplotlib_figure, "LM0 keeps level at 0.5 in all four chains")
    html = page("Posterior", Verdict("converged", True), [Section("Weights", (table, picture))])

How things look as HTML is said in templates/: `page.html`, `blocks.html` and `style.css`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bpa_ppl.diagnostics.pages.figures import save
from bpa_ppl.formats.streams import atomic_writer

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure as MatplotlibFigure

#: What a browser shows as an image, and its media type.
MEDIA = {"png": "image/png", "svg": "image/svg+xml"}
_DPI = 120
_NUMBER = re.compile(r"[+−-]?\d+(\.\d+)?(e[+-]?\d+)?%?")
_SHORT = 26  # characters that are kept in one line
_BEGINNING = 70  # characters by which a text is known
_NARROW = 3  # columns
_MARKS = {True: "good", False: "bad", None: "neutral"}


@cache
def _templates() -> Environment:
    """Return the templates, which escape whatever is put into them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bpa_ppl.diagnostics.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


class _Block:
    """What stands in a section: a macro of blocks.html draws it."""

    macro: ClassVar[str]

    def html(self) -> str:
        """Return the block as HTML.

        >>> Text("a < b").html()
        '<p>a &lt; b</p>'
        >>> Items(["raise warmup"]).html()
        '<ul><li>raise warmup</li></ul>'
        >>> Code("bpa check posterior.nc").html()
        '<pre><code>bpa check posterior.nc</code></pre>'
        >>> Table(("weight", "mean"), [("LM0", 0.5)]).html()
        '<div class="wide narrow"><table><thead><tr><th scope="col">weight</th>...'
        >>> Figure(b"...", "level traces").html()
        '<figure><img src="data:image/png;base64,Li4u" alt="level traces"></figure>'
        """
        macros = _templates().get_template("blocks.html").module
        return str(getattr(macros, self.macro)(self))

    #: By this name templates find that a block is HTML already, not text to be escaped.
    __html__ = html


@dataclass(frozen=True)
class Text(_Block):
    """A paragraph."""

    macro: ClassVar = "text"
    text: str


@dataclass(frozen=True)
class Items(_Block):
    """A list of sentences."""

    macro: ClassVar = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Code(_Block):
    """Text to be copied as it stands, such as a command."""

    macro: ClassVar = "code"
    text: str


class _Cell(NamedTuple):
    """A cell of a table as it is shown; `kind` is how: a number, a short text, or neither."""

    text: str
    kind: str


class _Row(NamedTuple):
    """A row of cells; `kind` is the mark that it gets, if any."""

    cells: list[_Cell]
    kind: str


@dataclass(frozen=True)
class Table(_Block):
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

    macro: ClassVar = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    caption: str = ""
    passed: Sequence[bool | None] = ()

    @property
    def narrow(self) -> bool:
        """Whether it fits on a telephone as it is; a wider one becomes a list there."""
        texts = (cell for row in self.rows for cell in row if isinstance(cell, str))
        return len(self.header) <= _NARROW and all(len(text) <= _SHORT for text in texts)

    def head(self) -> list[_Cell]:
        """Return the names of the columns, as the template shows them."""
        kinds = ["number" if numeric else "" for numeric in self._numeric()]
        return [_Cell(name, kind) for name, kind in zip(self.header, kinds, strict=True)]

    def body(self) -> Iterator[_Row]:
        """Yield the rows, as the template shows them."""
        numeric = self._numeric()
        marks = self.passed or [None] * len(self.rows)
        for row, passed in zip(self.rows, marks, strict=True):
            shown = [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row]
            kinds = [
                "number" if number else "short" if len(text) <= _SHORT else ""
                for text, number in zip(shown, numeric, strict=True)
            ]
            cells = [_Cell(*pair) for pair in zip(shown, kinds, strict=True)]
            yield _Row(cells, "" if passed is None else _MARKS[passed])

    def _numeric(self) -> list[bool]:
        return [_is_numeric([row[i] for row in self.rows]) for i in range(len(self.header))]


@dataclass(frozen=True)
class Figure(_Block):
    """A picture, embedded.

    Attributes:
        image: the bytes of the file.
        alternative: what the picture shows, for those who do not see it.
        caption: how to read it.
        kind: `png` or `svg`.
    """

    macro: ClassVar = "figure"
    image: bytes
    alternative: str
    caption: str = ""
    kind: str = "png"

    @property
    def source(self) -> str:
        """The image as an address that holds all of its bytes."""
        return f"data:{MEDIA[self.kind]};base64,{b64encode(self.image).decode('ascii')}"


class Word(NamedTuple):
    """A word of a text that is held against another; whether it is in that one too."""

    text: str
    same: bool


class Side(NamedTuple):
    """One of two texts that are held against each other."""

    title: str
    words: Sequence[Word]


@dataclass(frozen=True)
class SideBySide(_Block):
    """Two texts beside each other, with the words marked in which they differ.

    Attributes:
        title: what they are.
        known: what belongs to both, such as the source, with a name each.
        sides: the texts; what is marked in the first is gone, in the second new.
    """

    macro: ClassVar = "side_by_side"
    title: str
    known: Sequence[tuple[str, str]]
    sides: tuple[Side, Side]

    @classmethod
    def of(
        cls, title: str, known: Sequence[tuple[str, str]], titles: tuple[str, str], *texts: str
    ) -> SideBySide:
        """Mark the words in which two texts differ.

        >>> SideBySide.of("1", [], ("before", "after"), "the cat", "a cat").sides[1].words
        [Word(text='a', same=False), Word(text='cat', same=True)]
        """
        before, after = (text.split() for text in texts)
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        kept = [{b.a + k for b in blocks for k in range(b.size)}]
        kept += [{b.b + k for b in blocks for k in range(b.size)}]
        sides = [
            Side(name, [Word(word, place in same) for place, word in enumerate(words)])
            for name, words, same in zip(titles, (before, after), kept, strict=True)
        ]
        return cls(title, known, (sides[0], sides[1]))


Block = Text | Items | Code | Table | Figure | SideBySide


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

    @property
    def items(self) -> Items:
        """The advice, as a block."""
        return Items(self.advice)

    @property
    def kind(self) -> str:
        """How it is marked: good, bad or neutral."""
        return _MARKS[self.passed]


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
    save(figure, file, kind, _DPI)
    return Figure(file.getvalue(), alternative, caption, kind)


def page(
    title: str,
    verdict: Verdict | Sequence[Verdict],
    sections: Iterable[Section],
    note: str = "",
) -> str:
    """Return a whole HTML page.

    Args:
        title: of the page.
        verdict: what stands first; or several, in order.
        sections: what follows, in order.
        note: a line at the end, such as a signature.

    >>> html = page("Weights", Verdict("converged", True), [Section("All", (Text("none moved"),))])
    >>> html.startswith("<!DOCTYPE html>"), "none moved" in html, "<script" in html
    (True, True, False)
    """
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=title,
            verdicts=[verdict] if isinstance(verdict, Verdict) else verdict,
            sections=list(sections),
            note=note,
        )
    )


def write_page(html: str, path: str | Path) -> None:
    """Write a page, whole or not at all; `-` is standard output.

    Raises:
        DataError: if the file cannot be written.

    >>> write_page("<p>nothing to see</p>", "report.html")
    >>> Path("report.html").read_text("utf-8")
    '<p>nothing to see</p>'
    """
    with atomic_writer(path) as file:
        file.write(html)


def beginning(text: str, most: int = _BEGINNING) -> str:
    """Return the first words of a text, by which a reader knows it.

    >>> beginning("keep this leaflet"), beginning("keep this leaflet", 10)
    ('keep this leaflet', 'keep this…')
    """
    if len(text) <= most:
        return text
    return f"{text[:most].rpartition(' ')[0] or text[:most]}…"


def _is_numeric(column: Sequence[str | float]) -> bool:
    given = [cell for cell in column if cell not in ("", "–")]
    return bool(given) and all(
        not isinstance(cell, str) or _NUMBER.fullmatch(cell) is not None for cell in given
    )
