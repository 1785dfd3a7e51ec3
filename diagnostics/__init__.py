"""Checks of a posterior before it is used, and pictures of its draws."""

from bpa_ppl.diagnostics.checking import check
from bpa_ppl.diagnostics.figures import plot_trace
from bpa_ppl.diagnostics.report import Finding, Report
from bpa_ppl.diagnostics.thresholds import Thresholds

__all__ = ["Finding", "Report", "Thresholds", "check", "plot_trace"]
