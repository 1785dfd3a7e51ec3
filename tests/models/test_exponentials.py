"""The quick power of two against NumPy's in double precision."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from bpa_ppl.models.probabilities import exp2

# Far beyond what has a power in 32 bits, where PADDING is, and where a sum must be seen to be huge.
BEYOND = np.array([-1e30, -np.inf, -200, -126, 127, 128, 1e30, np.inf], np.float32)


def test_it_is_exact_to_the_last_places_over_the_whole_range() -> None:
    x = np.concatenate([np.linspace(-126, 127, 100_001), np.arange(-126, 127) + 0.5, [0, 1e-30]])
    x = x.astype(np.float32)
    ratio = np.asarray(jax.jit(exp2)(x), np.float64) / np.exp2(x.astype(np.float64))
    assert np.abs(ratio - 1).max() < 3e-7
    assert np.asarray(exp2(x)).dtype == np.float32


def test_beyond_the_range_it_stays_at_its_ends() -> None:
    assert np.log2(np.asarray(jax.jit(exp2)(BEYOND))).tolist() == [-126] * 4 + [127] * 4


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_no_number_gives_none(sign: int) -> None:
    assert np.isnan(jax.jit(exp2)(np.float32([sign * np.nan]))).all()
