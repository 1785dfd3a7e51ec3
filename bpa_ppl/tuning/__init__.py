"""Re-estimate weights: MERT, batch MIRA, PRO, and the loop with a decoder."""

from bpa_ppl.tuning.base import Tuned, Tuner
from bpa_ppl.tuning.redecoding import redecode
from bpa_ppl.tuning.reestimation import Reestimation, reestimate

__all__ = [
    "Reestimation",
    "Tuned",
    "Tuner",
    "redecode",
    "reestimate",
]
