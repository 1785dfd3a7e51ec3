"""Traces and ranks of the chains of a posterior: its weights, standardised, and other sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from bpa_ppl.diagnostics.checks import check, sampled_components
from bpa_ppl.diagnostics.pages.figures import NARROW, empty_figure, label, write_figure
from bpa_ppl.diagnostics.pages.page import Section, Verdict, drawn, page, write_page
from bpa_ppl.diagnostics.provenance import signature
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import WEIGHTS, Draws, standardised
from bpa_ppl.posterior.statistics import ess

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bpa_ppl.arrays import Float64
    from bpa_ppl.posterior.adapter import Posterior

#: More chains than these cannot be distinguished in a figure.
MAX_CHAINS = 8
_KINDS = (".png", ".svg", ".pdf", ".html")
_ROW = 1.1  # height of a component, in inches
_BINS = 20
#: How to read the figure.
CAPTION = (
    "Left: every draw, one colour a chain, the warm-up on grey; chains that mix look like one band "
    "without steps or slopes. Right: how often the draws of each chain have each rank among all "
    "draws; where chains agree, every line is near the dashed one."
)


def write_traces(
    posterior: Posterior,
    path: str | Path,
    names: Sequence[str] | None = None,
    *,
    top: int = 8,
    title: str = "Traces",
) -> None:
    """Write the traces and ranks of the chains of a posterior.

    Weights are multiplied by the standard deviation of their feature within the adaptation lists,
    if the posterior records it.

    Args:
        posterior: chains, from this library or another.
        path: a .png, .svg, .pdf or .html file.
        names: weights or cells of other sites, such as `tau`; None is those that mix worst.
        top: the number of these.
        title: of an HTML page.

    Raises:
        DataError: if there are no chains, or no component with a name.
        UsageError: if the path has another suffix, or `top` is below 1.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _KINDS:
        problem = f"traces are written as {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not {path}"
        raise UsageError(problem, parameter="output", code="unknown-format")
    draws = as_draws(posterior)
    if draws.weighted or draws.kind == "point":
        kind = "importance-weighted draws" if draws.weighted else "a single point"
        problem = f"traces need chains, and this posterior has {kind}: use a sampler such as nuts"
        raise DataError(problem, code="no-data")
    chosen = worst_mixing(draws, top) if names is None else _check_names(draws, names)
    scaled = standardised(draws) or draws
    figure = trace_figure(scaled, chosen)
    if suffix != ".html":
        write_figure(figure, path, dpi=150)
        return
    report, unit = check(draws), "in raw units" if scaled is draws else "per standard deviation"
    text = "Converged." if report else "NOT converged: see bpa check."
    image = drawn(figure, f"Traces of {', '.join(chosen)}", f"{CAPTION} Weights are {unit}.")
    verdict = Verdict(text, bool(report))
    write_page(page(title, verdict, [Section("Chains", [image])], signature(draws)), path)


def worst_mixing(draws: Draws, top: int) -> list[str]:
    """Return the components with the fewest effective draws, in the order of the posterior.

    Args:
        draws: chains.
        top: how many.

    Raises:
        UsageError: if `top` is below 1.
    """
    if top < 1:
        raise UsageError(f"the traces of at least 1 weight are shown, not {top}", parameter="top")
    names, values = sampled_components(draws)
    varies = np.ptp(values, axis=(0, 1)) > 0
    size = np.where(varies, np.nan_to_num(ess(values)), 0.0)
    return [names[k] for k in np.sort(np.argsort(size, kind="stable")[:top])]


def _check_names(draws: Draws, names: Sequence[str]) -> list[str]:
    """Return names after checking that the posterior has them.

    Raises:
        DataError: if it has no such component.
    """
    components = draws.components()
    for name in names:
        if name not in components:
            problem = f"the posterior has no {name}: choose from {', '.join(components)}"
            raise DataError(problem, parameter="weights", code="missing-feature")
    return list(names)


def trace_figure(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw the traces of some components, with the warm-up on grey, and the ranks of the chains.

    Args:
        draws: chains, weights in the unit to show.
        names: weights, or cells of other sites.
    """
    kept, warmup = draws.components(), {}
    if WEIGHTS in draws.warmup:
        sites = tuple(site for site in draws.sites if site in draws.warmup)
        warmup = Draws(
            draws.warmup, draws.features, sites=sites, dims=draws.dims, coords=draws.coords
        ).components()
    figure, grid = empty_figure(len(names), 2, _ROW, width=NARROW, ratios=(3, 1))
    for name, (traces, ranks) in zip(names, grid, strict=True):
        values = kept[name][:MAX_CHAINS]
        before = warmup.get(name, values[:, :0])[:MAX_CHAINS]
        start = -before.shape[1]
        joined = np.concatenate([before, values], axis=1)
        traces.plot(np.arange(start, values.shape[1]), joined.T, linewidth=0.4, alpha=0.75)
        if start:
            traces.axvspan(start, 0, color="0.9", zorder=0)
        traces.set_title(label(name), loc="left", fontsize="medium", pad=3)
        traces.margins(x=0)
        _draw_ranks(ranks, values)
    grid[0, 1].set_title("ranks", loc="left", fontsize="medium", pad=3)
    grid[-1, 0].set_xlabel("draw (warm-up on grey)" if warmup else "draw")
    grid[-1, 1].set_xlabel("rank")
    return figure


def _draw_ranks(axes: Axes, values: Float64) -> None:
    """Draw how often the draws of each chain have each rank among all draws (Vehtari et al. 2021).

    Args:
        axes: where to draw.
        values: (C, D).
    """
    ranks = rankdata(values).reshape(values.shape)
    edges = np.linspace(0.5, values.size + 0.5, _BINS + 1)
    for chain in ranks:
        axes.stairs(np.histogram(chain, edges)[0], edges, linewidth=0.9)
    expected = values.shape[1] / _BINS
    axes.axhline(expected, color="0.3", linestyle="--", linewidth=0.8)
    axes.set_ylim(0, 2.2 * expected)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.margins(x=0)
