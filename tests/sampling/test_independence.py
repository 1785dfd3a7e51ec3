"""The independence sampler: its walk against a plain loop, and draws of fitted proposals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from support.moment_checks import assert_moments
from support.targets import TARGETS

from bpa_ppl.sampling.imh import IndependenceMetropolis, accept, accept_pairs
from bpa_ppl.sampling.laplace import fit_moments
from bpa_ppl.sampling.mode import mode_of


@pytest.mark.parametrize("paired", [False, True])
def test_the_walk_over_given_proposals_is_the_plain_loop(paired: bool) -> None:
    log_ratio, log_skewed = np.random.default_rng(3).normal(0, 1.5, size=(2, 3, 202))
    log_ratio[:, 50] = np.nan
    log_ratio[0, 0] = log_skewed[:, 101] = -np.inf
    rng, uniform = np.random.default_rng(4), np.random.default_rng(4).uniform(size=(3, 200))
    if paired:
        position, acceptance = accept_pairs(log_ratio, log_skewed, 200, rng)
    else:
        position, acceptance = accept(log_ratio[:, :200], rng)
    ratios = [np.where(np.isfinite(ratio), ratio, -1e300) for ratio in (log_ratio, log_skewed)]
    for chain in range(3):
        at = 0
        for step in range(0 if paired else 1, 200):
            to_partner = paired and step % 2 == 1
            ratio = ratios[to_partner][chain]
            partner = at + 1 if at % 2 == 0 else at - 1
            new = partner if to_partner else step + 2 if paired else step
            probability = np.exp(min(0.0, ratio[new] - ratio[at]))
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
