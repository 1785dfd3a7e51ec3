"""The tables of a comparison: for a page, and as CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from bpa_ppl.diagnostics.comparison.comparison import Comparison, Contestant
from bpa_ppl.formats.streams import atomic_writer

Cell = str | float | None
#: Header and rows; a number that is not known is None.
Rows = tuple[tuple[str, ...], list[list[Cell]]]

_EFFICIENCY = (
    "runs",
    "chains",
    "draws",
    "acceptance",
    "r_hat",
    "nested_r_hat",
    "bulk_ess",
    "tail_ess",
    "autocorrelation_time",
    "burn_in",
    "seconds",
    "ess_per_second",
    "seconds_to_enough",
    "evaluations",
    "ess_per_evaluation",
)
_DISCREPANCY = ("weight", "quantity", "value", "reference", "bias", "z", "p_value")
_SCORE = ("metric", "score", "difference", "low", "high")


def tables(comparison: Comparison) -> dict[str, Rows]:
    """Return all numbers as tables, by name: efficiency, mcse, accuracy, distance, downstream."""
    every = comparison.contestants
    distances: list[list[Cell]] = [
        [one.sampler, one.verdict, d.value, d.null[-1], d.p_value, float(d.draws)]
        for one in every
        if (d := one.distance) is not None
    ]
    return {
        "efficiency": (("sampler", *_EFFICIENCY), [_effort(one) for one in every]),
        "mcse": (
            ("sampler", "weight", "mcse"),
            [[one.sampler, n, e] for one in every for n, e in one.efficiency.mcse.items()],
        ),
        "accuracy": (
            ("sampler", *_DISCREPANCY),
            [
                [one.sampler, *(getattr(gap, key) for key in _DISCREPANCY)]
                for one in every
                for gap in one.discrepancies
            ],
        ),
        "distance": (
            ("sampler", "verdict", "distance", "largest_null", "p_value", "draws"),
            distances,
        ),
        "downstream": (
            ("sampler", "changed", "sentences", *_SCORE),
            [row for one in every for row in _matters(one)],
        ),
    }


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


def _effort(one: Contestant) -> list[Cell]:
    return [one.sampler, *(getattr(one.efficiency, key) for key in _EFFICIENCY)]


def _matters(one: Contestant) -> Sequence[list[Cell]]:
    found = one.downstream
    if found is None:
        return []
    counts: list[Cell] = [one.sampler, float(found.changed), float(found.sentences)]
    scored = [[*counts, *(getattr(s, key) for key in _SCORE)] for s in found.scores]
    return scored or [[*counts, *[None] * len(_SCORE)]]
