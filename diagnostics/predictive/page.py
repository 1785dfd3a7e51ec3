"""Sections of a page about prior and likelihood: what holds the weights, what they predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Text, drawn
from bpa_ppl.diagnostics.predictive.checks import Reliability, predictive_check, reliability
from bpa_ppl.diagnostics.predictive.loo import GOOD_PARETO_K, Loo, loo
from bpa_ppl.diagnostics.predictive.sensitivity import THRESHOLD, power_sensitivity
from bpa_ppl.nbest import Int64, NBest
from bpa_ppl.posterior import statistic

if TYPE_CHECKING:
    from arviz import InferenceData
    from matplotlib.figure import Figure

_WORST = 8  # sentences in the table
_SCALED = (
    "How much the distribution of each weight changes if the prior, or the likelihood, is raised "
    f"to a power (Jensen–Shannon distance for a doubling). Above {THRESHOLD:g} it depends on it: "
    "on the likelihood it should, on the prior it may."
)
_RELIABILITY = (
    "Among translations that the model gives a probability p, the share that is the oracle should "
    "be p. Grey: 95% of the shares that honest probabilities would give; below it the model is "
    "too sure of itself."
)


def model_sections(posterior: InferenceData) -> list[Section]:
    """Return what a posterior alone tells of its prior and likelihood, as far as it is recorded.

    Power scaling needs the statistic `lp` and the group `log_likelihood`, and PSIS-LOO the latter.
    """
    sections: list[Section] = []
    if "log_likelihood" not in posterior:
        return sections
    if statistic(posterior, "lp") is not None:
        rows = [
            (one.weight, one.prior, one.likelihood, one.finding)
            for one in power_sensitivity(posterior)
        ]
        table = Table(("weight", "prior", "likelihood", "finding"), rows)
        sections.append(Section("What holds the weights", (Text(_SCALED), table)))
    found = loo(posterior)
    return [*sections, Section("Sentences left out", (Text(f"PSIS-LOO: {found}."), _worst(found)))]


def predictive_section(
    posterior: InferenceData, nbest: NBest, oracle: Int64, *, title: str = "What is predicted"
) -> Section:
    """Return what a posterior predicts of lists whose oracles are known.

    Args:
        posterior: draws of the weights, and of the prior where a group `prior` has them.
        nbest: lists, best ones that the posterior has not seen.
        oracle: (sentences,) position of the oracle in each.
        title: of the section.

    Raises:
        DataError: if the posterior lacks weights of the lists' features.
    """
    groups = [group for group in ("prior", "posterior") if group in posterior]
    found = [predictive_check(posterior, nbest, oracle, group=group) for group in groups]
    honest = reliability(posterior, nbest, oracle)
    blocks: list[Block] = [Text(f"{one}.") for one in found]
    alternative = f"Reliability diagram: expected calibration error {honest.error:.3f}"
    blocks.append(drawn(reliability_figure(honest), alternative, _RELIABILITY, "svg"))
    return Section(title, blocks)


def reliability_figure(found: Reliability) -> Figure:
    """Draw the observed shares over the predicted ones."""
    figure, ((axis,),) = canvas(1, 1, 4.0)
    axis.plot([0, 1], [0, 1], color="#9aa0a6", linestyle="--", linewidth=1)
    axis.fill_between(found.predicted, found.low, found.high, color="#9aa0a6", alpha=0.4)
    axis.plot(found.predicted, found.observed, "o-", color="#1f6f8b")
    axis.set_xlabel("predicted probability")
    axis.set_ylabel("share that is the oracle")
    axis.set_aspect("equal")
    return figure


def _worst(found: Loo) -> Table:
    order = np.argsort(found.pointwise)[:_WORST]
    rows = [
        (
            str(int(s)),
            float(np.exp(found.pointwise[s])),
            float(found.pareto_k[s]),
            "" if found.pareto_k[s] <= GOOD_PARETO_K else "not to be trusted",
        )
        for s in order
    ]
    header = ("position", "probability of the oracle", "Pareto k̂", "")
    return Table(header, rows, "The sentences that the others predict worst.")
