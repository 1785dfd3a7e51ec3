"""Lists, weights and updates for the tests of the published samples of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, from_lists
from support import reference_model
from support.targets import NAMES

ORACLE = (2, 0, 1)
CANONICAL = {"LM0": 0.7, "WP0": -0.3}


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(12)
    sizes = (4, 2, 3)
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, [rng.normal(size=(n, 2)) for n in sizes], NAMES)


def log_weights(lists: NBest, sample: Any, variance: float, delta: float) -> np.ndarray:
    """Return log p(e* | f, λ) / δ + log p(λ) of a sample, less that of its first weights."""
    result = [
        reference_model.log_likelihood(lists, ORACLE, weights).sum() / delta
        + reference_model.log_prior(weights, list(CANONICAL.values()), variance)
        for weights in sample
    ]
    return np.subtract(result, result[0])
