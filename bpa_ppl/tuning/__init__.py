"""Re-estimation of the weights: MERT, batch MIRA, PRO, and the loop that decodes anew."""

from bpa_ppl.tuning.command import Command
from bpa_ppl.tuning.redecoding import redecode
from bpa_ppl.tuning.reestimation import Reestimation, reestimate, reestimation
from bpa_ppl.tuning.registry import TUNERS

__all__ = ["TUNERS", "Command", "Reestimation", "redecode", "reestimate", "reestimation"]
