"""The plots of the page about a posterior, panel by panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bpa_ppl.diagnostics.figures import (
    MOST_CHAINS,
    moving_average,
    warmup_components,
)
from bpa_ppl.diagnostics.pages.page import Panels
from bpa_ppl.diagnostics.pages.panels import Panel, shortened, thinned
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, quantiles
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import autocorrelation, rank_counts

_LAGS = 100
_BINS = 200  # of a line: two points each
_CELLS = 32  # of a joint density, each way
_RANKS = 20
_BESIDE = 0.25  # of the range of the posterior, on either side of it
_SHADES = (0.02, 0.15, 0.35, 0.6, 0.85)  # of the fullest cell, where a fuller shade begins
_NEGLIGIBLE = 1e-3  # of the heaviest draw: lighter ones do not set the limits of a picture
_LETTER = 12.5  # units


def trace_plots(draws: Draws, names: Sequence[str]) -> Panels:
    """Return traces and ranks of some components, weights or cells of other sites.

    Every draw with the warm-up shaded; beside it the ranks of the kept draws by chain, which are
    level where the chains agree (Vehtari et al. 2021).
    """
    kept, warmup = draws.components(), warmup_components(draws)
    panels: list[Panel] = []
    for name in names:
        panels += [_trace(name, kept[name], warmup.get(name)), _ranks(name, kept[name])]
    return Panels(
        panels,
        f"Trace and rank plots of {', '.join(names)}",
        "Trace: every draw, one colour a chain, the warm-up on grey; chains that mix look like "
        "one band without steps or slopes. Ranks: among all draws, by chain; level bars in every "
        "chain say that the chains agree.",
    )


def mixing_plots(draws: Draws, names: Sequence[str]) -> Panels:
    """Return running means and autocorrelation of some components, by chain."""
    kept = draws.components()
    panels: list[Panel] = []
    for name in names:
        panels += [_running_mean(name, kept[name]), _autocorrelation(name, kept[name])]
    return Panels(
        panels,
        f"Running means and autocorrelation of {', '.join(names)}",
        "Running mean: of each chain so far, the dashes that of all; where it still slopes, the "
        "burn-in was too short. Autocorrelation: how long a chain remembers; the sooner a line "
        "falls to zero, the more a draw is worth.",
    )


def acceptance_plot(rates: Float64) -> Panels:
    """Return the acceptance rates (chains, draws) over time, averaged over a fiftieth of it."""
    window, mean = max(1, rates.shape[1] // 50), float(np.mean(rates))
    panel = Panel((0, rates.shape[1]), (0, 1.05), height=250, x_label="draw")
    for chain, row in enumerate(moving_average(rates, window)[:MOST_CHAINS]):
        place, value = thinned(row, _BINS)
        panel.line(place + window / 2, value, chain, 2)
    return Panels(
        [panel],
        f"Acceptance rate over time, {mean:.2f} on average",
        "Acceptance over time, one colour a chain, averaged over a fiftieth of the draws; "
        f"{mean:.3f} in all.",
        "one",
    )


def forest_plot(draws: Draws, features: Sequence[int], probability: float, note: str) -> Panels:
    """Return intervals of some weights, those of the prior behind, canonical weights as crosses.

    Args:
        draws: the posterior.
        features: which weights, one line each.
        probability: of the equal-tailed intervals.
        note: a sentence at the end of the caption.
    """
    names = [shortened(draws.features[feature]) for feature in features]
    rows = np.arange(len(names))[::-1]
    interval = draws.interval(probability)[:, features]
    prior = _prior_interval(draws, probability)[:, features]
    known = interval
    if draws.canonical is not None:
        known = np.vstack([interval, draws.canonical[features]])
    # A prior may be many times as wide as all else; it is shown as far as it lies beside that.
    low, high = float(known.min()), float(known.max())
    beside = _BESIDE * (high - low) or 1.0
    widest = np.array([low - beside, high + beside])
    shown = np.clip(np.append(known, prior[np.isfinite(prior)]), *widest)
    panel = Panel(
        (float(shown.min()) - beside / 8, float(shown.max()) + beside / 8),
        (-0.7, len(names) - 0.3),
        height=34 * len(names) + 90,
        x_label=f"weight ({100 * probability:g}% equal-tailed intervals)",
        y_ticks=list(zip(rows.tolist(), names, strict=True)),
        left=int(24 + _LETTER * max(map(len, names))),
    )
    panel.boxes(prior[0], prior[1], rows - 0.3, rows + 0.3, "soft", 0.3)
    panel.boxes(interval[0], interval[1], rows - 0.1, rows + 0.1, 0, 1)
    panel.dots(draws.mean[features], rows, 0)
    if draws.canonical is not None:
        panel.crosses(draws.canonical[features], rows, 3)
    return Panels(
        [panel],
        "Posterior intervals of the weights, with those of the prior and the canonical weights",
        "Blue: where the posterior is, with its mean; grey: where the prior was; red cross: the "
        "canonical weight. A cross outside its blue bar is a weight that moved. A prior that is "
        f"much wider than the posteriors is cut off.{note}",
        "one",
    )


def _prior_interval(draws: Draws, probability: float) -> Float64:
    """Return the interval of each weight under the prior, (2, Q); NaN where it is not known."""
    before = np.asarray(draws.prior.get(WEIGHTS, ()), np.float64).reshape(-1, len(draws.features))
    if not len(before):
        return np.full((2, len(draws.features)), np.nan)
    tail = (1 - probability) / 2
    return quantiles(before, (tail, 1 - tail), np.full(len(before), 1 / len(before)))


def pair_plots(draws: Draws, pairs: Sequence[tuple[int, int, float]]) -> Panels:
    """Return the joint draws of some pairs of weights.

    Args:
        draws: the posterior.
        pairs: feature, feature and their correlation.
    """
    importance = draws.importance
    shown = importance > _NEGLIGIBLE * importance.max()
    diverging = draws.statistics.get("diverging")
    marked = np.zeros(len(shown), bool)
    if diverging is not None:
        marked = np.asarray(diverging, bool).reshape(-1)
    panels = [_pair(draws, one, other, shown, marked & shown) for one, other, _ in pairs]
    named = [f"{draws.features[one]} with {draws.features[other]}" for one, other, _ in pairs]
    return Panels(
        panels,
        f"Joint posterior of {', '.join(named)}",
        "The stronger the blue, the more of the posterior. A narrow ridge is a pair that the data "
        "know only together; a red cross: the canonical weights."
        + (" Red dots: divergent transitions." if marked.any() else ""),
        "three",
    )


def shares_plot(importance: Float64) -> Panels:
    """Return the share of the whole importance weight that the heaviest samples have together."""
    reached = np.cumsum(np.sort(importance)[::-1])
    count = len(reached)
    # As dense as can be seen on a logarithmic axis.
    which = np.unique(np.geomspace(1, count, 2 * _BINS).astype(int)) - 1
    largest = 100 * float(importance.max())
    decades = range(int(np.log10(count)) + 1)
    panel = Panel(
        (0, np.log10(count)),
        (0, 1.05),
        height=250,
        x_label="samples, heaviest first",
        x_ticks=[(decade, f"{10**decade:,}") for decade in decades],
    )
    panel.line(np.log10(which + 1), reached[which], 0, 3)
    return Panels(
        [panel],
        f"Share of the weight that the heaviest samples have; the heaviest has {largest:.1f}%",
        f"The heaviest sample has {largest:.1f}% of the weight. A curve that starts high leaves "
        "the posterior to a few samples.",
        "one",
    )


def _trace(name: str, kept: Float64, warmup: Float64 | None) -> Panel:
    before = 0 if warmup is None else warmup.shape[1]
    whole = kept if warmup is None else np.concatenate([warmup, kept], axis=1)
    shown = whole[:MOST_CHAINS]
    panel = Panel((-before, kept.shape[1] - 1), _limits(shown), title=f"{shortened(name)}: trace")
    if before:
        panel.boxes([-before], [0], [shown.min()], [shown.max()], "soft", 0.2)
    for chain, row in enumerate(shown):
        place, value = thinned(row, _BINS)
        panel.line(place - before, value, chain, 0.8)
    return panel


def _ranks(name: str, kept: Float64) -> Panel:
    chains = kept[:MOST_CHAINS]
    counts, edges = rank_counts(chains, _RANKS)
    even = chains.shape[1] / _RANKS
    height = 0.8 * counts / max(float(counts.max()), 1.4 * even)
    panel = Panel((0, chains.size), (0, len(chains)), title=f"{shortened(name)}: ranks", y_ticks=())
    width = edges[1] - edges[0]
    for chain, row in enumerate(height):
        bottom = np.full(_RANKS, float(chain))
        panel.boxes(edges[:-1], edges[1:] - width / 8, bottom, bottom + row, chain, 0.8)
        panel.level(chain + 0.8 * even / max(float(counts.max()), 1.4 * even))
    return panel


def _running_mean(name: str, kept: Float64) -> Panel:
    means = (np.cumsum(kept, axis=1) / np.arange(1, kept.shape[1] + 1))[:MOST_CHAINS]
    title = f"{shortened(name)}: running mean"
    panel = Panel((0, kept.shape[1] - 1), _limits(means), title=title)
    panel.level(float(kept.mean()))
    for chain, row in enumerate(means):
        panel.line(*thinned(row, _BINS // 2), chain, 2)
    return panel


def _autocorrelation(name: str, kept: Float64) -> Panel:
    found = autocorrelation(kept[:MOST_CHAINS])[:, :_LAGS]
    title = f"{shortened(name)}: autocorrelation"
    panel = Panel((0, found.shape[1] - 1), (-0.5, 1.05), title=title)
    panel.level(0.0)
    for chain, row in enumerate(found):
        panel.line(np.arange(len(row)), row, chain, 2)
    return panel


def _pair(
    draws: Draws,
    one: int,
    other: int,
    shown: npt.NDArray[np.bool_],
    marked: npt.NDArray[np.bool_],
) -> Panel:
    x, y = draws.flat[shown][:, (one, other)].T
    panel = Panel(
        _limits(x),
        _limits(y),
        width=560,
        height=520,
        x_label=shortened(draws.features[one]),
        y_label=shortened(draws.features[other]),
    )
    for (left, right, bottom, top), share in _shades(x, y, draws.importance[shown]):
        panel.boxes(left, right, bottom, top, 0, share)
    panel.dots(draws.flat[marked, one], draws.flat[marked, other], 3, 4)
    if draws.canonical is not None and _within(draws.canonical[[one, other]], x, y):
        panel.crosses(draws.canonical[[one]], draws.canonical[[other]], 3)
    return panel


def _within(point: Float64, x: Float64, y: Float64) -> bool:
    return bool(x.min() <= point[0] <= x.max() and y.min() <= point[1] <= y.max())


def _shades(
    x: Float64, y: Float64, importance: Float64
) -> Iterator[tuple[tuple[Float64, Float64, Float64, Float64], float]]:
    """Yield the cells (left, right, bottom, top) of a joint density by how full they are."""
    counts, across, up = np.histogram2d(x, y, bins=_CELLS, weights=importance)
    share = counts / counts.max()
    for number, least in enumerate(_SHADES):
        most = _SHADES[number + 1] if number + 1 < len(_SHADES) else np.inf
        i, j = np.nonzero((share > least) & (share <= most))
        yield (
            (across[i], across[i + 1], up[j], up[j + 1]),
            0.15 + 0.85 * number / (len(_SHADES) - 1),
        )


def _limits(values: Float64) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    beside = 0.04 * (high - low)
    return low - beside, high + beside
