"""Matplotlib figures as wide as a page: empty ones, and files of them, without pyplot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.formats.streams import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of figure files that can be written next to a page.
FIGURE_KINDS = ("none", "png", "pdf")
_MAX_LABEL = 28  # characters
#: Widths of figures, in inches: as wide as a page, where their text is as large as that of the
#: page; and legible on a phone without scrolling.
WIDTH, NARROW = 10.0, 5.6


def empty_figure(
    rows: int, columns: int, height: float, *, share_x: bool = True, width: float = WIDTH
) -> tuple[Figure, Any]:
    """Return a figure, by default of the width of a page, and its axes, (rows, columns).

    Args:
        rows: number of rows of axes.
        columns: number of columns of axes.
        height: of one row, in inches.
        share_x: whether the axes of a column share their x axis.
        width: of the figure, in inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows + 0.5), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=share_x and "col")


def label(name: str, longest: int = _MAX_LABEL) -> str:
    r"""Return a name that matplotlib prints literally, shortened if it is long.

    >>> label("LM0"), label("$x$"), len(label("sparse" * 20))
    ('LM0', '\\$x\\$', 28)
    """
    short = name if len(name) <= longest else f"{name[:18]}…{name[-9:]}"
    return short.replace("$", r"\$")


def save(figure: Figure, file: Any, kind: str, dpi: int) -> None:
    """Save a figure; the same figure always gives the same bytes.

    Args:
        figure: the figure.
        file: a path, or a binary file.
        kind: `png`, `svg` or `pdf`.
        dpi: resolution of PNG files.
    """
    from matplotlib import rc_context

    no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    # By default, ids in an SVG file come from a random salt, and text is drawn as lines.
    with rc_context({"svg.hashsalt": "bpa_ppl", "svg.fonttype": "none"}):
        figure.savefig(file, format=kind, dpi=dpi, metadata=no_date.get(kind))


def write_figure(figure: Figure, path: str | Path, dpi: int = 120) -> None:
    """Write a figure atomically; the suffix of the path chooses the format.

    Raises:
        DataError: if the file cannot be written.
    """
    with atomic_path(path) as temporary:
        save(figure, temporary, Path(path).suffix[1:].lower() or "png", dpi)


def write_figure_files(figures: Mapping[str, Figure], folder: Path, kind: str) -> list[Path]:
    """Write figures to `NAME.KIND` in a folder, and return the paths.

    Args:
        figures: by name.
        folder: an existing folder.
        kind: one of `FIGURE_KINDS`; `none` writes nothing.

    Raises:
        DataError: if a file cannot be written.
    """
    paths = {folder / f"{name}.{kind}": image for name, image in figures.items() if kind != "none"}
    for path, figure in paths.items():
        write_figure(figure, path, dpi=150)
    return list(paths)
