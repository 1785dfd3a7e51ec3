"""Re-estimate weights: MERT, batch MIRA, PRO, and the loop with a decoder."""

from bpa_ppl.tuning.base import Tuned, Tuner, TuningLists, TuningProblem
from bpa_ppl.tuning.redecoding import Command, Redecoded, redecode
from bpa_ppl.tuning.reestimation import Reestimation, reestimate

__all__ = [
    "Command",
    "Redecoded",
    "Reestimation",
    "Tuned",
    "Tuner",
    "TuningLists",
    "TuningProblem",
    "redecode",
    "reestimate",
]
