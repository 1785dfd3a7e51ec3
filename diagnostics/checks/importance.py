"""Checks of a weighted sample: do the weights rest on enough draws?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.checks.report import Finding
from bpa_ppl.diagnostics.checks.thresholds import Thresholds
from bpa_ppl.posterior import import_arviz, normalised_weights, statistic

if TYPE_CHECKING:
    from arviz import InferenceData


def findings(posterior: InferenceData, limits: Thresholds) -> list[Finding]:
    """Return the findings on importance weights: Kish's effective sample size, Pareto k̂."""
    log_weight = statistic(posterior, "log_weight")
    assert log_weight is not None  # the caller looked
    flat = log_weight.reshape(-1).astype(np.float64)
    ess = 1.0 / float(np.sum(normalised_weights(flat) ** 2))
    # Smoothed weights keep the k̂ of those that they were made of.
    k_hat = float(posterior.attrs.get("pareto_k") or import_arviz().psislw(flat)[1])
    leverage = "raise the leveraging factor delta, " if "power" in posterior.attrs else ""
    few = (
        f"the weights rest on {ess:.1f} of {len(flat)} samples: {leverage}draw more samples, "
        "or use a Markov-chain sampler (imh, nuts)"
    )
    heavy = (
        f"Pareto k̂ {k_hat:.2f}: the weights have so heavy a tail that their average is not to "
        "be trusted; use a Markov-chain sampler (nuts, rwm)"
    )
    return [
        Finding(
            "ESS of the weights",
            ess,
            "",
            f"≥ {limits.ess_per_chain:g}",
            ess >= limits.ess_per_chain,
            few,
        ),
        Finding("Pareto k̂", k_hat, "", f"≤ {limits.pareto_k:g}", k_hat <= limits.pareto_k, heavy),
    ]
