"""What moved: each weight before and after, with its interval and how well it was drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.checks.chains import each
from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.diagnostics.pages.sample import Sample
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import held

if TYPE_CHECKING:
    from arviz import InferenceData

#: Probability of the equal-tailed intervals of a report.
PROBABILITY = 0.95
_NAMED = 6  # weights that moved, in words


@dataclass(frozen=True, eq=False)
class Movement:
    """The weights before and after (Q features).

    Attributes:
        names: (Q,) of the features.
        mean: (Q,) posterior means.
        interval: (2, Q) equal-tailed, of `PROBABILITY`; NaN where there is a single draw.
        canonical: (Q,) the weights before, or None where they are not recorded.
    """

    names: tuple[str, ...]
    mean: Float64
    interval: Float64
    canonical: Float64 | None

    @property
    def direction(self) -> list[str]:
        """(Q,) `up` or `down` where the interval leaves the canonical weight out, else empty."""
        if self.canonical is None:
            return [""] * len(self.names)
        low, high = self.interval
        ups, downs = self.canonical < low, self.canonical > high
        return ["up" if up else "down" if down else "" for up, down in zip(ups, downs, strict=True)]

    def summary(self) -> str:
        """Say how many weights moved."""
        if self.canonical is None:
            return "The posterior does not record the canonical weights that it started from."
        if np.isnan(self.interval).all():
            return "A single draw has no interval: how sure a change is cannot be told."
        count = sum(map(bool, self.direction))
        return (
            f"{count} of {len(self.names)} weights clearly moved: their {100 * PROBABILITY:g}% "
            "intervals leave the canonical weight out."
        )

    def moves(self) -> list[str]:
        """Return a line for each of the weights that moved, the furthest first."""
        if self.canonical is None:
            return []
        order = np.argsort(-np.abs(self.mean - self.canonical))
        lines = [
            f"{self.names[i]} {self.direction[i]}, {self.canonical[i]:.3f} → {self.mean[i]:.3f}"
            for i in order
            if self.direction[i]
        ]
        more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
        return lines[:_NAMED] + more

    def scale(self) -> str:
        """Say what became of Σ|λ|, which changes no best translation."""
        if self.canonical is None:
            return ""
        before, after = np.abs(self.canonical).sum(), np.abs(self.mean).sum()
        return (
            f"The sum of |λ| went from {before:.3f} to {after:.3f}. The best translation depends "
            "on the shares alone; the sum says how sharply the model tells good from bad."
        )


def movement(sample: Sample) -> Movement:
    """Return the weights before and after."""
    interval = sample.interval(PROBABILITY)
    if len(sample.draws) == 1:
        interval = np.full_like(interval, np.nan)
    return Movement(sample.names, sample.mean, interval, sample.canonical)


def weights_table(posterior: InferenceData, sample: Sample) -> Table:
    """Return the table of all weights; those held at their canonical value come last.

    Args:
        posterior: the draws, (chain, draw, feature).
        sample: the same as arrays.
    """
    moved = movement(sample)
    columns = {"mean": _fixed(moved.mean), **_interval(moved)}
    if moved.canonical is not None:
        columns = {"canonical": _fixed(moved.canonical), **columns, **_compared(moved)}
    if not sample.weighted and sample.values.shape[1] > 1:
        columns |= _drawn(posterior)
    rows = [list(row) for row in zip(sample.names, *columns.values(), strict=True)]
    rows += [_held_row(name, value, list(columns)) for name, value in held(posterior).items()]
    caption = (
        f"Mean and equal-tailed {100 * PROBABILITY:g}% interval of the posterior; the share is "
        "of the mean in Σ|λ|."
    )
    return Table(("weight", *columns), rows, caption)


def _interval(moved: Movement) -> dict[str, list[str]]:
    cells = [_between(low, high) for low, high in moved.interval.T.tolist()]
    return {f"{100 * PROBABILITY:g}% interval": cells}


def _between(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{low:.3f} to {high:.3f}"


def _compared(moved: Movement) -> dict[str, list[str]]:
    assert moved.canonical is not None  # the caller looked
    signs = {"up": "▲ up", "down": "▼ down", "": ""}
    return {
        "change": [f"{change:+.3f}" for change in moved.mean - moved.canonical],
        "moved": [signs[direction] for direction in moved.direction],
        "share of Σ|λ|": [
            f"{100 * before:.1f}% → {100 * after:.1f}%"
            for before, after in zip(_shares(moved.canonical), _shares(moved.mean), strict=True)
        ],
    }


def _drawn(posterior: InferenceData) -> dict[str, list[str]]:
    return {
        "R-hat": [f"{value:.3f}" for value in each(posterior, "rhat", method="rank")],
        "bulk ESS": [f"{value:.0f}" for value in each(posterior, "ess", method="bulk")],
        "tail ESS": [f"{value:.0f}" for value in each(posterior, "ess", method="tail")],
    }


def _held_row(name: str, value: float, columns: list[str]) -> list[str]:
    known = {"canonical": f"{value:.3f}", "mean": f"{value:.3f}", "moved": "held"}
    return [name, *(known.get(column, "") for column in columns)]


def _fixed(values: Float64) -> list[str]:
    return [f"{value:.3f}" for value in values]


def _shares(weights: Float64) -> Float64:
    norm = np.abs(weights).sum()
    return np.abs(weights) / norm if norm > 0 else np.zeros_like(weights)
