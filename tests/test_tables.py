"""Plain text tables, compared with Python's string formatting."""

from __future__ import annotations

import pytest

from bpa_ppl.tables import text_table

HEADERS = ("weight", "prior", "likelihood", "")
ROWS = [
    ("LM0", "0.020", "0.300", ""),
    ("TranslationModel0[3]", "0.001", "0.004", "prior-data conflict"),
    ("λ é", "", "-1e-05", "–"),
]


def padded_table(rows: list[tuple[str, ...]], align: str, least: int = 0) -> str:
    """Return the table formatted by padding each cell."""
    widths = [max(least, *map(len, column)) for column in zip(*rows, strict=True)]
    signs = {"l": "<", "r": ">"}
    return "\n".join(
        "  ".join(
            f"{cell:{signs[a]}{width}}" for cell, a, width in zip(row, align, widths, strict=True)
        ).rstrip()
        for row in rows
    )


@pytest.mark.parametrize("align", ["", "lrr"])
def test_columns_are_as_wide_as_their_widest_cell(align: str) -> None:
    expected = padded_table([HEADERS, *ROWS], align.ljust(4, "l"))
    assert text_table(ROWS, HEADERS, align=align) == expected


def test_columns_have_a_minimum_width() -> None:
    rows = [("", "canonical", "adapted", "change"), ("TER", "61.20", "60.05", "-1.15")]
    expected = "\n".join("  ".join(f"{cell:>9}" for cell in row) for row in rows)
    assert text_table(rows[1:], rows[0], align="rrrr", least=9) == expected


def test_numbers_are_not_reformatted() -> None:
    assert text_table([("1.50", "007", "0x1f")], align="lrr") == "1.50  007  0x1f"


def test_table_without_headers_or_rows() -> None:
    rows = [("reference", "the end"), ("adapted", " an end ")]
    assert text_table(rows) == "reference  the end\nadapted     an end"
    assert text_table([], ("weight", "mean")) == "weight  mean"
    assert text_table([]) == ""
