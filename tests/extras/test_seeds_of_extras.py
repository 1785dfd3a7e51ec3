"""Functions of extras with a seed check it before they start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.seeds import WEIGHTS, refuses_invalid_seeds

from bpa_ppl import NBest
from bpa_ppl.extras.demo.demo import run_demo
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.extras.tuning.tuner import TUNERS
from bpa_ppl.extras.tuning.weight_trace import WeightTrace

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(reestimate, weights=WEIGHTS, tuner=name) for name in TUNERS},
    "visited weights": lambda nbest, seed: WeightTrace(nbest).fitted(WEIGHTS, fixed=[], seed=seed),
    "demo": lambda nbest, seed: run_demo(Path("never made"), seed=seed),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_rejects_invalid_seeds(toy: NBest, function: Callable[..., Any]) -> None:
    refuses_invalid_seeds(function, toy)
    assert not Path("never made").exists()
