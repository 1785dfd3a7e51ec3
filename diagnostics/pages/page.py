"""Self-contained HTML pages: a verdict, then sections of text, tables and figures, all escaped.

A page needs no network and no script: figures are embedded, and its content security policy forbids
everything else. Build blocks, put them into sections, and render the page:

    table = Table(("weight", "mean"), [("LM0", 0.5)], caption="Means of the posterior.")
    picture = drawn(matplotlib_figure, "traces of LM0 in four chains")
    html = page("Posterior", Verdict("converged", True), [Section("Weights", (table, picture))])

The templates are `page.html`, `blocks.html` and `style.css` in templates/.
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

#: Kinds of images and their media types.
_MEDIA = {"png": "image/png", "svg": "image/svg+xml"}
_DPI = 100
_COLOURS = 64  # of a PNG image
_NUMBER = re.compile(r"[+−-]?\d+(\.\d+)?(e[+-]?\d+)?%?")
_SHORT = 26  # characters of a cell that are not wrapped
_NARROW = 3  # columns
_MARKS = {True: "good", False: "bad", None: "neutral"}


@cache
def _templates() -> Environment:
    """Return the environment of the templates, which escape all values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bpa_ppl.diagnostics.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )


class Block:
    """A part of a section, which a macro of blocks.html renders."""

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

    #: By this name, templates recognise that a block is HTML, and do not escape it.
    __html__ = html


@dataclass(frozen=True)
class Text(Block):
    """A paragraph."""

    macro: ClassVar = "text"
    text: str


@dataclass(frozen=True)
class Items(Block):
    """A list of sentences."""

    macro: ClassVar = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Code(Block):
    """Verbatim text, such as a command."""

    macro: ClassVar = "code"
    text: str


class _TableCell(NamedTuple):
    """A cell of a table; `kind` is `number`, `short` or empty."""

    text: str
    kind: str


class _TableRow(NamedTuple):
    """A row of cells; `kind` is how it is marked, if at all."""

    cells: list[_TableCell]
    kind: str


@dataclass(frozen=True)
class Table(Block):
    """A table; columns of numbers are aligned to the right.

    Numbers are shown with four significant digits. For another format, pass a text: a text that
    looks like a number, or a dash for a missing one, is treated as a number.

    Attributes:
        header: the names of the columns.
        rows: cells, one a column; the first names the row.
        caption: describes the table.
        passed: for each row whether it is within its limit; None, or an empty sequence, is no
            verdict. The colour must not be the only sign: repeat it in a cell.
    """

    macro: ClassVar = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    caption: str = ""
    passed: Sequence[bool | None] = ()

    @property
    def narrow(self) -> bool:
        """Whether it fits on a phone; a wider one becomes a list there."""
        texts = (cell for row in self.rows for cell in row if isinstance(cell, str))
        return len(self.header) <= _NARROW and all(len(text) <= _SHORT for text in texts)

    def head(self) -> list[_TableCell]:
        """Return the names of the columns, for the template."""
        kinds = ["number" if numeric else "" for numeric in self._numeric()]
        return [_TableCell(name, kind) for name, kind in zip(self.header, kinds, strict=True)]

    def body(self) -> Iterator[_TableRow]:
        """Yield the rows, for the template."""
        numeric = self._numeric()
        marks = self.passed or [None] * len(self.rows)
        for row, passed in zip(self.rows, marks, strict=True):
            shown = [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row]
            kinds = [
                "number" if number else "short" if len(text) <= _SHORT else ""
                for text, number in zip(shown, numeric, strict=True)
            ]
            cells = [_TableCell(*pair) for pair in zip(shown, kinds, strict=True)]
            yield _TableRow(cells, "" if passed is None else _MARKS[passed])

    def _numeric(self) -> list[bool]:
        """Return for each column whether all its cells are numbers, missing ones aside."""
        result = []
        for i in range(len(self.header)):
            cells = [row[i] for row in self.rows if row[i] not in ("", "–")]
            texts = [cell for cell in cells if isinstance(cell, str)]
            result.append(bool(cells) and all(_NUMBER.fullmatch(text) for text in texts))
        return result


@dataclass(frozen=True)
class Figure(Block):
    """An embedded image.

    Attributes:
        image: the bytes of the file.
        alternative: describes the image for readers who do not see it.
        caption: explains how to read it.
        kind: `png` or `svg`.
    """

    macro: ClassVar = "figure"
    image: bytes
    alternative: str
    caption: str = ""
    kind: str = "png"

    @property
    def source(self) -> str:
        """The image as a data URL."""
        return f"data:{_MEDIA[self.kind]};base64,{b64encode(self.image).decode('ascii')}"


class Word(NamedTuple):
    """A word of a text, and whether it also occurs in the other text."""

    text: str
    same: bool


class TextSide(NamedTuple):
    """One of two texts that are compared."""

    title: str
    words: Sequence[Word]


@dataclass(frozen=True)
class SideBySide(Block):
    """Two texts side by side, with the words marked in which they differ.

    Attributes:
        title: of the block.
        context: names and texts that belong to both, such as the source.
        sides: the texts; marked words are deleted in the first, and inserted in the second.
    """

    macro: ClassVar = "side_by_side"
    title: str
    context: Sequence[tuple[str, str]]
    sides: tuple[TextSide, TextSide]

    @classmethod
    def of(
        cls, title: str, context: Sequence[tuple[str, str]], titles: tuple[str, str], *texts: str
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
            TextSide(name, [Word(word, index in kept_words) for index, word in enumerate(words)])
            for name, words, kept_words in zip(titles, (before, after), kept, strict=True)
        ]
        return cls(title, context, (sides[0], sides[1]))


@dataclass(frozen=True)
class Section:
    """A section of a page, with a title that is listed in the contents."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


@dataclass(frozen=True)
class Verdict:
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
        figure: about 10 inches wide.
        alternative: describes the figure for readers who do not see it.
        caption: explains how to read it.
        kind: `png` for dense figures such as traces, `svg` for figures of few lines.
    """
    file = BytesIO()
    save(figure, file, kind, _DPI)
    if kind == "png":  # a palette makes the image a quarter as large
        from PIL import Image

        image = Image.open(file).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        file = BytesIO()
        image.save(file, "png")
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
        verdict: the main result, or several.
        sections: of the page, in order.
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
    """Write a page atomically; `-` is standard output.

    Raises:
        DataError: if the file cannot be written.

    >>> write_page("<p>nothing to see</p>", "report.html")
    >>> Path("report.html").read_text("utf-8")
    '<p>nothing to see</p>'
    """
    with atomic_writer(path) as file:
        file.write(html)


def beginning(text: str, length: int = 70) -> str:
    """Return the first words of a text.

    >>> beginning("keep this leaflet"), beginning("keep this leaflet", 10)
    ('keep this leaflet', 'keep this…')
    """
    if len(text) <= length:
        return text
    return f"{text[:length].rpartition(' ')[0] or text[:length]}…"
