"""check: is this posterior fit to be used?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl.diagnostics.checks import chains, importance, optimum
from bpa_ppl.diagnostics.checks.report import Report
from bpa_ppl.diagnostics.checks.thresholds import Thresholds
from bpa_ppl.posterior import statistic

if TYPE_CHECKING:
    from arviz import InferenceData


def check(posterior: InferenceData, thresholds: Thresholds | None = None) -> Report:
    """Hold a posterior against its diagnostics.

    Markov chains are judged by rank-normalised split R-hat, bulk and tail ESS, MCSE, drift,
    acceptance, divergences and BFMI, as far as the sampler recorded them; weighted samples by the
    effective sample size of their weights and Pareto k̂; a mode by the convergence of its search.

    Args:
        posterior: InferenceData with a variable `weights`, from this library or another.
        thresholds: limits other than the stated ones.

    Returns:
        a `Report`, true if every diagnostic keeps its threshold.
    """
    limits = thresholds or Thresholds()
    if statistic(posterior, "log_weight") is not None:
        findings = importance.findings(posterior, limits)
    elif posterior.attrs.get("sampler") == "map":
        findings = optimum.findings(posterior)
    else:
        findings = chains.findings(posterior, limits)
    shape = posterior["posterior"]["weights"].shape[:2]
    sampler = str(posterior.attrs.get("sampler", "unknown sampler"))
    if "chosen" in posterior.attrs:
        sampler += " ({chosen}: {chosen_because})".format(**posterior.attrs)
    return Report(sampler, (int(shape[0]), int(shape[1])), tuple(findings))
