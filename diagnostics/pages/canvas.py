"""Figures of the width of a page, from a blank one to a file, without the state of pyplot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.diagnostics.pages.panels import round_ticks
from bpa_ppl.errors import one_of
from bpa_ppl.formats.streams import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches: on a page its text is then as large as that of the page.
WIDTH = 10.0
#: Kinds of files that figures are written to, next to a page that has them inside.
FIGURE_KINDS = ("none", "png", "pdf")
_LONGEST = 28
_MOST_TICKS = 6
_NARROW = 5  # limits whose ratio is less are nearly linear


def canvas(rows: int, columns: int, height: float) -> tuple[Figure, Any]:
    """Return a figure and its axes, (rows, columns), which share x within a column.

    Args:
        rows: of axes.
        columns: of axes.
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


def logarithmic(axis: Any, low: float, high: float) -> None:
    """Make an x axis logarithmic between two numbers, with few round labels that never overlap.

    Args:
        axis: of matplotlib.
        low: its lower limit, above 0.
        high: its upper limit.
    """
    from matplotlib.ticker import NullFormatter, NullLocator

    axis.set_xscale("log")
    axis.set_xlim(low, high)
    places = log_ticks(low, high)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(places, [f"{place:g}" for place in places])


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two for a logarithmic axis, two at least and about six at most.

    >>> log_ticks(0.8, 7000), log_ticks(4, 6.1)
    ([1.0, 10.0, 100.0, 1000.0], [4.0, 4.5, 5.0, 5.5, 6.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if high / low < _NARROW:
        return [value for value, _ in round_ticks(low, high)]
    sparse = max(1, -(-(last - first) // _MOST_TICKS))
    choices = [
        [factor * 10.0**k for k in range(first, last + 1, step) for factor in factors]
        for factors, step in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), sparse))
    ]
    inside = [[value for value in some if low <= value <= high] for some in choices]
    return next((some for some in inside if len(some) <= _MOST_TICKS), inside[-1])


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
