"""Figures of a page: Matplotlib figures, embedded or written to files, and small SVG plots.

Matplotlib is used without pyplot. The text of SVG plots stays text, and their colours are those of
the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.streams import atomic_path
from bpa_ppl.diagnostics.page import Html, render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_LABEL = 28  # characters
_INCHES = 3.8  # width of a figure: phones show it whole, and pages three side by side
#: Of a plot, and of its margins, in units of a little less than a CSS pixel.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 320.0, 44.0, 10.0, 24.0, 36.0
#: Lines that differ in their colour in style.css.
COLOURS = 6
_LONGEST_TITLE = 42  # characters
#: Kinds of images and their media types.
_MEDIA = {"svg": "image/svg+xml", "webp": "image/webp"}
_DPI = 200


def empty_figure(
    rows: int, columns: int, height: float, *, share_x: bool = True
) -> tuple[Figure, Any]:
    """Return a figure as wide as a phone, and its axes, (rows, columns); height is in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_INCHES, height * rows + 0.5), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=share_x and "col")


def label(name: str, longest: int = _MAX_LABEL) -> str:
    r"""Return a name that matplotlib prints literally, shortened if it is long.

    >>> label("LM0"), label("$x$"), len(label("sparse" * 20))
    ('LM0', '\\$x\\$', 28)
    """
    short = name if len(name) <= longest else f"{name[:18]}…{name[-9:]}"
    return short.replace("$", r"\$")


def _save(figure: Figure, file: Any, kind: str, dpi: int) -> None:
    """Save a figure as `png`, `svg`, `pdf` or `webp`; the same one always gives the same bytes."""
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
        _save(figure, temporary, Path(path).suffix[1:].lower() or "png", dpi)


def embed_figure(figure: Figure, alternative: str, caption: str = "", kind: str = "webp") -> Html:
    """Return a figure as a block of a page; `webp` suits dense figures such as traces."""
    file = BytesIO()
    _save(figure, file, kind, _DPI)
    source = f"data:{_MEDIA[kind]};base64,{b64encode(file.getvalue()).decode('ascii')}"
    return render("figure", source, alternative, caption)


class Layer(NamedTuple):
    """A line, or the area between two lines.

    Attributes:
        x: (n,).
        y: (n,).
        style: classes of style.css.
        base: (n,) the other line of an area; empty for a line.
    """

    x: Float64
    y: Float64
    style: str
    base: Float64 = np.empty(0)


def choose_style(number: int) -> str:
    """Return the style of a line among at most `COLOURS`."""
    return f"line c{number}"


def plot(
    title: str,
    layers: Sequence[Layer],
    label: str = "",
    *,
    height: float = 190.0,
    y_axis: bool = True,
    log_x: bool = False,
    log_y: bool = False,
) -> Html:
    """Return a plot as an SVG element.

    Args:
        title: above the plot.
        layers: the first ones are behind the others.
        label: of the x axis.
        height: of the plot.
        y_axis: whether the y axis has numbers.
        log_x: whether x are decimal logarithms.
        log_y: whether y are decimal logarithms.
    """
    x = np.concatenate([layer.x for layer in layers])
    y = np.concatenate([part for layer in layers for part in (layer.y, layer.base)])
    place_x = _scale(x, _LEFT if y_axis else _RIGHT, _WIDTH - _RIGHT)
    place_y = _scale(y, height - _BOTTOM, _TOP + 6)
    shapes = []
    for layer in layers:
        back = layer.x[::-1][: len(layer.base)]
        across = place_x(np.append(layer.x, back)).tolist()
        down = place_y(np.append(layer.y, layer.base[::-1])).tolist()
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
        shapes.append((len(back) > 0, layer.style, points))
    ticks_x = _place_ticks(x, place_x, log_x)
    ticks_y = _place_ticks(y, place_y, log_y) if y_axis else []
    short = title if len(title) <= _LONGEST_TITLE else f"{title[:24]}…{title[-15:]}"
    return render("plot", title, short, label, (_WIDTH, height), shapes, ticks_x, ticks_y)


def plots(pictures: Sequence[Html], caption: str, names: Sequence[tuple[str, str]] = ()) -> Html:
    """Return plots side by side, as many as fit, with the style and name of each kind of lines."""
    return render("plots", pictures, caption, names)


def _scale(values: Float64, low: float, high: float) -> Callable[[npt.ArrayLike], Float64]:
    """Return the function that maps the range of values to places."""
    least, most = float(values.min()), float(values.max())
    width = (most - least) or 1.0
    return lambda x: low + (np.asarray(x) - least) / width * (high - low)


def _place_ticks(
    values: Float64, place: Callable[[npt.ArrayLike], Float64], log: bool
) -> list[tuple[float, str]]:
    """Return the places and texts of ticks."""
    return [(float(place(t)), _number(10**t if log else t)) for t in _choose_ticks(values, log)]


def _choose_ticks(values: Float64, log: bool = False) -> list[float]:
    """Return three to six round numbers, or the logarithms of such numbers, in the range."""
    low, high = float(values.min()), float(values.max())
    if log and high - low <= 2:
        firsts = (1, 3) if high - low > 1 else (1, 2, 5)
        numbers = np.array([a * 10.0**b for b in range(-9, 13) for a in firsts])
        return [x for x in np.log10(numbers).tolist() if low <= x <= high]
    step = np.ceil((high - low) / 5)
    if not log:
        third = (high - low) / 3 or 1.0
        size = 10 ** np.floor(np.log10(third))
        step = size * max(k for k in (1, 2, 5) if k * size <= third)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(k * step) for k in np.arange(first, last + 1)]


def _number(value: float) -> str:
    text = f"{0.0 if abs(value) < 1e-12 else value:.{4 if abs(value) < 1e4 else 6}g}"
    return text.replace("e+0", "e").replace("-", "−")
