"""The figures of a comparison of samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from bpa_ppl.diagnostics.comparison.comparison import (
    AGREES,
    DIFFERS,
    LEVEL,
    UNDECIDED,
    Comparison,
    Contestant,
)
from bpa_ppl.diagnostics.pages.canvas import canvas, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GOOD, _BAD, _GREY = "#1f6f8b", "#b3261e", "#9aa0a6"
_COLOURS = {AGREES: _GOOD, DIFFERS: _BAD, UNDECIDED: _GREY}
_LINEAR = 3.0  # standard errors


def figures(comparison: Comparison) -> dict[str, tuple[Figure, str, str]]:
    """Return for each figure, by name, the figure, what it shows in words, and how to read it."""
    found = {"efficiency": (_efficiency(comparison.contestants), *_EFFICIENCY)}
    judged = [one for one in comparison.contestants if one.distance is not None]
    if judged:
        found["accuracy"] = (_accuracy(judged), _told(judged), _ACCURACY)
        found["distance"] = (_distance(judged), *_DISTANCE)
    return found


_EFFICIENCY = (
    "Bars of the effective draws per second and per evaluation of the likelihood of each sampler",
    "Effective draws of the worst weight, for a second and for an evaluation of the likelihood; "
    "logarithmic axes.",
)
_ACCURACY = (
    "A dot is the mean, the standard deviation or a quantile of one weight. Between the dashes a "
    "sampler that is right, with many draws, has all its dots 995 times in 1000. The axis is "
    f"logarithmic beyond ±{_LINEAR:g} standard errors."
)
_DISTANCE = (
    "Distance of each sampler's joint distribution from the reference, beside the distances of "
    "the reference from parts of itself",
    "Bars: how far parts of the reference are from each other, the inner 99%. A dot to the right "
    "of its bar is a joint distribution that is not the reference's.",
)


def _told(judged: Sequence[Contestant]) -> str:
    worst = ", ".join(
        f"{one.sampler} {max(abs(gap.z) for gap in one.discrepancies):.1f}" for one in judged
    )
    return f"Differences from the reference in standard errors; the largest: {worst}"


def _efficiency(contestants: Sequence[Contestant]) -> Figure:
    figure, ((left, right),) = canvas(1, 2, 0.35 * len(contestants) + 0.8)
    names = [label(one.sampler) for one in contestants]
    told = [one.efficiency for one in contestants]
    columns = (
        (left, "ESS per second", [e.ess_per_second for e in told]),
        (right, "ESS per evaluation", [e.ess_per_evaluation for e in told]),
    )
    for axis, title, values in columns:
        axis.barh(names, [value or np.nan for value in values], color=_GOOD)
        axis.set_xlabel(title)
        axis.invert_yaxis()
        if any(values):
            axis.set_xscale("log")
    return figure


def _accuracy(judged: Sequence[Contestant]) -> Figure:
    figure, ((axis,),) = canvas(1, 1, 0.5 * len(judged) + 1.0)
    for row, one in enumerate(judged):
        z = np.array([gap.z for gap in one.discrepancies])
        jitter = np.linspace(-0.3, 0.3, len(z))
        axis.plot(z, row + jitter, ".", color=_COLOURS[one.verdict], alpha=0.7)
    limit = float(norm.isf(LEVEL / 4 / len(judged[0].discrepancies)))
    for edge in (-limit, limit):
        axis.axvline(edge, color=_GREY, linestyle="--", linewidth=1)
    axis.set_xscale("symlog", linthresh=_LINEAR)
    axis.set_yticks(range(len(judged)), [label(one.sampler) for one in judged])
    axis.set_xlabel("difference from the reference, in Monte-Carlo standard errors")
    axis.invert_yaxis()
    return figure


def _distance(judged: Sequence[Contestant]) -> Figure:
    figure, ((axis,),) = canvas(1, 1, 0.4 * len(judged) + 1.0)
    for row, one in enumerate(judged):
        assert one.distance is not None  # the caller looked
        low, high = np.quantile(one.distance.null, (LEVEL / 2, 1 - LEVEL / 2))
        axis.barh(row, high - low, left=low, height=0.5, color=_GREY, alpha=0.5)
        axis.plot(one.distance.value, row, "o", color=_COLOURS[one.verdict])
    axis.set_yticks(range(len(judged)), [label(one.sampler) for one in judged])
    axis.set_xlabel("sliced Wasserstein distance, in posterior standard deviations")
    axis.set_xscale("log")
    axis.invert_yaxis()
    return figure
