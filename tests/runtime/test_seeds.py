"""All functions with a seed check it before they start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.posteriors import name_weights
from support.registries import SAMPLERS
from support.seeds import WEIGHTS, refuses_invalid_seeds
from support.targets import calibrate_density

import bpa_ppl
from bpa_ppl import NBest, compare_samplers
from bpa_ppl._runtime.arguments import SEEDS, check_seed

Function = Callable[..., Any]


SAMPLING = [name for name in SAMPLERS if name != "weight-trace"]
FUNCTIONS: dict[str, Function] = {
    **{name: partial(bpa_ppl.adapt, weights=WEIGHTS, sampler=name) for name in SAMPLING},
    "comparison": lambda nbest, seed: compare_samplers(
        bpa_ppl.log_density(nbest, WEIGHTS), samplers=["map"], seed=seed
    ),
    "calibration": lambda nbest, seed: calibrate_density(
        bpa_ppl.log_density(nbest, WEIGHTS, likelihood="oracle"), samplers=["map"], seed=seed
    ),
    "draws": lambda _, seed: name_weights(
        np.zeros((1, 2, 1)), ("LM0",), kind="weighted", log_weight=np.array([[0.0, -1.0]])
    ).draws.resampled(seed),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_invalid_seeds_are_refused(toy: NBest, function: Function) -> None:
    refuses_invalid_seeds(function, toy)


@pytest.mark.parametrize("seed", [0, SEEDS - 1, np.int64(3), np.uint8(3)])
def test_integers_of_any_type_are_seeds(seed: Any) -> None:
    assert check_seed(seed) == int(seed)
    assert type(check_seed(seed)) is int
