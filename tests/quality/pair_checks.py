"""Checks of the scores of pairs of texts against a table of all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bpa_ppl.quality.pairs import TIE


def check_pairs(pairs: Any, expected: np.ndarray, rng: np.random.Generator, draws: int) -> None:
    """Check scores, and the best text given probabilities of all of them."""
    rows, columns = np.array([5, 0, 3, 1]), np.arange(len(expected))[::-1]
    result = pairs.scores(rows, columns)
    np.testing.assert_allclose(result, expected[np.ix_(rows, columns)], atol=1e-9)
    for concentration in np.repeat([0.02, 0.3, 5.0], draws):
        p = rng.dirichlet(np.full(len(expected), concentration))
        p[rng.uniform(size=len(p)) < 0.3] = 0.0
        p /= p.sum()
        best, score = pairs.best(p)
        assert score == pytest.approx((expected @ p).max(), abs=1e-8)
        assert (expected @ p)[best] >= (expected @ p).max() - TIE
