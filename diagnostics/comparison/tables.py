"""The numbers of a comparison as tables, for its page and for files."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.diagnostics.comparison.comparison import Compared, Comparison

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
    every = comparison.samplers
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


def _effort(one: Compared) -> list[Cell]:
    return [one.sampler, *(getattr(one.efficiency, key) for key in _EFFICIENCY)]


def _matters(one: Compared) -> Sequence[list[Cell]]:
    found = one.downstream
    if found is None:
        return []
    counts: list[Cell] = [one.sampler, float(found.changed), float(found.sentences)]
    scored = [[*counts, *(getattr(s, key) for key in _SCORE)] for s in found.scores]
    return scored or [[*counts, *[None] * len(_SCORE)]]
