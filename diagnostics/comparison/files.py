"""A comparison as a folder: the page, the numbers, and on request the figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

from bpa_ppl.diagnostics.comparison.comparison import Comparison
from bpa_ppl.diagnostics.comparison.page import comparison_page, figures
from bpa_ppl.diagnostics.comparison.tables import tables
from bpa_ppl.diagnostics.pages.canvas import FIGURE_KINDS, write_figure_files
from bpa_ppl.diagnostics.pages.page import write_page
from bpa_ppl.errors import one_of
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer


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
