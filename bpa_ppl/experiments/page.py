"""The page, the figures and the tables of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    Section,
    Table,
    Verdict,
    code,
    drawn,
    page,
    write_page,
)
from bpa_ppl.errors import one_of
from bpa_ppl.experiments.aggregates import (
    Condition,
    CurvePoint,
    Difference,
    Seconds,
    aggregate,
    median_seconds,
)
from bpa_ppl.experiments.results import detail_names, metrics_of, read_identity, read_results
from bpa_ppl.experiments.study import CANONICAL
from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.quality.column import by_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIGNIFICANT = 0.05
_LENGTH = "length_ratio"
_HEIGHT = 3.6  # inches
_MARKERS = "osv^D<>pX*"
_INTERVALS = (
    "Each number is the mean over draws of A; ± is the published size of the 95% interval, twice "
    "the empirical standard deviation over draws. points.csv also has a bootstrap interval of each "
    "mean over test sentences and draws, and the standard errors due to the sampling of A and of "
    "test sentences."
)
_TIMES = (
    "Seconds from lists and references to weights, without reading files: this includes the "
    "search for oracles, the statistics of the metric and, the first time, compilation. Medians "
    "over draws of A; they depend on the load of the machine. Where A is decoded again, the time "
    "of the decoder is included; that of decoding test sentences is in seconds.parquet."
)
_VERDICTS = (
    "All posteriors are used here, whether they passed or not; outside of studies those that fail "
    "are refused."
)
_METRICS = (
    "TER and BLEU are those of sacreBLEU with default settings, BLEU of tokenised text (tokenize "
    "none). Files are represented by their SHA-256 checksums."
)
_LENGTHS = (
    "mean over draws of A: scores that improve because outputs become shorter or longer are "
    "recognised here."
)
_BREVITIES = (
    "Brevity penalty: that of sacreBLEU, exp(min(0, 1 − r/c)) with c words of translations and r "
    "of references; length ratio: c/r; brevity: min(1, c/r), the other definition in use."
)
#: Domain, size and method.
_Key = tuple[str, int, str]


class _Column(NamedTuple):
    """A column of axes: its title, the attribute that it shows, and the scale of its y axes."""

    title: str
    attribute: str
    scale: str = "linear"


def write_figures(folder: str | Path, *, kind: str = "png") -> list[Path]:
    """Write the page, the figures and the numbers of a finished study next to its results.

    Args:
        folder: of the results.
        kind: of the figure files: `png`, `pdf` or `none`; the page contains its own figures.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if there are no results, or a file cannot be written.
        UsageError: if there is no such kind of figure.
    """
    one_of(kind, FIGURE_KINDS, "kind of figures", "kind")
    target = Path(folder)
    results, seconds = read_results(target)
    (points, differences), times = aggregate(results), median_seconds(seconds)
    figures = figures_of(points, times, metrics_of(results))
    sections = [*_sections(results, points, differences, times, figures), _provenance(target)]
    summary = Verdict(_summary(points, metrics_of(results)[0], mean_lengths(results)))
    write_page(page("Learning curves", summary, sections), target / "index.html")
    files = [target / "index.html"]
    numbers: dict[str, list[dict[str, Any]]] = {
        "points": [vars(point) for point in points],
        "differences": [vars(difference) for difference in differences],
        "median_seconds": [vars(time) for time in times],
        **{
            f"{metric}_details": mean_details(results, metric)
            for metric in metrics_of(results)
            if detail_names(metric)
        },
    }
    for name, rows in numbers.items():
        files.append(target / f"{name}.csv")
        with atomic_path(files[-1]) as temporary:
            csv.write_csv(pa.Table.from_pylist(rows), temporary)
    return [*files, *write_figure_files(figures, target, kind)]


def figures_of(
    points: Sequence[CurvePoint], times: Sequence[Seconds], metrics: Sequence[str]
) -> dict[str, Figure]:
    """Return the figures by name: a metric, `seconds`, or `sweep_SETTING`.

    Args:
        points: of all methods and settings.
        times: of all methods and settings.
        metrics: the names of the metrics.
    """
    plain = [point for point in points if not point.setting]
    figures = {}
    for metric in metrics:
        name = metric.upper()
        columns = [
            _Column(f"{{domain}}: {name}", "mean"),
            _Column(f"{name}, interval size 2σ", "interval", "log"),
        ]
        figures[metric] = _size_figure([p for p in plain if p.metric == metric], columns)
    if curves := [time for time in times if not time.setting and time.learning]:
        figures["seconds"] = _size_figure(curves, [_Column("{domain}: seconds", "learning", "log")])
    for setting in dict.fromkeys(p.setting.partition("=")[0] for p in points if p.setting):
        figures[f"sweep_{setting}"] = _sweep_figure(points, setting, metrics)
    return figures


def _sections(
    results: pa.Table,
    points: list[CurvePoint],
    differences: Sequence[Difference],
    times: Sequence[Seconds],
    figures: Mapping[str, Figure],
) -> list[Section]:
    domains, metrics = _distinct(point.domain for point in points), metrics_of(results)

    def picture(name: str, description: str) -> Block:
        return drawn(figures[name], description, f"{description}.")

    def tables(cells: Mapping[_Key, str], caption: str) -> list[Block]:
        return [
            _size_table(
                {key[1:]: cell for key, cell in cells.items() if key[0] == domain},
                caption.format(domain=domain),
            )
            for domain in domains
        ]

    plain = [point for point in points if not point.setting]
    sections = []
    for metric in metrics:
        scores = {p.key: f"{p.mean:.1f} ± {p.interval:.1f}" for p in plain if p.metric == metric}
        text = f"Mean {metric.upper()} and its interval size against the number of sentences"
        caption = f"{metric.upper()} of the test text of {{domain}}: mean ± 2σ."
        blocks = [_INTERVALS, picture(metric, text), *tables(scores, caption)]
        sections.append(Section(f"{metric.upper()} against |A|", blocks))
    if lengths := mean_lengths(results):
        cells = {key: f"{value:.3f}" for key, value in lengths.items()}
        caption = f"Words of the translations over words of the references, {{domain}}, {_LENGTHS}"
        sections.append(Section("Length against |A|", tables(cells, caption)))
    if "seconds" in figures:
        cells = {t.key: f"{t.learning:.2f}" for t in times if not t.setting and t.learning}
        text = "Seconds to adapt or tune against the number of adaptation sentences"
        extra = tables(cells, "Median seconds to adapt or tune, {domain}.")
        sections.append(Section("Time", [_TIMES, picture("seconds", text), *extra]))
    if swept := [name for name in figures if name.startswith("sweep_")]:
        text = f"Mean {', '.join(metric.upper() for metric in metrics)} ± 2σ against "
        blocks = [picture(name, text + name.removeprefix("sweep_")) for name in swept]
        sections.append(Section("Settings", blocks))
    detailed = [metric for metric in metrics if detail_names(metric)]
    if details := [_details_table(results, d, metric) for metric in detailed for d in domains]:
        texts = [_BREVITIES] if _LENGTH in results.column_names else []
        sections.append(Section("Details", [*texts, *details]))
    passed = {p.key: f"{p.passed:.0%}" for p in plain if np.isfinite(p.passed)}
    verdicts = tables(passed, "Posteriors that passed their check, {domain}.")
    sections.append(Section("Diagnostics", [_VERDICTS, *verdicts]))
    pairs = [_significance_table(differences, d, metric) for d in domains for metric in metrics]
    return [*sections, Section("Significance", pairs)]


def _provenance(folder: Path) -> Section:
    """Return the section with the settings, and the versions of packages."""
    identity = read_identity(folder)
    study = identity["study"]
    rows = [(key, str(study[key])) for key in ("sizes", "draws", "seed", "replacement")]
    rows += [(f"version of {name}", version) for name, version in identity["versions"].items()]
    settings = code(json.dumps(study, indent=1, ensure_ascii=False))
    return Section("How it was made", [_METRICS, Table(("what", "value"), rows), settings])


def _summary(points: Sequence[CurvePoint], metric: str, lengths: Mapping[_Key, float]) -> str:
    """Return the best method of each domain with the fewest sentences, with all its scores."""
    better, word = (min, "lowest") if by_name(metric).lower_is_better else (max, "highest")
    plain = [point for point in points if not point.setting]
    parts = []
    for domain in _distinct(point.domain for point in plain):
        curve = [p for p in plain if p.metric == metric and p.domain == domain]
        smallest = min(point.size for point in curve)
        best = better((p for p in curve if p.size == smallest), key=lambda point: point.mean)
        others = [p for p in plain if p.key == best.key and p.metric != metric]
        scores = [f"{p.metric.upper()} {p.mean:.1f}" for p in others]
        scores += [f"length {lengths[best.key]:.3f}"] if best.key in lengths else []
        suffix = f" ({', '.join(scores)})" if scores else ""
        parts.append(
            f"{domain}, |A| = {smallest}: the {word} mean {metric.upper()} is {best.mean:.1f} ± "
            f"{best.interval:.1f}, of {best.method}{suffix}"
        )
    return "; ".join(parts) + "."


def mean_lengths(results: pa.Table) -> dict[_Key, float]:
    """Return the ratio of words in choices and references, mean over draws of A.

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


def _size_table(cells: Mapping[tuple[int, str], str], caption: str) -> Table:
    """Return a table with one row a method and one column a size of A."""
    sizes = sorted({size for size, _ in cells})
    methods = _distinct(method for _, method in cells)
    rows = [[method, *(cells[size, method] for size in sizes)] for method in methods]
    return Table(["method", *(f"|A| = {size}" for size in sizes)], rows, caption)


def _details_table(results: pa.Table, domain: str, metric: str) -> Table:
    """Return a metric with its details, such as precisions: means over draws at each size of A."""
    rows = mean_details(results.filter(pc.field("domain") == domain), metric)
    columns = [name for name in rows[0] if name not in ("domain", "size", "method")]
    cells = [
        [str(row["size"]), row["method"], *(f"{row[name]:.3g}" for name in columns)] for row in rows
    ]
    titles = [metric.upper(), *(name.replace("_", " ") for name in columns[1:])]
    caption = f"{metric.upper()} and its components, means over draws, {domain}."
    return Table(["|A|", "method", *titles], cells, caption)


def mean_details(results: pa.Table, metric: str) -> list[dict[str, Any]]:
    """Return a metric with its details, means over draws, of each domain, size and method.

    BLEU has the n-gram precisions in percent and three measures of length: `brevity_penalty` and
    `length_ratio` of sacreBLEU, and `brevity`, min(1, c/r) with c words of translations and r of
    references.

    Args:
        results: from `read_results`.
        metric: one with details.
    """
    columns = [metric, *detail_names(metric)]
    plain = results.filter(pc.field("setting") == "")
    if _LENGTH in columns:
        columns.append("brevity")
        plain = plain.append_column("brevity", pc.min_element_wise(1.0, plain[_LENGTH]))
    keys = ["domain", "size", "method"]
    grouped = plain.group_by(keys, use_threads=False)
    means = grouped.aggregate([(column, "mean") for column in columns]).to_pylist()
    return [
        {**{key: row[key] for key in keys}, **{name: row[f"{name}_mean"] for name in columns}}
        for row in means
    ]


def _significance_table(differences: Sequence[Difference], domain: str, metric: str) -> Table:
    """Return for each pair of methods at how many sizes of A the one is lower, and higher."""
    chosen = [d for d in differences if d.domain == domain and d.metric == metric]
    methods = _distinct(name for d in chosen for name in (d.first, d.second))
    lower: dict[tuple[str, str], int] = {}  # (lower, higher) -> number of sizes
    for d in chosen:
        if d.adjusted < _SIGNIFICANT and d.difference:
            pair = (d.first, d.second) if d.difference < 0 else (d.second, d.first)
            lower[pair] = lower.get(pair, 0) + 1

    def cell(first: str, second: str) -> str:
        counts = (("−", lower.get((first, second), 0)), ("+", lower.get((second, first), 0)))
        text = " ".join(f"{sign}{n}" for sign, n in counts if n)
        return text or ("" if first == second else "·")

    rows = [[first, *(cell(first, second) for second in methods)] for first in methods]
    caption = (
        f"{metric.upper()}, {domain}: at how many of the {len({d.size for d in chosen})} sizes "
        "of A the method of the row is significantly lower (−) and higher (+) than that of the "
        "column, at 5% by paired bootstrap over draws and sentences, adjusted by Holm's method."
    )
    return Table(["method", *methods], rows, caption)


def _size_figure(points: Sequence[Condition], columns: Sequence[_Column]) -> Figure:
    """Draw attributes of points against |A|, one row of axes a domain.

    Args:
        points: of all methods.
        columns: the columns of axes.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    domains = _distinct(point.domain for point in points)
    figure, grid = empty_figure(len(domains), len(columns), _HEIGHT)
    for domain, row in zip(domains, grid, strict=True):
        of_domain = [point for point in points if point.domain == domain]
        for method, style in _styles(point.method for point in of_domain):
            curve = [point for point in of_domain if point.method == method]
            sizes = [point.size for point in curve]
            for axes, column in zip(row, columns, strict=True):
                values = [getattr(point, column.attribute) for point in curve]
                if method != CANONICAL:
                    axes.plot(sizes, values, **style)
                elif axes is row[0]:
                    axes.axhline(values[0], **style)
        ticks = sorted({point.size for point in of_domain})
        for axes, column in zip(row, columns, strict=True):
            axes.set(ylabel=column.title.format(domain=domain), yscale=column.scale, xscale="log")
            if column.scale == "log":  # 0.5, not 5 · 10⁻¹
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_locator(NullLocator())
            axes.set_xticks(ticks, ticks)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("|A|, sentences")
            axes.grid(alpha=0.3)
    _legend(figure, grid[0][0])
    return figure


def _sweep_figure(points: Sequence[CurvePoint], setting: str, metrics: Sequence[str]) -> Figure:
    """Draw the mean of each metric ± its interval size against the values of a swept setting."""
    swept = [point for point in points if point.setting.startswith(f"{setting}=")]
    values = _distinct(point.setting.partition("=")[2] for point in swept)
    several = len({point.domain for point in swept}) > 1
    figure, (row,) = empty_figure(1, len(metrics), _HEIGHT)
    for axes, metric in zip(row, metrics, strict=True):
        curves: dict[str, list[CurvePoint]] = {}
        for p in swept:
            if p.metric == metric:
                name = f"{p.method}, {p.domain}" if several else p.method
                curves.setdefault(f"{name}, |A| = {p.size}", []).append(p)
        for number, (name, style) in enumerate(_styles(curves)):
            curve = curves[name]
            # Shifted, so that the bars do not hide each other.
            shift = 0.06 * (number - (len(curves) - 1) / 2)
            x = [values.index(point.setting.partition("=")[2]) + shift for point in curve]
            means, spread = [p.mean for p in curve], [p.interval for p in curve]
            axes.errorbar(x, means, yerr=spread, capsize=2, **style)
        axes.set_xticks(range(len(values)), values)
        axes.set(xlabel=setting, ylabel=f"{metric.upper()}, mean ± 2σ")
        axes.grid(alpha=0.3)
    _legend(figure, row[0])
    return figure


def _styles(names: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the line style of each name: the canonical weights have a plain dashed line."""
    colours = cycle(f"C{number}" for number in range(10))
    styles = []
    for number, name in enumerate(_distinct(names)):
        style: dict[str, Any] = {"color": "black", "linestyle": "--"}
        if name != CANONICAL:
            style = {"color": next(colours), "linestyle": "-" if number <= 10 else ":"}
            style["marker"] = _MARKERS[number % len(_MARKERS)]
        style |= {"label": label(name), "linewidth": 1.3, "markersize": 4}
        styles.append((name, style))
    return styles


def _legend(figure: Figure, axes: Any) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize="small")


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
