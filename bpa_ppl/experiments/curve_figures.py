"""The figures of a study: the counterparts of the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from bpa_ppl.diagnostics.pages.canvas import canvas, label
from bpa_ppl.experiments.aggregates import Point, Seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.6  # inches
_MARKERS = "osv^D<>pX*"
_BASELINE = "canonical"


def quality_figure(points: Sequence[Point], metric: str) -> Figure:
    """Draw the mean score and its interval size against |A|, one row of axes a domain."""
    chosen = [p for p in points if p.metric == metric and not p.setting]
    domains = list(dict.fromkeys(point.domain for point in chosen))
    figure, rows = canvas(len(domains), 2, _HEIGHT)
    for domain, (left, right) in zip(domains, rows, strict=True):
        here = [point for point in chosen if point.domain == domain]
        for method, style in _styles(point.method for point in here):
            curve = [point for point in here if point.method == method]
            sizes = [point.size for point in curve]
            if method == _BASELINE:
                left.axhline(curve[0].mean, **style)
            else:
                left.plot(sizes, [point.mean for point in curve], **style)
                right.plot(sizes, [point.interval for point in curve], **style)
        left.set_ylabel(f"{domain}: {metric.upper()}")
        right.set_ylabel(f"{metric.upper()}, interval size 2σ")
        for axis in (left, right):
            _over_sizes(axis, [point.size for point in here])
    _legend(figure, rows[0][0])
    return figure


def seconds_figure(times: Sequence[Seconds]) -> Figure:
    """Draw the median seconds of learning against |A|, one row of axes a domain."""
    chosen = [time for time in times if not time.setting and time.learning]
    domains = list(dict.fromkeys(time.domain for time in chosen))
    figure, rows = canvas(len(domains), 1, _HEIGHT)
    for domain, (axis,) in zip(domains, rows, strict=True):
        here = [time for time in chosen if time.domain == domain]
        for method, style in _styles(time.method for time in here):
            curve = [time for time in here if time.method == method]
            axis.plot([t.size for t in curve], [t.learning for t in curve], **style)
        axis.set_ylabel(f"{domain}: seconds")
        axis.set_yscale("log")
        _over_sizes(axis, [time.size for time in here])
    _legend(figure, rows[0][0])
    return figure


def sweep_figure(points: Sequence[Point], setting: str, metric: str) -> Figure:
    """Draw the mean score ± its interval size against the values of a swept setting."""
    chosen = [p for p in points if p.metric == metric and p.setting.startswith(f"{setting}=")]
    values = list(dict.fromkeys(point.setting.partition("=")[2] for point in chosen))
    figure, ((axis,),) = canvas(1, 1, _HEIGHT)
    names = dict.fromkeys(_swept(point) for point in chosen)
    for number, (name, style) in enumerate(_styles(names)):
        curve = [point for point in chosen if _swept(point) == name]
        # Next to each other, or the bars would hide each other.
        shift = 0.06 * (number - (len(names) - 1) / 2)
        places = [values.index(point.setting.partition("=")[2]) + shift for point in curve]
        means, spread = [p.mean for p in curve], [p.interval for p in curve]
        axis.errorbar(places, means, yerr=spread, capsize=2, **style)
    axis.set_xticks(range(len(values)), values)
    axis.set_xlabel(setting)
    axis.set_ylabel(f"{metric.upper()}, mean ± 2σ")
    axis.grid(alpha=0.3)
    _legend(figure, axis)
    return figure


def swept_settings(points: Iterable[Point]) -> list[str]:
    """Return the names of the settings that were swept."""
    return list(dict.fromkeys(p.setting.partition("=")[0] for p in points if p.setting))


def _swept(point: Point) -> str:
    return f"{point.method}, {point.domain}, |A| = {point.size}"


def _styles(names: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return how each name is drawn: the unadapted weights as a plain dashed line."""
    colours = cycle(f"C{number}" for number in range(10))
    styles = []
    for number, name in enumerate(dict.fromkeys(names)):
        style: dict[str, Any] = {"label": label(name), "linewidth": 1.3, "markersize": 4}
        if name == _BASELINE:
            style |= {"color": "black", "linestyle": "--"}
        else:
            line = "-" if number <= 10 else ":"
            marker = _MARKERS[number % len(_MARKERS)]
            style |= {"color": next(colours), "marker": marker, "linestyle": line}
        styles.append((name, style))
    return styles


def _over_sizes(axis: Any, sizes: Iterable[int]) -> None:
    ticks = sorted(set(sizes))
    axis.set_xscale("log")
    axis.set_xticks(ticks, ticks)
    axis.minorticks_off()
    axis.set_xlabel("|A|, sentences")
    axis.grid(alpha=0.3)


def _legend(figure: Figure, axis: Any) -> None:
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize="small")
