"""Without adaptation sentences the posterior is the prior; with a tight prior, λ_T."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.moment_checks import assert_moments, assert_weighted_moments
from support.targets import EXACT, NAMES, STEPS, TARGETS

from bpa_ppl import Isotropic, NBest, adapt, check, from_lists, rerank
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.sampler import SAMPLERS

CANONICAL = {"LM0": 0.7, "WP0": -0.4}
MEAN = np.array(list(CANONICAL.values()))
VARIANCE = np.array([0.5, 2.0])


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(31)
    sizes = rng.integers(1, 12, size=25)
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, [rng.normal(size=(n, 2)) for n in sizes], NAMES)


@pytest.fixture(scope="module")
def priors(lists: NBest) -> Any:
    """The function sampler ↦ posterior of no sentence at all, which remembers."""
    options: dict[str, Any] = {
        "prior": Isotropic(variance=VARIANCE),
        "likelihood": "none",
        "seed": 1,
    }

    @cache
    def prior_by(sampler: str) -> Any:
        engine = SAMPLERS.resolve(sampler, {"draws": 4000, **STEPS.get(sampler, {})})
        return adapt(lists, CANONICAL, sampler=engine, **options)

    return prior_by


@pytest.mark.parametrize(
    "sampler",
    [n if n in ("imh", "laplace") else pytest.param(n, marks=pytest.mark.slow) for n in EXACT],
)
def test_without_sentences_the_posterior_is_the_prior(priors: Any, sampler: str) -> None:
    posterior = priors(sampler)
    weights = posterior["posterior"]["weights"].values
    log_weight = as_draws(posterior).log_weight
    if log_weight is None:
        assert_moments(weights, MEAN, np.diag(VARIANCE))
    else:
        assert_weighted_moments(weights[0], log_weight[0], MEAN, np.diag(VARIANCE))
    assert check(posterior)


def test_prior_draws_are_of_the_prior(priors: Any) -> None:
    draws = priors("imh")["prior"]["weights"].values
    assert draws.shape == (1, 1000, 2)
    assert_moments(draws, MEAN, np.diag(VARIANCE))


@pytest.mark.parametrize("sampler", ["imh", "map"])
def test_a_tight_prior_gives_the_canonical_first_best(lists: NBest, sampler: str) -> None:
    settings = {} if sampler == "map" else {"draws": 4000}
    target = TARGETS["plane"]()._replace(canonical=CANONICAL)
    posterior = target.adapt(sampler, prior="isotropic:variance=1e-10", **settings)
    result = rerank(lists, posterior)
    np.testing.assert_array_equal(result.choice, lists.best(lists.scores(MEAN)))
    np.testing.assert_array_equal(result.choice, result.canonical)
    assert not result.changed.any()
