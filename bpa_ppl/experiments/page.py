"""The page, the figures and the tables of a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from bpa_ppl.diagnostics.pages.figures import FIGURE_KINDS, empty_figure, label, write_figure_files
from bpa_ppl.diagnostics.pages.page import (
    Block,
    Code,
    Section,
    Table,
    Text,
    Verdict,
    drawn,
    page,
    write_page,
)
from bpa_ppl.errors import one_of
from bpa_ppl.experiments.aggregates import (
    Aggregates,
    Difference,
    Point,
    Seconds,
    aggregate,
    median_seconds,
)
from bpa_ppl.experiments.results import detail_names, metrics_of, read_identity, read_results
from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.quality import by_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.6  # inches
_MARKERS = "osv^D<>pX*"
_BASELINE = "canonical"


def quality_figure(points: Sequence[Point], metric: str) -> Figure:
    """Draw the mean score and its interval size against |A|, one row of axes a domain."""
    chosen = [p for p in points if p.metric == metric and not p.setting]
    domains = list(dict.fromkeys(point.domain for point in chosen))
    figure, rows = empty_figure(len(domains), 2, _HEIGHT)
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
    figure, rows = empty_figure(len(domains), 1, _HEIGHT)
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
    figure, ((axis,),) = empty_figure(1, 1, _HEIGHT)
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


_SIGNIFICANT = 0.05
_LENGTH = "length_ratio"
_INTERVALS = (
    "Each number is the mean over draws of A; ± is the published 95% interval size, twice the "
    "empirical standard deviation over draws. points.csv also has a bootstrap interval of "
    "each mean over test sentences and draws, and the standard errors by the sampling of A alone "
    "and of the test sentences alone."
)
_TIMES = (
    "Seconds from lists and references to weights, without reading the files: the search for "
    "oracles, the statistics of the metric and, the first time, compilation are in it. Medians "
    "over draws of A; they depend on what else the machine did."
)
_VERDICTS = (
    "Every posterior is used here, whether it passed or not; outside of studies those that fail "
    "are refused."
)
_METRICS = (
    "TER and BLEU are those of sacreBLEU with its default settings, BLEU of tokenised text "
    "(tokenize none). Files stand below as their SHA-256 checksums."
)


class Drawing(NamedTuple):
    """A figure with the name of its file, and what it shows in words."""

    name: str
    figure: Figure
    description: str


def write_figures(folder: str | Path, *, kind: str = "png") -> list[Path]:
    """Write the page, the figures and the numbers of a finished study next to its results.

    Args:
        folder: of the results.
        kind: of the files of figures: `png`, `pdf` or `none`; the page has its own.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if there are no results, or a file cannot be written.
        UsageError: if there is no such kind of figure.
    """
    one_of(kind, FIGURE_KINDS, "kind of figures")
    target = Path(folder)
    results, seconds = read_results(target)
    found, times = aggregate(results), median_seconds(seconds)
    drawings = _drawings(found.points, times, metrics_of(results))
    made = _how_made(read_identity(target))
    write_page(_page(results, found, times, drawings, made), target / "index.html")
    files = [target / "index.html", *_write_numbers(found, times, target)]
    return [*files, *write_figure_files({d.name: d.figure for d in drawings}, target, kind)]


def _drawings(points: list[Point], times: list[Seconds], metrics: Sequence[str]) -> list[Drawing]:
    curves = "Mean {} and its interval size against the number of adaptation sentences"
    found = [Drawing(m, quality_figure(points, m), curves.format(m.upper())) for m in metrics]
    if any(time.learning and not time.setting for time in times):
        description = "Seconds to adapt or tune against the number of adaptation sentences"
        found.append(Drawing("seconds", seconds_figure(times), description))
    main = metrics[0]
    return found + [
        Drawing(
            f"sweep_{name}",
            sweep_figure(points, name, main),
            f"Mean {main.upper()} against {name}",
        )
        for name in swept_settings(points)
    ]


def _page(
    results: pa.Table,
    found: Aggregates,
    times: list[Seconds],
    drawings: list[Drawing],
    made: Section,
) -> str:
    domains = list(dict.fromkeys(point.domain for point in found.points))
    metrics = metrics_of(results)
    pictures = {d.name: drawn(d.figure, d.description, d.description + ".") for d in drawings}
    sections = []
    for metric in metrics:
        scores = [scores_table(found.points, domain, metric) for domain in domains]
        blocks: list[Block] = [Text(_INTERVALS), pictures[metric], *scores]
        sections.append(Section(f"{metric.upper()} against |A|", blocks))
    if lengths := mean_lengths(results):
        tables = [length_table(lengths, domain) for domain in domains]
        sections.append(Section("Length against |A|", tables))
    if "seconds" in pictures:
        tables = [seconds_table(times, domain) for domain in domains]
        sections.append(Section("Time", [Text(_TIMES), pictures["seconds"], *tables]))
    if swept := [pictures[d.name] for d in drawings if d.name.startswith("sweep_")]:
        sections.append(Section("Settings", swept))
    detailed = [metric for metric in metrics if detail_names(metric)]
    details = [details_table(results, domain, metric) for metric in detailed for domain in domains]
    sections += [Section("Details", details)] if details else []
    verdicts: list[Block] = [verdict_table(found.points, domain) for domain in domains]
    sections.append(Section("Diagnostics", [Text(_VERDICTS), *verdicts]))
    pairs = [significance_table(found.differences, d, m) for d in domains for m in metrics]
    sections.append(Section("Significance", pairs))
    summary = Verdict(_summary(found.points, metrics[0], lengths))
    return page("Learning curves", summary, [*sections, made])


def _how_made(identity: dict[str, Any]) -> Section:
    """Return the section on how the results were made: settings, and versions of packages."""
    study = identity["study"]
    rows = [(key, str(study[key])) for key in ("sizes", "draws", "seed", "replacement")]
    rows += [(f"version of {name}", version) for name, version in identity["versions"].items()]
    settings = Code(json.dumps(study, indent=1, ensure_ascii=False))
    return Section("How it was made", [Text(_METRICS), Table(("what", "value"), rows), settings])


def _summary(
    points: list[Point], metric: str, lengths: Mapping[tuple[str, int, str], float]
) -> str:
    """Return which method has the best mean score with the fewest adaptation sentences.

    Its other scores and its length stand beside that.
    """
    better, word = (min, "lowest") if by_name(metric).lower_is_better else (max, "highest")
    plain = [p for p in points if p.metric == metric and not p.setting]
    parts = []
    for domain in dict.fromkeys(point.domain for point in plain):
        here = [point for point in plain if point.domain == domain]
        smallest = min(point.size for point in here)
        best = better((p for p in here if p.size == smallest), key=lambda point: point.mean)
        parts.append(
            f"{domain}, |A| = {smallest}: the {word} mean {metric.upper()} is {best.mean:.1f} ± "
            f"{best.interval:.1f}, of {best.method}{_beside(best, points, lengths)}"
        )
    return "; ".join(parts) + "."


def _beside(
    best: Point, points: Iterable[Point], lengths: Mapping[tuple[str, int, str], float]
) -> str:
    """Return the other scores at one place, and the length: ` (BLEU 20.1, length 0.98)`."""
    place = (best.domain, best.size, best.method)
    others = [
        f"{p.metric.upper()} {p.mean:.1f}"
        for p in points
        if (p.domain, p.size, p.method) == place and not p.setting and p.metric != best.metric
    ]
    others += [f"length {lengths[place]:.3f}"] if place in lengths else []
    return f" ({', '.join(others)})" if others else ""


def mean_lengths(results: pa.Table) -> dict[tuple[str, int, str], float]:
    """Return the words of the choices over those of the references, mean over draws of A.

    Args:
        results: from `read_results`; without BLEU there are none.

    Returns:
        by domain, size and method.
    """
    if _LENGTH not in results.column_names:
        return {}
    plain = results.filter(pc.field("setting") == "")
    grouped = plain.group_by(["domain", "size", "method"], use_threads=False)
    rows = grouped.aggregate([(_LENGTH, "mean")]).to_pylist()
    return {(r["domain"], r["size"], r["method"]): r[f"{_LENGTH}_mean"] for r in rows}


def _write_numbers(found: Aggregates, times: list[Seconds], folder: Path) -> list[Path]:
    """Write the numbers behind tables and figures."""
    tables = {
        "points": [vars(point) for point in found.points],
        "differences": [vars(difference) for difference in found.differences],
        "median_seconds": [time._asdict() for time in times],
    }
    written = []
    for name, rows in tables.items():
        written.append(folder / f"{name}.csv")
        with atomic_path(written[-1]) as temporary:
            csv.write_csv(pa.Table.from_pylist(rows), temporary)
    return written


def scores_table(points: Iterable[Point], domain: str, metric: str) -> Table:
    """Return `mean ± interval size` of each method, one column a size of A."""
    chosen = [p for p in points if p.domain == domain and p.metric == metric and not p.setting]
    caption = f"{metric.upper()} of the test text of {domain}: mean ± 2σ."
    return _by_size(chosen, lambda p: f"{p.mean:.1f} ± {p.interval:.1f}", caption)


def length_table(lengths: Mapping[tuple[str, int, str], float], domain: str) -> Table:
    """Return the words of the choices over those of the references, one column a size of A."""
    here = {
        (method, size): value for (where, size, method), value in lengths.items() if where == domain
    }
    cells = {place: f"{value:.3f}" for place, value in here.items()}
    caption = (
        f"Words of the translations over those of the references, {domain}, mean over draws of A: "
        "what gains in one score by shorter or longer outputs shows here."
    )
    return _grid(cells, caption)


def verdict_table(points: Iterable[Point], domain: str) -> Table:
    """Return the share of posteriors that passed their check, one column a size of A."""
    chosen = [p for p in points if p.domain == domain and not p.setting and np.isfinite(p.passed)]
    caption = f"Posteriors that passed their check, {domain}."
    return _by_size(chosen, lambda p: f"{p.passed:.0%}", caption)


def seconds_table(times: Iterable[Seconds], domain: str) -> Table:
    """Return the median seconds of learning of each method, one column a size of A."""
    chosen = [t for t in times if t.domain == domain and not t.setting and t.learning]
    caption = f"Median seconds to adapt or tune, {domain}."
    return _by_size(chosen, lambda t: f"{t.learning:.2f}", caption)


def _by_size(places: Sequence[Any], shown: Callable[[Any], str], caption: str) -> Table:
    """Return a table of one row a method and one column a size of A."""
    return _grid({(place.method, place.size): shown(place) for place in places}, caption)


def _grid(cells: Mapping[tuple[str, int], str], caption: str) -> Table:
    sizes = sorted({size for _, size in cells})
    methods = dict.fromkeys(method for method, _ in cells)
    rows = [[method, *(cells[method, size] for size in sizes)] for method in methods]
    return Table(["method", *(f"|A| = {size}" for size in sizes)], rows, caption)


def details_table(results: pa.Table, domain: str, metric: str) -> Table:
    """Return a metric with its details, such as precisions: means at the largest size of A."""
    here = results.filter((pc.field("domain") == domain) & (pc.field("setting") == ""))
    largest = pc.max(here["size"]).as_py()
    columns = [metric, *detail_names(metric)]
    grouped = (
        here.filter(pc.field("size") == largest)
        .group_by("method", use_threads=False)
        .aggregate([(column, "mean") for column in columns])
    )
    rows = [
        [row["method"], *(f"{row[f'{column}_mean']:.3g}" for column in columns)]
        for row in grouped.to_pylist()
    ]
    header = ["method", metric.upper(), *(name.replace("_", " ") for name in columns[1:])]
    caption = f"{metric.upper()} and what it is made of, means over draws, {domain}, |A| = "
    return Table(header, rows, f"{caption}{largest}.")


def significance_table(differences: Sequence[Difference], domain: str, metric: str) -> Table:
    """Return for each method against each other at how many sizes of A it differs, and how."""
    here = [d for d in differences if d.domain == domain and d.metric == metric]
    methods = list(dict.fromkeys(name for d in here for name in (d.first, d.second)))
    lower, higher = _counted(here, sign=-1), _counted(here, sign=1)

    def cell(ours: str, theirs: str) -> str:
        if ours == theirs:
            return ""
        counts = (("−", lower.get((ours, theirs), 0)), ("+", higher.get((ours, theirs), 0)))
        return " ".join(f"{sign}{n}" for sign, n in counts if n) or "·"

    rows = [[ours, *(cell(ours, theirs) for theirs in methods)] for ours in methods]
    caption = (
        f"{metric.upper()}, {domain}: at how many of the {len({d.size for d in here})} sizes of A "
        "the method of the row is significantly lower (−) and higher (+) than that of the column, "
        "at 5% by paired bootstrap over draws and sentences, adjusted by Holm's method."
    )
    return Table(["method", *methods], rows, caption)


def _counted(differences: Iterable[Difference], sign: int) -> dict[tuple[str, str], int]:
    """Return at how many sizes the first method is significantly lower, or higher, by pair."""
    counts: dict[tuple[str, str], int] = {}
    for one in differences:
        if one.adjusted < _SIGNIFICANT and one.difference:
            as_it_is = one.difference * sign > 0
            pair = (one.first, one.second) if as_it_is else (one.second, one.first)
            counts[pair] = counts.get(pair, 0) + 1
    return counts
