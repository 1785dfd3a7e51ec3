"""Proposals that are a mixture over scales of the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest
from scipy.stats import t as student

from bpa_ppl.sampling.newton import Mode
from bpa_ppl.sampling.scale_mixture import ScaleMixture

SHARES, CENTRES, SCALES, DEGREES = (0.3, 0.7), (-1.0, 2.0), (0.5, 2.0), (10.0, 3.0)
MIXTURE = ScaleMixture(
    Mode(np.zeros(1), 0.0, np.eye(1), 0.0, 1, True),
    np.log(SHARES),
    np.array(CENTRES)[:, None],
    np.array(SCALES)[:, None, None],
    np.array(DEGREES),
    0.0,
)


def cdf(x: np.ndarray) -> np.ndarray:
    components = zip(SHARES, CENTRES, SCALES, DEGREES, strict=True)
    return sum(share * student.cdf(x, d, loc, scale) for share, loc, scale, d in components)


def test_draws_and_density_are_those_of_scipy() -> None:
    draws = MIXTURE.draw(np.random.default_rng(0), 4000)
    assert kstest(draws[:, 0], cdf).pvalue > 1e-3

    def density(x: float) -> float:
        return float(np.exp(MIXTURE.log_components(np.array([[x]]))[0][0]))

    for low, high in ((-3.0, 0.0), (0.0, 5.0)):
        expected = cdf(np.array(high)) - cdf(np.array(low))
        assert quad(density, low, high)[0] == pytest.approx(expected, abs=1e-7)
