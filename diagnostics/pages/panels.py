"""Plots as SVG inside a page: they take its colours, light or dark, and the width that there is.

A panel is one pair of axes. Its coordinates are whole units, of which a hundred are a centimetre or
two on a screen; lines are written as differences, so that a thousand points are some kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float64, Int64

WIDTH = 800
_TOP, _RIGHT, _BELOW, _TITLED = 10, 36, 36, 34
_MOST_TICKS = 5
_LONGEST = 28

Values = npt.ArrayLike
Ticks = Sequence[tuple[float, str]]


class Panel:
    """One plot; what is drawn first lies below.

    Colours are numbers of the page's palette, those of chains; `ink` and `soft` are of its text.

    Args:
        x: the limits of the axis.
        y: the limits of the axis.
        height: in units.
        width: in units.
        title: what stands above.
        x_label: label of the axis.
        y_label: label of the axis.
        x_ticks: places and their labels; None finds round numbers.
        y_ticks: likewise.
        left: units left of the axes, for the labels of the ticks.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        height: int = 220,
        width: int = WIDTH,
        title: str = "",
        x_label: str = "",
        y_label: str = "",
        x_ticks: Ticks | None = None,
        y_ticks: Ticks | None = None,
        left: int = 92,
    ):
        self.width, self.height = width, height
        self._x, self._y = _apart(x), _apart(y)
        labelled = (_TITLED if x_label else 0) + (_BELOW if x_ticks is None or x_ticks else 0)
        self._left, self._right = left + (_TITLED if y_label else 0), width - _RIGHT
        self._top, self._bottom = _TOP + (_TITLED if title else 0), height - 6 - labelled
        self._parts: list[str] = []
        self._frame(title, x_label, y_label)
        self._ticks(round_ticks(*self._x) if x_ticks is None else x_ticks, across=True)
        self._ticks(round_ticks(*self._y, most=3) if y_ticks is None else y_ticks, across=False)

    def line(self, x: Values, y: Values, colour: int | str, width: float = 1.5) -> None:
        """Draw a line through points; those that are no numbers are left out."""
        places = self._places(x, y)
        style = f'class="line {_class(colour)}" stroke-width="{width:g}"'
        if len(places):
            self._parts.append(f'<path {style} d="{path(places)}"/>')

    def level(self, y: float) -> None:
        """Draw a dashed line from left to right."""
        at = int(self._places([self._x[0]], [y])[0, 1])
        self._parts.append(f'<path class="dashes" d="M{self._left} {at}H{self._right}"/>')

    def boxes(
        self,
        low: Values,
        high: Values,
        bottom: Values,
        top: Values,
        colour: int | str,
        share: float,
    ) -> None:
        """Fill rectangles, all in one colour, of which a share covers what lies below."""
        corner, other = self._places(low, bottom), self._places(high, top)
        drawn = "".join(
            f"M{a} {b}H{c}V{d}H{a}"
            for (a, b), (c, d) in zip(corner.tolist(), other.tolist(), strict=True)
            if a != c and b != d
        )
        if drawn:
            style = f'class="fill {_class(colour)}" fill-opacity="{share:g}"'
            self._parts.append(f'<path {style} d="{drawn}"/>')

    def dots(self, x: Values, y: Values, colour: int | str, radius: int = 6) -> None:
        """Draw round dots."""
        drawn = "".join(f"M{a} {b}h0" for a, b in self._places(x, y).tolist())
        style = f'class="line {_class(colour)}" stroke-width="{2 * radius}" stroke-linecap="round"'
        self._parts.append(f'<path {style} d="{drawn}"/>')

    def crosses(self, x: Values, y: Values, colour: int | str, radius: int = 7) -> None:
        """Draw crosses."""
        wide = 2 * radius
        drawn = "".join(
            f"M{a - radius} {b - radius}l{wide} {wide}m0-{wide}l-{wide} {wide}"
            for a, b in self._places(x, y).tolist()
        )
        self._parts.append(f'<path class="line {_class(colour)}" stroke-width="3" d="{drawn}"/>')

    def svg(self) -> str:
        """Return the picture; its texts are escaped."""
        size = f'viewBox="0 0 {self.width} {self.height}"'
        return f"<svg {size}>{''.join(self._parts)}</svg>"

    def _places(self, x: Values, y: Values) -> Int64:
        """Return (points, 2) units, within the axes, of the points that are numbers."""
        points = np.stack(np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float)), axis=-1)
        points = points.reshape(-1, 2)
        points = points[np.isfinite(points).all(axis=1)]
        low, high = np.array([self._x, self._y]).T
        share = np.clip((points - low) / (high - low), 0, 1)
        start, end = [self._left, self._bottom], [self._right, self._top]
        result: Int64 = np.rint(start + share * np.subtract(end, start)).astype(np.int64)
        return result

    def _frame(self, title: str, x_label: str, y_label: str) -> None:
        width, height = self._right - self._left, self._bottom - self._top
        self._parts.append(
            f'<path class="frame" d="M{self._left} {self._top}h{width}v{height}h-{width}z"/>'
        )
        middle = (self._top + self._bottom) // 2
        self._text(title, self._left, self._top - 12, "start")
        self._text(x_label, (self._left + self._right) // 2, self.height - 10, "middle")
        self._text(y_label, 24, middle, "middle", f' transform="rotate(-90 24 {middle})"')

    def _ticks(self, ticks: Iterable[tuple[float, str]], *, across: bool) -> None:
        for value, label in ticks:
            if across:
                at = int(self._places([value], [self._y[0]])[0, 0])
                self._parts.append(f'<path class="frame" d="M{at} {self._bottom}v6"/>')
                self._text(label, at, self._bottom + 30, "middle")
            else:
                at = int(self._places([self._x[0]], [value])[0, 1])
                self._parts.append(f'<path class="frame" d="M{self._left} {at}h-6"/>')
                self._text(label, self._left - 12, at + 7, "end")

    def _text(self, text: str, x: int, y: int, anchor: str, more: str = "") -> None:
        if text:
            place = f'x="{x}" y="{y}" text-anchor="{anchor}"{more}'
            self._parts.append(f"<text {place}>{escape(text)}</text>")


def shortened(name: str) -> str:
    """Return a name that fits beside an axis.

    >>> shortened("LM0"), len(shortened("sparse" * 20))
    ('LM0', 28)
    """
    return name if len(name) <= _LONGEST else f"{name[:18]}…{name[-9:]}"


def round_ticks(low: float, high: float, most: int = _MOST_TICKS) -> list[tuple[float, str]]:
    """Return at most so many round numbers between two, with their labels.

    >>> round_ticks(-0.3, 1.1, 3)
    [(0.0, '0.0'), (0.5, '0.5'), (1.0, '1.0')]
    """
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10, 20) if _count(low, high, unit * k) <= most)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(low / step - 1e-9)
    values = [(first + k) * step + 0.0 for k in range(_count(low, high, step))]
    return [(value, f"{value:.{decimals}f}") for value in values]


def thinned(values: Float64, bins: int) -> tuple[Float64, Float64]:
    """Return places and values of a line that looks like all of a series, (D,) ↦ (about 2 · bins,).

    Of each bin its least and its greatest value are kept: no peak is lost. What fills no bin at the
    end is kept whole.

    >>> thinned(np.array([1.0, 9.0, 2.0, 3.0, 0.0, 4.0]), 2)
    (array([0., 1., 4., 5.]), array([1., 9., 0., 4.]))
    """
    size = -(-len(values) // bins)
    if size <= 2:
        return np.arange(len(values), dtype=np.float64), values
    whole = len(values) - len(values) % size
    parts = values[:whole].reshape(-1, size)
    start = np.arange(0, whole, size)
    ends = np.sort(np.stack([parts.argmin(axis=1), parts.argmax(axis=1)], axis=1), axis=1)
    kept = np.append((start[:, None] + ends).reshape(-1), np.arange(whole, len(values)))
    return kept.astype(np.float64), values[kept]


def path(points: Int64) -> str:
    """Return the path of an SVG through points, (points, 2), in whole units.

    >>> path(np.array([[1, 5], [2, 3], [4, 3]]))
    'M1 5l1-2 2 0'
    """
    steps = np.diff(points, axis=0).reshape(-1).tolist()
    drawn = "".join(f"{step}" if step < 0 else f" {step}" for step in steps).lstrip()
    return f"M{points[0, 0]} {points[0, 1]}" + (f"l{drawn}" if drawn else "h0")


def _count(low: float, high: float, step: float) -> int:
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


def _apart(limits: tuple[float, float]) -> tuple[float, float]:
    """Return limits that are not the same number."""
    low, high = map(float, limits)
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    return low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)


def _class(colour: int | str) -> str:
    return f"c{colour % 8}" if isinstance(colour, int) else colour
