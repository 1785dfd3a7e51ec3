"""Rows of results: what a cell leaves, and the two Parquet tables of a study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.experiments.grid import Cell
from bpa_ppl.nbest import Float64
from bpa_ppl.quality.statistics import corpus_values

#: Columns that name a cell.
KEYS = Cell._fields
_ORDER = 4
#: How many counts of a sentence a metric is a function of.
KINDS = {"ter": 2, "bleu": 2 * _ORDER + 1}
_KEY_FIELDS = [
    ("domain", pa.string()),
    ("size", pa.int64()),
    ("draw", pa.int64()),
    ("method", pa.string()),
    ("setting", pa.string()),
]
#: One row a cell; `ter_counts` and `bleu_counts` are (sentences × S) row by row.
RESULTS = pa.schema(
    [
        *_KEY_FIELDS,
        ("ter", pa.float64()),
        ("bleu", pa.float64()),
        *((f"precision_{n}", pa.float64()) for n in range(1, _ORDER + 1)),
        ("brevity_penalty", pa.float64()),
        ("verdict", pa.string()),
        ("failed", pa.list_(pa.string())),
        ("ter_counts", pa.list_(pa.float64())),
        ("bleu_counts", pa.list_(pa.float64())),
    ]
)
#: One row a stage of a cell.
SECONDS = pa.schema([*_KEY_FIELDS, ("stage", pa.string()), ("seconds", pa.float64())])


class Outcome(NamedTuple):
    """What a finished cell leaves.

    Attributes:
        row: of the results: the same whenever and wherever the cell runs.
        seconds: of each stage.
    """

    row: dict[str, Any]
    seconds: dict[str, float]


def result_row(
    cell: Cell, counts: dict[str, Float64], verdict: str, failed: Iterable[str]
) -> dict[str, Any]:
    """Return the row of a cell, given the counts of the chosen hypotheses, (sentences, S).

    >>> counts = {"ter": np.array([[1.0, 4.0]]), "bleu": np.array([[3.0, 2, 1, 0, 3, 2, 1, 0, 4]])}
    >>> result_row(Cell("d", 10, 0, "imh", ""), counts, "passed", [])["ter"]
    25.0
    """
    sums = {metric: each.sum(axis=0) for metric, each in counts.items()}
    matches, totals, length = np.split(sums["bleu"], [_ORDER, 2 * _ORDER])
    precisions = 100 * matches / np.maximum(totals, 1)
    return {
        **cell._asdict(),
        "ter": float(corpus_values("ter", sums["ter"])),
        "bleu": float(corpus_values("bleu", sums["bleu"])),
        **{f"precision_{n}": float(p) for n, p in enumerate(precisions, 1)},
        "brevity_penalty": float(np.exp(min(0, 1 - length[0] / max(totals[0], 1)))),
        "verdict": verdict,
        "failed": list(failed),
        **{f"{metric}_counts": each.ravel().tolist() for metric, each in counts.items()},
    }


def second_rows(cell: Cell, seconds: dict[str, float]) -> list[dict[str, Any]]:
    """Return one row a stage.

    >>> second_rows(Cell("d", 10, 0, "imh", ""), {"adapt": 0.5})[0]["stage"]
    'adapt'
    """
    return [{**cell._asdict(), "stage": s, "seconds": value} for s, value in seconds.items()]
