"""Priors of many weights of which few matter, sampled by nuts, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit
from support import reference_model

from bpa_ppl import adapt, as_draws
from bpa_ppl.models.priors.sparse import Horseshoe
from bpa_ppl.weights import StartingWeights


def by_brute_force(rows: np.ndarray, draws: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and variances of two sparse weights of unit σ = √0.1 · 6 / spread.

    The horseshoe of relevant = 1 is drawn from, and each draw is weighted by the likelihood.
    """
    rng = np.random.default_rng(0)
    local, overall = np.abs(rng.standard_cauchy((draws, 2))), np.abs(rng.standard_cauchy(draws))
    slab = 2.0 / rng.gamma(2.0, size=draws)
    wide = overall[:, None] * local
    factor = wide / np.sqrt(1 + wide**2 / slab[:, None])
    # The deviation within lists of two is half of their difference.
    spread = np.sqrt(np.mean((rows / 2) ** 2, axis=0))
    weights = np.sqrt(0.1) * 6 / spread * factor * rng.normal(size=(draws, 2))
    log_weight = log_expit(-weights @ rows.T).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / (weight**2).sum() > 20_000
    mean = np.average(weights, axis=0, weights=weight)
    return mean, np.average((weights - mean) ** 2, axis=0, weights=weight)


@pytest.mark.slow
def test_the_horseshoe_is_sampled_as_brute_force_says() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 2)) * [1.5, 0.7]
    rows[:, 0] = -np.abs(rows[:, 0]) * np.where(rng.uniform(size=30) < 0.85, 1, -1)
    lists = reference_model.pairs(rows, ["a", "b"])
    options = {"sampler": "nuts:target_accept=0.95", "draws": 1500, "likelihood": "oracle"}
    options |= {"prior": Horseshoe(relevant=1.0), "gain": reference_model.given(*[0] * 30)}
    start = StartingWeights({}, defaults={"a": 0.0, "b": 0.0})
    draws = as_draws(adapt(lists, start, **options))
    mean, variance = by_brute_force(lists.features[1::2].astype(np.float64))
    np.testing.assert_allclose(draws.mean, mean, atol=0.1 * np.sqrt(variance).max())
    np.testing.assert_allclose(draws.deviation**2, variance, rtol=0.2)
