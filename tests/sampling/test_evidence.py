"""The marginal likelihood by Laplace's approximation, against quadrature."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from support import reference_model
from support.targets import integrated

import bpa_ppl
from bpa_ppl import Isotropic, from_lists
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.sampling.mode import require_mode

CANONICAL = {"LM0": 0.3, "WP0": -0.2}
SENTENCES, SIZE, POINTS = 8, 5, 161


def test_evidence_is_the_integral() -> None:
    variance, gamma = 0.3, 1.0
    rng = np.random.default_rng(5)
    worth = rng.integers(-6, 1, size=(SENTENCES, SIZE)).astype(float)
    features = rng.normal(size=(SENTENCES, SIZE, 2)).astype(np.float32)
    texts = [[f"{s} {e}" for e in range(SIZE)] for s in range(SENTENCES)]
    nbest, best = from_lists(texts, list(features), list(CANONICAL)), worth.argmax(axis=1)
    mean = np.array(list(CANONICAL.values()))

    def log_density(weights: reference_model.Array) -> reference_model.Array:
        total = norm.logpdf(weights, mean, np.sqrt(variance)).sum(axis=1)
        for s in range(SENTENCES):
            scores = weights @ features[s].astype(np.float64).T
            loss = worth[s, best[s]] - worth[s]
            total += scores[:, best[s]] - logsumexp(scores + gamma * loss, axis=1)
        return np.asarray(total)

    width = 10 * np.sqrt(variance)
    grid, _ = integrated(log_density, mean, width, points=POINTS)
    exact = logsumexp(log_density(grid)) + np.log((2 * width / (POINTS - 1)) ** 2)
    with jax.enable_x64(True):
        oracles = replace(reference_model.given(*best), gain="worth")
        options = {"likelihood": Margin(gamma=gamma), "gain": oracles}
        options |= {"prior": Isotropic(variance=variance)}
        target = bpa_ppl.log_density(nbest.with_extras(worth=worth.ravel()), CANONICAL, **options)
        mode = require_mode(target)
    found = mode.figures.log_evidence  # of the posterior
    # The error of Laplace's approximation grows with the variance; it is below 6 % up to 0.3.
    assert found == pytest.approx(exact, abs=0.06)
