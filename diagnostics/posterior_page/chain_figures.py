"""Pictures of Markov chains: traces, ranks, autocorrelation, running means, acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas, label
from bpa_ppl.diagnostics.pages.sample import Sample
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import import_arviz

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More chains than these cannot be told apart in a picture.
MOST_CHAINS = 8
_LAGS = 100
_ROW = 1.15


def trace_figure(sample: Sample, features: Sequence[int]) -> Figure:
    """Draw trace and ranks of some weights.

    Left every draw, the warm-up shaded; right the ranks of the kept draws by chain, which are
    level where the chains agree (Vehtari et al. 2021).
    """
    figure, axes = canvas(len(features), 2, _ROW)
    for (left, right), feature in zip(axes, features, strict=True):
        _trace(left, sample, feature)
        _ranks(right, sample.values[:MOST_CHAINS, :, feature])
        left.set_ylabel(label(sample.names[feature]), rotation=0, ha="right", va="center")
    axes[0, 0].set_title("trace, by draw", fontsize="medium")
    axes[0, 1].set_title("ranks of the draws, by chain", fontsize="medium")
    return figure


def mixing_figure(sample: Sample, features: Sequence[int]) -> Figure:
    """Draw running mean and autocorrelation of some weights.

    Left the mean of each chain's draws so far: the part before it is level is burn-in. Right the
    autocorrelation of each chain by lag.
    """
    figure, axes = canvas(len(features), 2, _ROW)
    for (left, right), feature in zip(axes, features, strict=True):
        _running_mean(left, sample, feature)
        _autocorrelation(right, sample.values[:MOST_CHAINS, :, feature])
        left.set_ylabel(label(sample.names[feature]), rotation=0, ha="right", va="center")
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


def _trace(axes: Any, sample: Sample, feature: int) -> None:
    kept, warmup = sample.values[..., feature], sample.warmup[..., feature]
    for chain in range(min(len(kept), MOST_CHAINS)):
        axes.plot(kept[chain], linewidth=0.4, alpha=0.75, color=f"C{chain}")
        if warmup.size:
            before = np.arange(-warmup.shape[1], 0)
            axes.plot(before, warmup[chain], linewidth=0.4, alpha=0.75, color=f"C{chain}")
    if warmup.size:
        axes.axvspan(-warmup.shape[1], 0, color="0.9", zorder=0)
    axes.margins(x=0)


def _ranks(axes: Any, chains: Float64) -> None:
    import_arviz().plot_rank({"weight": chains}, kind="bars", ax=axes)
    axes.set(title="", xlabel="", ylabel="")


def _running_mean(axes: Any, sample: Sample, feature: int) -> None:
    kept = sample.values[..., feature]
    means = np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1)
    axes.plot(means[:MOST_CHAINS].T, linewidth=1)
    axes.axhline(kept.mean(), color="0.4", linewidth=0.8, linestyle="--")
    axes.margins(x=0)


def _autocorrelation(axes: Any, chains: Float64) -> None:
    with np.errstate(invalid="ignore", divide="ignore"):
        lags = import_arviz().autocorr(chains)[:, :_LAGS]
    axes.plot(lags.T, linewidth=1)
    axes.axhline(0, color="0.4", linewidth=0.8, linestyle="--")
    axes.set_ylim(-0.5, 1.05)
    axes.margins(x=0)
