"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""

from bpa_ppl.diagnostics.calibration import Calibration, Replication, calibrate
from bpa_ppl.diagnostics.checking import check
from bpa_ppl.diagnostics.comparison import Comparison, compare
from bpa_ppl.diagnostics.figures import plot_trace
from bpa_ppl.diagnostics.page import write_page
from bpa_ppl.diagnostics.posterior_page import posterior_page
from bpa_ppl.diagnostics.predictive import (
    PredictiveCheck,
    Reliability,
    predictive_check,
    reliability,
)
from bpa_ppl.diagnostics.predictive_loo import Loo, Ranked, compare_loo, loo
from bpa_ppl.diagnostics.report import Finding, Report
from bpa_ppl.diagnostics.sensitivity import Sensitivity, power_sensitivity
from bpa_ppl.diagnostics.thresholds import Thresholds

__all__ = [
    "Calibration",
    "Comparison",
    "Finding",
    "Loo",
    "PredictiveCheck",
    "Ranked",
    "Reliability",
    "Replication",
    "Report",
    "Sensitivity",
    "Thresholds",
    "calibrate",
    "check",
    "compare",
    "compare_loo",
    "loo",
    "plot_trace",
    "posterior_page",
    "power_sensitivity",
    "predictive_check",
    "reliability",
    "write_page",
]
