"""All functions with a seed check it before they start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises

import bpa_ppl
from bpa_ppl import NBest, UsageError, Weights
from bpa_ppl._runtime.arguments import SEEDS, check_seed
from bpa_ppl.diagnostics.comparison.samplers import calibrate_sampler, compare_samplers
from bpa_ppl.extras.demo.demo import run_demo
from bpa_ppl.extras.studies.tuning.reestimation import reestimate
from bpa_ppl.extras.studies.tuning.tuner import TUNERS
from bpa_ppl.extras.studies.tuning.weight_trace import WeightTrace
from bpa_ppl.metrics.scoreboard import draw_resamples
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.sampling.sampler import SAMPLERS

INVALID_SEEDS = [-1, 2**63, 1.5, "a", None, True, 10**5000, np.float64(1), SEEDS]
WEIGHTS = Weights({"LM0": 1.0, "TM0[0]": 0.5, "TM0[1]": 0.5})
Function = Callable[..., Any]


SAMPLING = [name for name in SAMPLERS if name != "weight-trace"]
FUNCTIONS: dict[str, Function] = {
    **{name: partial(bpa_ppl.adapt, weights=WEIGHTS, sampler=name) for name in SAMPLING},
    **{name: partial(reestimate, weights=WEIGHTS, tuner=name) for name in TUNERS},
    "visited weights": partial(WeightTrace().fitted, weights=WEIGHTS, fixed=None),
    "bootstrap": lambda nbest, seed: draw_resamples(10, 3, seed=seed),
    "comparison": lambda nbest, seed: compare_samplers(nbest, WEIGHTS, ["map"], seed=seed),
    "calibration": lambda nbest, seed: calibrate_sampler(nbest, WEIGHTS, "map", seed=seed),
    "demo": lambda nbest, seed: run_demo(Path("never made"), seed=seed),
    "draws": lambda _, seed: Draws(
        {"weights": np.zeros((1, 2, 1))}, ("LM0",), "weighted", np.array([[0.0, -1.0]])
    ).resampled(seed),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_rejects_invalid_seeds(toy: NBest, function: Function) -> None:
    for seed in INVALID_SEEDS:
        with raises(UsageError, parameter="seed"):
            function(toy, seed=seed)
    assert not Path("never made").exists()


@pytest.mark.parametrize("seed", [0, SEEDS - 1, np.int64(3), np.uint8(3)])
def test_integers_of_any_type_are_seeds(seed: Any) -> None:
    assert check_seed(seed) == int(seed)
    assert type(check_seed(seed)) is int
