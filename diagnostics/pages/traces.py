"""Plots of the chains of a posterior: densities, traces, ranks, mixing and energies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl.diagnostics.check.convergence import BulkESS
from bpa_ppl.diagnostics.check.diagnostic import FEWEST, list_components
from bpa_ppl.diagnostics.check.report import check_and_record
from bpa_ppl.diagnostics.page import Headline, Html, Section, page, write_page
from bpa_ppl.diagnostics.pages.figures import embed_figure, empty_figure, label, write_figure
from bpa_ppl.diagnostics.pages.provenance import signature
from bpa_ppl.errors import DataError, list_names, unknown_name, wrong_value
from bpa_ppl.posterior.arviz_functions import TRACE, plot_chains
from bpa_ppl.posterior.draws import Draws, choose_components
from bpa_ppl.posterior.opening import open_to_show
from bpa_ppl.posterior.statistics import autocorrelation, ess

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Components in one figure.
_MAX_COMPONENTS = 100
#: Characters of a line below the figure.
_LINE = 80
#: Lags of autocorrelations, and sizes of the growing part of the draws.
_LAGS, _SIZES = 60, 20
#: More chains than these cannot be distinguished in a figure.
MAX_CHAINS = 8
_SUFFIXES = (".png", ".svg", ".pdf", ".html")
_ROW = 1.1  # height of a component, in inches
_WIDTH, _RATIOS = 5.6, (1, 2, 1)  # of the figure, in inches; and of densities, traces and ranks
#: How to read the figures of the chains: densities, traces and ranks.
_CAPTIONS = {
    "Densities": "The density of the draws of each chain. One colour a chain.",
    "Traces": "Every draw, with the warm-up on grey; chains that mix look like one band without "
    "steps or slopes.",
    "Ranks": "The ranks of the draws of each chain among all draws, compared with uniform ranks "
    "(dashed); chains that agree stay near them.",
}
_LAG_CAPTION = (
    "The autocorrelation of each chain by the lag; the sooner it falls to 0, the more a draw is "
    "worth."
)
_ESS_CAPTION = (
    "The effective draws of the bulk and of the tails as the run grows; lines that rise steadily "
    "belong to chains that have found their distribution. Dashed: 400."
)
_ENERGY_CAPTION = (
    "Above: the energies of draws, and their changes from draw to draw; where the changes are much "
    "narrower, a Hamiltonian sampler explores slowly. Below: the two variables with the fewest "
    "effective draws, divergent transitions in red; where these cluster, the draws are biased."
)


def write_traces(
    posterior: Any,
    path: str | Path,
    var_names: Sequence[str] | None = None,
    *,
    top: int = 8,
    title: str = "Traces",
    html: bool = False,
    show: Callable[[Draws], tuple[Draws, str]] | None = None,
    describe: Callable[[Draws], str] = signature,
) -> list[Path]:
    """Write the traces and ranks of the chains of a posterior.

    Args:
        posterior: chains, in any form that `read_posterior` takes.
        path: a .png, .svg, .pdf or .html file.
        var_names: as for `plot_trace`.
        top: as for `plot_trace`.
        title: of an HTML page.
        html: whether to write the page, too, next to a figure: with the same name, and .html.
        show: returns the draws in the units to plot, and a sentence on these units, or ""; by
            default the draws are plotted as they are.
        describe: returns the signature at the end of the page.

    Returns:
        the paths of the files.

    Raises:
        DataError: if there are no chains, or no variable with a name.
        UsageError: if the path has another suffix, or `top` is below 1.
    """
    paths = [Path(path)]
    if (suffix := paths[0].suffix.lower()) not in _SUFFIXES:
        raise unknown_name("ending", suffix, _SUFFIXES, "output", owner=path)
    draws = _require_chains(posterior, var_names)
    chosen = _choose_components(draws, var_names, top)
    shown, note = (draws, "") if show is None else show(draws)
    if suffix != ".html":
        left_out = _find_left_out(draws, chosen, var_names)
        write_figure(draw_traces(shown, chosen, left_out), path, dpi=150)
        if not html:
            return paths
        paths.append(paths[0].with_suffix(".html"))
    report = check_and_record(draws)[1]
    text = "Converged." if report else "NOT converged: see bpa check."
    lags, growth = draw_mixing(shown, chosen)
    mixing = [
        embed_figure(lags, f"Autocorrelation of {', '.join(chosen)}", _LAG_CAPTION),
        embed_figure(growth, f"Effective draws of {', '.join(chosen)}", _ESS_CAPTION),
    ]
    if (energy := draw_energy(draws)) is not None:
        alternative = "Energies, and divergent transitions"
        mixing.append(embed_figure(energy, alternative, _ENERGY_CAPTION))
    sections = [Section("Chains", picture_chains(shown, chosen, note)), Section("Mixing", mixing)]
    verdict = Headline(text, bool(report))
    write_page(page(title, verdict, sections, describe(draws)), paths[-1])
    return paths


def plot_trace(posterior: Any, var_names: Sequence[str] | None = None, *, top: int = 8) -> Figure:
    """Return a figure of chains: their densities, traces with the warm-up, and ranks.

    Args:
        posterior: chains, in any form that `read_posterior` takes.
        var_names: variables, or single cells such as `theta[3]`, at most 100.
        top: without names: the number of variables, those that mix worst.

    Raises:
        DataError: if there are no chains, or no variable with a name.
        UsageError: if `top` is below 1.

    >>> chains = np.random.default_rng(0).normal(size=(2, 50))
    >>> [axes.get_xlabel() for axes in plot_trace({"mu": chains}).axes]
    ['density', 'draw', 'ranks']
    """
    draws = _require_chains(posterior, var_names)
    chosen = _choose_components(draws, var_names, top)
    left_out = _find_left_out(draws, chosen, var_names)
    return draw_traces(draws, chosen, left_out)


def _require_chains(posterior: Any, var_names: Sequence[str] | None) -> Draws:
    """Return the draws of chains; other draws have no traces."""
    draws = open_to_show(posterior, var_names=var_names)
    if draws.weighted or draws.kind == "point":
        kind = "importance-weighted draws" if draws.weighted else "a single point"
        raise DataError(f"a trace needs chains, not {kind}: draw with nuts", code="no-data")
    return draws


def _choose_components(draws: Draws, var_names: Sequence[str] | None, top: int) -> list[str]:
    """Return the components to draw, at most as many as fit in a figure; log the others."""
    if var_names is None:
        chosen = find_worst_mixing(draws, top)
    else:
        chosen = choose_components(draws, var_names)
    if len(chosen) > _MAX_COMPONENTS:
        components = draws.components(derived=True)
        values = np.stack([components[name] for name in chosen], axis=-1)
        order = np.argsort(np.nan_to_num(ess(values)), kind="stable")
        worst = {*order[:_MAX_COMPONENTS].tolist()}
        left_out = [name for k, name in enumerate(chosen) if k not in worst]
        log_info(f"the {_MAX_COMPONENTS} that mix worst are drawn, not {list_names(left_out)}")
        chosen = [name for k, name in enumerate(chosen) if k in worst]
    return chosen


def _find_left_out(
    draws: Draws, chosen: Sequence[str], var_names: Sequence[str] | None
) -> list[str]:
    """Return the components that are not drawn, unless the user has chosen those that are."""
    names = () if var_names is not None else draws.components(derived=True)
    return [name for name in names if name not in chosen]


def find_worst_mixing(draws: Draws, top: int) -> list[str]:
    """Return the components with the fewest effective draws, in the order of the posterior.

    Args:
        draws: chains.
        top: how many.

    Raises:
        UsageError: if `top` is below 1.
    """
    if top < 1:
        raise wrong_value("the traces of at least 1 variable are shown", top, "top")
    names, values = list_components(draws)
    varies = np.ptp(values, axis=(0, 1)) > 0
    size = np.where(varies, np.nan_to_num(ess(values)), 0.0)
    return [names[k] for k in np.sort(np.argsort(size, kind="stable")[:top])]


def picture_chains(draws: Draws, names: Sequence[str], note: str) -> list[Html]:
    """Return figures of the densities, traces and ranks of some components of chains.

    Args:
        draws: chains, in the units to show.
        names: the components.
        note: added to the caption of the first figure.
    """
    figures, grids = zip(
        *(empty_figure(len(names), 1, _ROW, share_x=False) for _ in _CAPTIONS), strict=True
    )
    grid = np.hstack(grids)
    _draw_chains(grid, draws, names)
    for axes, name in zip(grid, names, strict=True):
        for one in axes:
            one.set_title(label(name), loc="left", fontsize="medium", pad=3)
    notes = (f" {note}", "", "")
    return [
        embed_figure(figure, f"{kind} of {', '.join(names)}", f"{caption}{added}")
        for figure, (kind, caption), added in zip(figures, _CAPTIONS.items(), notes, strict=True)
    ]


def draw_traces(draws: Draws, names: Sequence[str], left_out: Sequence[str] = ()) -> Figure:
    """Draw densities, traces with the warm-up on grey, and ranks of some components of chains.

    Args:
        draws: chains, in the units to show.
        names: the components.
        left_out: the components that the figure names as those that are not drawn.
    """
    from matplotlib.figure import Figure

    figure = Figure((_WIDTH, _ROW * len(names) + 0.5), layout="constrained")
    grid = figure.subplots(len(names), 3, squeeze=False, width_ratios=_RATIOS)
    _draw_chains(grid, draws, names)
    if left_out:
        names = list_names(map(label, left_out))
        text = fill(f"not drawn: {names} (var_names or top chooses others)", _LINE)
        figure.supxlabel(text, fontsize="small", x=0.01, ha="left")
    return figure


def _draw_chains(grid: Any, draws: Draws, names: Sequence[str]) -> None:
    """Draw densities, traces and ranks of components into axes, (components, 3)."""
    kept, warmup = draws.components(derived=True), {}
    if draws.warmup:
        discarded = Draws(draws.warmup, main=draws.main, dims=draws.dims, coords=draws.coords)
        warmup = discarded.components(derived=True)
    values = np.stack([kept[name][:MAX_CHAINS] for name in names], axis=-1)
    plot_chains(grid, values)
    for name, (density, traces, ranks) in zip(names, grid, strict=True):
        discarded_draws = warmup.get(name, kept[name][:, :0])[:MAX_CHAINS]
        start = -discarded_draws.shape[1]
        if start:
            traces.set_prop_cycle(None)
            traces.plot(np.arange(start, 0), discarded_draws.T, **TRACE)
            traces.axvspan(start, 0, color="0.9", zorder=0)
        traces.set_xlim(start, values.shape[1] - 1)
        traces.tick_params(labelsize="medium", labelbottom=False)
        density.set_yticks([])
        density.locator_params(axis="x", nbins=2)
        density.tick_params(axis="x", labelsize="small", labelbottom=True)
        ranks.set(xticks=[], yticks=[])
        traces.set_title(label(name), loc="left", fontsize="medium", pad=3)
    grid[-1, 1].tick_params(labelbottom=True)
    titles = "density", "draw (warm-up on grey)" if warmup else "draw", "ranks"
    for axes, title in zip(grid[-1], titles, strict=True):
        axes.set_xlabel(title)


def draw_mixing(draws: Draws, names: Sequence[str]) -> list[Figure]:
    """Draw the autocorrelation of each chain, and the effective draws of growing parts of the run.

    Args:
        draws: chains.
        names: the components.
    """
    components, (_, count) = draws.components(derived=True), draws.shape
    figures, grids = zip(*(empty_figure(len(names), 1, _ROW) for _ in range(2)), strict=True)
    grid = np.hstack(grids)
    sizes = np.unique(np.linspace(max(count // _SIZES, FEWEST), count, _SIZES).astype(int))
    for name, (lags, growth) in zip(names, grid, strict=True):
        chains = components[name][:MAX_CHAINS]
        lags.plot(autocorrelation(chains, _LAGS).T, **TRACE)
        for method, colour in (("bulk", "C0"), ("tail", "C1")):
            effective = [ess(components[name][:, :size], method) for size in sizes]
            growth.plot(sizes * len(components[name]), effective, colour, label=method)
        growth.axhline(BulkESS().limit, color="0.5", linestyle="--", linewidth=0.8)
        for axes in (lags, growth):
            axes.set_title(label(name), loc="left", fontsize="medium", pad=3)
        lags.set_ylim(-0.3, 1.05)
    grid[0, 1].legend(loc="upper left", fontsize="small", frameon=False)
    grid[-1, 0].set_xlabel("lag")
    grid[-1, 1].set_xlabel("draws")
    return [*figures]


def draw_energy(draws: Draws) -> Figure | None:
    """Draw energies and their changes, and divergent transitions; None if none are recorded.

    Args:
        draws: chains.
    """
    energy, diverging = (draws.statistics.get(name) for name in ("energy", "diverging"))
    pair = find_worst_mixing(draws, 2)
    if energy is None and (diverging is None or len(pair) < 2):
        return None
    figure, ((energies,), (pairs,)) = empty_figure(2, 1, 2 * _ROW, share_x=False)
    if energy is not None:
        centred = np.asarray(energy, np.float64)
        changes, centred = np.diff(centred, axis=1).ravel(), (centred - centred.mean()).ravel()
        for values, title in ((centred, "energy"), (changes, "change")):
            energies.hist(values, bins=40, density=True, histtype="step", label=title)
        energies.legend(fontsize="small", frameon=False)
    energies.set(yticks=[], xlabel="energy")
    if len(pair) == 2:
        x, y = (draws.components()[name].ravel() for name in pair)
        pairs.plot(x, y, ".", color="0.6", markersize=1, alpha=0.4)
        if diverging is not None and (bad := np.ravel(diverging).astype(bool)).any():
            pairs.plot(x[bad], y[bad], "o", color="C3", markersize=3)
        pairs.set(xlabel=label(pair[0]), ylabel=label(pair[1]))
    return figure
