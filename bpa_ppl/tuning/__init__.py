"""Re-estimate weights: MERT, batch MIRA and PRO."""

from bpa_ppl.tuning.base import TUNERS, Tuned, Tuner
from bpa_ppl.tuning.reestimation import reestimate

__all__ = [
    "TUNERS",
    "Tuned",
    "Tuner",
    "reestimate",
]
