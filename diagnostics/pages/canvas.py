"""Figures of the width of a page, from a blank one to a file, without the state of pyplot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.errors import one_of
from bpa_ppl.formats.streams import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches: on a page its text is then as large as that of the page.
WIDTH = 10.0
#: Kinds of files that figures are written to, next to a page that has them inside.
FIGURE_KINDS = ("none", "png", "pdf")
_LONGEST = 28


def canvas(rows: int, columns: int, height: float) -> tuple[Figure, Any]:
    """Return a figure and its axes, (rows, columns), which share x within a column.

    Args:
        rows, columns: how many axes.
        height: of one row, in inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height * rows + 0.5), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex="col")


def label(name: str) -> str:
    r"""Return a name as matplotlib prints it literally, shortened if it is long.

    >>> label("LM0"), label("$x$"), len(label("sparse" * 20))
    ('LM0', '\\$x\\$', 28)
    """
    shown = name if len(name) <= _LONGEST else f"{name[:18]}…{name[-9:]}"
    return shown.replace("$", r"\$")


def save(figure: Figure, file: Any, kind: str, dpi: int) -> None:
    """Save a figure as a file of some kind; the same figure gives the same bytes.

    Args:
        figure: the figure.
        file: a path, or a file to write bytes to.
        kind: what the suffix of the file says, such as `png`, `svg` or `pdf`.
        dpi: of pictures made of dots.
    """
    from matplotlib import rc_context

    clock = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    # The names of parts of an SVG are hashes, with a salt that is random unless it is given.
    with rc_context({"svg.hashsalt": "bpa_ppl"}):
        figure.savefig(file, format=kind, dpi=dpi, metadata=clock.get(kind))


def write_figure(figure: Figure, path: str | Path, dpi: int = 120) -> None:
    """Write a figure, whole or not at all; the suffix of the path chooses the format.

    Raises:
        DataError: if the file cannot be written.
    """
    with atomic_path(path) as temporary:
        save(figure, temporary, Path(path).suffix[1:].lower() or "png", dpi)


def write_figure_files(figures: Mapping[str, Figure], folder: Path, kind: str) -> list[Path]:
    """Write figures as files of their own, `NAME.KIND` in a folder, and return their paths.

    Raises:
        DataError: if a file cannot be written.
        UsageError: if there is no such kind; `none` writes nothing.
    """
    one_of(kind, FIGURE_KINDS, "kind of figures")
    chosen = figures if kind != "none" else {}
    paths = {name: folder / f"{name}.{kind}" for name in chosen}
    for name, path in paths.items():
        write_figure(chosen[name], path, dpi=150)
    return list(paths.values())
