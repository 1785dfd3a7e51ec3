"""Learning curves, sweeps over settings of samplers, and samplers on targets with known answers."""

from bpa_ppl.experiments.running import run_study
from bpa_ppl.experiments.study import read_study
from bpa_ppl.experiments.sweeps import sweep
from bpa_ppl.experiments.targets import compare_on_targets

__all__ = [
    "compare_on_targets",
    "read_study",
    "run_study",
    "sweep",
]
