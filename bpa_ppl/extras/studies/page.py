"""The page, the figures and the tables of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import format_with_spread, has_width
from bpa_ppl.diagnostics.page import (
    Block,
    Headline,
    Section,
    Table,
    describe_provenance,
    page,
    write_page,
)
from bpa_ppl.diagnostics.pages.figures import embed_figure, empty_figure, label, write_figure
from bpa_ppl.diagnostics.samplers.efficiency import make_table
from bpa_ppl.extras.studies.results import (
    LENGTH,
    Row,
    aggregate,
    average_details,
    average_seconds,
    detail_names,
    list_metrics,
    read_results,
    read_study_file,
    write_rows,
)
from bpa_ppl.extras.studies.study import CANONICAL, SAMPLER, TUNER, Method, list_methods
from bpa_ppl.extras.studies.tuning.tuner import TUNERS
from bpa_ppl.gains.gains import resolve_without_lists
from bpa_ppl.gains.metric import Metric
from bpa_ppl.samplers.sampler import DEFAULT, SAMPLERS, USUAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of figure files that can be written next to the page.
_FIGURE_KINDS = ("none", "png", "pdf")
_HEIGHT = 2.8  # inches
_MARKERS = "osv^D<>pX*"
_INTERVALS = (
    "Each number is the mean over draws of A; ± is the published size of the 95% interval, twice "
    "the empirical standard deviation over draws, which a single draw and weights that do not "
    "depend on A do not have. Bands are the mean ± 2 standard errors due to the sampling of A. "
    "points.csv also has a bootstrap interval of each mean over test sentences and draws, and the "
    "standard errors due to the sampling of A and of test sentences; differences.csv has the "
    "differences of all pairs of methods, with p-values adjusted by Holm's method."
)
_LEVEL = 0.05  # of an adjusted p-value
_DOMAINS = 3  # in the verdict
_RULES = {"viterbi": "the single best pair of weights and candidate decides (Viterbi)"}
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
_BREVITIES = (
    "Brevity penalty: that of sacreBLEU, exp(min(0, 1 − r/c)) with c words of translations and r "
    "of references; length ratio: c/r; brevity: min(1, c/r), the other definition in use."
)


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
    require_one_of(kind, _FIGURE_KINDS, "kind of figures", "kind")
    target = Path(folder)
    results, seconds = read_results(target)
    (points, differences), times = aggregate(results), average_seconds(seconds)
    metrics = list_metrics(results)
    details = {name: average_details(results, name) for name in metrics if detail_names(name)}
    figures = draw_figures(points, times, metrics)
    plain = [point for point in points if not point["setting"]]
    names = _keep_distinct(point["method"] for point in plain)
    methods = [one for one in _read_methods(target) if one.name in names]
    curves = list(_make_sections(plain, times, metrics, details, figures))
    at = len(metrics)  # the page begins with the curves
    sections = [
        *curves[:at],
        _describe_methods(methods),
        *curves[at:],
        _describe_provenance(target),
    ]
    files = [target / "index.html"]
    verdict = Headline(describe_result(plain, differences, metrics[0], _find_default(methods)))
    write_page(page("Learning curves", verdict, sections), files[0])
    numbers = {"points": points, "differences": differences, "median_seconds": times}
    numbers |= {f"{metric}_details": rows for metric, rows in details.items()}
    for name, rows in numbers.items():
        files.append(target / f"{name}.csv")
        write_rows(rows, files[-1])
    for name, figure in figures.items() if kind != "none" else ():
        files.append(target / f"{name}.{kind}")
        write_figure(figure, files[-1], dpi=150)
    return files


def _find_default(methods: Iterable[Method]) -> str:
    """Return the method that is the default of `bpa adapt`, or that this runs at most times.

    Empty if there is none.

    >>> _find_default(map(list_methods().get, ["mert", "imh", "nuts"]))
    'imh'
    """
    plain = {m.engine: m.name for m in methods if m == list_methods().get(m.engine)}
    return plain.get(DEFAULT, plain.get(USUAL, ""))


def _describe_method(method: Method) -> str:
    """Return what a method is, in words.

    >>> _describe_method(list_methods()["heur-vit"])
    'heuristic sampling (published); the single best pair of weights and candidate decides ...'
    >>> _describe_method(list_methods()["mert"])
    'minimum error rate training; gain bleu'
    """
    if method.kind == CANONICAL:
        return "the canonical weights λ_T, not adapted"
    engines: Any = SAMPLERS if method.kind == SAMPLER else TUNERS
    plain = Method(name=method.name, kind=method.kind, engine=method.engine)
    described = method.engine
    if method.engine in engines:
        engine = engines[method.engine]
        described = engine.title or (engine.__doc__ or described).split("\n")[0]
    parts = [described]
    if method.rule != plain.rule:
        parts.append(_RULES.get(method.rule, f"rule {method.rule}"))
    if method.kind == TUNER or method.gain != plain.gain:
        parts.append(f"gain {method.gain}")
    parts += [f"likelihood {method.likelihood}"] if method.likelihood else []
    parts += [f"prior {method.prior}"] if method.prior != plain.prior else []
    common = ("nbest_size", "redecode", "decode_test")
    values = {name: getattr(method, name) for name in common}
    settings = {n: value for n, value in values.items() if value != getattr(plain, n)}
    of_parts = (method.engine_settings, method.likelihood_settings, method.prior_settings)
    settings |= dict(chain.from_iterable(of_parts))
    return "; ".join([*parts, *(f"{name} = {value}" for name, value in settings.items())])


def describe_result(
    points: Sequence[Row], differences: Sequence[Row], metric: str, default: str
) -> str:
    """Return the result of a study in one sentence: the best methods, at the largest sizes.

    Args:
        points: without swept settings, from `aggregate`.
        differences: from `aggregate`.
        metric: by which methods are compared.
        default: the default of `bpa adapt`, or empty.
    """
    domains = _keep_distinct(point["domain"] for point in points)
    parts = [
        _describe_domain(
            [p for p in _select(points, metric) if p["domain"] == domain],
            [d for d in _select(differences, metric) if d["domain"] == domain],
            resolve_without_lists(metric),
            default,
        )
        for domain in domains[:_DOMAINS]
    ]
    if len(domains) > _DOMAINS:
        parts.append(f"{len(domains) - _DOMAINS} more domains are below")
    return f"Mean {metric.upper()}: {'; '.join(parts)}."


def _describe_domain(
    points: Sequence[Row], differences: Sequence[Row], metric: Metric, default: str
) -> str:
    size = max(point["size"] for point in points)
    of_size = {point["method"]: point for point in points if point["size"] == size}
    best, *others = sorted(of_size, key=lambda name: -metric.signed(of_size[name]["mean"]))
    place = f"{of_size[best]['domain']}, {size} sentences"
    unclear = {
        name
        for d in differences
        if d["size"] == size and best in (d["first"], d["second"]) and d["adjusted"] >= _LEVEL
        for name in (d["first"], d["second"])
    }
    close = [name for name in others if name in unclear]
    better = f", clearly better than {len(others) - len(close)} of {len(others)} others, not than "
    better += ", ".join(close)
    if len(close) in (0, len(others)):
        count = len(others)
        better = f", clearly better than all {count} others"
        if close:
            better = f", but not clearly better than any of the {count} others"
    words = "the default" if default == DEFAULT else "usually the default"
    roles = {default: f" ({words} of bpa adapt)", CANONICAL: " (not adapted)"}
    means = {name: f"{point['mean']:.4g}" for name, point in of_size.items()}
    sentence = f"on {place}, {best}{roles.get(best, '')} is best ({means[best]})"
    texts = [f"{name}{role} has {means[name]}" for name, role in roles.items() if name in others]
    return ", and ".join([sentence + (better if others else ""), *texts])


def _read_methods(folder: Path) -> list[Method]:
    """Return the methods of the study in a folder."""
    recorded = read_study_file(folder / "study.json")["study"]["methods"]
    return msgspec.convert(recorded, list[Method])


def _describe_methods(methods: Sequence[Method]) -> Section:
    """Return the section that says what the methods are, and which is the default."""
    default = _find_default(methods)
    note = f"The default of bpa adapt is the sampler {DEFAULT} ({SAMPLERS[DEFAULT].title})"
    if default != DEFAULT:
        note += ", which is not in this study"
        note += f"; {default} is what it usually runs" if default else ""
    note += ". Choices are those of the predictive distribution unless another rule is named."
    rows = [[one.name, _describe_method(one)] for one in methods]
    return Section("Methods", [note, Table(("method", "what it is"), rows)])


def draw_figures(
    points: Sequence[Row], times: Sequence[Row], metrics: Sequence[str]
) -> dict[str, Figure]:
    """Return the figures by name: a metric, `seconds`, or `sweep_SETTING`.

    Args:
        points: of all methods and settings, from `aggregate`.
        times: of all methods and settings, from `average_seconds`.
        metrics: the names of the metrics.
    """
    figures = {}
    for metric in metrics:
        curves = [p for p in points if p["metric"] == metric and not p["setting"]]
        titles = {"mean": f"{{domain}}: {metric.upper()}"}
        if any(has_width(point["interval"], point["mean"]) for point in curves):
            titles["interval"] = f"{metric.upper()}, interval size 2σ"
        figures[metric] = _draw_sizes(curves, titles)
    if curves := [time for time in times if not time["setting"] and time["learning"]]:
        figures["seconds"] = _draw_sizes(curves, {"learning": "{domain}: seconds"})
    swept: dict[str, list[Row]] = {}
    several = len({point["domain"] for point in points if point["setting"]}) > 1
    for p in points:
        setting, _, value = p["setting"].partition("=")
        name = f"{p['method']}, {p['domain']}" if several else p["method"]
        place = {"curve": f"{name}, |A| = {p['size']}", "value": value}
        swept.setdefault(setting, []).append(p | place)
    swept.pop("", None)
    titles = {metric: f"{metric.upper()}, mean ± 2σ" for metric in metrics}
    for setting, rows in swept.items():
        figures[f"sweep_{setting}"] = draw_settings(rows, setting, titles)
    return figures


def _make_sections(
    plain: Sequence[Row],
    times: Sequence[Row],
    metrics: Sequence[str],
    details: Mapping[str, Sequence[Row]],
    figures: Mapping[str, Figure],
) -> Iterator[Section]:
    """Yield the sections of curves, settings, details and diagnostics."""

    def picture(name: str, description: str) -> Block:
        return embed_figure(figures[name], description, f"{description}.", "svg")

    for metric in metrics:
        curve = [(p, format_with_spread(p["mean"], p["interval"])) for p in _select(plain, metric)]
        text = f"Mean {metric.upper()} and its interval size against the number of sentences"
        tables = _tabulate_sizes(
            curve, f"{metric.upper()} of the test text of {{domain}}: mean ± 2σ."
        )
        notes = [_INTERVALS] if metric == metrics[0] else []
        yield Section(f"{metric.upper()} against |A|", [*notes, picture(metric, text), *tables])
    if "seconds" in figures:
        spent = [(t, f"{t['learning']:.2f}") for t in times if not t["setting"] and t["learning"]]
        text = "Seconds to adapt or tune against the number of adaptation sentences"
        tables = _tabulate_sizes(spent, "Median seconds to adapt or tune, {domain}.")
        yield Section("Time", [_TIMES, picture("seconds", text), *tables])
    if swept := [name for name in figures if name.startswith("sweep_")]:
        text = f"Mean {', '.join(metric.upper() for metric in metrics)} ± 2σ against "
        blocks = [picture(name, text + name.removeprefix("sweep_")) for name in swept]
        yield Section("Settings", blocks)

    if details:
        notes = [_BREVITIES] if any(LENGTH in rows[0] for rows in details.values()) else []
        parts = [
            make_table(rows, f"{metric.upper()} and its components, means over draws.")
            for metric, rows in details.items()
        ]
        yield Section("Details", [*notes, *parts])
    passed = [(p, f"{p['passed']:.0%}") for p in plain if np.isfinite(p["passed"])]
    verdicts = _tabulate_sizes(passed, "Posteriors that passed their check, {domain}.")
    yield Section("Diagnostics", [_VERDICTS, *verdicts])


def _select(rows: Iterable[Row], metric: str) -> list[Row]:
    return [row for row in rows if row["metric"] == metric]


def _describe_provenance(folder: Path) -> Section:
    """Return the section with the settings, and the versions of packages."""
    identity = read_study_file(folder / "study.json")
    study, versions = identity["study"], identity["versions"]
    rows = {key: str(study[key]) for key in ("sizes", "draws", "seed", "replacement")}
    rows |= {f"version of {name}": version for name, version in versions.items()}
    return describe_provenance(rows, json.dumps(study, indent=1, ensure_ascii=False), [_METRICS])


def _tabulate_sizes(cells: Iterable[tuple[Row, str]], caption: str) -> Iterator[Table]:
    """Yield for each domain a table with one row a method and one column a size of A."""
    by_domain: dict[str, dict[tuple[int, str], str]] = {}
    for row, cell in cells:
        by_domain.setdefault(row["domain"], {})[row["size"], row["method"]] = cell
    for domain, texts in by_domain.items():
        sizes = sorted({size for size, _ in texts})
        methods = _keep_distinct(method for _, method in texts)
        rows = [[method, *(texts[size, method] for size in sizes)] for method in methods]
        header = ["method", *(f"|A| = {size}" for size in sizes)]
        yield Table(header, rows, caption.format(domain=domain))


def _draw_sizes(rows: Sequence[Row], titles: Mapping[str, str]) -> Figure:
    """Draw columns of rows against |A| below each other, for each domain; means on a linear axis.

    Args:
        rows: of all methods.
        titles: of the columns to draw, by their names.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    domains = _keep_distinct(row["domain"] for row in rows)
    figure, grid = empty_figure(len(domains) * len(titles), 1, _HEIGHT)
    for domain, line in zip(domains, grid.reshape(len(domains), -1), strict=True):
        of_domain = [row for row in rows if row["domain"] == domain]
        ticks = sorted({row["size"] for row in of_domain})
        for axes, (column, title) in zip(line, titles.items(), strict=True):
            for method, style in _choose_styles(row["method"] for row in of_domain):
                curve = [row for row in of_domain if row["method"] == method]
                values = [row[column] for row in curve]
                if method != CANONICAL:
                    axes.plot([row["size"] for row in curve], values, **style)
                    if column == "mean":
                        _draw_band(axes, curve, style["color"])
                elif axes is line[0]:
                    axes.axhline(values[0], **style)
            axes.set(ylabel=title.format(domain=domain), xscale="log", xlabel="|A|, sentences")
            positive = any(row[column] > 0 for row in of_domain)  # a single draw has no interval
            if column != "mean" and positive:  # 0.5, not 5 · 10⁻¹
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_locator(NullLocator())
            axes.set_xticks(ticks, ticks)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid(alpha=0.3)
    _add_legend(figure, grid[0][0])
    return figure


def _draw_band(axes: Any, curve: Sequence[Row], color: str) -> None:
    """Draw two standard errors due to the sampling of A around a curve."""
    low, high = ([p["mean"] + side * p["draw_error"] for p in curve] for side in (-2, 2))
    axes.fill_between([p["size"] for p in curve], low, high, color=color, alpha=0.12, linewidth=0)


def draw_settings(points: Sequence[Row], setting: str, titles: Mapping[str, str]) -> Figure:
    """Draw the means of metrics, with the sizes of their intervals, against a setting.

    Args:
        points: rows with `curve`, `value` of the setting, `metric`, `mean` and `interval`.
        setting: its name.
        titles: the label of each metric.
    """
    values = _keep_distinct(point["value"] for point in points)
    figure, grid = empty_figure(len(titles), 1, _HEIGHT)
    for axes, (metric, title) in zip(grid.flat, titles.items(), strict=True):
        of_metric = _select(points, metric)
        names = _keep_distinct(point["curve"] for point in of_metric)
        for number, (name, style) in enumerate(_choose_styles(names)):
            curve = [point for point in of_metric if point["curve"] == name]
            # Shifted, so that the bars do not hide each other.
            shift = 0.06 * (number - (len(names) - 1) / 2)
            x = [values.index(point["value"]) + shift for point in curve]
            means, spread = ([p[column] for p in curve] for column in ("mean", "interval"))
            axes.errorbar(x, means, yerr=spread, capsize=2, **style)
        axes.set_xticks(range(len(values)), values)
        axes.set(xlabel=setting, ylabel=title)
        axes.grid(alpha=0.3)
    _add_legend(figure, grid[0][0])
    return figure


def _choose_styles(names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the line style of each name: the canonical weights have a plain dashed line."""
    colours = cycle(f"C{number}" for number in range(10))
    for number, name in enumerate(_keep_distinct(names)):
        style: dict[str, Any] = {"color": "black", "linestyle": "--"}
        if name != CANONICAL:
            style = {"color": next(colours), "linestyle": "-" if number <= 10 else ":"}
            style["marker"] = _MARKERS[number % len(_MARKERS)]
        yield name, style | {"label": label(name), "linewidth": 1.3, "markersize": 4}


def _add_legend(figure: Figure, axes: Any) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize="small")


def _keep_distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
