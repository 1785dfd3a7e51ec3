"""Learning curves: methods against each other over the number of adaptation sentences."""

from bpa_ppl.experiments.aggregates import Aggregates, CurvePoint, Difference, aggregate
from bpa_ppl.experiments.page import write_figures
from bpa_ppl.experiments.results import read_results
from bpa_ppl.experiments.running import run_study
from bpa_ppl.experiments.study import read_study

__all__ = [
    "Aggregates",
    "CurvePoint",
    "Difference",
    "aggregate",
    "read_results",
    "read_study",
    "run_study",
    "write_figures",
]
