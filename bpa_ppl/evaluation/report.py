"""The page about one posterior and its figures: weights, chains, provenance."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import as_sentence, format_count, format_fixed
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.diagnostics.check.diagnostic import list_components
from bpa_ppl.diagnostics.check.report import Report, check_and_record
from bpa_ppl.diagnostics.page import Block, Headline, Html, Section, Table, code, page
from bpa_ppl.diagnostics.pages.figures import embed_figure, empty_figure, label
from bpa_ppl.diagnostics.pages.provenance import read_attributes
from bpa_ppl.diagnostics.pages.traces import MAX_CHAINS, find_worst_mixing, picture_chains
from bpa_ppl.errors import wrong_value
from bpa_ppl.evaluation.compare_ways import NEW, BaselineComparison, read_comparison
from bpa_ppl.evaluation.paired import estimate_proportion
from bpa_ppl.evaluation.provenance import ELSEWHERE, signature, suggest_command
from bpa_ppl.evaluation.raters import compare_raters
from bpa_ppl.evaluation.reliability import CONFIDENCE, Reliability
from bpa_ppl.evaluation.simple_ways import BaselineRow
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws, quantiles
from bpa_ppl.posterior.statistics import ess, r_hat
from bpa_ppl.weight_draws import WEIGHTS, WeightDraws, standardise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.arviz_data import Posterior
    from bpa_ppl.posterior.record import Record

#: Probability of the intervals of a report.
PROBABILITY = 0.95
_PERCENT = f"{100 * PROBABILITY:g}%"
_TAILS = ((1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2)
_DECIMALS = 3  # of weights and other variables
_MAX_ROWS = 50  # of the table of other variables
_MAX_FOREST = 40  # weights in the forest plot
_MIN_DRAWS = 10  # per chain: a plot of fewer shows nothing
_FOREST = (
    "Blue: posterior interval and mean; grey: prior interval; red cross: canonical weight. A "
    "weight moved if its cross is outside its blue bar. A prior much wider than the posterior is "
    "cut off."
)
_COMPARED = "Compared with simple baselines"
_MAX_SINGLE = 3  # single features in the figure of ways to choose
_WAYS = (
    "Points: mean difference of a simple way to choose from the adapted weights, with its 95% "
    "interval; blue: the adapted weights are better; red: worse. On the"
)
_BINS = 5  # points in the figure of the reliability
_PROMISES = (0.8, 0.85, 0.9, 0.95)  # agreements in its table
_RELIABLE = (
    "Red: how often fifths of the choices agree with the judge, by leave-one-out, with 95% "
    "intervals; blue: the expected agreement and its 90% interval; dashed: the probability itself."
)
_PROMISED = (
    "From this probability on, choices agree with the judge at least as often as promised, with "
    f"{CONFIDENCE:.0%} confidence. Ask a person about the others: bpa rerank --agree."
)
_DOUBT = "The draws failed their check: do not rely on these numbers."
#: The unit of the weights in tables and figures.
_STANDARDISED = "weight × standard deviation within lists"
_RAW = "weight, raw units"
_UNIT = (
    "All weights are given for one standard deviation of the feature within the adaptation lists: "
    "weight × standard deviation. Only such numbers can be compared with each other. The weights "
    "themselves, for a decoder, are those that bpa weights writes."
)
_NO_UNIT = (
    "All weights are in raw units, because the posterior does not record how much the features "
    "vary: weights of features in different units cannot be compared."
)
_REPEAT = (
    "To repeat the adaptation, with the same lists, references, sources and judgements; POSTERIOR "
    "is this posterior's file."
)


def posterior_page(
    posterior: Posterior,
    *,
    title: str = "Posterior",
    top: int = 8,
    answer: tuple[Headline, Sequence[Section]] | None = None,
) -> str:
    """Return a self-contained HTML page about a posterior.

    Args:
        posterior: draws of any program.
        title: of the page.
        top: the number of weights or other parameters, those that mix worst, whose chains are
            plotted.
        answer: a verdict and sections to put first, such as whether adapting helped.

    Raises:
        DataError: if there are no draws, or a weight of a feature is not finite.
        UsageError: if it is not a posterior, or no variable is to be shown.

    >>> from bpa_ppl.weight_draws import name_weights
    >>> data = name_weights(np.zeros((2, 5, 3)), ("LM0", "TM0", "WP0"))
    >>> "NOT converged" in posterior_page(data)
    True
    """
    if top < 1:
        raise wrong_value("the report shows at least 1 variable", top, "top")
    draws = as_draws(posterior)
    report, scaled = check_and_record(draws)[1], standardise(draws)
    shown, unit = (draws, _RAW) if scaled is None else (scaled, _STANDARDISED)
    verdicts = [*([] if answer is None else [answer[0]]), _describe_verdict(report, draws.record)]
    raters = compare_raters(draws)
    sections = [
        *(() if answer is None else answer[1]),
        *_describe_comparison(draws, report),
        *_describe_reliability(draws),
        *([_describe_weights(WeightDraws(shown), unit, report)] if WEIGHTS in draws.main else []),
        *([] if raters is None else [raters.section()]),
        *_describe_other_variables(draws),
        _describe_diagnostics(draws, report, shown, unit, top),
        _describe_provenance(draws),
    ]
    return page(title, verdicts, sections, signature(draws))


def _describe_verdict(report: Report, record: Record) -> Headline:
    """Return whether the draws converged; why their sampler was chosen is said in the record."""
    chosen = record.figures.chosen
    sampler = report.sampler if chosen is None else f"{record.sampler.name}: {chosen}"
    sizes = zip(report.shape, ("chain", "draw"), strict=True)
    source = f"{sampler}, {' × '.join(format_count(*size) for size in sizes)}"
    if report:
        return Headline(f"Converged: every diagnostic is within its limit ({source}).", True)
    failed = f"{len(report.failures)} of {len(report.rows)} diagnostics fail"
    advice = [finding.advice for finding in report.failures]
    return Headline(f"NOT converged: {failed} ({source}).", False, advice)


def _describe_comparison(draws: Draws, report: Report) -> list[Section]:
    """Return the comparison with simple baselines on the adaptation sentences, if recorded.

    Draws that fail their check support no advice.
    """
    adaptation = AdaptationRecord.of(draws.record)
    comparison = read_comparison(adaptation)
    if comparison is None:
        return []
    notes = *(note.message for note in comparison.messages), str(adaptation.indicators or "")
    sentences = [as_sentence(note) for note in notes if note] if report else [_DOUBT]
    return [Section(_COMPARED, [*picture_ways(comparison), *sentences, comparison.block()])]


def _describe_reliability(draws: Draws) -> list[Section]:
    """Return how often choices between two candidates agree with the judge, if recorded."""
    reliability = Reliability.of(AdaptationRecord.of(draws.record))
    if reliability is None:
        return []
    rows = []
    for one in map(reliability.promise, _PROMISES):
        least = "–" if one.threshold is None else f"{one.threshold:.3f}"
        rows.append([f"{one.agree:g}", least, f"{one.share:.0%}", f"{one.expected:.0%}"])
    header = ("promised agreement", "from probability", "choices", "with twice the labels")
    table = Table(header, rows, _PROMISED)
    figure = _draw_reliability(reliability)
    picture = embed_figure(figure, "Agreement by probability", _RELIABLE, "svg")
    return [Section("How sure are the choices?", [picture, table])]


def _describe_weights(draws: WeightDraws, unit: str, report: Report) -> Section:
    units = _NO_UNIT if unit == _RAW else _UNIT
    doubt = [] if report else [_DOUBT]
    changes = ["The posterior does not record the canonical weights that it started from."]
    if draws.canonical is not None:
        moved = sum(map(bool, _mark_directions(draws)))
        sums = (np.abs(weights).sum() for weights in (draws.canonical, draws.mean))
        before, after = _format_decimals(sums)
        changes = [
            f"{moved} of {len(draws.mean)} weights clearly moved: their {_PERCENT} intervals "
            "exclude the canonical weight.",
            f"The sum of their absolute values went from {before} to {after}. The best "
            "candidate depends only on the shares of the weights; the sum determines how peaked "
            "the probabilities are.",
        ]
        if len(draws.flat) == 1:
            changes[0] = "A single draw has no interval: the uncertainty of the changes is unknown."
    table = _tabulate_weights(draws, unit)
    return Section("What moved", [_picture_forest(draws, unit), *doubt, units, *changes, table])


def _tabulate_weights(draws: WeightDraws, unit: str) -> Table:
    """Return the table of all weights, in a unit; the fixed ones come last."""
    canonical, mean = draws.canonical, draws.mean
    columns = _summarise_components(draws.draws, draws.weights)
    del columns["sd"]
    if canonical is not None:
        shares = zip(_compute_shares(canonical), _compute_shares(mean), strict=True)
        of_canonical = {
            "change": [format_fixed(change, _DECIMALS, "+") for change in mean - canonical],
            "moved": _mark_directions(draws),
            "share": [f"{100 * a:.1f}% → {100 * b:.1f}%" for a, b in shares],
        }
        first = dict(islice(columns.items(), 2))
        columns = {"canonical": _format_decimals(canonical), **first, **of_canonical, **columns}
    rows = [list(row) for row in zip(draws.features, *columns.values(), strict=True)]
    for name, value in draws.fixed.items():
        text = format_fixed(value, _DECIMALS)
        cells = {"canonical": text, "mean": text, "moved": "fixed"}
        rows.append([name, *(cells.get(column, "") for column in columns)])
    caption = (
        f"{as_sentence(unit)} Mean and equal-tailed {_PERCENT} interval of the posterior; the "
        "share is that of the mean in the sum of the absolute values."
    )
    return Table(("feature", *columns), rows, caption)


def _describe_other_variables(draws: Draws) -> list[Section]:
    """Return the section on variables other than the weights, if there are any.

    Variables with few components come first, so that a scale precedes one value per feature.
    """
    sites = sorted(draws.values, key=lambda site: np.size(draws.values[site]))
    ordered = replace(draws, values={site: draws.values[site] for site in sites})
    components = ordered.components(derived=True)
    weights = draws.main_names if WEIGHTS in draws.main else ()
    names = [name for name in components if name not in weights]
    if not names:
        return []
    shown = names[:_MAX_ROWS]
    values = np.stack([components[name] for name in shown], axis=-1)
    columns = _summarise_components(draws, values)
    rows = [list(row) for row in zip(shown, *columns.values(), strict=True)]
    first = f" The first {_MAX_ROWS} of {len(names)}." if len(names) > _MAX_ROWS else ""
    caption = (
        f"Mean, standard deviation, and equal-tailed {_PERCENT} interval of the posterior, in the "
        f"units of the model.{first}"
    )
    table = Table(("variable", *columns), rows, caption)
    title = "Hyperparameters and other variables" if weights else "Variables"
    return [Section(title, [table])]


def _summarise_components(draws: Draws, values: Float64) -> dict[str, list[str]]:
    """Return mean, deviation, interval, R-hat and ESS of components, (C, D, components).

    R-hat and ESS are – if a component is constant.
    """
    flat, importance = values.reshape(-1, values.shape[-1]), draws.importance
    mean = np.average(flat, axis=0, weights=importance)
    deviation = np.sqrt(np.average((flat - mean) ** 2, axis=0, weights=importance))
    interval = quantiles(flat, _TAILS, importance).T.tolist()
    columns = {
        "mean": _format_decimals(mean),
        f"{_PERCENT} interval": [" to ".join(_format_decimals(ends)) for ends in interval],
        "sd": _format_decimals(deviation),
    }
    if len(flat) == 1:
        columns |= dict.fromkeys(list(columns)[1:], [""] * len(mean))
    if draws.weighted or draws.shape[1] == 1:
        return columns
    varies = np.ptp(values, axis=(0, 1)) > 0
    numbers = {
        "R-hat": (r_hat(values), 3),
        "bulk ESS": (ess(values, "bulk"), 0),
        "tail ESS": (ess(values, "tail"), 0),
    }
    return columns | {
        name: [f"{x:.{n}f}" if v else "–" for x, v in zip(column, varies, strict=True)]
        for name, (column, n) in numbers.items()
    }


def _mark_directions(draws: WeightDraws) -> list[str]:
    """Return where an interval excludes the canonical weight, else an empty text."""
    if len(draws.flat) == 1:
        return [""] * len(draws.features)
    canonical, (low, high) = np.asarray(draws.canonical), draws.marginal.interval(PROBABILITY)
    moved = np.select([canonical < low, canonical > high], ["▲ up", "▼ down"], "")
    return list(map(str, moved))


def _format_decimals(values: Iterable[float]) -> list[str]:
    return [format_fixed(value, _DECIMALS) for value in values]


def _compute_shares(weights: Float64) -> Float64:
    norm = np.abs(weights).sum()
    return np.abs(weights) / norm if norm > 0 else np.zeros_like(weights)


def _describe_diagnostics(
    draws: Draws, report: Report, scaled: Draws, unit: str, top: int
) -> Section:
    header = ("diagnostic", "worst value", "limit", "verdict", "worst at")
    rows = [finding.cells for finding in report.rows]
    passed = [finding.passed for finding in report.rows]
    blocks: list[Block] = [Table(header, rows, passed=passed)]
    if draws.weighted:
        share = 100 * draws.importance.max()
        blocks.append(f"The heaviest sample has {share:.1f}% of the importance weight.")
    elif draws.shape[1] >= _MIN_DRAWS:
        blocks += _draw_chains(draws, scaled, unit, top)
    return Section("Diagnostics", blocks)


def _picture_forest(weights: WeightDraws, unit: str) -> Html:
    """Return the figure of the weights."""
    shown = sorted(weights.largest_shifts(_MAX_FOREST), key=lambda k: -weights.mean[k])
    suffix = f" The {_MAX_FOREST} that moved most." if len(shown) < len(weights.features) else ""
    alternative = "Intervals of the weights in posterior and prior, and the canonical weights"
    caption = f"{as_sentence(unit)} {_FOREST}{suffix}"
    return embed_figure(_draw_forest(weights, shown), alternative, caption, "svg")


def _draw_chains(draws: Draws, scaled: Draws, unit: str, top: int) -> list[Html]:
    """Return the figures of the chains of the components that mix worst."""
    names, worst = list_components(draws)[0], find_worst_mixing(draws, top)
    has_weights = WEIGHTS in draws.main
    kind = "weights" if has_weights else "variables"
    others = has_weights and len(draws.main_names) < len(names)
    kind += " and other parameters" if others else ""
    limits = [f"the {top} of {len(names)} {kind} that mix worst"] if len(names) > top else []
    if draws.shape[0] > MAX_CHAINS:
        limits.append(f"the first {MAX_CHAINS} of {draws.shape[0]} chains")
    shown = f" Shown: {', '.join(limits)}; the diagnostics are of all." if limits else ""
    note = f"Weights: {unit}.{shown}" if has_weights else shown.strip()
    return picture_chains(scaled, worst, note)


def _describe_provenance(draws: Draws) -> Section:
    recorded = list(read_attributes(draws.record, ELSEWHERE).items())
    commands = suggest_command(AdaptationRecord.of(draws.record))
    blocks: list[Block] = ["The posterior does not record how it was made."]
    if recorded:
        blocks = [Table(("what", "value"), recorded)]
    if commands is not None:
        blocks += [_REPEAT, code(commands)]
    return Section("How it was made", blocks)


def _draw_forest(draws: WeightDraws, features: Sequence[int]) -> Figure:
    """Draw intervals of some weights over those of their prior, and canonical weights as crosses.

    Args:
        draws: the posterior.
        features: positions of the weights, one row each.
    """
    figure, ((axes,),) = empty_figure(1, 1, 0.5 + 0.28 * len(features))
    rows = np.arange(len(features))[::-1]
    low, high = draws.marginal.interval(PROBABILITY)[:, features]
    limits = [low, high]
    prior = np.asarray(draws.draws.prior.get(WEIGHTS, ()), np.float64)
    prior = prior.reshape(-1, len(draws.features))
    if len(prior):
        equal = np.full(len(prior), 1 / len(prior))
        prior_interval = quantiles(prior, _TAILS, equal)[:, features]
        axes.hlines(rows, *prior_interval, color="0.83", linewidth=9)
    axes.hlines(rows, low, high, color="C0", linewidth=3)
    axes.plot(draws.mean[features], rows, "o", color="C0", markersize=6)
    if draws.canonical is not None:
        axes.plot(draws.canonical[features], rows, "x", color="C3", markersize=6, mew=2)
        limits.append(draws.canonical[features])
    # A prior may be many times as wide as the posterior: it is cut off.
    lowest, highest = float(np.min(limits)), float(np.max(limits))
    margin = 0.25 * (highest - lowest) or 1.0
    axes.set_xlim(lowest - margin, highest + margin)
    axes.set_yticks(rows, [label(draws.features[feature]) for feature in features])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(f"{_PERCENT} equal-tailed intervals")
    return figure


def _draw_reliability(reliability: Reliability) -> Figure:
    """Draw how often choices agree with the judge, by their probability.

    Args:
        reliability: that a posterior records.
    """
    figure, ((axes,),) = empty_figure(1, 1, 2.8)
    p = np.linspace(0.5, 1.0, 101)
    curves = reliability.curves(p)
    axes.plot(p, p, color="0.3", linestyle="--", linewidth=0.8)
    axes.fill_between(p, *quantiles(curves, (0.05, 0.95), reliability.posterior), alpha=0.2)
    axes.plot(p, reliability.posterior @ curves, color="C0")
    bins = reliability.merged(_BINS)
    ends = map(estimate_proportion, bins.agreement * bins.weight, bins.weight)
    axes.vlines(bins.probability, *zip(*ends, strict=True), color="C3")
    axes.plot(bins.probability, bins.agreement, "o", color="C3", markersize=6)
    axes.set(xlabel="probability of the choice", ylabel="agreement with the judge")
    return figure


def picture_ways(comparison: BaselineComparison) -> list[Html]:
    """Return the figure of simple ways to choose, compared with ours; nothing if there are none."""
    if not _select_ways(comparison):
        return []
    lists = comparison.evaluation
    lists = lists if lists == NEW else f"adaptation lists, {lists}"
    alternative = "Simple ways to choose, compared with ours"
    return [embed_figure(draw_ways(comparison), alternative, f"{_WAYS} {lists}.", "svg")]


def draw_ways(comparison: BaselineComparison) -> Figure:
    """Draw by how much simple ways to choose are better than the adapted weights, with intervals.

    Args:
        comparison: with differences to the adapted weights.
    """
    rows = sorted(_select_ways(comparison), key=lambda row: row.difference, reverse=True)
    figure, ((axes,),) = empty_figure(1, 1, 0.8 + 0.36 * len(rows))
    axes.locator_params(axis="x", nbins=5)
    heights = np.arange(len(rows))
    difference, low, high = (
        -np.array([getattr(row, name) for row in rows]) for name in ("difference", "low", "high")
    )
    colours = [{"better": "C0", "worse": "C3"}.get(row.verdict, "0.35") for row in rows]
    axes.hlines(heights, high, low, color=colours, linewidth=3)
    axes.scatter(difference, heights, color=colours, s=36, zorder=3)
    axes.axvline(0, color="0.3", linestyle="--", linewidth=0.8)
    axes.set_yticks(heights, [textwrap.fill(label(row.name, 40), 20) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(f"{comparison.measure}\nminus adapted weights\n(right: better)")
    return figure


def _select_ways(comparison: BaselineComparison) -> list[BaselineRow]:
    """Return the ways to choose that have a difference, with the best few single features."""
    compared = [
        row for row in comparison.rows if np.isfinite(row.difference) and row.kind != "bound"
    ]
    single = sorted((r for r in compared if r.kind == "feature"), key=lambda r: r.difference)
    return [row for row in compared if row not in single[_MAX_SINGLE:]]
