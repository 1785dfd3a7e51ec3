"""The page about a comparison: verdict, cost, accuracy, consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bpa_ppl.diagnostics.comparison.comparison import AGREES, DIFFERS, LEVEL, Comparison, Contestant
from bpa_ppl.diagnostics.comparison.figures import figures
from bpa_ppl.diagnostics.comparison.tables import Cell, Rows, tables
from bpa_ppl.diagnostics.pages.page import Block, Code, Section, Table, Text, Verdict, drawn, page

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
    every = comparison.contestants
    if not comparison.reference:
        return Verdict("No reference run: costs are compared, and nobody is judged.")
    advice = [f"{one.sampler} {one.verdict}: {one.reason}" for one in every if one.reason]
    told = {
        verdict: ", ".join(one.sampler for one in every if one.verdict == verdict)
        for verdict in dict.fromkeys(one.verdict for one in every)
    }
    text = "; ".join(
        f"{'agree with the reference' if verdict == AGREES else verdict}: {names}"
        for verdict, names in told.items()
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
    errors = {one.sampler: one.efficiency.mcse for one in comparison.contestants}
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
    rows = [row for one in comparison.contestants for row in _furthest(one)]
    header = ("sampler", "weight", "quantity", "value", "reference", "bias", "z", "p_value")
    table = _table((header, rows), f"The {_WORST} properties of each that are furthest off.")
    return Section("Marginal distributions", (Text(text), _verdicts(comparison), picture, table))


def _furthest(one: Contestant) -> list[list[Cell]]:
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
    rows = [(one.sampler, one.verdict, one.reason) for one in comparison.contestants]
    return Table(("sampler", "verdict", "why"), rows, passed=[*map(_mark, comparison.contestants)])


def _mark(one: Contestant) -> bool | None:
    return {AGREES: True, DIFFERS: False}.get(one.verdict)


def _downstream(rows: Rows) -> Section:
    text = (
        "Translations chosen with the first run of each sampler, against those chosen with the "
        "reference: how many differ, and the difference of corpus scores with its 95% interval by "
        "paired bootstrap over sentences. An interval that holds zero is no difference."
    )
    return Section("Translations", (Text(text), _table(rows)))


def _made(comparison: Comparison, made: dict[str, str], command: str) -> Section:
    unknown = [
        f"{one.sampler} does not record {', '.join(one.efficiency.missing)}."
        for one in comparison.contestants
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
