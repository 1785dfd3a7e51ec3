"""Public names; `__init__.py` imports each from its module on first use."""

from .calibration import calibrate as calibrate
from .comparison.comparison import compare as compare
from .known_targets import target as target
from .redecoding import redecode as redecode
from .running import run_study as run_study
from .study import read_study as read_study
from .sweeps import sweep as sweep
from .tuning.reestimation import reestimate as reestimate
