"""Plain text tables."""

from __future__ import annotations

from typing import Any

import pytest

from bpa_ppl._runtime.messages import format_table

ROWS = [("LM0", "0.020", "–"), ("TM0[3]", "007", ""), ("λ é", "", " x ")]
HEADERS = ("", "prior", "conflict")


@pytest.mark.parametrize(
    ("rows", "options", "lines"),
    [
        (ROWS, {}, ["LM0     0.020  –", "TM0[3]  007", "λ é             x"]),
        (ROWS[:1], {"align": "lrr"}, ["LM0  0.020  –"]),
        (ROWS[:2], {"headers": HEADERS, "align": "lr"},
         ["        prior  conflict", "LM0     0.020  –", "TM0[3]    007"]),
        ([("TER", "61.2")], {"align": "rr", "least": 6}, ["   TER    61.2"]),
        ([], {"headers": ("weight", "mean")}, ["weight  mean"]),
        ([], {}, [""]),
    ],
)  # fmt: skip
def test_cells_are_padded_to_the_widest_of_their_column(
    rows: list[tuple[str, ...]], options: dict[str, Any], lines: list[str]
) -> None:
    assert format_table(rows, **options).split("\n") == lines
