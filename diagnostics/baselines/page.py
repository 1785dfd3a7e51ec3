"""The comparison with baselines as a table of a page."""

from __future__ import annotations

from bpa_ppl.diagnostics.baselines.table import BaselineComparison
from bpa_ppl.diagnostics.pages.page import Section, Table, Text


def comparison_table(comparison: BaselineComparison) -> Table:
    """Return the comparison as a table of a page.

    Args:
        comparison: from `compare_baselines`.
    """
    header, rows = comparison.table()
    explained = (
        f"Mean {comparison.unit} of each way to choose, its share of what lies between the random "
        "and the best candidate, and the difference of the adapted weights from it, with a 95% "
        "interval (Student's t, paired over lists). Features and systems are those selected on "
        "the adaptation sentences."
    )
    return Table(header, rows, " ".join([explained, *comparison.notes]))


def comparison_section(comparison: BaselineComparison) -> Section:
    """Return the comparison on the adaptation sentences as a section of a page."""
    sentence = comparison.warning or comparison.summary
    said = Text(f"{sentence[:1].upper()}{sentence[1:]}.")
    return Section("Compared with simple baselines", (said, comparison_table(comparison)))
