"""The page about calibrations: verdicts, and the ranks of the truth within their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.calibration.calibration import LEVEL, RANKED, Calibration
from bpa_ppl.diagnostics.pages.canvas import canvas, label
from bpa_ppl.diagnostics.pages.page import Block, Code, Section, Table, Text, Verdict, drawn, page
from bpa_ppl.diagnostics.significance import bands

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROBABILITY = 0.95
_COLUMNS = 4
_METHOD = (
    "Weights are drawn from the prior, oracles from the model given the weights, and the sampler "
    f"is run on them; the truth is ranked among {RANKED} of its draws. The ranks are uniform if "
    "the sampler draws from the posterior. p is that of uniform ranks, after Holm's correction "
    "for the number of quantities."
)
_READING = (
    "What the distribution of the ranks has more than a uniform one. Grey: where an exact "
    f"sampler's whole line is with a probability of {100 * _PROBABILITY:g}%, for one quantity. "
    "A line above the bands at the left: draws too large; below: too small; first above and then "
    "below: too narrow; first below and then above: too wide."
)


def calibration_page(
    calibrations: Sequence[Calibration],
    *,
    title: str = "Samplers calibrated",
    made: Mapping[str, str] | None = None,
    command: str = "",
) -> str:
    """Return a self-contained HTML page about the calibrations of some samplers.

    Args:
        calibrations: one a sampler.
        title: of the page.
        made: how it was made: data, settings, seed.
        command: that reproduces it.
    """
    sections = [Section("Verdicts", (Text(_METHOD), _verdicts(calibrations)))]
    for one in calibrations:
        picture = drawn(ecdf_figure(one), _alternative(one), _READING, "svg")
        sections.append(Section(one.sampler, (picture, _ranks(one))))
    blocks: list[Block] = [Table(("what", "value"), list((made or {}).items()))]
    blocks += [Code(command)] if command else []
    return page(title, _verdict(calibrations), [*sections, Section("How it was made", blocks)])


def ecdf_figure(calibration: Calibration) -> Figure:
    """Draw the ECDF of each quantity's ranks less that of uniform ones, in simultaneous bands."""
    count, names = len(calibration.ranks), calibration.names
    points, lower, upper = bands(count, _PROBABILITY)
    figure, axes = canvas(-(-len(names) // _COLUMNS), _COLUMNS, 1.7)
    for axis in axes.flat[len(names) :]:
        axis.remove()
    for axis, name, ranks in zip(axes.flat, names, calibration.ranks.T, strict=False):
        reached = np.searchsorted(np.sort(ranks), points, side="right") / count
        axis.fill_between(points, lower - points, upper - points, color="#9aa0a6", alpha=0.4)
        axis.plot(points, reached - points, color="#1f6f8b")
        axis.axhline(0, color="#9aa0a6", linewidth=0.8)
        axis.set_title(label(name), fontsize="small")
        axis.tick_params(labelsize="small")
    return figure


def _verdicts(calibrations: Sequence[Calibration]) -> Table:
    rows = [
        (
            one.sampler,
            "calibrated" if one else "NOT calibrated",
            float(one.p_values.min()),
            one.names[int(one.p_values.argmin())],
            float(len(one.ranks)),
            one.ess,
        )
        for one in calibrations
    ]
    header = ("sampler", "verdict", "smallest p", "of", "replications", "smallest ESS")
    return Table(header, rows, f"Level {LEVEL:g}.", passed=[bool(one) for one in calibrations])


def _ranks(one: Calibration) -> Table:
    rows = [
        (name, float(p), float(ranks.mean()), float(ranks.std()))
        for name, p, ranks in zip(one.names, one.p_values, one.ranks.T, strict=True)
    ]
    caption = f"Uniform ranks have mean 0.5 and standard deviation {12**-0.5:.3f}."
    passed = [bool(p >= LEVEL) for p in one.p_values]
    return Table(("quantity", "p", "mean rank", "sd of ranks"), rows, caption, passed)


def _verdict(calibrations: Sequence[Calibration]) -> Verdict:
    wrong = [one.sampler for one in calibrations if not one]
    if not wrong:
        return Verdict(f"Calibrated: {', '.join(one.sampler for one in calibrations)}.", True)
    return Verdict(f"NOT calibrated: {', '.join(wrong)}.", False)


def _alternative(one: Calibration) -> str:
    verdict = "calibrated" if one else "not calibrated"
    return (
        f"Distribution of the ranks of {len(one.names)} quantities under {one.sampler}, {verdict}"
    )
