"""Sections of a page about prior and likelihood: what decides the weights, what they explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.pages.page import Block, Section, Table, Text, beginning
from bpa_ppl.diagnostics.predictive.likelihood import (
    GOOD_PARETO_K,
    SENSITIVE,
    Loo,
    Sensitivity,
    loo,
    power_sensitivity,
)
from bpa_ppl.errors import DataError
from bpa_ppl.posterior import as_draws

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_WORST = 8  # sentences in the table
_FEW = 3  # weights that are named, where more are counted
_SCALED = (
    "How much the distribution of each weight changes if the prior, or the likelihood, is raised "
    f"to a power (Jensen–Shannon distance for a doubling). Above {SENSITIVE:g} it depends on it: "
    "on the likelihood it should, on the prior it may."
)


def model_sections(posterior: Posterior, texts: Sequence[str] | None = None) -> list[Section]:
    """Return what a posterior alone shows of its prior and likelihood, as far as it is recorded.

    Power scaling needs the log density of the draws and the log-likelihood of all that was
    observed; PSIS-LOO the log-likelihood of each sentence.

    Args:
        posterior: the draws.
        texts: by which the adaptation sentences are shown; None shows their positions.

    Raises:
        DataError: if there are more texts than sentences, or fewer.
    """
    draws = as_draws(posterior)
    sections: list[Section] = []
    if draws.log_density is not None and draws.total_log_likelihood is not None:
        sections.append(Section("Prior and data", _sensitivities(power_sensitivity(draws))))
    if draws.pointwise is not None:
        found = loo(draws)
        blocks = (Text(f"PSIS-LOO: {found}."), _worst(found, texts))
        sections.append(Section("Sentences left out", blocks))
    return sections


def _sensitivities(found: Sequence[Sensitivity]) -> list[Block]:
    """Say once what holds of many weights, and tabulate the numbers."""
    depends = [(s.prior >= SENSITIVE, s.likelihood >= SENSITIVE) for s in found]
    torn = [s.weight for s, on in zip(found, depends, strict=True) if on == (True, True)]
    held = [s.weight for s, on in zip(found, depends, strict=True) if on == (True, False)]
    told = []
    if torn:
        told.append(
            f"Prior and data disagree on {_named(torn, len(found))}: is the prior too narrow?"
        )
    if held:
        few = "there are few data on them, or the prior is narrow"
        told.append(f"The prior decides {_named(held, len(found))}: {few}.")
    words = {(True, True): "both", (True, False): "prior", (False, True): "data"}
    rows = [
        (s.weight, s.prior, s.likelihood, words.get(on, "neither"))
        for s, on in zip(found, depends, strict=True)
    ]
    summary = " ".join(told) or "No weight depends on the prior."
    return [
        Text(summary),
        Text(_SCALED),
        Table(("weight", "prior", "likelihood", "depends on"), rows),
    ]


def _named(weights: Sequence[str], of: int) -> str:
    """Return weights by name if they are few, else their number."""
    if len(weights) == of > 1:
        return f"all {of} weights"
    return ", ".join(weights) if len(weights) <= _FEW else f"{len(weights)} of {of} weights"


def _worst(found: Loo, texts: Sequence[str] | None) -> Table:
    count = len(found.pointwise)
    if texts is not None and len(texts) != count:
        raise DataError(
            f"{len(texts)} texts are not those of the {count} sentences that the posterior was "
            "adapted to: give the lists that it was adapted to"
        )
    order = np.argsort(found.pointwise)[:_WORST].tolist()
    rows = [
        (
            str(s) if texts is None else f"{s}: {beginning(texts[s])}",
            float(found.pointwise[s] if found.improper else np.exp(found.pointwise[s])),
            float(found.pareto_k[s]),
            "" if found.pareto_k[s] <= GOOD_PARETO_K else "not to be trusted",
        )
        for s in order
    ]
    value = f"log-{found.improper}" if found.improper else "probability of the oracle"
    header = ("position" if texts is None else "sentence", value, "Pareto k̂", "")
    return Table(header, rows, "The sentences that the others predict worst.")
