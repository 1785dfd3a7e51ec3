"""Small plots as SVG elements of a page: text stays text, and colours are those of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.pages.page import render

if TYPE_CHECKING:
    from markupsafe import Markup

#: Of a plot, and of its margins, in units of a little less than a CSS pixel.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 320.0, 44.0, 10.0, 24.0, 36.0
_COLOURS = 6  # in style.css
_LONGEST = 42  # characters of a title


class Layer(NamedTuple):
    """A line, or the area between two lines.

    Attributes:
        x: (n,).
        y: (n,).
        style: classes of style.css.
        base: (n,) the other line of an area; empty for a line.
        text: written above the first point.
    """

    x: Float64
    y: Float64
    style: str
    base: Float64 = np.empty(0)
    text: str = ""


def choose_style(number: int) -> str:
    """Return the style of a line among several: a colour, then dashes."""
    return f"line c{number % _COLOURS}{' dashed' if number >= _COLOURS else ''}"


def plot(
    title: str,
    layers: Sequence[Layer],
    label: str = "",
    *,
    height: float = 190.0,
    y_axis: bool = True,
    log: bool = False,
) -> Markup:
    """Return a plot as an SVG element.

    Args:
        title: above the plot.
        layers: the first ones are behind the others.
        label: of the x axis.
        height: of the plot.
        y_axis: whether the y axis has numbers.
        log: whether x are decimal logarithms.
    """
    x = np.concatenate([layer.x for layer in layers])
    y = np.concatenate([part for layer in layers for part in (layer.y, layer.base)])
    place_x = _scale(x, _LEFT if y_axis else _RIGHT, _WIDTH - _RIGHT)
    above = 18 if any(layer.text for layer in layers) else 6
    place_y = _scale(y, height - _BOTTOM, _TOP + above)
    shapes = []
    for layer in layers:
        back = layer.x[::-1][: len(layer.base)]
        across = place_x(np.append(layer.x, back)).tolist()
        down = place_y(np.append(layer.y, layer.base[::-1])).tolist()
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
        shapes.append((len(back) > 0, layer.style, points, (across[0], down[0] - 8), layer.text))
    ticks_x = [
        (float(place_x(np.array(t))), _number(10**t if log else t)) for t in _choose_ticks(x, log)
    ]
    ticks_y = (
        [(float(place_y(np.array(t))), _number(t)) for t in _choose_ticks(y)] if y_axis else []
    )
    short = title if len(title) <= _LONGEST else f"{title[:24]}…{title[-15:]}"
    return render("plot", title, short, label, (_WIDTH, height), shapes, ticks_x, ticks_y)


def plots(
    pictures: Sequence[Markup], caption: str, names: Sequence[tuple[str, str]] = ()
) -> Markup:
    """Return plots side by side, as many as fit, with a legend.

    Args:
        pictures: from `plot`.
        caption: explains how to read them.
        names: style and name of each kind of lines.
    """
    return render("plots", pictures, caption, names)


def _scale(values: Float64, low: float, high: float) -> Callable[[npt.ArrayLike], Float64]:
    """Return the function that maps the range of values to places."""
    least, most = float(values.min()), float(values.max())
    width = (most - least) or 1.0
    return lambda x: low + (np.asarray(x) - least) / width * (high - low)


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
