"""Re-estimate weights: MERT, batch MIRA and PRO."""

from bpa_ppl.tuning.base import Tuned, Tuner
from bpa_ppl.tuning.reestimation import Reestimation, reestimate

__all__ = [
    "Reestimation",
    "Tuned",
    "Tuner",
    "reestimate",
]
