"""A comparison of samplers as tables, as an HTML page, and as a folder of files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from bpa_ppl.diagnostics.pages.figures import (
    FIGURE_KINDS,
    empty_figure,
    label,
    log_axis,
    write_figure_files,
)
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
from bpa_ppl.experiments.comparison.comparison import (
    AGREES,
    DIFFERS,
    LEVEL,
    Comparison,
    SamplerResult,
)
from bpa_ppl.experiments.comparison.efficiency import (
    Efficiency,
    Rank,
    RunCost,
    ranking,
    shown,
    shown_interval,
)
from bpa_ppl.experiments.comparison.statistics import Discrepancy
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.quality.bootstrap import ScoreDifference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Row = list[str | float | None]  # an unknown number is None
_Numbers = tuple[tuple[str, ...], list[_Row]]  # header and rows

_INTERVAL = "ess_per_second_interval"
_NO_NUMBERS = ("mcse", "missing", "per_run", _INTERVAL)
_EFFICIENCY = tuple(f.name for f in fields(Efficiency) if f.name not in _NO_NUMBERS)
_BOUNDS = ("ess_per_second_low", "ess_per_second_high")
_RUN = tuple(f.name for f in fields(RunCost))
_DISCREPANCY = tuple(f.name for f in fields(Discrepancy))
_SCORE = tuple(f.name for f in fields(ScoreDifference))
_HEADERS = {
    "ranking": ("sampler", "rank", "ess_per_second", *_BOUNDS, "ratio", "ratio_low", "ratio_high"),
    "efficiency": ("sampler", *_EFFICIENCY, *_BOUNDS),
    "runs": ("sampler", "run", *_RUN),
    "mcse": ("sampler", "verdict", "weight", "mcse"),
    "accuracy": ("sampler", *_DISCREPANCY),
    "distance": ("sampler", "verdict", "distance", "largest_null", "p_value", "draws"),
    "downstream": ("sampler", "changed", "sentences", *_SCORE),
}
_HEADINGS = {
    "r_hat": "R-hat",
    "nested_r_hat": "nested R-hat",
    "ess": "ESS of the mean",
    "bulk_ess": "bulk ESS",
    "tail_ess": "tail ESS",
    "kish_ess": "Kish's ESS",
    "autocorrelation_time": "autocorrelation time",
    "burn_in": "burn-in",
    "ess_per_second": "ESS of the mean / s",
    "fixed_seconds": "fixed seconds",
    "seconds_per_draw": "seconds / draw",
    "seconds_to_enough": "s to 400",
    "ess_per_evaluation": "ESS of the mean / evaluation",
    "largest_null": "largest of the reference itself",
    "p_value": "p",
}
_MAX_PROPERTIES = 3  # of a sampler in the table of the page; all are in the CSV
_BLUE, _RED, _GREY = "#1f6f8b", "#b3261e", "#9aa0a6"
_COLOURS = {AGREES: _BLUE, DIFFERS: _RED, "": _BLUE}  # other verdicts are grey
_LINEAR = 3.0  # standard errors
_RANKING_TEXT = (
    "Samplers are ranked by effective draws per second for the posterior mean of the worst weight, "
    "sd² / MCSE², which is defined alike for chains and for weighted draws. The rate is the "
    "geometric mean over runs. The effective sample size of one run is itself an estimate: the 95% "
    "intervals are those of the spread over runs, on the logarithmic scale, by Student's t, and "
    "there is none with one run. Ratios to the fastest compare runs of the same round; where the "
    "interval of a ratio contains 1, the sampler shares the first rank. A sampler "
    "whose draws differ from the reference, have not converged, or that failed, is not ranked; its "
    "rate is in brackets."
)
_COST_TEXT = (
    "Effective sample sizes are those of the worst weight, the mean over runs. ESS of the mean: "
    "draws that are independent and give the mean with the same error; it exceeds the number of "
    "draws if these are antithetic. Bulk and tail ESS: of chains, after a rank transformation. "
    "Kish's ESS: of importance weights. Autocorrelation time: kept draws per effective draw of the "
    "mean. Burn-in: steps until every chain has reached the bulk of the posterior. Nested R-hat "
    "treats each run as a superchain. Seconds are those of the sampler, with the search for the "
    "mode and the warm-up, without compilation: the median over runs. Fixed seconds, whatever the "
    "number of draws, and seconds per draw are fitted to runs of two lengths; s to 400: the fixed "
    "seconds and those of 400 effective draws. "
    "Evaluations are those of the density, with or without gradient, as recorded in n_steps. – is "
    "unknown."
)
_COST_CAPTION = (
    "Effective draws for the mean of the worst weight, per second and per evaluation of the "
    "density; logarithmic axes. Left: a dot for each run, and the 95% interval of the rate. Grey "
    "or red: not ranked."
)
_ACCURACY_CAPTION = (
    "A dot is the mean, the standard deviation or a quantile of one weight. With many draws, all "
    "dots of a correct sampler lie between the dashed lines with a probability of 99.5%. The axis "
    f"is logarithmic beyond ±{_LINEAR:g} standard errors."
)
_DISTANCE_CAPTION = (
    "Bars: energy distances of random splits of the pooled draws, the central 99%. A dot to the "
    "right of its bar is a joint distribution that differs from the reference; p may also come "
    "from a moment, such as a correlation, or from nearest neighbours."
)
_TRANSLATIONS_TEXT = (
    "Translations chosen with the first run of each sampler, compared with those chosen with the "
    "reference: how many differ, and the difference of corpus scores, and of the ratio of lengths "
    "to the references, with its 95% interval by paired bootstrap over sentences. A difference is "
    "significant if its interval excludes zero."
)


def tables(comparison: Comparison) -> dict[str, _Numbers]:
    """Return all numbers as tables.

    They are `ranking`, `efficiency`, `runs`, `mcse`, `accuracy`, `distance` and `downstream`.
    """
    rows: dict[str, list[_Row]] = {name: [] for name in _HEADERS}
    for rank in _ranks(comparison):
        bounds = *_two(rank.interval), rank.ratio, *_two(rank.ratio_interval)
        rows["ranking"].append([rank.sampler, rank.place, rank.ess_per_second, *bounds])
    for result in comparison.samplers:
        name, cost = result.sampler, result.efficiency
        values = (getattr(cost, key) for key in _EFFICIENCY)
        rows["efficiency"].append([name, *values, *_two(cost.ess_per_second_interval)])
        rows["runs"] += [[name, run, *astuple(one)] for run, one in enumerate(cost.per_run)]
        rows["mcse"] += [[name, result.verdict, *pair] for pair in cost.mcse.items()]
        rows["accuracy"] += [[name, *astuple(discrepancy)] for discrepancy in result.discrepancies]
        if (d := result.distance) is not None:
            numbers = (d.value, d.null[-1], d.p_value, float(d.draws))
            rows["distance"].append([name, result.verdict, *numbers])
        if (changes := result.downstream) is not None:
            scores = [astuple(score) for score in changes.scores] or [(None,) * len(_SCORE)]
            counts = (float(changes.changed), float(changes.sentences))
            rows["downstream"] += [[name, *counts, *score] for score in scores]
    return {name: (header, rows[name]) for name, header in _HEADERS.items()}


def _ranks(comparison: Comparison) -> tuple[Rank, ...]:
    """Return the ranks of the samplers that may be ranked."""
    return ranking({r.sampler: r.efficiency for r in comparison.samplers if r.ranked})


def _two(bounds: tuple[float, float] | None) -> tuple[float | None, float | None]:
    return bounds or (None, None)


def comparison_page(
    comparison: Comparison,
    *,
    made: Mapping[str, str] | None = None,
    command: str = "",
) -> str:
    """Return a self-contained HTML page about a comparison.

    Args:
        comparison: from `compare`.
        made: its provenance: data, settings, versions, seed.
        command: that reproduces it.
    """
    numbers, pictures = tables(comparison), figures(comparison)
    picture = {name: drawn(*parts, "svg") for name, parts in pictures.items()}
    sections = [
        _ranking(comparison, picture["efficiency"]),
        _cost(comparison, numbers["efficiency"]),
    ]
    if "accuracy" in picture:
        distance = _table(numbers["distance"], "Distances of the joint distributions.")
        sections += [
            _accuracy(comparison, picture["accuracy"]),
            Section("Joint distribution", (distance, picture["distance"])),
        ]
    if numbers["downstream"][1]:
        blocks = (_TRANSLATIONS_TEXT, _table(numbers["downstream"]))
        sections.append(Section("Translations", blocks))
    provenance: list[Block] = [
        f"{result.sampler} does not record {', '.join(result.efficiency.missing)}."
        for result in comparison.samplers
        if result.efficiency.missing
    ]
    rows = [("reference", comparison.reference), *(made or {}).items()]
    provenance += [Table(("what", "value"), rows), *([code(command)] if command else [])]
    sections.append(Section("How it was made", provenance))
    return page("Samplers compared", _verdict(comparison), sections)


def _verdict(comparison: Comparison) -> Verdict:
    if not comparison.reference:
        return Verdict("No reference run: costs are compared, and there are no verdicts.")
    samplers = comparison.samplers
    advice = [f"{r.sampler} {r.verdict}: {r.reason}" for r in samplers if r.reason]
    names: dict[str, list[str]] = {}
    for r in samplers:
        names.setdefault(r.verdict, []).append(r.sampler)
    words = {AGREES: "agree with the reference"}
    text = "; ".join(f"{words.get(v, v)}: {', '.join(group)}" for v, group in names.items())
    return Verdict(f"{text[0].upper()}{text[1:]}.", comparison.passed, advice)


def _ranking(comparison: Comparison, picture: Block) -> Section:
    """Return the section with the ranked samplers, then those that are not ranked."""
    results = {result.sampler: result for result in comparison.samplers}
    rows: list[tuple[str, ...]] = []
    for rank in _ranks(comparison):
        result = results.pop(rank.sampler)
        rate = shown(rank.ess_per_second), shown_interval(rank.interval)
        ratio = f"{rank.ratio:.3g}", shown_interval(rank.ratio_interval)
        needed = shown(result.efficiency.seconds_to_enough)
        rows.append((rank.sampler, str(rank.place), result.verdict, *rate, *ratio, needed))
    for name, result in results.items():
        rate = shown(result.efficiency.ess_per_second), "–"
        if not result.ranked and result.efficiency.ess_per_second is not None:
            rate = f"({rate[0]})", "–"
        rows.append((name, "–", result.verdict, *rate, "–", "–", "–"))
    header = (
        *("sampler", "rank", "verdict", "ESS of the mean / s", "its 95% interval"),
        *("relative to the fastest", "its 95% interval", "s to 400"),
    )
    return Section("Ranking", (_RANKING_TEXT, Table(header, rows), picture))


def _cost(comparison: Comparison, numbers: _Numbers) -> Section:
    header, rows = numbers
    cuts = [*map(header.index, ("runs", "acceptance", "seconds", _BOUNDS[0]))]
    captions = "Effective draws.", "How well the chains mix.", "What they cost."
    parts = [
        _table((("sampler", *header[a:b]), [[row[0], *row[a:b]] for row in rows]), caption)
        for (a, b), caption in zip(pairwise(cuts), captions, strict=True)
    ]
    errors = {r.sampler: r.efficiency.mcse for r in comparison.samplers if r.efficiency.mcse}
    error_rows: list[_Row] = [
        [weight, *(values[weight] for values in errors.values())]
        for weight in next(iter(errors.values()))
    ]
    caption = "Monte-Carlo standard error of the mean of each weight, all runs together."
    error_table = _table((("weight", *errors), error_rows), caption)
    return Section("Cost and quality", (_COST_TEXT, *parts, error_table))


def _accuracy(comparison: Comparison, picture: Block) -> Section:
    text = (
        f"Compared with {comparison.reference}. A sampler differs if any property of any weight is "
        f"further off than expected by chance, at a joint level of {100 * LEVEL / 2:g}% after "
        "Holm's correction. Bias is in posterior standard deviations, z in Monte-Carlo standard "
        "errors of both runs. Bias at most: with 95%, of the mean of any weight."
    )
    samplers = comparison.samplers
    reasons = [(r.sampler, r.verdict, shown(r.bound), r.reason) for r in samplers]
    agree = [result.agrees for result in samplers]
    verdicts = Table(("sampler", "verdict", "bias at most", "why"), reasons, passed=agree)
    rows: list[_Row] = []
    for result in samplers:
        for d in sorted(result.discrepancies, key=lambda d: -abs(d.z))[:_MAX_PROPERTIES]:
            difference = (f"{d.bias:+.3f}", f"{d.z:+.2f}", d.p_value)
            rows.append([result.sampler, d.weight, d.quantity, d.value, d.reference, *difference])
    caption = f"The {_MAX_PROPERTIES} properties of each that are furthest off."
    worst = _table((("sampler", *_DISCREPANCY), rows), caption)
    return Section("Marginal distributions", (text, verdicts, picture, worst))


def _table(numbers: _Numbers, caption: str = "") -> Table:
    header, rows = numbers
    cells = [[cell if isinstance(cell, str) else shown(cell) for cell in row] for row in rows]
    return Table([_HEADINGS.get(name, name) for name in header], cells, caption)


def figures(comparison: Comparison) -> dict[str, tuple[Figure, str, str]]:
    """Return figures by name, each with its alternative text and its caption."""
    costs = "Effective draws per second and per evaluation of the density of each sampler"
    result = {"efficiency": (_cost_figure(comparison.samplers), costs, _COST_CAPTION)}
    compared = [s for s in comparison.samplers if s.distance is not None]
    if compared:
        largest = (f"{s.sampler} {max(abs(d.z) for d in s.discrepancies):.1f}" for s in compared)
        gaps = (
            f"Differences from the reference in standard errors; the largest: {', '.join(largest)}"
        )
        distances = (
            "Energy distance of the joint distribution of each sampler from the reference, and "
            "those of random splits of their draws"
        )
        result["accuracy"] = (_accuracy_figure(compared), gaps, _ACCURACY_CAPTION)
        result["distance"] = (_distance_figure(compared), distances, _DISTANCE_CAPTION)
    return result


def _cost_figure(samplers: Sequence[SamplerResult]) -> Figure:
    figure, ((left, right),) = empty_figure(1, 2, 0.35 * len(samplers) + 0.8)
    rates: list[float] = []
    for row, result in enumerate(samplers):
        cost, colour = result.efficiency, _COLOURS.get(result.verdict, _GREY)
        values = [run.ess_per_second for run in cost.per_run if run.ess_per_second]
        left.plot(values, [row] * len(values), "o", color=colour, alpha=0.5, markersize=4)
        if cost.ess_per_second_interval is not None:
            left.plot(cost.ess_per_second_interval, [row, row], "-", color=colour, linewidth=1.5)
        rates += values
    ratios = [result.efficiency.ess_per_evaluation for result in samplers]
    colours = [_COLOURS.get(result.verdict, _GREY) for result in samplers]
    right.barh(range(len(samplers)), [value or np.nan for value in ratios], color=colours)
    for axes, positive, title in (
        (left, rates, "ESS of the mean per second"),
        (right, [value for value in ratios if value], "ESS of the mean per evaluation"),
    ):
        axes.set_ylim(-0.6, len(samplers) - 0.4)
        _sampler_axis(axes, samplers)
        axes.set_xlabel(title)
        if positive:
            log_axis(axes, min(positive) / 3, 3 * max(positive))
    return figure


def _accuracy_figure(compared: Sequence[SamplerResult]) -> Figure:
    from matplotlib.ticker import NullLocator

    figure, ((axes,),) = empty_figure(1, 1, 0.5 * len(compared) + 1.0)
    for row, result in enumerate(compared):
        z = np.array([d.z for d in result.discrepancies])
        jitter = np.linspace(-0.3, 0.3, len(z))
        axes.plot(z, row + jitter, ".", color=_COLOURS.get(result.verdict, _GREY), alpha=0.7)
    limit = float(norm.isf(LEVEL / 4 / len(compared[0].discrepancies)))
    for edge in (-limit, limit):
        axes.axvline(edge, color=_GREY, linestyle="--", linewidth=1)
    z_scores = np.abs([d.z for result in compared for d in result.discrepancies])
    furthest = 1.2 * max(limit, float(z_scores[np.isfinite(z_scores)].max(initial=0)))
    # Linear in the middle and logarithmic beyond, with few labels.
    decades = math.ceil(math.log10(furthest))
    step = max(1, decades // 3)
    ticks = [_LINEAR, *(10.0**k for k in range(1, decades + 1, step) if 10.0**k <= furthest)]
    ticks = [*(-tick for tick in reversed(ticks)), 0.0, *ticks]
    axes.set_xscale("symlog", linthresh=_LINEAR)
    axes.set_xlim(-furthest, furthest)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    _sampler_axis(axes, compared)
    axes.set_xlabel("difference from the reference, in Monte-Carlo standard errors")
    return figure


def _distance_figure(compared: Sequence[SamplerResult]) -> Figure:
    figure, ((axes,),) = empty_figure(1, 1, 0.4 * len(compared) + 1.0)
    values: list[float] = []
    for row, result in enumerate(compared):
        assert result.distance is not None  # the caller checked
        values += [result.distance.value, *result.distance.null]
        low, high = np.quantile(result.distance.null, (LEVEL / 2, 1 - LEVEL / 2))
        axes.barh(row, high - low, left=low, height=0.5, color=_GREY, alpha=0.5)
        axes.plot(result.distance.value, row, "o", color=_COLOURS.get(result.verdict, _GREY))
    if positive := [value for value in values if value > 0]:
        log_axis(axes, min(positive) / 1.3, 1.3 * max(positive))
    _sampler_axis(axes, compared)
    axes.set_xlabel("energy distance of the joint distributions")
    return figure


def _sampler_axis(axes: Any, samplers: Sequence[SamplerResult]) -> None:
    axes.set_yticks(range(len(samplers)), [label(result.sampler) for result in samplers])
    axes.invert_yaxis()


def write_comparison(
    comparison: Comparison,
    folder: str | Path,
    *,
    kind: str = "none",
    made: Mapping[str, str] | None = None,
    command: str = "",
) -> list[Path]:
    """Write `index.html`, `comparison.json`, a CSV file a table, and figure files.

    Args:
        comparison: from `compare`.
        folder: created if it does not exist.
        kind: of the figure files: `png`, `pdf` or `none`.
        made: its provenance, for the page.
        command: that reproduces it.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if the folder or a file cannot be written.
        UsageError: if there is no such kind of figure.
    """
    one_of(kind, FIGURE_KINDS, "kind of figures", "kind")
    target = Path(folder)
    make_folder(target)
    html = comparison_page(comparison, made=made, command=command)
    written = [target / "index.html", target / "comparison.json"]
    write_page(html, written[0])
    with atomic_writer(written[1]) as file:
        ranks = [asdict(rank) for rank in _ranks(comparison)]
        json.dump({**comparison.as_dict(), "ranking": ranks}, file, indent=1, default=str)
    for name, (header, rows) in tables(comparison).items():
        written.append(target / f"{name}.csv")
        with atomic_writer(written[-1]) as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    pictures = figures(comparison) if kind != "none" else {}
    images = {name: figure for name, (figure, *_) in pictures.items()}
    return [*written, *write_figure_files(images, target, kind)]
