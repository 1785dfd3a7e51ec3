"""A comparison of samplers as tables, as an HTML page, and as a folder of files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bpa_ppl._runtime.messages import format_signed
from bpa_ppl._runtime.streams import atomic_writers, output_folder
from bpa_ppl.diagnostics.page import Headline, Section, Table, describe_provenance, items, page
from bpa_ppl.diagnostics.samplers.comparison import (
    AGREES,
    LEVEL,
    Comparison,
    SamplerResult,
    format_bound,
)
from bpa_ppl.diagnostics.samplers.efficiency import (
    QUALITY,
    Row,
    format_value,
    make_table,
    rank_by_evaluations,
    rank_samplers,
)
from bpa_ppl.diagnostics.samplers.pictures import draw_pictures
from bpa_ppl.posterior.draws import Draws

_COSTS = ("seconds", "ess_per_second", "evaluations", "ess_per_evaluation")
_MAX_PROPERTIES = 5  # of a sampler in the table of the page; all are in the JSON file
_RANKING_TEXT = (
    "Samplers are ranked by effective draws per second of sampling, and by effective draws per "
    "evaluation of the density, both for the posterior mean of the worst variable, sd² / MCSE²: "
    "the geometric mean over runs, with 95% intervals of the spread over runs. Ratios to the "
    "fastest compare runs of the same round; a sampler whose interval contains 1 shares the first "
    "place. A sampler that differs, has not converged or failed is not ranked. Compilation does "
    "not count: compiled programs are kept in the folder BPA_PPL_CACHE, so that it depends on what "
    "ran before."
)
_COST_TEXT = (
    "Effective sample sizes are those of the worst variable, the mean over runs: bulk and tail ESS "
    "of chains, Kish's ESS of importance weights. Seconds are the median over runs, with the "
    "search for the mode and the warm-up, without compilation. Evaluations are those of the "
    "density, as recorded in n_steps. – is unknown."
)
_DISTANCE_CAPTION = (
    "Energy distances of the joint distributions. One above the largest of random splits of the "
    "pooled draws is a difference; p may also come from a moment, such as a correlation, or from "
    "nearest neighbours."
)


def _list_ranked(comparison: Comparison) -> dict[str, Row]:
    """Return the costs of the samplers that may be ranked."""
    return {r.sampler: r.efficiency for r in comparison.samplers if r.ranked}


def render_comparison(
    comparison: Comparison, *, provenance: Mapping[str, str] | None = None, command: str = ""
) -> str:
    """Return a self-contained HTML page about a comparison.

    Args:
        comparison: from `compare`.
        provenance: of the results: data, settings, versions, seed.
        command: that reproduces it.
    """
    ran = {r.sampler: r.draws for r in comparison.samplers if r.draws is not None}
    worst = {name: _order_variables(comparison[name], draws) for name, draws in ran.items()}
    ranks = rank_samplers(_list_ranked(comparison))
    by_evaluations = rank_by_evaluations(_list_ranked(comparison))
    errors = {name: comparison[name].running_error for name in ran}
    costs = [{"sampler": r.sampler, **r.efficiency} for r in comparison.samplers]
    tables = [
        make_table([{name: row[name] for name in ("sampler", *columns)} for row in costs], caption)
        for columns, caption in ((QUALITY, "Effective draws."), (_COSTS, "What they cost."))
    ]
    sections = [Section("Cost and quality", (_COST_TEXT, *tables))]
    rankings = ((ranks, "By the seconds of sampling."), (by_evaluations, "By evaluations."))
    if ranked := [make_table(rows, caption) for rows, caption in rankings if rows]:
        sections.insert(0, Section("Ranking", (_RANKING_TEXT, *ranked)))
    distances: list[Row] = [
        {
            "sampler": result.sampler,
            "verdict": result.verdict,
            "distance": distance.value,
            "largest_null": distance.largest_null,
            "p_value": distance.p_value,
        }
        for result in comparison.samplers
        if (distance := result.distance) is not None
    ]
    if distances:
        table = make_table(distances, _DISTANCE_CAPTION)
        sections += [_describe_accuracy(comparison), Section("Joint distribution", [table])]
    if figures := draw_pictures(ran, comparison.truth, worst, errors):
        sections.append(Section("In pictures", figures))
    if comparison.left_out:
        sections.append(Section("Not compared", [items(comparison.left_out)]))
    rows = {"reference": comparison.reference, **(provenance or {})}
    sections.append(describe_provenance(rows, command))
    return page("Samplers compared", _describe_verdict(comparison), sections)


def _order_variables(result: SamplerResult, draws: Draws) -> list[str]:
    """Return the variables, the ones that are furthest off first."""
    rows = sorted(result.discrepancies, key=lambda row: -abs(row["z"]))
    return list(dict.fromkeys([*(str(row["variable"]) for row in rows), *draws.names]))


def _describe_verdict(comparison: Comparison) -> Headline:
    if not comparison.reference:
        return Headline("No reference run: costs are compared, and there are no verdicts.")
    samplers = comparison.samplers
    advice = [f"{r.sampler} {r.verdict}: {r.reason}" for r in samplers if r.reason]
    names: dict[str, list[str]] = {}
    for r in samplers:
        name = r.sampler
        if r.verdict == AGREES and r.bound is not None:
            name = f"{name} (every mean within {format_bound(r.bound)} sd)"
        names.setdefault(r.verdict, []).append(name)
    words = {AGREES: f"agree with {'the others' if comparison.truth is None else 'the reference'}"}
    text = "; ".join(f"{words.get(v, v)}: {', '.join(group)}" for v, group in names.items())
    return Headline(f"{text[0].upper()}{text[1:]}.", comparison.passed, advice)


def _describe_accuracy(comparison: Comparison) -> Section:
    text = (
        f"Compared with {comparison.reference}. A sampler differs if any property of any variable "
        f"is further off than expected by chance, at a joint level of {100 * LEVEL / 2:g}% after "
        "Holm's correction. Bias is in posterior standard deviations, z in Monte-Carlo standard "
        "errors of both runs. Bias at most: with 95%, of the mean of any variable."
    )
    samplers = comparison.samplers
    reasons = [(r.sampler, r.verdict, format_value(r.bound), r.reason) for r in samplers]
    agree = [result.agrees for result in samplers]
    verdicts = Table(("sampler", "verdict", "bias at most", "why"), reasons, passed=agree)
    rows = [
        {
            "sampler": r.sampler,
            **d,
            "bias": format_signed(d["bias"], 3),
            "z": format_signed(d["z"], 2),
        }
        for r in samplers
        for d in sorted(r.discrepancies, key=lambda d: -abs(d["z"]))[:_MAX_PROPERTIES]
    ]
    worst = make_table(rows, f"The {_MAX_PROPERTIES} properties of each that are furthest off.")
    return Section("Marginal distributions", [text, verdicts, worst])


def write_comparison(
    comparison: Comparison,
    folder: str | Path,
    *,
    provenance: Mapping[str, str] | None = None,
    command: str = "",
) -> list[Path]:
    """Write `comparison.json` with all numbers, and the page `index.html`.

    Args:
        comparison: from `compare`.
        folder: created if it does not exist.
        provenance: of the results, for the page.
        command: that reproduces it.

    Returns:
        the paths of the files, the page first.

    Raises:
        DataError: if the folder or a file cannot be written.
    """
    target = Path(folder)
    written = [target / "index.html", target / "comparison.json"]
    costs = _list_ranked(comparison)
    ranks = {
        "ranking": rank_samplers(costs),
        "ranking_by_evaluations": rank_by_evaluations(costs),
    }
    text = json.dumps(comparison.as_dict() | ranks, indent=1, default=str)
    with output_folder(target):
        html = render_comparison(comparison, provenance=provenance, command=command)
        with atomic_writers(*written) as (page_file, numbers):
            page_file.write(html)
            numbers.write(text)
    return written
