"""The page and the files about a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import csv

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
from bpa_ppl.experiments.aggregates import Aggregates, Point, aggregate
from bpa_ppl.experiments.curve_figures import (
    quality_figure,
    seconds_figure,
    sweep_figure,
    swept_settings,
)
from bpa_ppl.experiments.curve_tables import (
    Seconds,
    median_seconds,
    precision_table,
    scores_table,
    seconds_table,
    significance_table,
    verdict_table,
)
from bpa_ppl.experiments.store import read_identity, read_results
from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.quality.statistics import COUNTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "pdf", "none")
_DPI = 150
_INTERVALS = (
    "Each number is the mean over draws of A; ± is the published 95% interval size, twice the "
    "empirical standard deviation over draws. points.csv has beside it a bootstrap interval of "
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
    told: str


def write_figures(folder: str | Path, *, kind: str = "png") -> list[Path]:
    """Write the page, the figures and the numbers of a finished study beside its results.

    Args:
        folder: of the results.
        kind: of the files of figures: `png`, `pdf` or `none`; the page has its own.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if there are no results, or a file cannot be written.
        UsageError: if there is no such kind of figure.
    """
    one_of(kind, KINDS, "kind of figures")
    target = Path(folder)
    results, seconds = read_results(target)
    found, times = aggregate(results), median_seconds(seconds)
    drawings = _drawings(found.points, times)
    made = _made(read_identity(target))
    write_page(_page(results, found, times, drawings, made), target / "index.html")
    written = [target / "index.html", *_numbers(found, times, target)]
    for drawing in drawings if kind != "none" else ():
        written.append(target / f"{drawing.name}.{kind}")
        with atomic_path(written[-1]) as beside:
            drawing.figure.savefig(beside, format=kind, dpi=_DPI)
    return written


def _drawings(points: list[Point], times: list[Seconds]) -> list[Drawing]:
    told = "Mean {} and its interval size against the number of adaptation sentences"
    found = [Drawing(m, quality_figure(points, m), told.format(m.upper())) for m in COUNTED]
    if any(time.learning and not time.setting for time in times):
        told = "Seconds to adapt or tune against the number of adaptation sentences"
        found.append(Drawing("seconds", seconds_figure(times), told))
    return found + [
        Drawing(f"sweep_{name}", sweep_figure(points, name, "ter"), f"Mean TER against {name}")
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
    pictures = {d.name: drawn(d.figure, d.told, d.told + ".") for d in drawings}
    sections = [
        Section(
            f"{metric.upper()} against |A|",
            [
                Text(_INTERVALS),
                pictures[metric],
                *(scores_table(found.points, domain, metric) for domain in domains),
            ],
        )
        for metric in COUNTED
    ]
    if "seconds" in pictures:
        tables = [seconds_table(times, domain) for domain in domains]
        sections.append(Section("Time", [Text(_TIMES), pictures["seconds"], *tables]))
    swept: list[Block] = [pictures[d.name] for d in drawings if d.name.startswith("sweep_")]
    sections += [Section("Settings", swept)] if swept else []
    precisions = [precision_table(results, domain) for domain in domains]
    sections.append(Section("Precisions", precisions))
    verdicts = [verdict_table(found.points, domain) for domain in domains]
    sections.append(Section("Diagnostics", [Text(_VERDICTS), *verdicts]))
    sections.append(Section("Significance", _significance(found, domains)))
    return page("Learning curves", Verdict(_verdict(found.points)), [*sections, made])


def _made(identity: dict[str, Any]) -> Section:
    """Return the section on how the results were made: settings, and versions of packages."""
    study = identity["study"]
    rows = [(key, str(study[key])) for key in ("sizes", "draws", "seed", "replacement")]
    rows += [(f"version of {name}", version) for name, version in identity["versions"].items()]
    table = Table(("what", "value"), rows)
    return Section("How it was made", [Text(_METRICS), table, Code(_as_json(study))])


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _significance(found: Aggregates, domains: list[str]) -> list[Table]:
    return [
        significance_table(found.differences, domain, metric)
        for domain in domains
        for metric in COUNTED
    ]


def _verdict(points: list[Point]) -> str:
    """Return which method has the lowest mean TER with the fewest adaptation sentences."""
    plain = [p for p in points if p.metric == "ter" and not p.setting]
    parts = []
    for domain in dict.fromkeys(point.domain for point in plain):
        here = [point for point in plain if point.domain == domain]
        smallest = min(point.size for point in here)
        best = min((p for p in here if p.size == smallest), key=lambda point: point.mean)
        parts.append(
            f"{domain}, |A| = {smallest}: the lowest mean TER is {best.mean:.1f} ± "
            f"{best.interval:.1f}, of {best.method}"
        )
    return "; ".join(parts) + "."


def _numbers(found: Aggregates, times: list[Seconds], folder: Path) -> list[Path]:
    """Write the numbers behind tables and figures."""
    tables = {
        "points": [vars(point) for point in found.points],
        "differences": [vars(difference) for difference in found.differences],
        "median_seconds": [time._asdict() for time in times],
    }
    written = []
    for name, rows in tables.items():
        written.append(folder / f"{name}.csv")
        with atomic_path(written[-1]) as beside:
            csv.write_csv(pa.Table.from_pylist(rows), beside)
    return written
