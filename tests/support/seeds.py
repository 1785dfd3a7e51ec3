"""What is no seed, and the check that a function refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bpa_ppl import NBest, UsageError, Weights
from bpa_ppl._runtime.arguments import SEEDS
from support.raising import raises

INVALID_SEEDS = [-1, 2**63, 1.5, "a", None, True, 10**5000, np.float64(1), SEEDS]
WEIGHTS = Weights({"LM0": 1.0, "TM0[0]": 0.5, "TM0[1]": 0.5})


def refuses_invalid_seeds(function: Callable[..., Any], lists: NBest) -> None:
    """Assert that a function of lists and a seed refuses what is no seed."""
    for seed in INVALID_SEEDS:
        with raises(UsageError, parameter="seed"):
            function(lists, seed=seed)
