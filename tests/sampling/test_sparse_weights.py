"""Priors of many weights of which few matter, sampled by nuts: brute force, and 500 indicators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference_model
from scipy.special import log_expit

from bpa_ppl import BpaWarning, Draws, adapt, as_draws, check
from bpa_ppl.models import Horseshoe
from bpa_ppl.nbest import NBest

RELEVANT = np.array([2.5, -2.5, 3.0])


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
    settings = {"sampler": "nuts", "draws": 1500, "target_accept": 0.95}
    draws = adapted(lists, Horseshoe(relevant=1.0), **settings)
    mean, variance = by_brute_force(lists.features[1::2].astype(np.float64))
    np.testing.assert_allclose(draws.mean, mean, atol=0.1 * np.sqrt(variance).max())
    np.testing.assert_allclose(draws.deviation**2, variance, rtol=0.2)


def indicators(features: int, sentences: int, hypotheses: int) -> NBest:
    """Lists whose first hypothesis was drawn by one dense weight and three of the indicators."""
    rng = np.random.default_rng(5)
    tables = []
    for _ in range(sentences):
        fires = rng.uniform(size=(hypotheses, features)) < 10 / features
        fires[:, : len(RELEVANT)] = rng.uniform(size=(hypotheses, len(RELEVANT))) < 0.3
        table = np.column_stack([rng.normal(size=hypotheses), fires])
        worth = table[:, 0] + fires[:, : len(RELEVANT)] @ RELEVANT + rng.gumbel(size=hypotheses)
        tables.append(np.roll(table, -int(np.argmax(worth)), axis=0))
    names = ["LM0", *(f"x{k}" for k in range(features))]
    return NBest.from_lists([["w"] * hypotheses] * sentences, tables, names)


def adapted(lists: NBest, prior: str | Horseshoe, **options: Any) -> Draws:
    canonical = {name: 1.0 for name in lists.feature_names if name == "LM0"}
    options["defaults"] = {name: 0.0 for name in lists.feature_names if name != "LM0"}
    options["oracle"] = reference_model.given(*[0] * len(lists))
    return as_draws(adapt(lists, canonical, prior=prior, likelihood="oracle", **options))


@pytest.mark.slow
def test_few_of_500_indicators_are_found() -> None:
    """The horseshoe keeps the three and shrinks the rest, which the isotropic prior cannot."""
    lists = indicators(500, 100, 6)
    found = adapted(lists, "horseshoe", sampler="nuts", chains=2, draws=300)
    report = check(found)
    assert {f.name: f.passed for f in report.findings}["acceptance"], str(report)
    assert np.mean(found.statistics["diverging"]) < 0.01
    assert np.all(np.sign(RELEVANT) * found.mean[1:4] > 1.0)
    # One that fires seldom may fire for the first hypothesis by chance alone: few stand out.
    assert np.quantile(np.abs(found.mean[4:]), 0.97) < 0.5
    with pytest.warns(BpaWarning, match="no canonical weight"):
        wide = adapted(lists, "isotropic", sampler="map")
    truth = np.concatenate([[1.0], RELEVANT, np.zeros(497)])
    ours, theirs = (np.sqrt(np.mean((one.mean - truth) ** 2)) for one in (found, wide))
    assert ours < 0.7 * theirs


@pytest.mark.slow
def test_proposals_around_a_mode_do_not_pass_and_nuts_is_advised() -> None:
    """The horseshoe has a mode, far from what is typical: the importance weights tell."""
    report = check(adapted(indicators(20, 10, 3), "horseshoe", sampler="laplace"))
    assert not report
    assert any("nuts" in finding.advice for finding in report.failures)
