"""The page about one posterior: verdict, what moved, the chains, how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.baselines.comparing import recorded_comparison
from bpa_ppl.diagnostics.baselines.page import comparison_section
from bpa_ppl.diagnostics.checks.checking import check, sampled_components
from bpa_ppl.diagnostics.checks.report import Report, Thresholds
from bpa_ppl.diagnostics.pages.page import (
    Block,
    Code,
    Items,
    Section,
    Table,
    Text,
    Verdict,
    page,
)
from bpa_ppl.diagnostics.predictive.page import model_sections
from bpa_ppl.diagnostics.report_page.figures import MOST_CHAINS, correlated_pairs
from bpa_ppl.diagnostics.report_page.movement import (
    PROBABILITY,
    movement,
    others_table,
    weights_table,
)
from bpa_ppl.diagnostics.report_page.plots import (
    acceptance_plot,
    forest_plot,
    mixing_plots,
    pair_plots,
    shares_plot,
    trace_plots,
)
from bpa_ppl.diagnostics.report_page.provenance import attributes, reproduction, signature
from bpa_ppl.errors import UsageError
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.statistics import ess

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_FOREST = 40  # weights in the forest
_PAIRED = 6  # pairs whose draws are shown
_PAIRS = 8  # pairs in the table of correlations
_FEWEST = 10  # draws a chain, below which a picture of it shows nothing


def posterior_page(
    posterior: Posterior,
    *,
    title: str = "Posterior of the weights",
    thresholds: Thresholds | None = None,
    shown: int = 8,
    more: Sequence[Section] = (),
    texts: Sequence[str] | None = None,
    answer: tuple[Verdict, Section] | None = None,
) -> str:
    """Return a self-contained HTML page about a posterior.

    Args:
        posterior: draws with a site `weights`, from this library or another.
        title: of the page.
        thresholds: limits of the check other than the stated ones.
        shown: how many weights or other parameters, those that mix worst, have their chains drawn.
        more: sections about what was done with it, which come after the weights.
        texts: by which the adaptation sentences are shown; None shows their positions.
        answer: what stands before all else, such as whether it helped, with its reasons.

    Raises:
        DataError: if there are no draws of `weights`, a draw is not a finite number, or there are
            not as many texts as sentences.
        UsageError: if no weight is to be shown.

    >>> data = Draws({"weights": np.zeros((2, 5, 3))}, ("LM0", "TM0", "WP0"))
    >>> "NOT converged" in posterior_page(data)
    True
    """
    if shown < 1:
        raise UsageError(f"shown must be at least 1, not {shown}")
    draws = as_draws(posterior)
    report = check(draws, thresholds)
    verdicts = [*([] if answer is None else [answer[0]]), _verdict(report)]
    sections = [
        *([] if answer is None else [answer[1]]),
        *_baselines(draws),
        Section("What moved", [*_moves(draws, report), weights_table(draws), _forest(draws)]),
        *more,
        *_others(draws),
        _diagnostics(report),
        *_chains(draws, shown),
        *_importance(draws),
        *_pairs(draws),
        *([] if draws.weighted or draws.shape[1] < _FEWEST else model_sections(draws, texts)),
        _provenance(draws),
    ]
    return page(title, verdicts, sections, signature(draws))


def _baselines(draws: Draws) -> list[Section]:
    comparison = recorded_comparison(draws)
    return [] if comparison is None else [comparison_section(comparison)]


def _verdict(report: Report) -> Verdict:
    counts = (_counted(*pair) for pair in zip(report.shape, ("chain", "draw"), strict=True))
    drawn_by = f"{report.sampler}, {' × '.join(counts)}"
    if report:
        return Verdict(f"Converged: every diagnostic keeps its limit ({drawn_by}).", True)
    failed = f"{len(report.failures)} of {len(report.findings)} diagnostics fail"
    advice = [finding.advice for finding in report.failures]
    return Verdict(f"NOT converged: {failed} ({drawn_by}).", False, advice)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _moves(draws: Draws, report: Report) -> list[Block]:
    moved = movement(draws)
    doubt = "" if report else " The draws failed their check: do not rely on these numbers."
    blocks: list[Block] = [Text(moved.summary() + doubt)]
    if moved.moves():
        blocks.append(Items(moved.moves()))
    if moved.scale():
        blocks.append(Text(moved.scale()))
    return blocks


def _forest(draws: Draws) -> Block:
    shown = draws.largest_shifts(_FOREST)
    note = "" if len(shown) == len(draws.features) else f" The {_FOREST} that moved most."
    return forest_plot(draws, shown, PROBABILITY, note)


def _others(draws: Draws) -> list[Section]:
    table = others_table(draws)
    return [] if table is None else [Section("Hyperparameters and other variables", (table,))]


def _diagnostics(report: Report) -> Section:
    header = ("diagnostic", "worst value", "limit", "verdict", "worst at")
    rows = [finding.cells for finding in report.findings]
    passed = [finding.passed for finding in report.findings]
    return Section("Diagnostics", (Table(header, rows, passed=passed),))


def _chains(draws: Draws, shown: int) -> list[Section]:
    if draws.weighted or draws.shape[1] < _FEWEST:
        return []
    names, values = sampled_components(draws)
    moved = np.ptp(values, axis=(0, 1)) > 0
    size = np.where(moved, np.nan_to_num(ess(values)), 0.0)
    worst = [names[k] for k in np.sort(np.argsort(size, kind="stable")[:shown])]
    which = _which(draws, len(names), shown)
    blocks: list[Block] = [Text(which)] if which else []
    blocks += [trace_plots(draws, worst), mixing_plots(draws, worst), *_acceptance(draws)]
    return [Section("Chains", blocks)]


def _which(draws: Draws, components: int, shown: int) -> str:
    chains, kind = draws.shape[0], "weights"
    if components > len(draws.features):
        kind = "weights and other parameters"
    some = f"the {shown} of {components} {kind} that mix worst" if components > shown else ""
    first = f"the first {MOST_CHAINS} of {chains} chains" if chains > MOST_CHAINS else ""
    both = ", ".join(part for part in (some, first) if part)
    return f"Shown: {both}. The diagnostics above are of all." if both else ""


def _acceptance(draws: Draws) -> Sequence[Block]:
    rates = draws.statistics.get("acceptance_rate")
    if rates is None or np.ndim(rates) != 2:
        return ()
    return (acceptance_plot(np.asarray(rates)),)


def _importance(draws: Draws) -> list[Section]:
    if not draws.weighted:
        return []
    return [Section("Importance weights", (shares_plot(draws.importance),))]


def _pairs(draws: Draws) -> list[Section]:
    names = draws.features
    if len(names) < 2 or len(draws.flat) < _FEWEST:
        return []
    pairs = correlated_pairs(draws)
    rows = [(names[a], names[b], f"{r:+.2f}") for a, b, r in pairs[:_PAIRS]]
    picture = pair_plots(draws, pairs[:_PAIRED])
    table = Table(("weight", "with", "correlation"), rows, "The strongest correlations.")
    return [Section("Correlated weights", (table, picture))]


def _provenance(draws: Draws) -> Section:
    recorded = attributes(draws)
    blocks: list[Block] = [Table(("what", "value"), list(recorded.items()))]
    if not recorded:
        blocks = [Text("The posterior does not record how it was made.")]
    known = reproduction(draws)
    if known is not None:
        blocks += [Text(known[1]), Code(known[0])]
    return Section("How it was made", blocks)
