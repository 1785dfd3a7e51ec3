"""How weights and other variables changed: the sentences and tables of the report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bpa_ppl.diagnostics.pages.page import Block, Items, Table, Text
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.statistics import ess, r_hat

#: Probability of the intervals of a report.
PROBABILITY = 0.95
_MAX_LISTED = 6  # weights whose change is listed in words
_MAX_ROWS = 50  # of the table of other variables


def change_blocks(draws: Draws) -> list[Block]:
    """Return how many weights changed, which changed most, and what happened to the sum of |λ|."""
    canonical, mean = draws.canonical, draws.mean
    if canonical is None:
        return [Text("The posterior does not record the canonical weights that it started from.")]
    directions = _directions(draws)
    percent = f"{100 * PROBABILITY:g}%"
    summary = (
        f"{sum(map(bool, directions))} of {len(mean)} weights clearly moved: their {percent} "
        "intervals exclude the canonical weight."
    )
    if len(draws.flat) == 1:
        summary = "A single draw has no interval: the uncertainty of the changes is unknown."
    lines = [
        f"{draws.features[i]} {directions[i]}, {canonical[i]:.3f} → {mean[i]:.3f}"
        for i in np.argsort(-np.abs(mean - canonical))
        if directions[i]
    ]
    rest = [f"and {len(lines) - _MAX_LISTED} more"] if len(lines) > _MAX_LISTED else []
    before, after = np.abs(canonical).sum(), np.abs(mean).sum()
    scale = (
        f"The sum of |λ| went from {before:.3f} to {after:.3f}. The best translation depends only "
        "on the shares of the weights; the sum determines how peaked the probabilities are."
    )
    changes: list[Block] = [Items(lines[:_MAX_LISTED] + rest)] if lines else []
    return [Text(summary), *changes, Text(scale)]


def weights_table(draws: Draws) -> Table:
    """Return the table of all weights; the fixed ones come last."""
    canonical, mean = draws.canonical, draws.mean
    columns = {"mean": _decimals(mean), **_intervals(_weight_intervals(draws))}
    if canonical is not None:
        signs = {"up": "▲ up", "down": "▼ down", "": ""}
        shares = zip(_shares(canonical), _shares(mean), strict=True)
        columns = {
            "canonical": _decimals(canonical),
            **columns,
            "change": [f"{change:+.3f}" for change in mean - canonical],
            "moved": [signs[direction] for direction in _directions(draws)],
            "share of Σ|λ|": [f"{100 * a:.1f}% → {100 * b:.1f}%" for a, b in shares],
        }
    columns |= _sampling_columns(draws, draws.weights)
    rows = [list(row) for row in zip(draws.features, *columns.values(), strict=True)]
    for name, value in draws.fixed.items():
        cells = {"canonical": f"{value:.3f}", "mean": f"{value:.3f}", "moved": "fixed"}
        rows.append([name, *(cells.get(column, "") for column in columns)])
    caption = (
        f"Mean and equal-tailed {100 * PROBABILITY:g}% interval of the posterior; the share is "
        "that of the mean in Σ|λ|."
    )
    return Table(("weight", *columns), rows, caption)


def others_table(draws: Draws) -> Table | None:
    """Return the table of all other variables, or None without any.

    Variables with few components come first, so that a scale precedes one value per feature.
    """
    sites = sorted(draws.values, key=lambda site: np.size(draws.values[site]))
    ordered = replace(draws, values={site: draws.values[site] for site in sites})
    components = ordered.components(derived=True)
    names = [name for name in components if name not in draws.features]
    if not names:
        return None
    shown = names[:_MAX_ROWS]
    values = np.stack([components[name] for name in shown], axis=-1)
    flat, importance = values.reshape(-1, len(shown)), draws.importance
    mean = np.average(flat, axis=0, weights=importance)
    columns = {"mean": _decimals(mean)}
    if len(flat) > 1:
        deviation = np.sqrt(np.average((flat - mean) ** 2, axis=0, weights=importance))
        dense = np.array([highest_density(column, PROBABILITY, importance) for column in flat.T])
        columns |= {"sd": _decimals(deviation), **_intervals(dense.T, "HDI")}
    columns |= _sampling_columns(draws, values)
    rows = [list(row) for row in zip(shown, *columns.values(), strict=True)]
    first = f" The first {_MAX_ROWS} of {len(names)}." if len(names) > _MAX_ROWS else ""
    caption = (
        "Mean, standard deviation, and the narrowest interval with a probability of "
        f"{100 * PROBABILITY:g}% (HDI).{first}"
    )
    return Table(("variable", *columns), rows, caption)


def highest_density(
    values: Float64, probability: float, importance: Float64
) -> tuple[float, float]:
    """Return the narrowest interval with a given probability, of a unimodal density.

    Args:
        values: (D,) draws.
        probability: in (0, 1).
        importance: (D,) the normalised importance weight of each draw.

    >>> highest_density(np.array([9.0, 1.0, 2.0, 2.5]), 0.75, np.full(4, 0.25))
    (1.0, 2.5)
    """
    order = np.argsort(values, kind="stable")
    ascending, share = values[order], importance[order]
    cumulative = np.cumsum(share)
    # The tolerance is for rounding errors of the sums.
    needed = np.minimum(cumulative - share + probability - 1e-9, cumulative[-1])
    last = np.searchsorted(cumulative, needed)
    starts = np.flatnonzero(cumulative - share + probability <= cumulative[-1] + 1e-9)
    narrowest = starts[np.argmin(ascending[last[starts]] - ascending[starts])]
    return float(ascending[narrowest]), float(ascending[last[narrowest]])


def _weight_intervals(draws: Draws) -> Float64:
    """Return the equal-tailed interval of each weight, (2, Q); NaN for a single draw."""
    interval = draws.interval(PROBABILITY)
    return interval if len(draws.flat) > 1 else np.full_like(interval, np.nan)


def _directions(draws: Draws) -> list[str]:
    """Return `up` or `down` where an interval excludes the canonical weight, else an empty text."""
    assert draws.canonical is not None  # the callers checked
    low, high = _weight_intervals(draws)
    signs = np.where(draws.canonical < low, "up", np.where(draws.canonical > high, "down", ""))
    return list(map(str, signs))


def _intervals(interval: Float64, kind: str = "interval") -> dict[str, list[str]]:
    cells = ["" if np.isnan(a) else f"{a:.3f} to {b:.3f}" for a, b in interval.T.tolist()]
    return {f"{100 * PROBABILITY:g}% {kind}": cells}


def _sampling_columns(draws: Draws, values: Float64) -> dict[str, list[str]]:
    """Return R-hat and ESS of each component of chains, (C, D, components); – if it is constant."""
    if draws.weighted or draws.shape[1] == 1:
        return {}
    varies = np.ptp(values, axis=(0, 1)) > 0
    numbers = {
        "R-hat": (r_hat(values), 3),
        "bulk ESS": (ess(values, "bulk"), 0),
        "tail ESS": (ess(values, "tail"), 0),
    }
    return {
        name: [f"{x:.{n}f}" if v else "–" for x, v in zip(column, varies, strict=True)]
        for name, (column, n) in numbers.items()
    }


def _decimals(values: Float64) -> list[str]:
    return [f"{value:.3f}" for value in values]


def _shares(weights: Float64) -> Float64:
    norm = np.abs(weights).sum()
    return np.abs(weights) / norm if norm > 0 else np.zeros_like(weights)
