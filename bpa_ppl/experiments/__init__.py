"""Learning curves: methods against each other over the number of adaptation sentences."""

from bpa_ppl.experiments.running import run_study
from bpa_ppl.experiments.store import read_results
from bpa_ppl.experiments.study_files import read_study

__all__ = ["read_results", "read_study", "run_study"]
