"""The figures of the page about a posterior, and the trace plot as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.pages.figures import empty_figure, label, log_axis, write_figure
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws, quantiles
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import autocorrelation, rank_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior

#: More chains than these cannot be distinguished in a figure.
MAX_CHAINS = 8
_ROW = 1.15  # height of a component, in inches
_LAGS = 100
_RANK_BINS = 20
_NEGLIGIBLE = 1e-3  # draws with less of the largest importance weight do not set the limits


def plot_trace(posterior: Posterior, path: str | Path, *, weights: int = 6) -> None:
    """Write trace and rank plots of the weights that moved furthest from their canonical values.

    The left column shows the trace of each chain, the right one the ranks of its draws, which are
    uniform where the chains agree (Vehtari et al. 2021).

    Args:
        posterior: draws of the weights.
        path: the file to write; its suffix chooses the format.
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
    names = [draws.features[feature] for feature in draws.largest_shifts(weights)]
    write_figure(trace_figure(draws, names), path)


def trace_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw traces, with the warm-up on grey, and ranks of the kept draws by chain.

    Args:
        draws: the posterior.
        names: components to show: weights, or cells of other sites.
    """
    kept, warmup = draws.components(), {}
    if WEIGHTS in draws.warmup:
        sites = tuple(site for site in draws.sites if site in draws.warmup)
        warmup = Draws(draws.warmup, draws.features, sites=sites).components()

    def trace(axes: Any, name: str) -> None:
        warmup_draws = warmup.get(name, kept[name][:, :0])
        all_draws = np.concatenate([warmup_draws, kept[name]], axis=1)[:MAX_CHAINS]
        start = -warmup_draws.shape[1]
        axes.plot(np.arange(start, kept[name].shape[1]), all_draws.T, linewidth=0.4, alpha=0.75)
        if start:
            axes.axvspan(start, 0, color="0.9", zorder=0)
        axes.margins(x=0)

    def ranks(axes: Any, name: str) -> None:
        counts, edges = rank_counts(kept[name][:MAX_CHAINS], _RANK_BINS)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        levels = np.arange(len(shares)) * 2 / _RANK_BINS
        for level, share in zip(levels, shares, strict=True):
            axes.stairs(level + share, edges, baseline=level, fill=True)
            axes.axhline(level + share.mean(), linestyle="--", color="k")
        axes.set_yticks(levels, range(len(levels)))

    return _two_columns(names, {"trace, by draw": trace, "ranks of the draws, by chain": ranks})


def mixing_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw running means and autocorrelations of some components, by chain."""
    kept = draws.components()

    def running_mean(axes: Any, name: str) -> None:
        means = np.cumsum(kept[name], axis=1) / np.arange(1, kept[name].shape[1] + 1)
        axes.plot(means[:MAX_CHAINS].T, linewidth=1)
        axes.axhline(kept[name].mean(), color="0.5", linestyle="--", linewidth=0.8)

    def autocorrelations(axes: Any, name: str) -> None:
        axes.plot(autocorrelation(kept[name][:MAX_CHAINS])[:, :_LAGS].T, linewidth=1)
        axes.axhline(0, color="0.5", linestyle="--", linewidth=0.8)
        axes.set_ylim(-0.5, 1.05)

    return _two_columns(
        names, {"running mean, by draw": running_mean, "autocorrelation, by lag": autocorrelations}
    )


def acceptance_figure(rates: Float64) -> Figure:
    """Draw acceptance rates, (chains, draws), as moving averages over 1/50 of the draws."""
    window = max(1, rates.shape[1] // 50)
    averages = np.lib.stride_tricks.sliding_window_view(rates, window, axis=1).mean(axis=2)
    figure, ((axes,),) = empty_figure(1, 1, 1.8)
    axes.plot(np.arange(averages.shape[1]) + window / 2, averages[:MAX_CHAINS].T, linewidth=1)
    axes.set(ylim=(0, 1.05), xlabel="draw")
    return figure


def forest_figure(draws: Draws, features: Sequence[int], probability: float) -> Figure:
    """Draw intervals of some weights over those of their prior, and canonical weights as crosses.

    Args:
        draws: the posterior.
        features: positions of the weights, one row each.
        probability: of the equal-tailed intervals.
    """
    figure, ((axes,),) = empty_figure(1, 1, 0.5 + 0.28 * len(features))
    rows = np.arange(len(features))[::-1]
    low, high = draws.interval(probability)[:, features]
    limits = [low, high]
    prior = np.asarray(draws.prior.get(WEIGHTS, ()), np.float64).reshape(-1, len(draws.features))
    if len(prior):
        tail = (1 - probability) / 2
        equal = np.full(len(prior), 1 / len(prior))
        axes.hlines(
            rows,
            *quantiles(prior, (tail, 1 - tail), equal)[:, features],
            color="0.83",
            linewidth=12,
        )
    axes.hlines(rows, low, high, color="C0", linewidth=4)
    axes.plot(draws.mean[features], rows, "o", color="C0", markersize=7)
    if draws.canonical is not None:
        axes.plot(draws.canonical[features], rows, "x", color="C3", markersize=7, mew=2)
        limits.append(draws.canonical[features])
    # A prior may be many times as wide as the posterior: it is cut off.
    lowest, highest = float(np.min(limits)), float(np.max(limits))
    margin = 0.25 * (highest - lowest) or 1.0
    axes.set_xlim(lowest - margin, highest + margin)
    axes.set_yticks(rows, [label(draws.features[feature]) for feature in features])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel(f"weight ({100 * probability:g}% equal-tailed intervals)")
    return figure


def pair_figure(draws: Draws, pairs: Sequence[tuple[int, int, float]]) -> Figure:
    """Draw the joint density of some pairs of weights, with divergences and canonical weights.

    Args:
        draws: the posterior.
        pairs: feature, feature, and their correlation.
    """
    importance = draws.importance
    shown = importance > _NEGLIGIBLE * importance.max()
    flat = draws.flat[shown]
    divergent = np.asarray(draws.statistics.get("diverging", ~shown), bool).reshape(-1)[shown]
    figure, grid = empty_figure(-(-len(pairs) // 3), 3, 2.8, share_x=False)
    for axes in grid.flat[len(pairs) :]:
        axes.remove()
    for axes, (one, other, _) in zip(grid.flat, pairs, strict=False):
        x, y = flat[:, one], flat[:, other]
        axes.hist2d(x, y, bins=32, weights=importance[shown], cmap="Blues")
        if "diverging" in draws.statistics:
            axes.plot(x[divergent], y[divergent], ".", color="C3")
        if draws.canonical is not None:
            a, b = draws.canonical[[one, other]]
            if x.min() <= a <= x.max() and y.min() <= b <= y.max():
                axes.plot(a, b, "x", color="C3", mew=2)
        axes.set(xlabel=label(draws.features[one]), ylabel=label(draws.features[other]))
    return figure


def importance_figure(importance: Float64) -> Figure:
    """Draw the cumulative share of the importance weights, heaviest sample first."""
    figure, ((axes,),) = empty_figure(1, 1, 1.8)
    axes.plot(np.arange(1, len(importance) + 1), np.cumsum(np.sort(importance)[::-1]))
    log_axis(axes, 1, max(len(importance), 2))
    axes.set(ylim=(0, 1.05), xlabel="samples, heaviest first")
    return figure


def _two_columns(names: Sequence[str], columns: Mapping[str, Any]) -> Figure:
    """Return a figure with a row for each name; `columns` maps titles to plotting functions."""
    figure, grid = empty_figure(len(names), 2, _ROW)
    for name, row in zip(names, grid, strict=True):
        row[0].set_ylabel(label(name), rotation=0, ha="right", va="center")
        for axes, plot in zip(row, columns.values(), strict=True):
            plot(axes, name)
    for axes, title in zip(grid[0], columns, strict=True):
        axes.set_title(title, fontsize="medium")
    return figure
