"""The bands of pictures hold their level."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.external_posterior import autoregressive
from support.records import name_array

from bpa_ppl import Draws
from bpa_ppl.diagnostics.pages.figures import Layer
from bpa_ppl.diagnostics.samplers.pictures import compute_ecdf_differences, draw_pictures


def inside(layers: list[Layer]) -> bool:
    band, curve = layers
    return bool((np.abs(curve.y) <= band.y).all())


@pytest.mark.slow
def test_the_band_of_the_ecdf_holds_its_level() -> None:
    """Of 200 correct samplers about 5% leave it; binomial limits at 0.1%."""

    def draws(seed: int, shift: float = 0.0) -> Draws:
        values = autoregressive(0.0, 2, 150, 1, seed)
        return name_array(np.exp(values + shift), ("x",))

    left = sum(
        not inside(compute_ecdf_differences({"a": draws(seed)}, draws(1000 + seed), seed)[0])
        for seed in range(200)
    )
    assert 1 <= left <= 21
    assert not inside(compute_ecdf_differences({"a": draws(0, 0.5)}, draws(1))[0])


def test_the_variables_that_are_furthest_off_are_drawn() -> None:
    names = [*"abcdefgh"]
    draws, truth = (name_array(autoregressive(0.0, 2, 50, 8, seed), names) for seed in (1, 2))
    densities, _ = draw_pictures({"s": draws}, truth, {"s": names[::-1]}, {"s": []})
    assert re.findall('aria-label="(.)"', str(densities)) == names[2:]
    assert "6 of 8 variables, those that are furthest off." in str(densities)
