"""The pictures of a comparison: densities, differences of ECDFs, costs, traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import gaussian_kde

from bpa_ppl.diagnostics.comparison.efficiency import Row, format_value
from bpa_ppl.diagnostics.estimates import select_independent
from bpa_ppl.diagnostics.pages.figures import Layer, choose_style, plot, plots
from bpa_ppl.diagnostics.pages.page import Html
from bpa_ppl.posterior.draws import Draws, quantiles

#: Of the bands of the differences of ECDFs: the probability that all of a difference is inside.
PROBABILITY = 0.95
_MAX_VARIABLES = 9
_GRID, _SPLITS, _MOST = 80, 999, 1500  # points of a curve; random splits; draws of an ECDF
_TRACE, _CHAINS = 200, 4  # points of a trace, and traces, in a plot
_HIGHEST = 2.0  # of a density, as a multiple of the reference's
_DENSITIES = "Marginal densities; grey: the reference. High peaks are cut off."
_ECDFS = (
    "Empirical distribution functions minus that of the reference, scaled by the numbers of nearly "
    f"independent draws; grey: {PROBABILITY:.0%} of correct samplers have their whole curve here."
)
_COSTS = "Effective draws per second for the mean of the worst variable, with 95% intervals."
_TRACES = "Traces of the variable that is furthest off; grey: 90% interval of the reference."


def draw_pictures(
    samplers: Mapping[str, Draws], truth: Draws | None, worst: Sequence[str], ranks: Sequence[Row]
) -> list[Html]:
    """Return the figures of a comparison.

    Args:
        samplers: the draws of each, with the variables in the same order.
        truth: the draws of the reference.
        worst: the variable of each sampler whose trace is shown; all of them are shown.
        ranks: from `ranking`.
    """
    if not samplers:
        return []
    names = next(iter(samplers.values())).features
    order = dict.fromkeys([*map(names.index, worst), *range(len(names))])
    chosen = sorted(list(order)[:_MAX_VARIABLES])
    some = f" {len(chosen)} of {len(names)} variables." if len(chosen) < len(names) else ""
    legend = [(choose_style(k), name) for k, name in enumerate(samplers)]
    lines = [_draw_densities(samplers, truth, k) for k in chosen]
    result = [plots(lines, f"{_DENSITIES}{some}" if truth else f"Densities.{some}", legend)]
    if truth is not None:
        curves = compute_ecdf_differences(samplers, truth)
        lines = [plot(names[k], curves[k], y_axis=False) for k in chosen]
        result.append(plots(lines, f"{_ECDFS}{some}", legend))
    if ranks:
        result.append(plots([_draw_costs(ranks, list(samplers))], _COSTS))
    traces = [
        _trace(name, draws, truth, names.index(variable))
        for (name, draws), variable in zip(samplers.items(), worst, strict=True)
        if not draws.weighted
    ]
    return [*result, *([plots(traces, _TRACES)] if traces else [])]


def _draw_densities(samplers: Mapping[str, Draws], truth: Draws | None, k: int) -> Html:
    every = [*samplers.values(), *([truth] if truth else [])]
    ends = np.array([quantiles(d.flat[:, [k]], (0.002, 0.998), d.importance)[:, 0] for d in every])
    grid = np.linspace(ends[:, 0].min(), ends[:, 1].max(), _GRID)

    densities = [
        gaussian_kde(x, weights=draws.importance)(grid) if np.ptp(x) else 0 * grid
        for draws, x in ((draws, draws.flat[:, k]) for draws in every)
    ]
    layers = [Layer(grid, 0 * grid, "axis")]
    if truth is not None:
        *densities, expected = densities
        densities = [np.minimum(y, _HIGHEST * expected.max()) for y in densities]
        layers.append(Layer(grid, expected, "band", 0 * grid))
    layers += [Layer(grid, y, choose_style(number)) for number, y in enumerate(densities)]
    return plot(every[0].features[k], layers, y_axis=False)


def compute_ecdf_differences(
    samplers: Mapping[str, Draws], truth: Draws, seed: int = 0
) -> list[list[Layer]]:
    """Return for each variable a simultaneous band, and the difference of ECDFs of each sampler.

    Draws are thinned to nearly independent ones, which can be exchanged if the distributions are
    the same. Differences are in units in which the band is √(p (1 − p)) for all samplers, where p
    is the share of the pooled draws that are below; random splits of as many draws are inside, at
    all points, with the probability `PROBABILITY`.
    """
    rng = np.random.default_rng(seed)
    theirs = select_independent(truth, _MOST, rng)
    result: list[list[Layer]] = [[] for _ in truth.features]
    for number, draws in enumerate(samplers.values()):
        ours = select_independent(draws, _MOST, rng)
        pooled = np.concatenate([ours, theirs])
        n, total = len(ours), len(pooled)
        ranks = np.unique(np.linspace(1, total - 1, _GRID).astype(int))
        share = ranks / total
        band = np.sqrt(share * (1 - share))
        # Each row says which of the sorted draws are ours: in random splits, then in each variable.
        splits = rng.permuted(np.tile(np.arange(total) < n, (_SPLITS, 1)), axis=1)
        order = np.argsort(pooled, axis=0, kind="stable")
        below = np.cumsum(np.concatenate([splits, (order < n).T]), axis=1)[:, ranks - 1]
        differences = below / n - (ranks - below) / (total - n)
        size = np.quantile(np.abs(differences[:_SPLITS] / band).max(axis=1), PROBABILITY)
        for k, layers in enumerate(result):
            x = pooled[order[ranks - 1, k], k]
            if number == 0:
                layers.append(Layer(x, band, "band", -band))
            layers.append(Layer(x, differences[_SPLITS + k] / size, choose_style(number)))
    return result


def _draw_costs(ranks: Sequence[Row], names: Sequence[str]) -> Html:
    layers = []
    for place, row in enumerate(ranks):
        low, high = row["interval"] or (row["ess_per_second"],) * 2
        y, style = np.full(2, -float(place)), choose_style(names.index(row["sampler"]))
        middle = np.log10(row["ess_per_second"])
        text = f"{row['sampler']}: {format_value(row['ess_per_second'])}"
        layers.append(Layer(np.log10([low, high]), y, style, text=text))
        layers.append(Layer(np.array([middle] * 2), y + np.array([-0.1, 0.1]), style))
    height = 78.0 + 34 * len(ranks)
    return plot("effective draws per second", layers, height=height, y_axis=False, log=True)


def _trace(name: str, draws: Draws, truth: Draws | None, k: int) -> Html:
    step = -(-draws.shape[1] // _TRACE)
    x = np.arange(0, draws.shape[1], step, dtype=np.float64)
    layers = []
    if truth is not None:
        low, high = truth.interval(0.9)[:, k]
        layers.append(Layer(x, np.full(len(x), high), "band", np.full(len(x), low)))
    chains = draws.weights[:_CHAINS, ::step, k]
    layers += [Layer(x, chain, f"{choose_style(c)} thin") for c, chain in enumerate(chains)]
    return plot(f"{draws.features[k]}, {name}", layers, "draw")
