"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""

from bpa_ppl.diagnostics.calibration.calibration import Calibration, Replication, calibrate
from bpa_ppl.diagnostics.checks.checking import check
from bpa_ppl.diagnostics.checks.report import Finding, Report, Thresholds
from bpa_ppl.diagnostics.comparison.comparison import Comparison, compare
from bpa_ppl.diagnostics.pages.page import write_page
from bpa_ppl.diagnostics.posterior_page.figures import plot_trace
from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page
from bpa_ppl.diagnostics.predictive.checks import (
    PredictiveCheck,
    Reliability,
    predictive_check,
    reliability,
)
from bpa_ppl.diagnostics.predictive.likelihood import (
    Loo,
    Ranked,
    Sensitivity,
    compare_loo,
    loo,
    power_sensitivity,
)
from bpa_ppl.diagnostics.predictive.predictions import with_predictions
from bpa_ppl.diagnostics.predictive.selective import RiskCoverage, risk_coverage
from bpa_ppl.diagnostics.predictive.temperature import Temperature, calibrated, temperature
from bpa_ppl.diagnostics.subdomains_page import subdomains_page

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
    "RiskCoverage",
    "Sensitivity",
    "Temperature",
    "Thresholds",
    "calibrate",
    "calibrated",
    "check",
    "compare",
    "compare_loo",
    "loo",
    "plot_trace",
    "posterior_page",
    "power_sensitivity",
    "predictive_check",
    "reliability",
    "risk_coverage",
    "subdomains_page",
    "temperature",
    "with_predictions",
    "write_page",
]
