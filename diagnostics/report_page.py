"""The page about one posterior: verdict, weights, chains, prior and data, and provenance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.baselines.comparing import recorded_comparison
from bpa_ppl.diagnostics.checks import Report, Thresholds, check, sampled_components
from bpa_ppl.diagnostics.leave_one_out import (
    GOOD_PARETO_K,
    SENSITIVE,
    Loo,
    Sensitivity,
    loo,
    power_sensitivity,
)
from bpa_ppl.diagnostics.pages.page import (
    Block,
    Code,
    Section,
    Table,
    Text,
    Verdict,
    beginning,
    drawn,
    page,
)
from bpa_ppl.diagnostics.provenance import attributes, reproduction, signature
from bpa_ppl.diagnostics.report_figures import (
    MAX_CHAINS,
    acceptance_figure,
    forest_figure,
    importance_figure,
    mixing_figure,
    pair_figure,
    trace_figure,
)
from bpa_ppl.diagnostics.report_sections import comparison_section
from bpa_ppl.diagnostics.report_tables import (
    PROBABILITY,
    change_blocks,
    others_table,
    weights_table,
)
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.statistics import ess

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_MAX_FOREST = 40  # weights in the forest plot
_MAX_PLOTTED_PAIRS = 6
_MAX_PAIRS = 8  # in the table of correlations
_MIN_DRAWS = 10  # per chain: a plot of fewer shows nothing
_MAX_SENTENCES = 8  # in the table of sentences that are predicted worst
_MAX_NAMED = 3  # weights that are named in a sentence
_TRACES = (
    "Trace: every draw, one colour a chain, the warm-up on grey; chains that mix look like one "
    "band without steps or slopes. Ranks: of the draws of each chain among all draws; the bars "
    "are level where the chains agree."
)
_MIXING = (
    "Running mean: of each chain up to a draw; dashed: the mean of all draws. Where a line still "
    "slopes, the warm-up was too short. Autocorrelation: the faster a line falls to zero, the "
    "more effective draws there are."
)
_FOREST = (
    "Blue: posterior interval and mean; grey: prior interval; red cross: canonical weight. A "
    "weight moved if its cross is outside its blue bar. A prior much wider than the posterior is "
    "cut off."
)
_PAIRS = (
    "The darker the blue, the higher the posterior density. A narrow ridge is a pair that the "
    "data determine only together. A red cross marks the canonical weights."
)
_SCALING = (
    "How much the distribution of each weight changes if the prior or the likelihood is raised to "
    f"a power (Jensen–Shannon distance for a doubling). Above {SENSITIVE:g}, the weight depends "
    "on it: it should depend on the likelihood, and may depend on the prior."
)


def posterior_page(
    posterior: Posterior,
    *,
    title: str = "Posterior of the weights",
    thresholds: Thresholds | None = None,
    top: int = 8,
    more: Sequence[Section] = (),
    texts: Sequence[str] | None = None,
    answer: tuple[Verdict, Section] | None = None,
) -> str:
    """Return a self-contained HTML page about a posterior.

    Args:
        posterior: draws with a site `weights`, from this library or another.
        title: of the page.
        thresholds: limits of the check, if not the default ones.
        top: the number of weights or other parameters, those that mix worst, whose chains are
            plotted.
        more: sections to put after the weights.
        texts: a text for each adaptation sentence; None shows positions.
        answer: a verdict and a section to put first, such as whether adapting helped.

    Raises:
        DataError: if there are no draws of `weights`, a draw is not finite, or the number of texts
            is not that of the sentences.
        UsageError: if no weight is to be shown.

    >>> data = Draws({"weights": np.zeros((2, 5, 3))}, ("LM0", "TM0", "WP0"))
    >>> "NOT converged" in posterior_page(data)
    True
    """
    if top < 1:
        raise UsageError(f"the report shows at least 1 weight, not {top}", parameter="top")
    draws = as_draws(posterior)
    report = check(draws, thresholds)
    verdicts = [*([] if answer is None else [answer[0]]), _verdict(report)]
    comparison, others = recorded_comparison(draws), others_table(draws)
    chains = not draws.weighted and draws.shape[1] >= _MIN_DRAWS
    sections = [
        *([] if answer is None else [answer[1]]),
        *([] if comparison is None else [comparison_section(comparison)]),
        _weights(draws, report),
        *more,
        *([] if others is None else [Section("Hyperparameters and other variables", [others])]),
        _diagnostics(report),
        *([_chains(draws, top)] if chains else []),
        *([_importance_weights(draws)] if draws.weighted else []),
        *_correlations(draws),
        *(model_sections(draws, texts) if chains else []),
        _provenance(draws),
    ]
    return page(title, verdicts, sections, signature(draws))


def _verdict(report: Report) -> Verdict:
    sizes = zip(report.shape, ("chain", "draw"), strict=True)
    source = f"{report.sampler}, {' × '.join(counted(*size) for size in sizes)}"
    if report:
        return Verdict(f"Converged: every diagnostic is within its limit ({source}).", True)
    failed = f"{len(report.failures)} of {len(report.findings)} diagnostics fail"
    advice = [finding.advice for finding in report.failures]
    return Verdict(f"NOT converged: {failed} ({source}).", False, advice)


def _weights(draws: Draws, report: Report) -> Section:
    shown = draws.largest_shifts(_MAX_FOREST)
    suffix = f" The {_MAX_FOREST} that moved most." if len(shown) < len(draws.features) else ""
    forest = drawn(
        forest_figure(draws, shown, PROBABILITY),
        "Posterior intervals of the weights, with those of the prior and the canonical weights",
        _FOREST + suffix,
        "svg",
    )
    doubt = [] if report else [Text("The draws failed their check: do not rely on these numbers.")]
    return Section("What moved", [*doubt, *change_blocks(draws), weights_table(draws), forest])


def _diagnostics(report: Report) -> Section:
    header = ("diagnostic", "worst value", "limit", "verdict", "worst at")
    rows = [finding.cells for finding in report.findings]
    passed = [finding.passed for finding in report.findings]
    return Section("Diagnostics", [Table(header, rows, passed=passed)])


def _chains(draws: Draws, top: int) -> Section:
    names, values = sampled_components(draws)
    varies = np.ptp(values, axis=(0, 1)) > 0
    size = np.where(varies, np.nan_to_num(ess(values)), 0.0)
    worst = [names[k] for k in np.sort(np.argsort(size, kind="stable")[:top])]
    kind = "weights" + (" and other parameters" if len(names) > len(draws.features) else "")
    chains = draws.shape[0]
    limits = [f"the {top} of {len(names)} {kind} that mix worst"] if len(names) > top else []
    limits += [f"the first {MAX_CHAINS} of {chains} chains"] if chains > MAX_CHAINS else []
    blocks: list[Block] = []
    if limits:
        blocks.append(Text(f"Shown: {', '.join(limits)}. The diagnostics above are of all."))
    listed = ", ".join(worst)
    blocks += [
        drawn(trace_figure(draws, worst), f"Trace and rank plots of {listed}", _TRACES),
        drawn(
            mixing_figure(draws, worst), f"Running means and autocorrelation of {listed}", _MIXING
        ),
    ]
    rates = np.asarray(draws.statistics.get("acceptance_rate", 0.0))
    if rates.ndim == 2:
        mean = float(rates.mean())
        blocks.append(
            drawn(
                acceptance_figure(rates),
                f"Acceptance rate over time, {mean:.2f} on average",
                "Acceptance rate of each chain, averaged over 1/50 of the draws; "
                f"{mean:.3f} in all.",
            )
        )
    return Section("Chains", blocks)


def _importance_weights(draws: Draws) -> Section:
    largest = f"The heaviest sample has {100 * draws.importance.max():.1f}% of the weight."
    caption = f"{largest} A curve that starts high means that few samples dominate the estimates."
    alternative = f"Cumulative share of the importance weights. {largest}"
    figure = drawn(importance_figure(draws.importance), alternative, caption, "svg")
    return Section("Importance weights", [figure])


def _correlations(draws: Draws) -> list[Section]:
    names, correlation = draws.features, draws.correlation
    if len(names) < 2 or len(draws.flat) < _MIN_DRAWS:
        return []
    pairs = [(a, b, float(correlation[a, b])) for a, b in combinations(range(len(names)), 2)]
    pairs.sort(key=lambda pair: -abs(pair[2]))
    rows = [(names[a], names[b], f"{r:+.2f}") for a, b, r in pairs[:_MAX_PAIRS]]
    table = Table(("weight", "with", "correlation"), rows, "The strongest correlations.")
    plotted = pairs[:_MAX_PLOTTED_PAIRS]
    pairs_named = ", ".join(f"{names[a]} with {names[b]}" for a, b, _ in plotted)
    divergent = np.any(draws.statistics.get("diverging", False))
    caption = _PAIRS + (" Red dots: divergent transitions." if divergent else "")
    figure = drawn(pair_figure(draws, plotted), f"Joint posterior of {pairs_named}", caption)
    return [Section("Correlated weights", [table, figure])]


def _provenance(draws: Draws) -> Section:
    recorded = attributes(draws)
    blocks: list[Block] = [Table(("what", "value"), list(recorded.items()))]
    if not recorded:
        blocks = [Text("The posterior does not record how it was made.")]
    commands = reproduction(draws)
    if commands is not None:
        blocks += [Text(commands[1]), Code(commands[0])]
    return Section("How it was made", blocks)


def model_sections(posterior: Posterior, texts: Sequence[str] | None = None) -> list[Section]:
    """Return sections on prior sensitivity and leave-one-out, as far as the posterior allows.

    Power scaling needs the log density of the draws and the log-likelihood of all observations;
    PSIS-LOO needs the log-likelihood of each sentence.

    Args:
        posterior: the draws.
        texts: a text for each adaptation sentence; None shows positions.

    Raises:
        DataError: if the number of texts is not that of the sentences.
    """
    draws = as_draws(posterior)
    sections: list[Section] = []
    if draws.log_density is not None and draws.total_log_likelihood is not None:
        sections.append(Section("Prior and data", _sensitivities(power_sensitivity(draws))))
    if draws.pointwise is not None:
        result = loo(draws)
        blocks = (Text(f"PSIS-LOO: {result}."), _worst_sentences(result, texts))
        sections.append(Section("Sentences left out", blocks))
    return sections


def _sensitivities(sensitivities: Sequence[Sensitivity]) -> list[Block]:
    """Return a summary and a table of power-scaling sensitivities."""

    def named(weights: list[str]) -> str:
        if len(weights) == len(sensitivities) > 1:
            return f"all {len(sensitivities)} weights"
        listed = len(weights) <= _MAX_NAMED
        return ", ".join(weights) if listed else f"{len(weights)} of {len(sensitivities)} weights"

    by_kind: dict[str, list[str]] = {"both": [], "prior": [], "data": [], "neither": []}
    kinds = {(True, True): "both", (True, False): "prior", (False, True): "data"}
    rows = []
    for s in sensitivities:
        kind = kinds.get((s.prior >= SENSITIVE, s.likelihood >= SENSITIVE), "neither")
        by_kind[kind].append(s.weight)
        rows.append((s.weight, s.prior, s.likelihood, kind))
    sentences = []
    if by_kind["both"]:
        sentences.append(
            f"Prior and data disagree on {named(by_kind['both'])}: is the prior too narrow?"
        )
    if by_kind["prior"]:
        sentences.append(
            f"The prior determines {named(by_kind['prior'])}: there are few data on them, or the "
            "prior is narrow."
        )
    return [
        Text(" ".join(sentences) or "No weight depends on the prior."),
        Text(_SCALING),
        Table(("weight", "prior", "likelihood", "depends on"), rows),
    ]


def _worst_sentences(result: Loo, texts: Sequence[str] | None) -> Table:
    count = len(result.pointwise)
    if texts is not None and len(texts) != count:
        raise DataError(
            f"there are {len(texts)} texts, but the posterior was adapted to {count} sentences: "
            "give the lists that it was adapted to"
        )
    rows = [
        (
            str(s) if texts is None else f"{s}: {beginning(texts[s])}",
            float(result.pointwise[s] if result.improper else np.exp(result.pointwise[s])),
            float(result.pareto_k[s]),
            "" if result.pareto_k[s] <= GOOD_PARETO_K else "unreliable",
        )
        for s in np.argsort(result.pointwise)[:_MAX_SENTENCES].tolist()
    ]
    value = f"log-{result.improper}" if result.improper else "probability of the oracle"
    header = ("position" if texts is None else "sentence", value, "Pareto k̂", "")
    return Table(header, rows, "The sentences that the others predict worst.")
