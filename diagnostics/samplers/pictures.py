"""The pictures of a comparison: densities, ECDFs, and errors by evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import gaussian_kde

from bpa_ppl.diagnostics.page import Block, Html
from bpa_ppl.diagnostics.pages.figures import COLOURS, Layer, choose_style, plot, plots
from bpa_ppl.diagnostics.samplers.efficiency import Row, ess_of_means
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs, select_independent
from bpa_ppl.posterior.draws import Draws, quantiles

#: Of the bands of the differences of ECDFs: the probability that all of a curve is inside.
PROBABILITY = 0.95
_MAX_VARIABLES = 6
_CURVE_POINTS, _SPLITS, _MAX_DRAWS = 80, 999, 1500  # random splits; draws of an ECDF
_BELOW = 3.0  # how far an error is shown below the errors that are expected at the end
_HIGHEST = 2.0  # of a density, as a multiple of the reference's
_ECDFS = (
    "Empirical distribution functions minus that of the reference, scaled by the numbers of nearly "
    f"independent draws; grey: {PROBABILITY:.0%} of correct samplers have their whole curve here."
)
_ERRORS = (
    "Error of the mean of the draws so far, the root mean square over all variables and runs, by "
    "the evaluations of the density that a run has spent, with those of the warm-up where the "
    "posterior has its draws; very small errors are cut off. Grey: independent draws that take one "
    "evaluation each, 1/√n."
)
_FLOOR = (
    "Dashed: the Monte-Carlo error of the reference, below which no error can be measured. A "
    "curve that stays flat above it shows a bias."
)


def draw_pictures(
    samplers: Mapping[str, Draws],
    truth: Draws | None,
    worst: Mapping[str, Sequence[str]],
    errors: Mapping[str, Sequence[Row]],
) -> list[Block]:
    """Return the figures of a comparison, with a paragraph on what one of them lacks.

    More samplers than there are colours have a plot each.

    Args:
        samplers: the draws of each, with the variables in the same order.
        truth: the draws of the reference.
        worst: the variables of each sampler, the ones that are furthest off first.
        errors: of each sampler, from `measure_running_error`.
    """
    if not samplers:
        return []
    names = next(iter(samplers.values())).names
    places = {name: [names.index(variable) for variable in of] for name, of in worst.items()}
    standards = _find_standards(samplers, truth)
    grey = "the reference" if truth is not None else "the draws of all others, pooled"
    colours = [(choose_style(k), name) for k, name in enumerate(samplers)]
    legend = colours if len(samplers) <= COLOURS else []
    result: list[Block] = [*_draw_marginals(samplers, truth, standards, places, legend, grey)]
    if any(errors.values()):
        floor = None if truth is None else _find_error(truth)
        caption = f"{_ERRORS} Compared with {grey}." if floor is None else f"{_ERRORS} {_FLOOR}"
        caption += "" if legend else " Thin: the other samplers."
        drawn = [(style, name) for style, name in legend if errors[name]]
        result.append(plots(_draw_errors(errors, floor), caption, drawn))
        if unknown := [name for name, rows in errors.items() if not rows]:
            reason = "because n_steps, the evaluations of the density, is not recorded"
            result.append(f"Without a curve of the error, {reason}: {', '.join(unknown)}.")
    return result


def _draw_marginals(
    samplers: Mapping[str, Draws],
    truth: Draws | None,
    standards: Mapping[str, Draws],
    places: Mapping[str, Sequence[int]],
    legend: Sequence[tuple[str, str]],
    grey: str,
) -> list[Html]:
    """Return the densities, and the differences of ECDFs from the reference.

    With a legend, all samplers are in the plot of each variable; without one, each has its own
    plot, of the variable that is furthest off.
    """
    names = next(iter(samplers.values())).names
    groups: list[tuple[Mapping[str, Draws], Draws | None, Sequence[int]]]
    if legend:
        order = dict.fromkeys(np.transpose([*places.values()]).ravel().tolist())
        chosen = sorted([*order][:_MAX_VARIABLES])
        groups = [(samplers, truth, chosen)]
        worst = ", those that are furthest off" if standards else ""
        note = f" {len(chosen)} of {len(names)} variables{worst}."
        note = note if len(chosen) < len(names) else ""
    else:
        groups = [({name: of}, standards[name], places[name][:1]) for name, of in samplers.items()]
        note = " Each plot has one sampler, and its variable that is furthest off."
    densities, differences = [], []
    for of_plot, standard, columns in groups:
        title = "" if legend else f", {next(iter(of_plot))}"
        densities += [_draw_densities(f"{names[k]}{title}", of_plot, standard, k) for k in columns]
        if truth is not None:
            curves = compute_ecdf_differences(of_plot, truth)
            differences += [plot(f"{names[k]}{title}", curves[k], y_axis=False) for k in columns]
    caption = f"Marginal densities; grey: {grey}. High peaks are cut off."
    caption = caption if truth is not None or not legend else "Densities."
    result = [plots(densities, f"{caption}{note}", legend)]
    return [*result, *([plots(differences, f"{_ECDFS}{note}", legend)] if differences else [])]


def _find_standards(samplers: Mapping[str, Draws], truth: Draws | None) -> dict[str, Draws]:
    """Return the draws that each sampler is compared with; none for a single sampler."""
    if truth is not None:
        return dict.fromkeys(samplers, truth)
    if len(samplers) == 1:
        return {}
    return {
        name: concatenate_runs([draws for other, draws in samplers.items() if other != name])
        for name in samplers
    }


def _draw_densities(title: str, samplers: Mapping[str, Draws], truth: Draws | None, k: int) -> Html:
    every = [*samplers.values(), *([truth] if truth else [])]
    ends = np.array([quantiles(d.flat[:, [k]], (0.002, 0.998), d.importance)[:, 0] for d in every])
    grid = np.linspace(ends[:, 0].min(), ends[:, 1].max(), _CURVE_POINTS)

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
    return plot(title, layers, y_axis=False)


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
    theirs = select_independent(truth, _MAX_DRAWS, rng)
    result: list[list[Layer]] = [[] for _ in truth.names]
    for number, draws in enumerate(samplers.values()):
        ours = select_independent(draws, _MAX_DRAWS, rng)
        pooled = np.concatenate([ours, theirs])
        n, total = len(ours), len(pooled)
        ranks = np.unique(np.linspace(1, total - 1, _CURVE_POINTS).astype(int))
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


def _find_error(draws: Draws) -> float:
    """Return the Monte-Carlo error of means in standard deviations, root mean square."""
    sizes = ess_of_means(draws)
    return float(np.sqrt(np.mean(1 / sizes[sizes > 0])))


def _draw_errors(errors: Mapping[str, Sequence[Row]], floor: float | None) -> list[Html]:
    """Draw the errors of all samplers, or of each in a plot with the others in grey."""
    columns = "evaluations", "error"
    curves = {
        name: np.log10([[max(row[c], np.finfo(float).tiny) for row in rows] for c in columns])
        for name, rows in errors.items()
        if rows
    }
    spent = np.concatenate([x for x, _ in curves.values()])
    ends = np.array([spent.min(), spent.max()])
    guides = [Layer(ends, -ends / 2, "line guide")]
    if floor is not None:
        guides.append(Layer(ends, np.full(2, np.log10(floor)), "line guide dashed"))
    lowest = min(layer.y[-1] for layer in guides) - np.log10(_BELOW)

    def line(name: str, style: str) -> Layer:
        return Layer(curves[name][0], np.maximum(curves[name][1], lowest), style)

    def draw(title: str, layers: Sequence[Layer]) -> Html:
        label = "evaluations of the density"
        return plot(title, [*guides, *layers], label, height=240.0, log_x=True, log_y=True)

    if len(errors) <= COLOURS:
        lines = [line(name, choose_style(k)) for k, name in enumerate(errors) if name in curves]
        return [draw("error of the means, in posterior sd", lines)]
    return [
        draw(
            f"error of the means, {name}",
            [
                *(line(other, "line guide thin") for other in curves if other != name),
                line(name, choose_style(0)),
            ],
        )
        for name in curves
    ]
