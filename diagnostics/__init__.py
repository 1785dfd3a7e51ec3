"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""

from typing import TYPE_CHECKING

from bpa_ppl.lazily import lazily

if TYPE_CHECKING:
    from bpa_ppl.diagnostics.baselines.comparing import compare_baselines
    from bpa_ppl.diagnostics.baselines.table import BaselineComparison
    from bpa_ppl.diagnostics.calibration.calibration import Calibration, Replication, calibrate
    from bpa_ppl.diagnostics.checks.checking import check
    from bpa_ppl.diagnostics.checks.report import Finding, Report, Thresholds
    from bpa_ppl.diagnostics.comparison.comparison import Comparison, compare
    from bpa_ppl.diagnostics.pages.page import write_page
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
    from bpa_ppl.diagnostics.report_page.figures import plot_trace
    from bpa_ppl.diagnostics.report_page.page import posterior_page
    from bpa_ppl.diagnostics.subdomains.page import subdomains_page

# Public name -> module that defines it: a check needs no pages.
_PUBLIC = {
    "BaselineComparison": "baselines.table",
    "Calibration": "calibration.calibration",
    "Comparison": "comparison.comparison",
    "Finding": "checks.report",
    "Loo": "predictive.likelihood",
    "PredictiveCheck": "predictive.checks",
    "Ranked": "predictive.likelihood",
    "Reliability": "predictive.checks",
    "Replication": "calibration.calibration",
    "Report": "checks.report",
    "RiskCoverage": "predictive.selective",
    "Sensitivity": "predictive.likelihood",
    "Temperature": "predictive.temperature",
    "Thresholds": "checks.report",
    "calibrate": "calibration.calibration",
    "calibrated": "predictive.temperature",
    "check": "checks.checking",
    "compare": "comparison.comparison",
    "compare_baselines": "baselines.comparing",
    "compare_loo": "predictive.likelihood",
    "loo": "predictive.likelihood",
    "plot_trace": "report_page.figures",
    "posterior_page": "report_page.page",
    "power_sensitivity": "predictive.likelihood",
    "predictive_check": "predictive.checks",
    "reliability": "predictive.checks",
    "risk_coverage": "predictive.selective",
    "subdomains_page": "subdomains.page",
    "temperature": "predictive.temperature",
    "with_predictions": "predictive.predictions",
    "write_page": "pages.page",
}

__all__ = [
    "BaselineComparison",
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
    "compare_baselines",
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

if not TYPE_CHECKING:  # a type checker knows all names, and finds those that are misspelt
    __getattr__, __dir__ = lazily(__name__, _PUBLIC)
