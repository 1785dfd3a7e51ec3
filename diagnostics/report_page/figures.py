"""The picture of the chains as a file, and what pictures of a posterior are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas, label, write_figure
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import rank_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior

#: More chains than these look alike in a picture.
MOST_CHAINS = 8
_ROW = 1.15


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
    chosen = [draws.features[feature] for feature in draws.largest_shifts(weights)]
    write_figure(trace_figure(draws, chosen), path)


def trace_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw trace and ranks of some components, weights or cells of other sites.

    Left every draw, the warm-up shaded; right the ranks of the kept draws by chain, which are
    level where the chains agree (Vehtari et al. 2021).
    """
    kept, warmup = draws.components(), warmup_components(draws)
    figure, axes = canvas(len(names), 2, _ROW)
    for (left, right), name in zip(axes, names, strict=True):
        _trace(left, kept[name], warmup.get(name))
        rank_plot(right, kept[name][:MOST_CHAINS])
        left.set_ylabel(label(name), rotation=0, ha="right", va="center")
    axes[0, 0].set_title("trace, by draw", fontsize="medium")
    axes[0, 1].set_title("ranks of the draws, by chain", fontsize="medium")
    return figure


def moving_average(values: Float64, window: int) -> Float64:
    """Return the means over windows of each row, (rows, columns − window + 1).

    >>> moving_average(np.array([[1.0, 3.0, 5.0]]), 2).tolist()
    [[2.0, 4.0]]
    """
    result: Float64 = np.lib.stride_tricks.sliding_window_view(values, window, axis=1).mean(axis=2)
    return result


def correlated_pairs(draws: Draws) -> list[tuple[int, int, float]]:
    """Return (feature, feature, correlation) of every pair, the strongest first."""
    correlation = draws.correlation
    pairs = combinations(range(len(draws.features)), 2)
    found = [(a, b, float(correlation[a, b])) for a, b in pairs]
    return sorted(found, key=lambda pair: -abs(pair[2]))


def warmup_components(draws: Draws) -> Mapping[str, Float64]:
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
