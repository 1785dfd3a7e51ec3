"""Pictures of the weights themselves: against the prior, against each other, and their shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas, label
from bpa_ppl.diagnostics.pages.sample import Sample, quantiles
from bpa_ppl.nbest import Float64

_NEGLIGIBLE = 1e-3  # of the heaviest draw: lighter ones do not set the limits of a picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def forest_figure(sample: Sample, features: Sequence[int], probability: float) -> Figure:
    """Draw intervals of some weights, those of the prior behind, canonical weights as crosses."""
    figure, axes = canvas(1, 1, 0.6 + 0.27 * len(features))
    (plot,) = axes[0]
    rows = np.arange(len(features))[::-1]
    if len(sample.prior):
        tail = (1 - probability) / 2
        even = np.full(len(sample.prior), 1 / len(sample.prior))
        prior = quantiles(sample.prior, (tail, 1 - tail), even)[:, features]
        plot.hlines(rows, *prior, color="0.83", linewidth=9, label="prior")
    plot.hlines(rows, *sample.interval(probability)[:, features], linewidth=3, label="posterior")
    plot.plot(sample.mean[features], rows, "o", color="C0", label="posterior mean")
    if sample.canonical is not None:
        plot.plot(sample.canonical[features], rows, "x", color="C3", label="canonical", mew=2)
    plot.set_yticks(rows, [label(sample.names[feature]) for feature in features])
    plot.set(xlabel=f"weight ({100 * probability:g}% equal-tailed intervals)")
    plot.grid(axis="x", color="0.9")
    plot.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return figure


def pair_figure(sample: Sample, features: Sequence[int], diverging: Any = None) -> Figure:
    """Draw the joint draws of some weights: pair by pair below, each alone on the diagonal.

    Above the diagonal stand the correlations.

    Args:
        sample: the draws.
        features: which.
        diverging: (chains, draws) bool, where a transition diverged, or None.
    """
    size = len(features)
    figure, axes = canvas(size, size, 8.0 / size)
    shown = sample.importance > _NEGLIGIBLE * sample.importance.max()
    marked = None if diverging is None else np.asarray(diverging, bool).reshape(-1)[shown]
    for row, column in np.ndindex(size, size):
        cell = axes[row, column]
        if column > row:
            cell.set_axis_off()
            r = sample.correlation[features[row], features[column]]
            cell.text(0.5, 0.5, f"{r:+.2f}", transform=cell.transAxes, ha="center", fontsize=14)
        else:
            _cell(cell, sample, (features[column], features[row]), shown, marked)
        cell.tick_params(labelsize="small")
        cell.label_outer()
    for position, feature in enumerate(features):
        axes[-1, position].set_xlabel(label(sample.names[feature]))
        if position:
            axes[position, 0].set_ylabel(label(sample.names[feature]))
    return figure


def shares_figure(importance: Float64) -> Figure:
    """Draw how much of the whole weight the heaviest samples hold together."""
    figure, axes = canvas(1, 1, 2.6)
    held = np.cumsum(np.sort(importance)[::-1])
    axes[0, 0].plot(np.arange(1, len(held) + 1), held)
    axes[0, 0].set(
        xscale="log", ylim=(0, 1.05), xlabel="samples, heaviest first", ylabel="share of the weight"
    )
    axes[0, 0].grid(color="0.9")
    return figure


def correlated_pairs(sample: Sample) -> list[tuple[int, int, float]]:
    """Return (feature, feature, correlation) of every pair, the strongest first."""
    correlation = sample.correlation
    pairs = [(a, b, float(correlation[a, b])) for a, b in combinations(range(len(sample.names)), 2)]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def most_correlated(pairs: Sequence[tuple[int, int, float]], count: int) -> list[int]:
    """Return the first `count` features named by the strongest pairs, in ascending order.

    >>> most_correlated([(3, 5, -0.9), (0, 3, 0.8), (1, 2, 0.1)], 3)
    [0, 3, 5]
    """
    named = dict.fromkeys(feature for pair in pairs for feature in pair[:2])
    return sorted(list(named)[:count])


def _cell(cell: Any, sample: Sample, pair: tuple[int, int], shown: Any, marked: Any) -> None:
    x, y = sample.draws[shown][:, pair].T
    importance = sample.importance[shown]
    if pair[0] == pair[1]:
        cell.hist(x, bins=40, weights=importance, color="C0")
        cell.set_yticks([])
        return
    cell.hexbin(x, y, C=importance, reduce_C_function=np.sum, gridsize=35, cmap="Blues")
    if marked is not None:
        cell.plot(x[marked], y[marked], ".", color="C3")
    if sample.canonical is not None:
        cell.plot(*sample.canonical[list(pair)], "x", color="C3", mew=2)
