"""What moved: each weight before and after, and the other parameters, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.statistics import ess, r_hat

#: Probability of the equal-tailed intervals of a report.
PROBABILITY = 0.95
_NAMED = 6  # weights that moved, in words
_ROWS = 50  # of the table of the other parameters


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
            return "A single draw has no interval: how sure a change is remains unknown."
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


def movement(draws: Draws) -> Movement:
    """Return the weights before and after."""
    interval = draws.interval(PROBABILITY)
    if len(draws.flat) == 1:
        interval = np.full_like(interval, np.nan)
    return Movement(draws.features, draws.mean, interval, draws.canonical)


def weights_table(draws: Draws) -> Table:
    """Return the table of all weights; the fixed ones come last."""
    moved = movement(draws)
    columns = {"mean": _decimals(moved.mean), **_interval(moved.interval)}
    if moved.canonical is not None:
        columns = {"canonical": _decimals(moved.canonical), **columns, **_compared(moved)}
    if not draws.weighted and draws.shape[1] > 1:
        columns |= _drawn(draws.weights, "bulk", "tail")
    rows = [list(row) for row in zip(draws.features, *columns.values(), strict=True)]
    rows += [_fixed_row(name, value, list(columns)) for name, value in draws.fixed.items()]
    caption = (
        f"Mean and equal-tailed {100 * PROBABILITY:g}% interval of the posterior; the share is "
        "of the mean in Σ|λ|."
    )
    return Table(("weight", *columns), rows, caption)


def others_table(draws: Draws) -> Table | None:
    """Return the table of all variables but the weights, or None where there are none.

    Those of few cells come first: what a prior or a model learns beside the weights, such as a
    scale, stands before what it has for each feature.
    """
    sites = sorted(draws.values, key=lambda site: np.size(draws.values[site]))
    every = replace(draws, values={site: draws.values[site] for site in sites})
    found = every.components(derived=True)
    names = [name for name in found if name not in draws.features]
    if not names:
        return None
    shown = names[:_ROWS]
    values = np.stack([found[name] for name in shown], axis=-1)
    flat, importance = values.reshape(-1, len(shown)), draws.importance
    mean = np.average(flat, axis=0, weights=importance)
    columns = {"mean": _decimals(mean)}
    if len(flat) > 1:
        deviation = np.sqrt(np.average((flat - mean) ** 2, axis=0, weights=importance))
        dense = np.array([highest_density(column, PROBABILITY, importance) for column in flat.T])
        columns |= {"sd": _decimals(deviation), **_interval(dense.T, "HDI")}
    if not draws.weighted and draws.shape[1] > 1:
        columns |= _drawn(values, "bulk", "tail")
    rows = [list(row) for row in zip(shown, *columns.values(), strict=True)]
    most = f" The first {_ROWS} of {len(names)}." if len(names) > _ROWS else ""
    caption = (
        f"Mean, standard deviation and the narrowest interval that holds {100 * PROBABILITY:g}% "
        f"(HDI).{most}"
    )
    return Table(("variable", *columns), rows, caption)


def highest_density(
    values: Float64, probability: float, importance: Float64
) -> tuple[float, float]:
    """Return the narrowest interval that holds a probability, of a density with one peak.

    Args:
        values: (D,) draws.
        probability: in (0, 1).
        importance: (D,) the share of each draw.

    >>> highest_density(np.array([9.0, 1.0, 2.0, 2.5]), 0.75, np.full(4, 0.25))
    (1.0, 2.5)
    """
    order = np.argsort(values, kind="stable")
    ascending, share = values[order], importance[order]
    reached = np.cumsum(share)
    # One that holds all of the draws but for rounding holds the probability too.
    wanted = np.minimum(reached - share + probability - 1e-9, reached[-1])
    last = np.searchsorted(reached, wanted)
    begins = np.flatnonzero(reached - share + probability <= reached[-1] + 1e-9)
    narrowest = begins[np.argmin(ascending[last[begins]] - ascending[begins])]
    return float(ascending[narrowest]), float(ascending[last[narrowest]])


def _interval(interval: Float64, kind: str = "interval") -> dict[str, list[str]]:
    cells = ["" if np.isnan(a) else f"{a:.3f} to {b:.3f}" for a, b in interval.T.tolist()]
    return {f"{100 * PROBABILITY:g}% {kind}": cells}


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


def _drawn(values: Float64, *methods: str) -> dict[str, list[str]]:
    """Return how well the chains drew each component, (C, D, components); – if it never moved.

    Args:
        values: the draws.
        methods: whose ESS, `bulk` or `tail`.
    """
    moved = np.ptp(values, axis=(0, 1)) > 0

    def cells(numbers: Float64, decimals: int) -> list[str]:
        pairs = zip(numbers, moved, strict=True)
        return [f"{number:.{decimals}f}" if moves else "–" for number, moves in pairs]

    sizes = {f"{method} ESS": cells(ess(values, method), 0) for method in methods}
    return {"R-hat": cells(r_hat(values), 3), **sizes}


def _fixed_row(name: str, value: float, columns: list[str]) -> list[str]:
    known = {"canonical": f"{value:.3f}", "mean": f"{value:.3f}", "moved": "fixed"}
    return [name, *(known.get(column, "") for column in columns)]


def _decimals(values: Float64) -> list[str]:
    return [f"{value:.3f}" for value in values]


def _shares(weights: Float64) -> Float64:
    norm = np.abs(weights).sum()
    return np.abs(weights) / norm if norm > 0 else np.zeros_like(weights)
