"""Rows of tables as plain values by column, and their files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bpa_ppl.formats.streams import atomic_writer


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    r"""Write rows as a table (CSV), with all digits; cells that a row does not have are empty.

    Args:
        rows: their columns are written in the order of their first occurrence.
        path: of the file.

    Raises:
        DataError: if the file cannot be written.

    >>> write_rows([{"run": 0, "ESS": 0.1}, {"run": 1, "R-hat": None}], Path("rows.csv"))
    >>> Path("rows.csv").read_text(encoding="utf-8")
    'run,ESS,R-hat\n0,0.1,\n1,,\n'
    """
    rows = list(rows)
    with atomic_writer(path) as file:
        columns = dict.fromkeys(column for row in rows for column in row)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
