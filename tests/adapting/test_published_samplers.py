"""The published samples of weights, step by step, and their importance weights by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support import reference_model
from support.posteriors import with_parts
from support.published_samples import CANONICAL, ORACLE, log_weights
from support.published_samples import lists as lists
from support.raising import raises
from support.targets import starting_at_zero

from bpa_ppl import NBest, Prior, UsageError, adapt, as_weight_draws, rerank
from bpa_ppl.adapting.published import Heuristic, perturb


def published(
    canonical: reference_model.Array, uniform: reference_model.Array
) -> reference_model.Array:
    """For s = 1..N_S: copy λ_T, add U(−0.5, 0.5) to component s mod Q, divide by Σ|λ_k|."""
    sample = [canonical]
    for s in range(1, len(uniform) + 1):
        copy = canonical.copy()
        copy[s % len(copy)] += uniform[s - 1]
        sample.append(copy / np.abs(copy).sum())
    return np.array(sample)


@pytest.mark.parametrize("features", [1, 2, 14])
def test_the_sample_is_that_of_the_published_procedure_to_the_bit(features: int) -> None:
    canonical = np.random.default_rng(1).normal(size=features)
    uniform = np.random.default_rng(2).uniform(-0.5, 0.5, size=100)
    ours = perturb(canonical, 100, np.random.default_rng(2))
    np.testing.assert_array_equal(ours, published(canonical, uniform))


def heuristic(lists: NBest, delta: Any = 1.0, weights: Any = CANONICAL, **options: Any) -> Any:
    options |= {"sampler": Heuristic(draws=50, delta=delta), "gain": reference_model.given(*ORACLE)}
    return adapt(lists, weights, **options)


@pytest.mark.parametrize("delta", [1.0, 4.0])
def test_weights_and_decisions_are_those_of_the_paper(lists: NBest, delta: float) -> None:
    posterior = heuristic(lists, delta=delta, prior="isotropic:variance=0.2")
    sample = posterior["posterior"]["weights"].values[0]
    assert sample[0].tolist() == list(CANONICAL.values())
    expected = log_weights(lists, sample, 0.2, delta)
    log_weight = posterior["sample_stats"]["log_weight"].values[0]
    np.testing.assert_allclose(log_weight - log_weight[0], expected, atol=1e-5)
    # Its decisions are those of Eq. 11 of 2015.
    result, votes = rerank(lists, posterior, unchecked=True), np.exp(expected)
    for sentence, p in enumerate(reference_model.predictive(lists, sample, votes, 1 / delta)):
        assert result.choice[sentence] == p.argmax()
        assert result.probability[sentence] == pytest.approx(p.max(), rel=1e-4)


def test_delta_by_the_number_of_lists_is_a_twelfth_of_it(lists: NBest) -> None:
    by_size = heuristic(lists, delta="lists/12", prior="isotropic:variance=0.2")
    sample = by_size["posterior"]["weights"].values[0]
    log_weight = by_size["sample_stats"]["log_weight"].values[0]
    expected = log_weights(lists, sample, 0.2, len(lists) / 12)
    np.testing.assert_allclose(log_weight - log_weight[0], expected, atol=1e-5)
    assert as_weight_draws(by_size).record.figures.likelihood_exponent == 12 / len(lists)


@pytest.mark.parametrize("count", [37, 100])
def test_lists_that_are_padding_do_not_count_for_delta(lists: NBest, count: int) -> None:
    """The arrays of a model have more rows than there are lists, so that programs are reused."""
    rows = np.arange(count) % len(lists)
    gain = reference_model.given(*np.array(ORACLE)[rows].tolist())
    sampler = Heuristic(draws=50, delta="lists/12")
    posterior = adapt(lists.select(rows), CANONICAL, sampler=sampler, gain=gain)
    exponent = as_weight_draws(posterior).record.figures.likelihood_exponent
    assert exponent == pytest.approx(12 / count)


@pytest.mark.parametrize(
    "delta", ["lists/10", "lists", "size/12", "|A|/12", 0.0, -1.0, "nan", True]
)
def test_delta_is_a_positive_number_or_one_share(delta: Any) -> None:
    rule = "delta must be a number > 0 or lists/12"
    with raises(UsageError, "invalid-setting", parameter="delta", match=rule):
        Heuristic(delta=delta)


def test_a_sample_with_fewer_draws_of_weight_than_features_is_no_prior(lists: NBest) -> None:
    alone = as_weight_draws(heuristic(lists))
    alone = with_parts(alone, log_weight=np.where(np.arange(51) == 3, 0.0, -np.inf)[None])
    prior = Prior.of(alone, unchecked=True)
    with raises(UsageError, parameter="prior", match="heuristic"):
        adapt(lists, CANONICAL, gain=reference_model.given(*ORACLE), prior=prior)


def test_a_model_with_more_than_weights_is_refused(lists: NBest) -> None:
    def wider(lists: Any, prior: Any, likelihood: Any) -> None:
        numpyro.sample("scale", dist.HalfNormal(1.0))
        weights = numpyro.sample("weights", dist.Normal(prior.mean, 1.0).to_event(1))
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)

    with starting_at_zero(), raises(UsageError, "not-supported", parameter="sampler"):
        heuristic(lists, model=wider)
