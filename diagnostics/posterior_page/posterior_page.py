"""The page about one posterior: verdict, what moved, the chains, how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.checks.chains import each
from bpa_ppl.diagnostics.checks.checking import check
from bpa_ppl.diagnostics.checks.report import Report
from bpa_ppl.diagnostics.checks.thresholds import Thresholds
from bpa_ppl.diagnostics.pages.foreign import with_features
from bpa_ppl.diagnostics.pages.page import (
    Block,
    Code,
    Items,
    Section,
    Table,
    Text,
    Verdict,
    drawn,
    page,
)
from bpa_ppl.diagnostics.pages.sample import Sample, sample_of
from bpa_ppl.diagnostics.posterior_page.chain_figures import (
    MOST_CHAINS,
    acceptance_figure,
    mixing_figure,
    trace_figure,
)
from bpa_ppl.diagnostics.posterior_page.movement import PROBABILITY, movement, weights_table
from bpa_ppl.diagnostics.posterior_page.provenance import attributes, reproduction, signature
from bpa_ppl.diagnostics.posterior_page.weight_figures import (
    correlated_pairs,
    forest_figure,
    most_correlated,
    pair_figure,
    shares_figure,
)
from bpa_ppl.diagnostics.predictive.page import model_sections
from bpa_ppl.errors import UsageError
from bpa_ppl.posterior import statistic

if TYPE_CHECKING:
    from arviz import InferenceData

_FOREST = 40  # weights in the forest
_PAIRED = 4  # weights in the pair plot
_TOLD = 8  # pairs in the table of correlations
_FEWEST = 10  # draws a chain, below which a picture of it shows nothing


def posterior_page(
    posterior: InferenceData,
    *,
    title: str = "Posterior of the weights",
    thresholds: Thresholds | None = None,
    shown: int = 8,
) -> str:
    """Return a self-contained HTML page about a posterior.

    Args:
        posterior: InferenceData with a variable `weights`, from this library or another.
        title: of the page.
        thresholds: limits of the check other than the stated ones.
        shown: how many weights, those that mix worst, have their chains drawn.

    Raises:
        DataError: if there are no draws of `weights`, or a draw is not a finite number.
        UsageError: if no weight is to be shown.

    >>> from bpa_ppl.posterior import import_arviz
    >>> data = import_arviz().from_dict(posterior={"weights": np.zeros((2, 5, 3))})
    >>> "NOT converged" in posterior_page(data)
    True
    """
    if shown < 1:
        raise UsageError(f"shown must be at least 1, not {shown}")
    posterior = with_features(posterior)
    sample = sample_of(posterior)
    report = check(posterior, thresholds)
    sections = [
        _weights(posterior, sample, report),
        _diagnostics(report),
        *_chains(posterior, sample, shown),
        *_importance(sample),
        *_pairs(posterior, sample),
        *_model(posterior, sample),
        _provenance(posterior),
    ]
    return page(title, _verdict(report), sections, signature(posterior))


def _model(posterior: InferenceData, sample: Sample) -> list[Section]:
    draws = sample.weighted or sample.values.shape[1] < _FEWEST
    return [] if draws else model_sections(posterior)


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


def _weights(posterior: InferenceData, sample: Sample, report: Report) -> Section:
    blocks = [*_moves(sample, report), weights_table(posterior, sample), _forest(sample)]
    return Section("What moved", blocks)


def _moves(sample: Sample, report: Report) -> list[Block]:
    moved = movement(sample)
    doubt = "" if report else " The draws failed their check: do not rely on these numbers."
    blocks: list[Block] = [Text(moved.summary() + doubt)]
    if moved.moves():
        blocks.append(Items(moved.moves()))
    if moved.scale():
        blocks.append(Text(moved.scale()))
    return blocks


def _forest(sample: Sample) -> Block:
    shown = sample.moved_most(_FOREST)
    note = "" if len(shown) == len(sample.names) else f" The {_FOREST} that moved most."
    return drawn(
        forest_figure(sample, shown, PROBABILITY),
        "Posterior intervals of the weights beside those of the prior and the canonical weights",
        "Blue: where the posterior is; grey: where the prior was; red cross: the canonical "
        "weight. A cross beside its blue bar is a weight that moved." + note,
        "svg",
    )


def _diagnostics(report: Report) -> Section:
    rows = [
        (f.name, f"{f.value:.4g}", f.limit, "ok" if f.passed else "FAILED", f.where)
        for f in report.findings
    ]
    header = ("diagnostic", "worst value", "limit", "verdict", "worst at")
    passed = [finding.passed for finding in report.findings]
    return Section("Diagnostics", (Table(header, rows, passed=passed),))


def _chains(posterior: InferenceData, sample: Sample, shown: int) -> list[Section]:
    if sample.weighted or sample.values.shape[1] < _FEWEST:
        return []
    ess = each(posterior, "ess", method="bulk")
    worst = np.sort(np.argsort(np.nan_to_num(ess), kind="stable")[:shown]).tolist()
    named = ", ".join(sample.names[feature] for feature in worst)
    which = _which(sample, shown)
    blocks: list[Block] = [Text(which)] if which else []
    blocks += [
        drawn(
            trace_figure(sample, worst),
            f"Trace and rank plots of {named}",
            "Left: every draw, one colour a chain, the warm-up on grey; chains that mix look like "
            "one band without steps or slopes. Right: ranks among all draws; level bars in every "
            "chain say that the chains agree.",
        ),
        drawn(
            mixing_figure(sample, worst),
            f"Running means and autocorrelation of {named}",
            "Left: the mean of each chain so far, the dashes that of all; where it still slopes, "
            "the burn-in was too short. Right: how long a chain remembers; the sooner a line "
            "falls to zero, the more a draw is worth.",
        ),
        *_acceptance(posterior),
    ]
    return [Section("Chains", blocks)]


def _which(sample: Sample, shown: int) -> str:
    chains, features = sample.values.shape[0], len(sample.names)
    weights = f"the {shown} of {features} weights that mix worst" if features > shown else ""
    first = f"the first {MOST_CHAINS} of {chains} chains" if chains > MOST_CHAINS else ""
    both = ", ".join(part for part in (weights, first) if part)
    return f"Shown: {both}. The diagnostics above are of all." if both else ""


def _acceptance(posterior: InferenceData) -> Sequence[Block]:
    rates = statistic(posterior, "acceptance_rate")
    if rates is None or rates.ndim != 2:
        return ()
    figure = drawn(
        acceptance_figure(rates),
        f"Acceptance rate over time, {rates.mean():.2f} on average",
        f"Acceptance over time, averaged over a fiftieth of the draws; {rates.mean():.3f} in all.",
        "svg",
    )
    return (figure,)


def _importance(sample: Sample) -> list[Section]:
    if not sample.weighted:
        return []
    largest = 100 * sample.importance.max()
    figure = drawn(
        shares_figure(sample.importance),
        f"Share of the weight that the heaviest samples hold; the heaviest holds {largest:.1f}%",
        f"The heaviest sample holds {largest:.1f}% of the weight. A curve that starts high leaves "
        "the posterior to a few samples.",
        "svg",
    )
    return [Section("Importance weights", (figure,))]


def _pairs(posterior: InferenceData, sample: Sample) -> list[Section]:
    if len(sample.names) < 2 or len(sample.draws) < _FEWEST:
        return []
    pairs = correlated_pairs(sample)
    rows = [(sample.names[a], sample.names[b], f"{r:+.2f}") for a, b, r in pairs[:_TOLD]]
    chosen = most_correlated(pairs, _PAIRED)
    named = ", ".join(sample.names[feature] for feature in chosen)
    diverging = statistic(posterior, "diverging")
    divergent = diverging is not None and diverging.any()
    marked = " Red dots: divergent transitions." if divergent else ""
    picture = drawn(
        pair_figure(sample, chosen, diverging),
        f"Pairwise joint posterior of {named}",
        "Darker: more of the posterior. A narrow ridge is a pair that the data know only "
        "together; a red cross: the canonical weights." + marked,
    )
    table = Table(("weight", "with", "correlation"), rows, "The strongest correlations.")
    return [Section("Correlated weights", (table, picture))]


def _provenance(posterior: InferenceData) -> Section:
    recorded = attributes(posterior)
    blocks: list[Block] = [Table(("what", "value"), list(recorded.items()))]
    if not recorded:
        blocks = [Text("The posterior does not record how it was made.")]
    known = reproduction(posterior)
    if known is not None:
        blocks += [Text(known[1]), Code(known[0])]
    return Section("How it was made", blocks)
