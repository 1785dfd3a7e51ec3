"""Proposals: their density, skew and tails, mixtures over scales, and the walk over them."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, multivariate_normal, multivariate_t
from scipy.stats import t as student
from support.moment_checks import assert_moments
from support.targets import TARGETS, laplace, standard_mode

from bpa_ppl.samplers.imh import IndependenceMetropolis, accept, accept_pairs
from bpa_ppl.samplers.proposals import (
    ANTITHETIC_CORRELATION,
    Proposals,
    Skewed,
    SkewedProposal,
    choose_directions,
    fit_moments,
    log_mixture,
    solve_third_derivatives,
)
from bpa_ppl.samplers.scale_mixture import ScaleMixture


def symmetric(size: int, seed: int, scale: float = 0.2) -> np.ndarray:
    made = np.random.default_rng(seed).normal(0, scale, size=(size, size, size))
    axes = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return sum(made.transpose(a) for a in axes) / 6


def log_density(proposal: SkewedProposal, x: np.ndarray) -> np.ndarray:
    return log_mixture(*proposal.log_components(x), proposal.share)


def test_the_density_is_that_of_the_draws_by_change_of_variables() -> None:
    skewed = Skewed(symmetric(5, 1))
    u = np.random.default_rng(2).normal(size=(50, 5)) * 1.5
    step = 1e-6
    draw = skewed.from_standard_normal
    x = draw(u)
    for i in range(0, len(u), 5):
        columns = [
            (draw(u[i : i + 1] + step * e) - draw(u[i : i + 1] - step * e))[0] / (2 * step)
            for e in np.eye(5)
        ]
        log_slope = np.linalg.slogdet(np.array(columns))[1]
        known = multivariate_normal(np.zeros(5)).logpdf(u[i]) - log_slope
        assert skewed.log_density(x[i : i + 1])[0] == pytest.approx(known, abs=1e-6)


def test_the_third_cumulants_of_the_draws_are_the_third_derivatives() -> None:
    """To first order, for the density exp(−½|x|² + ⅙ T(x, x, x))."""
    cubic = symmetric(3, 5, 0.08)
    x = Skewed(cubic).from_standard_normal(np.random.default_rng(6).normal(size=(400_000, 3)))
    centred = x - x.mean(axis=0)
    found = np.einsum("na,nb,nc->abc", centred, centred, centred) / len(x)
    np.testing.assert_allclose(found, cubic, atol=0.03)
    assert np.abs(cubic).max() > 0.1
    # And the mean is ½ Σ_b T_ibb.
    np.testing.assert_allclose(x.mean(axis=0), np.einsum("abb->a", cubic) / 2, atol=0.012)


def test_partners_are_opposed_and_follow_the_same_distribution() -> None:
    skewed, rng = Skewed(symmetric(2, 3)), np.random.default_rng(1)
    x = skewed.from_standard_normal(rng.normal(size=(200_000, 2)))[None]
    other = skewed.antithetic(rng, x)
    assert other.shape == x.shape
    u, v = skewed.to_standard_normal(x[0])[0], skewed.to_standard_normal(other[0])[0]
    both = np.cov(np.hstack([u, v]).T)
    opposed = ANTITHETIC_CORRELATION * np.eye(2)
    known = np.block([[np.eye(2), opposed], [opposed, np.eye(2)]])
    np.testing.assert_allclose(both, known, atol=5 / np.sqrt(200_000) * 1.5)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_all_third_derivatives_follow_from_those_along_directions(size: int) -> None:
    known = symmetric(size, size)
    along, pairs = choose_directions(size)
    bends = np.einsum("va,vb,abc->vc", along, along, known)
    np.testing.assert_allclose(solve_third_derivatives(bends, pairs), known, atol=1e-12)


def test_third_derivatives_with_equal_indices_are_exact_for_many_values() -> None:
    known = symmetric(30, 1)
    along, pairs = choose_directions(30)
    found = solve_third_derivatives(np.einsum("va,vb,abc->vc", along, along, known), pairs)
    assert pairs == []
    a, b, c = np.indices(found.shape)
    expected = np.where((a == b) | (a == c) | (b == c), known, 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_draws_follow_the_density_of_the_mixture() -> None:
    """By E f/q over the draws, for densities f that integrate to one."""
    proposal = SkewedProposal(standard_mode(2), Skewed(symmetric(2, 4)), 5.0, 0.4)
    x = proposal.draw(np.random.default_rng(5), 200_000)
    for centre in ([0.0, 0.0], [1.0, -1.0], [-2.0, 0.5]):
        ratio = np.exp(multivariate_normal(centre, 0.5).logpdf(x) - log_density(proposal, x))
        assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(x))


@pytest.mark.parametrize(("degrees", "share"), [(200.0, 0.03), (1.0, 1.0)])
def test_the_pilot_chooses_the_share_of_the_tails(degrees: float, share: float) -> None:
    """A Gaussian needs next to none; of a Cauchy distribution the Student t is nearly the same."""
    first = SkewedProposal(standard_mode(2), Skewed(), 1.0, 0.5)
    x = first.draw(np.random.default_rng(1), 2000)
    log_p = multivariate_t(np.zeros(2), np.eye(2), df=degrees).logpdf(x)
    pilot = Proposals(
        z={},
        log_density=log_p[None],
        log_weight=log_p[None],
        log_likelihood={},
        position=x[None],
    )
    assert first.tuned(pilot).share == share
    few = replace(pilot, log_density=log_p[None, :10], position=x[None, :10])
    assert first.tuned(few).share == first.tuned(None).share == 0.1


SHARES, CENTRES, SCALES, DEGREES = (0.3, 0.7), (-1.0, 2.0), (0.5, 2.0), 3.0
MIXTURE = ScaleMixture(
    standard_mode(1),
    np.log(SHARES),
    np.array(CENTRES)[:, None],
    np.array(SCALES)[:, None, None],
    DEGREES,
    0.0,
)


def cdf(x: np.ndarray) -> np.ndarray:
    components = zip(SHARES, CENTRES, SCALES, strict=True)
    return sum(share * student.cdf(x, DEGREES, loc, scale) for share, loc, scale in components)


def test_draws_and_density_are_those_of_scipy() -> None:
    draws = MIXTURE.draw(np.random.default_rng(0), 4000)
    assert kstest(draws[:, 0], cdf).pvalue > 1e-3

    def density(x: float) -> float:
        return float(np.exp(MIXTURE.log_components(np.array([[x]]))[0][0]))

    for low, high in ((-3.0, 0.0), (0.0, 5.0)):
        expected = cdf(np.array(high)) - cdf(np.array(low))
        assert quad(density, low, high)[0] == pytest.approx(expected, abs=1e-7)


def test_components_are_fitted_to_weighted_draws() -> None:
    """To a Gaussian far from them; the last component stays."""
    target = multivariate_normal([5.0, -1.0], [[4.0, 1.0], [1.0, 1.0]])
    mixture = ScaleMixture(
        standard_mode(2),
        np.log([0.2, 0.5, 0.2, 0.1]),
        np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]),
        np.array([np.eye(2), 2 * np.eye(2), np.eye(2), 5 * np.eye(2)]),
        10.0,
        0.0,
    )
    rng, fitted = np.random.default_rng(5), mixture
    for _ in range(8):
        x = fitted.draw(rng, 4000)
        log_weight = target.logpdf(x) - fitted.log_components(x)[0]
        weight = np.exp(log_weight - log_weight.max())
        effective = weight.sum() ** 2 / (weight**2).sum() / len(x)
        fitted = fitted.fitted(x, weight / weight.sum())
    assert effective > 0.7
    share = np.exp(fitted.log_share[:-1]) / 0.9
    np.testing.assert_allclose(share @ fitted.centre[:-1], target.mean, atol=0.2)
    own = fitted.standardised()
    np.testing.assert_allclose(own.mode.position, target.mean, atol=0.2)
    np.testing.assert_allclose(np.sqrt(np.diag(own.mode.covariance)), [2.0, 1.0], rtol=0.15)
    factor = np.linalg.cholesky(own.mode.covariance)
    moved = np.linalg.solve(factor, (x - own.mode.position).T).T
    same = own.log_components(moved)[0] - np.log(np.diag(factor)).sum()
    np.testing.assert_allclose(same, fitted.log_components(x)[0], atol=1e-9)
    assert np.exp(fitted.log_share).sum() == pytest.approx(1.0)
    assert fitted.log_share[-1] == pytest.approx(np.log(0.1))
    np.testing.assert_array_equal(fitted.factor[-1], mixture.factor[-1])


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
        proposal, pareto_k, _ = fit_moments(posterior, laplace(posterior), 0, lambda *_: None)
        moments = proposal.mode
        sampled = IndependenceMetropolis(draws=4000).sample_by(
            posterior, 0, lambda *_: None, proposal, thinning
        )
    deviation = np.sqrt(np.diag(known.covariance))
    mode = laplace(posterior)
    assert np.abs(mode.position - known.mean).max() > 0.2 * deviation.max()
    # At least 2000 effective draws: five standard errors of the means and of the deviations.
    np.testing.assert_allclose(moments.position, known.mean, atol=0.11 * deviation.min())
    np.testing.assert_allclose(np.sqrt(np.diag(moments.covariance)), deviation, rtol=0.1)
    assert pareto_k < 0.5
    assert sampled.z["weights"].shape == (4, 4000, 2)
    assert (sampled.statistics["n_steps"] == thinning).all()
    np.testing.assert_array_equal(sampled.mode, mode.position)
    assert_moments(sampled.z["weights"], known.mean, known.covariance)
