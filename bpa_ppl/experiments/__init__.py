"""Learning curves, sweeps over settings of samplers, and samplers on targets with known answers."""

from bpa_ppl.experiments.aggregates import Aggregates, CurvePoint, Difference, aggregate
from bpa_ppl.experiments.page import write_figures
from bpa_ppl.experiments.results import read_results
from bpa_ppl.experiments.running import run_study
from bpa_ppl.experiments.study import read_study
from bpa_ppl.experiments.sweeps import Sweep, sweep
from bpa_ppl.experiments.targets import TargetComparison, compare_on_targets

__all__ = [
    "Aggregates",
    "CurvePoint",
    "Difference",
    "Sweep",
    "TargetComparison",
    "aggregate",
    "compare_on_targets",
    "read_results",
    "read_study",
    "run_study",
    "sweep",
    "write_figures",
]
