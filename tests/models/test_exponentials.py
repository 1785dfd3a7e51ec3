"""The fast exp2 compared with NumPy in double precision."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from bpa_ppl.models.probabilities import exp2

# Outside of the exponents of float32, as PADDING is.
OUT_OF_RANGE = np.array([-1e30, -np.inf, -200, -126, 127, 128, 1e30, np.inf], np.float32)


def test_exp2_agrees_with_numpy() -> None:
    x = np.concatenate([np.linspace(-126, 127, 100_001), np.arange(-126, 127) + 0.5, [0, 1e-30]])
    x = x.astype(np.float32)
    ratio = np.asarray(jax.jit(exp2)(x), np.float64) / np.exp2(x.astype(np.float64))
    assert np.abs(ratio - 1).max() < 3e-7
    assert np.asarray(exp2(x)).dtype == np.float32


def test_exp2_is_clipped_out_of_range() -> None:
    assert np.log2(np.asarray(jax.jit(exp2)(OUT_OF_RANGE))).tolist() == [-126] * 4 + [127] * 4


@pytest.mark.parametrize("sign", [1, -1])
def test_exp2_of_nan_is_nan(sign: int) -> None:
    assert np.isnan(jax.jit(exp2)(np.float32([sign * np.nan]))).all()
