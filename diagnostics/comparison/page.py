"""A comparison of samplers as tables, as an HTML page, and as a folder of files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from bpa_ppl.diagnostics.comparison.comparison import (
    AGREES,
    DIFFERS,
    LEVEL,
    UNDECIDED,
    Compared,
    Comparison,
)
from bpa_ppl.diagnostics.pages.figures import (
    FIGURE_KINDS,
    empty_figure,
    label,
    log_axis,
    write_figure_files,
)
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
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | float | None
#: Header and rows; a number that is not known is None.
Rows = tuple[tuple[str, ...], list[list[Cell]]]

_EFFICIENCY_COLUMNS = (
    "runs",
    "chains",
    "draws",
    "acceptance",
    "r_hat",
    "nested_r_hat",
    "bulk_ess",
    "tail_ess",
    "autocorrelation_time",
    "burn_in",
    "seconds",
    "ess_per_second",
    "seconds_to_enough",
    "evaluations",
    "ess_per_evaluation",
)
_DISCREPANCY = ("weight", "quantity", "value", "reference", "bias", "z", "p_value")
_SCORE = ("metric", "score", "difference", "low", "high")


def tables(comparison: Comparison) -> dict[str, Rows]:
    """Return all numbers as tables, by name: efficiency, mcse, accuracy, distance, downstream."""
    every = comparison.samplers
    distances: list[list[Cell]] = [
        [one.sampler, one.verdict, d.value, d.null[-1], d.p_value, float(d.draws)]
        for one in every
        if (d := one.distance) is not None
    ]
    return {
        "efficiency": (("sampler", *_EFFICIENCY_COLUMNS), [_effort(one) for one in every]),
        "mcse": (
            ("sampler", "weight", "mcse"),
            [[one.sampler, n, e] for one in every for n, e in one.efficiency.mcse.items()],
        ),
        "accuracy": (
            ("sampler", *_DISCREPANCY),
            [
                [one.sampler, *(getattr(gap, key) for key in _DISCREPANCY)]
                for one in every
                for gap in one.discrepancies
            ],
        ),
        "distance": (
            ("sampler", "verdict", "distance", "largest_null", "p_value", "draws"),
            distances,
        ),
        "downstream": (
            ("sampler", "changed", "sentences", *_SCORE),
            [row for one in every for row in _matters(one)],
        ),
    }


def _effort(one: Compared) -> list[Cell]:
    return [one.sampler, *(getattr(one.efficiency, key) for key in _EFFICIENCY_COLUMNS)]


def _matters(one: Compared) -> Sequence[list[Cell]]:
    found = one.downstream
    if found is None:
        return []
    counts: list[Cell] = [one.sampler, float(found.changed), float(found.sentences)]
    scored = [[*counts, *(getattr(s, key) for key in _SCORE)] for s in found.scores]
    return scored or [[*counts, *[None] * len(_SCORE)]]


_HEADINGS = {
    "r_hat": "R-hat",
    "nested_r_hat": "nested R-hat",
    "bulk_ess": "bulk ESS",
    "tail_ess": "tail ESS",
    "autocorrelation_time": "autocorrelation time",
    "burn_in": "burn-in",
    "ess_per_second": "ESS / s",
    "seconds_to_enough": "s to 400",
    "ess_per_evaluation": "ESS / evaluation",
    "largest_null": "largest of the reference itself",
    "p_value": "p",
}
_EFFORT = (
    "ESS is that of the worst weight in one run. Autocorrelation time: kept draws for one "
    "effective draw. Burn-in: steps until every chain has come where the posterior is. Seconds "
    "are those of a whole run without compilation, the median; s to 400: until 400 effective "
    "draws, warm-up included. Nested R-hat takes each run as a superchain. – is not known."
)
_WORST = 3  # properties of a sampler in the table of the page; all are in the CSV
_GOOD, _BAD, _GREY = "#1f6f8b", "#b3261e", "#9aa0a6"
_COLOURS = {AGREES: _GOOD, DIFFERS: _BAD, UNDECIDED: _GREY}
_LINEAR = 3.0  # standard errors
_EFFICIENCY = (
    "Bars of the effective draws per second and per evaluation of the likelihood of each sampler",
    "Effective draws of the worst weight, for a second and for an evaluation of the likelihood; "
    "logarithmic axes.",
)
_ACCURACY = (
    "A dot is the mean, the standard deviation or a quantile of one weight. Between the dashes a "
    "sampler that is right, with many draws, has all its dots 995 times in 1000. The axis is "
    f"logarithmic beyond ±{_LINEAR:g} standard errors."
)
_DISTANCE = (
    "Distance of each sampler's joint distribution from the reference, and the distances of the "
    "reference from parts of itself",
    "Bars: how far parts of the reference are from each other, the inner 99%. A dot to the right "
    "of its bar is a joint distribution that is not the reference's.",
)


def comparison_page(
    comparison: Comparison,
    *,
    title: str = "Samplers compared",
    made: Mapping[str, str] | None = None,
    command: str = "",
) -> str:
    """Return a self-contained HTML page about a comparison.

    Args:
        comparison: what `compare` found.
        title: of the page.
        made: how it was made: data, settings, versions, seed.
        command: that reproduces it.
    """
    found, pictures = tables(comparison), figures(comparison)
    drawings = {name: drawn(*parts, "svg") for name, parts in pictures.items()}
    sections = [_worth(comparison, found["efficiency"], drawings["efficiency"])]
    if "accuracy" in drawings:
        sections += [_marginal(comparison, drawings["accuracy"])]
        distance = _table(found["distance"], "Sliced Wasserstein distance in posterior sd.")
        sections += [Section("Joint distribution", (distance, drawings["distance"]))]
    if found["downstream"][1]:
        sections += [_downstream(found["downstream"])]
    sections += [_made(comparison, dict(made or {}), command)]
    return page(title, _verdict(comparison), sections)


def _verdict(comparison: Comparison) -> Verdict:
    every = comparison.samplers
    if not comparison.reference:
        return Verdict("No reference run: costs are compared, and there are no verdicts.")
    advice = [f"{one.sampler} {one.verdict}: {one.reason}" for one in every if one.reason]
    samplers = {
        verdict: ", ".join(one.sampler for one in every if one.verdict == verdict)
        for verdict in dict.fromkeys(one.verdict for one in every)
    }
    text = "; ".join(
        f"{'agree with the reference' if verdict == AGREES else verdict}: {names}"
        for verdict, names in samplers.items()
    )
    return Verdict(f"{text[0].upper()}{text[1:]}.", comparison.passed, advice)


def _worth(comparison: Comparison, rows: Rows, picture: Block) -> Section:
    header, cells = rows
    cut = header.index("seconds")
    mixing = _table((header[:cut], [row[:cut] for row in cells]), "How the draws mix.")
    cost = ("sampler", *header[cut:]), [[row[0], *row[cut:]] for row in cells]
    blocks = (Text(_EFFORT), mixing, _table(cost, "What they cost."), picture, _errors(comparison))
    return Section("Cost and worth", blocks)


def _errors(comparison: Comparison) -> Table:
    errors = {one.sampler: one.efficiency.mcse for one in comparison.samplers}
    weights = next(iter(errors.values()))
    rows: list[list[str | float]] = [
        [weight, *(each[weight] for each in errors.values())] for weight in weights
    ]
    caption = "Monte-Carlo standard error of the mean of each weight, all runs together."
    return Table(("weight", *errors), rows, caption)


def _marginal(comparison: Comparison, picture: Block) -> Section:
    text = (
        f"Against {comparison.reference}. A sampler differs if any property of any weight is "
        f"further off than chance would have it: at a joint level of {100 * LEVEL / 2:g}% after "
        "Holm's correction. Bias is in posterior standard deviations, z in Monte-Carlo standard "
        "errors of both runs."
    )
    rows = [row for one in comparison.samplers for row in _furthest(one)]
    header = ("sampler", "weight", "quantity", "value", "reference", "bias", "z", "p_value")
    table = _table((header, rows), f"The {_WORST} properties of each that are furthest off.")
    return Section("Marginal distributions", (Text(text), _verdicts(comparison), picture, table))


def _furthest(one: Compared) -> list[list[Cell]]:
    worst = sorted(one.discrepancies, key=lambda gap: -abs(gap.z))[:_WORST]
    return [
        [
            one.sampler,
            gap.weight,
            gap.quantity,
            gap.value,
            gap.reference,
            f"{gap.bias:+.3f}",
            f"{gap.z:+.2f}",
            gap.p_value,
        ]
        for gap in worst
    ]


def _verdicts(comparison: Comparison) -> Table:
    rows = [(one.sampler, one.verdict, one.reason) for one in comparison.samplers]
    return Table(
        ("sampler", "verdict", "why"), rows, passed=[one.agrees for one in comparison.samplers]
    )


def _downstream(rows: Rows) -> Section:
    text = (
        "Translations chosen with the first run of each sampler, against those chosen with the "
        "reference: how many differ, and the difference of corpus scores, and of their length over "
        "that of the references, with its 95% interval by paired bootstrap over sentences. An "
        "interval that holds zero is no difference."
    )
    return Section("Translations", (Text(text), _table(rows)))


def _made(comparison: Comparison, made: dict[str, str], command: str) -> Section:
    unknown = [
        f"{one.sampler} does not record {', '.join(one.efficiency.missing)}."
        for one in comparison.samplers
        if one.efficiency.missing
    ]
    blocks: list[Block] = [Text(line) for line in unknown]
    blocks += [Table(("what", "value"), [("reference", comparison.reference), *made.items()])]
    return Section("How it was made", [*blocks, Code(command)] if command else blocks)


def _table(rows: Rows, caption: str = "") -> Table:
    header = [_HEADINGS.get(name, name) for name in rows[0]]
    cells: Sequence[Sequence[str | float]] = [
        ["–" if cell is None else cell for cell in row] for row in rows[1]
    ]
    return Table(header, cells, caption)


def figures(comparison: Comparison) -> dict[str, tuple[Figure, str, str]]:
    """Return for each figure, by name, the figure, what it shows in words, and how to read it."""
    found = {"efficiency": (_efficiency(comparison.samplers), *_EFFICIENCY)}
    compared = [one for one in comparison.samplers if one.distance is not None]
    if compared:
        found["accuracy"] = (_accuracy(compared), _furthest_off(compared), _ACCURACY)
        found["distance"] = (_distance(compared), *_DISTANCE)
    return found


def _furthest_off(compared: Sequence[Compared]) -> str:
    worst = ", ".join(
        f"{one.sampler} {max(abs(gap.z) for gap in one.discrepancies):.1f}" for one in compared
    )
    return f"Differences from the reference in standard errors; the largest: {worst}"


def _efficiency(samplers: Sequence[Compared]) -> Figure:
    figure, ((left, right),) = empty_figure(1, 2, 0.35 * len(samplers) + 0.8)
    names = [label(one.sampler) for one in samplers]
    costs = [one.efficiency for one in samplers]
    columns = (
        (left, "ESS per second", [e.ess_per_second for e in costs]),
        (right, "ESS per evaluation", [e.ess_per_evaluation for e in costs]),
    )
    for axis, title, values in columns:
        axis.barh(names, [value or np.nan for value in values], color=_GOOD)
        axis.set_xlabel(title)
        axis.invert_yaxis()
        if known := [value for value in values if value]:
            log_axis(axis, min(known) / 3, 1.3 * max(known))
    return figure


def _accuracy(compared: Sequence[Compared]) -> Figure:
    figure, ((axis,),) = empty_figure(1, 1, 0.5 * len(compared) + 1.0)
    for row, one in enumerate(compared):
        z = np.array([gap.z for gap in one.discrepancies])
        jitter = np.linspace(-0.3, 0.3, len(z))
        axis.plot(z, row + jitter, ".", color=_COLOURS[one.verdict], alpha=0.7)
    limit = float(norm.isf(LEVEL / 4 / len(compared[0].discrepancies)))
    for edge in (-limit, limit):
        axis.axvline(edge, color=_GREY, linestyle="--", linewidth=1)
    every = np.abs([gap.z for one in compared for gap in one.discrepancies])
    _signed_logarithmic(axis, 1.2 * max(limit, float(every[np.isfinite(every)].max(initial=0))))
    axis.set_yticks(range(len(compared)), [label(one.sampler) for one in compared])
    axis.set_xlabel("difference from the reference, in Monte-Carlo standard errors")
    axis.invert_yaxis()
    return figure


def _signed_logarithmic(axis: Any, furthest: float) -> None:
    """Make an x axis linear in the middle and logarithmic beyond, with few labels."""
    from matplotlib.ticker import NullLocator

    beyond = math.ceil(math.log10(furthest))
    step = max(1, beyond // 3)
    places = [_LINEAR, *(10.0**k for k in range(1, beyond + 1, step) if 10.0**k <= furthest)]
    axis.set_xscale("symlog", linthresh=_LINEAR)
    axis.set_xlim(-furthest, furthest)
    axis.xaxis.set_minor_locator(NullLocator())
    every = [*(-place for place in reversed(places)), 0.0, *places]
    axis.set_xticks(every, [f"{place:g}" for place in every])


def _distance(compared: Sequence[Compared]) -> Figure:
    figure, ((axis,),) = empty_figure(1, 1, 0.4 * len(compared) + 1.0)
    edges: list[float] = []
    for row, one in enumerate(compared):
        assert one.distance is not None  # the caller looked
        edges += [one.distance.value, *one.distance.null]
        low, high = np.quantile(one.distance.null, (LEVEL / 2, 1 - LEVEL / 2))
        axis.barh(row, high - low, left=low, height=0.5, color=_GREY, alpha=0.5)
        axis.plot(one.distance.value, row, "o", color=_COLOURS[one.verdict])
    axis.set_yticks(range(len(compared)), [label(one.sampler) for one in compared])
    axis.set_xlabel("sliced Wasserstein distance, in posterior standard deviations")
    if known := [edge for edge in edges if edge > 0]:
        log_axis(axis, min(known) / 1.3, 1.3 * max(known))
    axis.invert_yaxis()
    return figure


def write_comparison(
    comparison: Comparison,
    folder: str | Path,
    *,
    kind: str = "none",
    made: Mapping[str, str] | None = None,
    command: str = "",
) -> list[Path]:
    """Write `index.html`, `comparison.json`, a CSV a table, and figures as files of their own.

    Args:
        comparison: what `compare` found.
        folder: made if it is not there.
        kind: of the files of figures: `png`, `pdf` or `none`.
        made: how it was made, for the page.
        command: that reproduces it.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if the folder or a file cannot be written.
        UsageError: if there is no such kind of figure.
    """
    one_of(kind, FIGURE_KINDS, "kind of figures")
    target = Path(folder)
    make_folder(target)
    html = comparison_page(comparison, made=made, command=command)
    write_page(html, target / "index.html")
    written = [target / "index.html", *write_tables(comparison, target)]
    drawings = figures(comparison) if kind != "none" else {}
    drawn = {name: figure for name, (figure, *_) in drawings.items()}
    return [*written, *write_figure_files(drawn, target, kind)]


def write_tables(comparison: Comparison, folder: Path) -> list[Path]:
    """Write `comparison.json` and each table as CSV into a folder; return what was written.

    Raises:
        DataError: if a file cannot be written.
    """
    whole = folder / "comparison.json"
    with atomic_writer(whole) as file:
        json.dump(comparison.as_dict(), file, indent=1, default=str)
    written = [whole]
    for name, (header, rows) in tables(comparison).items():
        written.append(folder / f"{name}.csv")
        with atomic_writer(written[-1]) as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return written
