"""Plots of the chains of a posterior: its weights, standardised, and other sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.check import check_and_record
from bpa_ppl.diagnostics.diagnostic import list_components
from bpa_ppl.diagnostics.pages.figures import NARROW, embed_figure, label, write_figure
from bpa_ppl.diagnostics.pages.page import Headline, Section, page, write_page
from bpa_ppl.diagnostics.provenance import signature
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.arviz_functions import TRACE, plot_chains
from bpa_ppl.posterior.draws import WEIGHTS, Draws, standardise
from bpa_ppl.posterior.statistics import ess

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior

#: More chains than these cannot be distinguished in a figure.
MAX_CHAINS = 8
_KINDS = (".png", ".svg", ".pdf", ".html")
_ROW = 1.1  # height of a component, in inches
_RATIOS = (1, 3, 1)  # of the widths of density, trace and ranks
#: How to read the figure.
CAPTION = (
    "One colour a chain. Left: the density of its draws. Middle: every draw, with the warm-up on "
    "grey; chains that mix look like one band without steps or slopes. Right: the ranks of its "
    "draws among all draws, compared with uniform ranks (dashed); chains that agree stay near them."
)


def write_traces(
    posterior: Posterior,
    path: str | Path,
    names: Sequence[str] | None = None,
    *,
    top: int = 8,
    title: str = "Traces",
    html: bool = False,
) -> list[Path]:
    """Write the traces and ranks of the chains of a posterior.

    Weights are multiplied by the standard deviation of their feature within the adaptation lists,
    if the posterior records it.

    Args:
        posterior: chains, from this library or another.
        path: a .png, .svg, .pdf or .html file.
        names: weights or cells of other sites, such as `tau`; None is those that mix worst.
        top: the number of these.
        title: of an HTML page.
        html: whether to write the page, too, next to a figure: with the same name, and .html.

    Returns:
        the paths of the files.

    Raises:
        DataError: if there are no chains, or no component with a name.
        UsageError: if the path has another suffix, or `top` is below 1.
    """
    paths = [Path(path)]
    if (suffix := paths[0].suffix.lower()) not in _KINDS:
        problem = f"traces are written as {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not {path}"
        raise UsageError(problem, parameter="output", code="unknown-format")
    draws = as_draws(posterior)
    if draws.weighted or draws.kind == "point":
        kind = "importance-weighted draws" if draws.weighted else "a single point"
        problem = f"traces need chains, and this posterior has {kind}: use a sampler such as nuts"
        raise DataError(problem, code="no-data")
    chosen = find_worst_mixing(draws, top) if names is None else list(names)
    components = draws.components()
    if missing := [name for name in chosen if name not in components]:
        problem = f"the posterior has no {missing[0]}: choose from {', '.join(components)}"
        raise DataError(problem, parameter="weights", code="missing-feature")
    scaled = standardise(draws) or draws
    figure = draw_traces(scaled, chosen)
    if suffix != ".html":
        write_figure(figure, path, dpi=150)
        if not html:
            return paths
        paths.append(paths[0].with_suffix(".html"))
    report = check_and_record(draws)[1]
    unit = "in raw units" if scaled is draws else "per standard deviation"
    text = "Converged." if report else "NOT converged: see bpa check."
    image = embed_figure(figure, f"Traces of {', '.join(chosen)}", f"{CAPTION} Weights are {unit}.")
    verdict = Headline(text, bool(report))
    write_page(page(title, verdict, [Section("Chains", [image])], signature(draws)), paths[-1])
    return paths


def find_worst_mixing(draws: Draws, top: int) -> list[str]:
    """Return the components with the fewest effective draws, in the order of the posterior.

    Args:
        draws: chains.
        top: how many.

    Raises:
        UsageError: if `top` is below 1.
    """
    if top < 1:
        raise UsageError(f"the traces of at least 1 weight are shown, not {top}", parameter="top")
    names, values = list_components(draws)
    varies = np.ptp(values, axis=(0, 1)) > 0
    size = np.where(varies, np.nan_to_num(ess(values)), 0.0)
    return [names[k] for k in np.sort(np.argsort(size, kind="stable")[:top])]


def draw_traces(draws: Draws, names: Sequence[str]) -> Figure:
    """Draw densities, traces with the warm-up on grey, and ranks of some components of chains.

    Args:
        draws: chains, weights in the unit to show.
        names: weights, or cells of other sites.
    """
    kept, warmup = draws.components(), {}
    if WEIGHTS in draws.warmup:
        discarded = Draws(draws.warmup, draws.features, dims=draws.dims, coords=draws.coords)
        warmup = discarded.components(derived=True)
    values = np.stack([kept[name][:MAX_CHAINS] for name in names], axis=-1)
    size = NARROW, _ROW * len(names) + 0.5
    figure, grid = plot_chains(values, figsize=size, width_ratios=_RATIOS, layout="constrained")
    for name, (density, traces, ranks) in zip(names, grid, strict=True):
        before = warmup.get(name, kept[name][:, :0])[:MAX_CHAINS]
        start = -before.shape[1]
        if start:
            traces.set_prop_cycle(None)
            traces.plot(np.arange(start, 0), before.T, **TRACE)
            traces.axvspan(start, 0, color="0.9", zorder=0)
        traces.set_xlim(start, values.shape[1] - 1)
        traces.tick_params(labelsize="medium", labelbottom=False)
        for axes in (density, ranks):
            axes.set(xticks=[], yticks=[])
        traces.set_title(label(name), loc="left", fontsize="medium", pad=3)
    grid[-1, 1].tick_params(labelbottom=True)
    titles = "density", "draw (warm-up on grey)" if warmup else "draw", "ranks"
    for axes, title in zip(grid[-1], titles, strict=True):
        axes.set_xlabel(title)
    return figure
