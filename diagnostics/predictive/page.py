"""Sections of a page about prior and likelihood: what decides the weights, what they predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.pages.canvas import canvas
from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Text, drawn
from bpa_ppl.diagnostics.predictive.checks import Reliability, predictive_check, reliability
from bpa_ppl.diagnostics.predictive.likelihood import (
    GOOD_PARETO_K,
    SENSITIVE,
    Loo,
    loo,
    power_sensitivity,
)
from bpa_ppl.nbest import Int64, NBest
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.draws import WEIGHTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior

_WORST = 8  # sentences in the table
_SCALED = (
    "How much the distribution of each weight changes if the prior, or the likelihood, is raised "
    f"to a power (Jensen–Shannon distance for a doubling). Above {SENSITIVE:g} it depends on it: "
    "on the likelihood it should, on the prior it may."
)
_RELIABILITY = (
    "Among translations that the model gives a probability p, the share that is the oracle should "
    "be p. Grey: 95% of the shares that honest probabilities would give; below it the model is "
    "too sure of itself."
)


def model_sections(posterior: Posterior) -> list[Section]:
    """Return what a posterior alone shows of its prior and likelihood, as far as it is recorded.

    Power scaling needs the log density of the draws and the log-likelihood of all that was
    observed; PSIS-LOO the log-likelihood of each sentence.
    """
    draws = as_draws(posterior)
    sections: list[Section] = []
    if draws.log_density is not None and draws.total_log_likelihood is not None:
        rows = [(s.weight, s.prior, s.likelihood, s.finding) for s in power_sensitivity(draws)]
        table = Table(("weight", "prior", "likelihood", "finding"), rows)
        sections.append(Section("Prior and data", (Text(_SCALED), table)))
    if draws.pointwise is not None:
        found = loo(draws)
        blocks = (Text(f"PSIS-LOO: {found}."), _worst(found))
        sections.append(Section("Sentences left out", blocks))
    return sections


def predictive_section(
    posterior: Posterior, nbest: NBest, oracle: Int64, *, title: str = "What is predicted"
) -> Section:
    """Return what a posterior predicts of lists whose oracles are known.

    Args:
        posterior: draws of the weights, and of the prior where they are known.
        nbest: lists, best ones that the posterior has not seen.
        oracle: (sentences,) position of the oracle in each.
        title: of the section.

    Raises:
        DataError: if the posterior lacks weights of the lists' features.
    """
    draws = as_draws(posterior)
    groups = ["prior", "posterior"] if WEIGHTS in draws.prior else ["posterior"]
    found = [predictive_check(draws, nbest, oracle, group=group) for group in groups]
    honest = reliability(draws, nbest, oracle)
    blocks: list[Block] = [Text(f"{one}.") for one in found]
    if (value := draws.attrs.get("temperature")) is not None:
        before = reliability(draws, nbest, oracle, temperature=1.0).error
        told = f"Temperature {value:.2f}: calibration error {before:.3f} → {honest.error:.3f}."
        blocks.append(Text(told))
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
            float(found.pointwise[s] if found.improper else np.exp(found.pointwise[s])),
            float(found.pareto_k[s]),
            "" if found.pareto_k[s] <= GOOD_PARETO_K else "not to be trusted",
        )
        for s in order
    ]
    value = f"log-{found.improper}" if found.improper else "probability of the oracle"
    header = ("position", value, "Pareto k̂", "")
    return Table(header, rows, "The sentences that the others predict worst.")
