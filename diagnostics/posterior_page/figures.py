"""Pictures of a posterior: chains by draw, weights against the prior and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas, label, write_figure
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws, quantiles
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import autocorrelation, rank_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior

#: More chains than these look alike in a picture.
MOST_CHAINS = 8
_LAGS = 100
_ROW = 1.15
_NEGLIGIBLE = 1e-3  # of the heaviest draw: lighter ones do not set the limits of a picture


def plot_trace(posterior: Posterior, path: str | Path, *, weights: int = 6) -> None:
    """Write trace and rank plots of the weights whose canonical value moved most.

    Left the trace of each chain, right the ranks of its draws, which are level where the chains
    agree (Vehtari et al. 2021).

    Args:
        posterior: the draws.
        path: the picture to write; its suffix chooses the format.
        weights: how many weights to show.

    Raises:
        DataError: if there are no draws of `weights`, or the file cannot be written.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> plot_trace(Draws({"weights": drawn}, ("LM0", "WP0")), "trace.png", weights=1)
    >>> Path("trace.png").stat().st_size > 1000
    True
    """
    draws = as_draws(posterior)
    chosen = [draws.features[feature] for feature in draws.moved_most(weights)]
    write_figure(trace_figure(draws, chosen), path)


def trace_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw trace and ranks of some components, weights or cells of other sites.

    Left every draw, the warm-up shaded; right the ranks of the kept draws by chain, which are
    level where the chains agree (Vehtari et al. 2021).
    """
    kept, warmup = draws.components(), _warmup(draws)
    figure, axes = canvas(len(names), 2, _ROW)
    for (left, right), name in zip(axes, names, strict=True):
        _trace(left, kept[name], warmup.get(name))
        rank_plot(right, kept[name][:MOST_CHAINS])
        left.set_ylabel(label(name), rotation=0, ha="right", va="center")
    axes[0, 0].set_title("trace, by draw", fontsize="medium")
    axes[0, 1].set_title("ranks of the draws, by chain", fontsize="medium")
    return figure


def mixing_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw running mean and autocorrelation of some components.

    Left the mean of each chain's draws so far: the part before it is level is burn-in. Right the
    autocorrelation of each chain by lag.
    """
    kept = draws.components()
    figure, axes = canvas(len(names), 2, _ROW)
    for (left, right), name in zip(axes, names, strict=True):
        _running_mean(left, kept[name])
        _autocorrelation(right, kept[name][:MOST_CHAINS])
        left.set_ylabel(label(name), rotation=0, ha="right", va="center")
    axes[0, 0].set_title("running mean of the kept draws, by draw", fontsize="medium")
    axes[0, 1].set_title("autocorrelation, by lag", fontsize="medium")
    return figure


def acceptance_figure(rates: Float64) -> Figure:
    """Draw the acceptance rates (chains, draws) over time, averaged over a fiftieth of it."""
    figure, axes = canvas(1, 1, 2.2)
    window = max(1, rates.shape[1] // 50)
    for chain, row in enumerate(moving_average(rates, window)[:MOST_CHAINS]):
        steps = np.arange(len(row)) + window / 2
        axes[0, 0].plot(steps, row, linewidth=1, label=f"chain {chain}")
    axes[0, 0].set(ylim=(0, 1.05), xlabel="draw", ylabel="acceptance rate")
    axes[0, 0].margins(x=0)
    axes[0, 0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=8, frameon=False)
    return figure


def moving_average(values: Float64, window: int) -> Float64:
    """Return the means over windows of each row, (rows, columns − window + 1).

    >>> moving_average(np.array([[1.0, 3.0, 5.0]]), 2).tolist()
    [[2.0, 4.0]]
    """
    return np.lib.stride_tricks.sliding_window_view(values, window, axis=1).mean(axis=2)


_BESIDE = 0.25  # of the range of the posterior, on either side of it


def forest_figure(draws: Draws, features: Sequence[int], probability: float) -> Figure:
    """Draw intervals of some weights, those of the prior behind, canonical weights as crosses."""
    figure, axes = canvas(1, 1, 0.6 + 0.27 * len(features))
    (plot,) = axes[0]
    rows = np.arange(len(features))[::-1]
    before = np.asarray(draws.prior.get(WEIGHTS, ()), np.float64).reshape(-1, len(draws.features))
    if len(before):
        tail = (1 - probability) / 2
        even = np.full(len(before), 1 / len(before))
        prior = quantiles(before, (tail, 1 - tail), even)[:, features]
        plot.hlines(rows, *prior, color="0.83", linewidth=9, label="prior")
    interval = draws.interval(probability)[:, features]
    plot.hlines(rows, *interval, linewidth=3, label="posterior")
    plot.plot(draws.mean[features], rows, "o", color="C0", label="posterior mean")
    if draws.canonical is not None:
        plot.plot(draws.canonical[features], rows, "x", color="C3", label="canonical", mew=2)
        interval = np.vstack([interval, draws.canonical[features]])
    # A prior may be many times as wide as all else; it is shown as far as it lies beside that.
    low, high = float(interval.min()), float(interval.max())
    beside = _BESIDE * (high - low) or 1.0
    plot.set_xlim(max(plot.get_xlim()[0], low - beside), min(plot.get_xlim()[1], high + beside))
    plot.set_yticks(rows, [label(draws.features[feature]) for feature in features])
    plot.set(xlabel=f"weight ({100 * probability:g}% equal-tailed intervals)")
    plot.grid(axis="x", color="0.9")
    plot.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return figure


def pair_figure(draws: Draws, features: Sequence[int]) -> Figure:
    """Draw the joint draws of some weights: pair by pair below, each alone on the diagonal.

    Above the diagonal stand the correlations; red dots are draws whose transition diverged.
    """
    size = len(features)
    figure, axes = canvas(size, size, 8.0 / size)
    importance = draws.importance
    shown = importance > _NEGLIGIBLE * importance.max()
    diverging = draws.statistics.get("diverging")
    marked = None if diverging is None else np.asarray(diverging, bool).reshape(-1)[shown]
    correlation = draws.correlation
    for row, column in np.ndindex(size, size):
        cell = axes[row, column]
        if column > row:
            cell.set_axis_off()
            r = correlation[features[row], features[column]]
            cell.text(0.5, 0.5, f"{r:+.2f}", transform=cell.transAxes, ha="center", fontsize=14)
        else:
            _cell(cell, draws, (features[column], features[row]), shown, marked)
        cell.tick_params(labelsize="small")
        cell.label_outer()
    for position, feature in enumerate(features):
        axes[-1, position].set_xlabel(label(draws.features[feature]))
        if position:
            axes[position, 0].set_ylabel(label(draws.features[feature]))
    return figure


def shares_figure(importance: Float64) -> Figure:
    """Draw the share of the whole importance weight that the heaviest samples have together."""
    figure, axes = canvas(1, 1, 2.6)
    reached = np.cumsum(np.sort(importance)[::-1])
    axes[0, 0].plot(np.arange(1, len(reached) + 1), reached)
    axes[0, 0].set(
        xscale="log", ylim=(0, 1.05), xlabel="samples, heaviest first", ylabel="share of the weight"
    )
    axes[0, 0].grid(color="0.9")
    return figure


def correlated_pairs(draws: Draws) -> list[tuple[int, int, float]]:
    """Return (feature, feature, correlation) of every pair, the strongest first."""
    correlation = draws.correlation
    pairs = combinations(range(len(draws.features)), 2)
    found = [(a, b, float(correlation[a, b])) for a, b in pairs]
    return sorted(found, key=lambda pair: -abs(pair[2]))


def most_correlated(pairs: Sequence[tuple[int, int, float]], count: int) -> list[int]:
    """Return the first `count` features named by the strongest pairs, in ascending order.

    >>> most_correlated([(3, 5, -0.9), (0, 3, 0.8), (1, 2, 0.1)], 3)
    [0, 3, 5]
    """
    named = dict.fromkeys(feature for pair in pairs for feature in pair[:2])
    return sorted(list(named)[:count])


def _warmup(draws: Draws) -> Mapping[str, Float64]:
    """Return the draws of each component before those kept, as far as they were kept."""
    if WEIGHTS not in draws.warmup:
        return {}
    sites = tuple(site for site in draws.sites if site in draws.warmup)
    return Draws(draws.warmup, draws.features, sites=sites).components()


def _trace(axes: Any, kept: Float64, warmup: Float64 | None) -> None:
    for chain in range(min(len(kept), MOST_CHAINS)):
        axes.plot(kept[chain], linewidth=0.4, alpha=0.75, color=f"C{chain}")
        if warmup is not None:
            before = np.arange(-warmup.shape[1], 0)
            axes.plot(before, warmup[chain], linewidth=0.4, alpha=0.75, color=f"C{chain}")
    if warmup is not None:
        axes.axvspan(-warmup.shape[1], 0, color="0.9", zorder=0)
    axes.margins(x=0)


def _running_mean(axes: Any, kept: Float64) -> None:
    means = np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1)
    axes.plot(means[:MOST_CHAINS].T, linewidth=1)
    axes.axhline(kept.mean(), color="0.4", linewidth=0.8, linestyle="--")
    axes.margins(x=0)


def _autocorrelation(axes: Any, chains: Float64) -> None:
    axes.plot(autocorrelation(chains)[:, :_LAGS].T, linewidth=1)
    axes.axhline(0, color="0.4", linewidth=0.8, linestyle="--")
    axes.set_ylim(-0.5, 1.05)
    axes.margins(x=0)


def _cell(cell: Any, draws: Draws, pair: tuple[int, int], shown: Any, marked: Any) -> None:
    x, y = draws.flat[shown][:, pair].T
    importance = draws.importance[shown]
    if pair[0] == pair[1]:
        cell.hist(x, bins=40, weights=importance, color="C0")
        cell.set_yticks([])
        return
    cell.hexbin(x, y, C=importance, reduce_C_function=np.sum, gridsize=35, cmap="Blues")
    if marked is not None:
        cell.plot(x[marked], y[marked], ".", color="C3")
    if draws.canonical is not None:
        cell.plot(*draws.canonical[list(pair)], "x", color="C3", mew=2)
