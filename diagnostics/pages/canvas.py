"""Blank figures of the width of a page, without touching the state of anybody's pyplot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches: on a page its text is then as large as that of the page.
WIDTH = 10.0
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
