"""Sampling of weights whose prior has an unknown common scale, where few answers leave it open."""

from __future__ import annotations

import numpy as np
import pytest

from bpa_ppl import NBest, adapt, as_weight_draws, check, from_arrays, log_density

JUDGES, LABELS = 9, 10


def agreeing_judges() -> tuple[NBest, np.ndarray]:
    """Return ten pairs with the grades of nine judges who are right in 79 %.

    Some weights explain all ten choices, however large they are.

    Returns:
        the pairs, with a gain of 1 for the better candidate; and (pairs, judges) the grades of the
        better candidates less those of the others.
    """
    rng = np.random.default_rng(1)
    difference = 0.8 + rng.normal(size=(LABELS, JUDGES))
    first = np.arange(LABELS) % 2 == 0
    grades = np.where(first[:, None], difference, -difference) / 2
    table = np.stack([grades, -grades], axis=1).reshape(-1, JUDGES)
    lists = from_arrays([""] * len(table), table, [f"judge{k}" for k in range(JUDGES)], 2)
    gain = np.stack([first, ~first], axis=1).ravel().astype(float)
    return lists.with_extras(gain=gain), difference


def quantiles_by_draws_of_the_prior(lists: NBest, difference: np.ndarray) -> np.ndarray:
    """Return the 97.5 % quantile of each |weight|, by draws of the prior and their likelihoods.

    A likelihood is at most 1, so that no draw has much weight: 97,000 of a million are effective.
    """
    prior, rng = log_density(lists, None, gain="gain").prior, np.random.default_rng(0)
    drawn, log_likelihood = [], []
    for _ in range(10):
        weights = prior.sample(rng, 100_000)
        drawn.append(np.abs(weights).astype(np.float32))
        log_likelihood.append(-np.logaddexp(0, -weights @ difference.T).sum(axis=1))
    share = np.exp(np.concatenate(log_likelihood))
    result = []
    for values in np.concatenate(drawn).T:
        order = np.argsort(values)
        total = np.cumsum(share[order])
        result.append(values[order][np.searchsorted(total, 0.975 * total[-1])])
    return np.array(result)


@pytest.fixture(scope="module")
def judged() -> tuple[NBest, np.ndarray]:
    lists, difference = agreeing_judges()
    return lists, quantiles_by_draws_of_the_prior(lists, difference)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the judgements do not separate")
@pytest.mark.parametrize("sampler", ["auto", "imh", "laplace", "rwm"])
def test_the_tails_are_those_of_draws_of_the_prior(
    judged: tuple[NBest, np.ndarray], sampler: str
) -> None:
    """Proposals of `laplace` for the weights alone made quantiles 6 to 21 % too small."""
    lists, expected = judged
    posterior = adapt(lists, None, gain="gain", sampler=sampler, seed=1)
    draws = as_weight_draws(posterior)
    assert check(draws)
    found = np.quantile(np.abs(draws.draws.resampled().flat), 0.975, axis=0)
    assert abs(np.log(found / expected).mean()) < 0.12
    assert set(draws.draws.sites) == {"weights"}
    assert "mode" in draws.draws.constants
