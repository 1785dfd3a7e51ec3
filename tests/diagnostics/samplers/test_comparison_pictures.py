"""The bands of pictures hold their level."""

from __future__ import annotations

import numpy as np
import pytest
from support.external_posterior import autoregressive
from support.records import name_array

from bpa_ppl import Draws
from bpa_ppl.diagnostics.pages.figures import Layer
from bpa_ppl.diagnostics.samplers.pictures import compute_ecdf_differences, compute_ranks


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


@pytest.mark.slow
def test_the_band_of_ranks_holds_its_level() -> None:
    """Of 300 correct samplers with correlated draws at most 5% leave it; binomial limit at 0.1%."""

    def draws(seed: int, shift: float = 0.0, scale: float = 1.0) -> Draws:
        values = autoregressive(0.6, 4, 500, 1, seed)
        return name_array(np.exp(scale * values + shift), ("x",))

    def leaves(ours: Draws, theirs: Draws, seed: int = 0) -> bool:
        ((band, curve),) = compute_ranks(ours, theirs, [0], seed)
        return bool(((curve.y > band.y) | (curve.y < band.base)).any())

    left = sum(leaves(draws(seed), draws(1000 + seed), seed) for seed in range(300))
    assert 1 <= left <= 28
    assert leaves(draws(0, 0.5), draws(1))
    ((_, narrow),) = compute_ranks(draws(0, scale=0.5), draws(1), [0])
    middle, edge = narrow.y[len(narrow.y) // 2], narrow.y[0]
    assert middle > 1 > edge  # a hill
