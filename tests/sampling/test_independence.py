"""The independence sampler: its walk against a plain loop, and draws of fitted proposals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from moment_checks import assert_moments
from targets import TARGETS

from bpa_ppl.sampling.imh import IndependenceMetropolis, accept, accept_pairs
from bpa_ppl.sampling.mode import mode_of
from bpa_ppl.sampling.proposals import fit_moments


def test_the_chain_over_given_proposals_equals_a_plain_loop() -> None:
    log_ratio = np.random.default_rng(3).normal(0, 2, size=(3, 200))
    log_ratio[:, 50] = np.nan
    log_ratio[0, 0] = -np.inf
    uniform = np.random.default_rng(4).uniform(size=(3, 200))
    position, acceptance = accept(log_ratio, np.random.default_rng(4))
    for chain in range(3):
        at = 0
        for step in range(1, 200):
            new = log_ratio[chain, step]
            old = log_ratio[chain, at]
            probability = min(1.0, np.exp(new - old)) if np.isfinite(new) else 0.0
            assert acceptance[chain, step] == pytest.approx(probability)
            at = step if uniform[chain, step] < probability else at
            assert position[chain, step] == at


def test_the_walk_over_pairs_is_the_plain_loop() -> None:
    log_ratio, log_bulk = np.random.default_rng(3).normal(0, 1.5, size=(2, 3, 202))
    log_ratio[:, 50] = np.nan
    log_bulk[:, 101] = -np.inf
    uniform = np.random.default_rng(4).uniform(size=(3, 200))
    position, acceptance = accept_pairs(log_ratio, log_bulk, 200, np.random.default_rng(4))
    for chain in range(3):
        at = 0
        for step in range(200):
            to_partner = step % 2 == 1
            ratio = (log_bulk if to_partner else log_ratio)[chain]
            new = (at + 1 if at % 2 == 0 else at - 1) if to_partner else step + 2
            probability = 1.0 if np.isnan(ratio[at]) or np.isinf(ratio[at]) else 0.0
            if np.isfinite(ratio[new]) and np.isfinite(ratio[at]):
                probability = min(1.0, np.exp(ratio[new] - ratio[at]))
            assert acceptance[chain, step] == pytest.approx(probability)
            at = new if uniform[chain, step] < probability else at
            assert position[chain, step] == at


@pytest.mark.parametrize("thinning", [1, 3])
def test_fitted_proposals_give_the_moments_of_quadrature(thinning: int) -> None:
    """Of an asymmetric posterior, whose mean is not its mode."""
    known = TARGETS["plane"]()
    with jax.enable_x64(True):
        posterior = known.density()
        proposal, pareto_k, _ = fit_moments(posterior, mode_of(posterior))
        moments = proposal.mode
        sampled = IndependenceMetropolis(draws=4000).sample_by(posterior, proposal, thinning)
    deviation = np.sqrt(np.diag(known.covariance))
    laplace = mode_of(posterior)
    assert np.abs(laplace.position - known.mean).max() > 0.2 * deviation.max()
    # At least 2000 effective draws: five standard errors of the means and of the deviations.
    np.testing.assert_allclose(moments.position, known.mean, atol=0.11 * deviation.min())
    np.testing.assert_allclose(np.sqrt(np.diag(moments.covariance)), deviation, rtol=0.1)
    assert pareto_k < 0.5
    assert sampled.z["weights"].shape == (4, 4000, 2)
    assert (sampled.statistics["n_steps"] == thinning).all()
    np.testing.assert_array_equal(sampled.mode, laplace.position)
    assert_moments(sampled.z["weights"], known.mean, known.covariance)
