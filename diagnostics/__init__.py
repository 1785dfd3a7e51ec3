"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""

from typing import TYPE_CHECKING

from bpa_ppl.lazily import lazily

if TYPE_CHECKING:
    from bpa_ppl.diagnostics.baselines.comparing import compare_baselines
    from bpa_ppl.diagnostics.baselines.table import BaselineComparison
    from bpa_ppl.diagnostics.calibration import Calibration, Replication, calibrate
    from bpa_ppl.diagnostics.checks import Finding, Report, Thresholds, check, refuse_unconverged
    from bpa_ppl.diagnostics.comparison.comparison import Comparison, compare
    from bpa_ppl.diagnostics.confidence import (
        RiskCoverage,
        Temperature,
        calibrated,
        risk_coverage,
        temperature,
    )
    from bpa_ppl.diagnostics.leave_one_out import (
        Loo,
        Ranked,
        Sensitivity,
        compare_loo,
        loo,
        power_sensitivity,
    )
    from bpa_ppl.diagnostics.pages.page import write_page
    from bpa_ppl.diagnostics.predictive_checks import (
        PredictiveCheck,
        Reliability,
        predictive_check,
        reliability,
        with_predictions,
    )
    from bpa_ppl.diagnostics.report_figures import plot_trace
    from bpa_ppl.diagnostics.report_page import posterior_page
    from bpa_ppl.diagnostics.subdomains import subdomains_page

# Public name -> module that defines it: a check needs no pages.
_PUBLIC = {
    "BaselineComparison": "baselines.table",
    "Calibration": "calibration",
    "Comparison": "comparison.comparison",
    "Finding": "checks",
    "Loo": "leave_one_out",
    "PredictiveCheck": "predictive_checks",
    "Ranked": "leave_one_out",
    "Reliability": "predictive_checks",
    "Replication": "calibration",
    "Report": "checks",
    "RiskCoverage": "confidence",
    "Sensitivity": "leave_one_out",
    "Temperature": "confidence",
    "Thresholds": "checks",
    "calibrate": "calibration",
    "calibrated": "confidence",
    "check": "checks",
    "compare": "comparison.comparison",
    "compare_baselines": "baselines.comparing",
    "compare_loo": "leave_one_out",
    "loo": "leave_one_out",
    "plot_trace": "report_figures",
    "posterior_page": "report_page",
    "power_sensitivity": "leave_one_out",
    "predictive_check": "predictive_checks",
    "refuse_unconverged": "checks",
    "reliability": "predictive_checks",
    "risk_coverage": "confidence",
    "subdomains_page": "subdomains",
    "temperature": "confidence",
    "with_predictions": "predictive_checks",
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
    "refuse_unconverged",
    "reliability",
    "risk_coverage",
    "subdomains_page",
    "temperature",
    "with_predictions",
    "write_page",
]

if not TYPE_CHECKING:  # a type checker knows all names, and finds those that are misspelt
    __getattr__, __dir__ = lazily(__name__, _PUBLIC)
