"""Draws of the prior, weighted by the likelihood, show modes that no chain has visited."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats
from scipy.stats import binom
from support.posteriors import FromPrior, Record, autoregressive

import bpa_ppl as bpa
from bpa_ppl import Draws
from bpa_ppl.diagnostics.check.prior import PriorDraws, compare_with_prior


def mixture(means: Any, deviations: Any) -> None:
    halves = dist.Categorical(probs=jnp.array([0.5, 0.5]))
    parts = dist.Normal(jnp.array(means), jnp.array(deviations))
    numpyro.sample("x", dist.MixtureSameFamily(halves, parts))


@pytest.mark.parametrize(
    ("sampler", "means", "deviations"),
    [
        ("imh", (0.0, 0.0), (0.001, 1.0)),
        pytest.param("auto", (0.0, 0.0), (0.001, 1.0), marks=pytest.mark.slow),
        pytest.param("rwm", (0.0, 0.0), (0.001, 1.0), marks=pytest.mark.slow),
        pytest.param("rwm", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
        pytest.param("nuts", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
        pytest.param("auto", (0.0, 8.0), (1.0, 0.05), marks=pytest.mark.slow),
    ],
)
def test_no_sampler_passes_with_one_of_two_modes(sampler: str, means: Any, deviations: Any) -> None:
    data = bpa.sample(mixture, (means, deviations), sampler=sampler)
    failed = {finding.name: finding.advice for finding in bpa.check(data).failures}
    assert failed
    if "R-hat" not in failed:  # all chains are at one mode
        assert "several modes" in failed[PriorDraws.title]


def weak(y: Any, scale: float) -> None:
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    with handlers.scale(scale=scale):
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def test_a_scaled_likelihood_counts_and_a_strong_one_has_nothing_to_compare() -> None:
    """Of ten observations at 1, scaled by a tenth, the posterior has the mean 1/2."""
    scaled = bpa.sample(weak, (np.ones(10), 0.1), sampler="imh")
    compared = bpa.as_draws(scaled).record.from_prior
    assert compared is not None
    assert compared.p_value > 0.001
    assert compared.mean == pytest.approx(0.5, abs=0.15)
    assert compared.deviation == pytest.approx(np.sqrt(0.5), abs=0.1)
    strong = bpa.sample(weak, (np.full(400, 2.0), 1.0), sampler="imh")
    assert bpa.as_draws(strong).record.from_prior is None


def one_point() -> Any:
    """Return a program whose draws of the prior are all the same."""

    def program() -> None:
        numpyro.sample("x", dist.Normal(0.0, 1.0))

    return handlers.seed(program, 0)


def test_draws_of_the_prior_that_do_not_differ_are_no_prior() -> None:
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(4, 1000)) for name in ("x", "y")}
    prior = {"x": np.full((1, 1000), 0.7), "y": rng.normal(size=(1, 1000))}
    alone = Draws({"x": values["x"]}, sampled=("x",), prior={"x": prior["x"]})
    assert compare_with_prior(alone, np.zeros(1000)) is None
    compared = compare_with_prior(Draws(values, sampled=("x", "y"), prior=prior), np.zeros(1000))
    assert compared is not None
    assert compared.where == "y"
    assert compared.p_value > 0.001


@pytest.mark.slow
def test_a_program_with_a_seed_passes() -> None:
    data = bpa.sample(one_point(), sampler="imh")
    assert bpa.check(data)


def far_mode(size: int, share: float, correlation: float, seed: int) -> Draws:
    """Chains of N(0, 1), and draws of the prior of which a share is at 100."""
    rng = np.random.default_rng(seed)
    x = autoregressive(correlation, 4, 1000, size, seed)
    prior = rng.normal(size=(1, 1000, size)) + 100 * (rng.random((1, 1000, 1)) < share)
    return Draws({"x": x}, sampled=("x",), prior={"x": prior})


def test_a_small_far_mode_is_found() -> None:
    draws = far_mode(1, 0.01, 0.0, 4)
    compared = compare_with_prior(draws, np.zeros(1000))
    assert compared is not None
    assert compared.p_value < PriorDraws().limit
    assert compared.deviation > 5


def test_a_far_mode_that_the_likelihood_excludes_is_not_compared() -> None:
    """Weights of draws that are far from the observation are zero in double precision."""
    draws = far_mode(1, 0.01, 0.0, 4)
    far = draws.prior["x"][0, :, 0] > 50
    compared = compare_with_prior(draws, np.where(far, -5000.0, 0.0))
    assert compared is not None
    assert compared.p_value > PriorDraws().limit
    assert compared.deviation == pytest.approx(1, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "share", "least"), [(1, 0.01, 34), (5, 0.02, 36), (5, 0.05, 40)])
def test_far_modes_are_mostly_found(size: int, share: float, least: int) -> None:
    compared = (
        compare_with_prior(far_mode(size, share, 0.0, s), np.zeros(1000)) for s in range(40)
    )
    found = [one is not None and one.p_value < PriorDraws().limit for one in compared]
    assert sum(found) >= least


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("name", ["norm", "t3", "cauchy", "lognorm"])
def test_far_draws_of_heavy_tails_are_no_mode(name: str, correlation: float) -> None:
    """Of 200 runs at a level of 1/1000 more than 2 are one in 900."""
    law = {
        "t3": stats.t(3),
        "lognorm": stats.lognorm(2),
        "norm": stats.norm(),
        "cauchy": stats.cauchy(),
    }[name]
    alarms = 0
    for seed in range(200):
        normal = autoregressive(correlation, 4, 1000, 3, seed)
        x = np.where(normal < 0, law.ppf(stats.norm.cdf(normal)), law.isf(stats.norm.sf(normal)))
        prior = law.rvs(size=(1, 1000, 3), random_state=np.random.default_rng(seed))
        draws = Draws({"x": x}, sampled=("x",), prior={"x": prior})
        compared = compare_with_prior(draws, np.zeros(1000))
        assert compared is not None
        alarms += compared.p_value < PriorDraws().limit
    assert alarms <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "error", "correlation", "runs"),
    [(1, 0.2, 0.5, 400), (5, 1.6, 0.9, 400), (20, 4.0, 0.5, 150)],
)
def test_the_level_is_as_stated(size: int, error: float, correlation: float, runs: int) -> None:
    """Exact draws of a normal posterior of means, of which y is observed with an error."""
    p_values = []
    variance = 1 / (1 + error**-2)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=size) + error * rng.normal(size=size)
        prior = rng.normal(size=(1, 1000, size))
        drawn = autoregressive(correlation, 4, 1000, size, seed)
        x = variance * y / error**2 + np.sqrt(variance) * drawn
        log_likelihood = -(((y - prior[0]) / error) ** 2).sum(axis=-1) / 2
        values, of_prior = ({"x": of} for of in (x, prior))
        draws = Draws(values, sampled=("x",), prior=of_prior)
        if compared := compare_with_prior(draws, log_likelihood):
            p_values.append(compared.p_value)
    assert len(p_values) >= 100
    for level in (0.05, 0.01, PriorDraws().limit):
        refused = int(np.sum(np.array(p_values) < level))
        assert refused <= binom.isf(0.001, len(p_values), level), level


def half_cauchy(normal: np.ndarray) -> np.ndarray:
    return np.asarray(stats.halfcauchy.isf(stats.norm.sf(normal)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hierarchy", "funnel", "horseshoe"])
def test_short_chains_of_hierarchies_raise_no_alarm(name: str) -> None:
    """Non-centred, from right chains of 300 draws: at a level of 1/1000, 2 of 60 are one in 600."""
    sites = {
        "hierarchy": lambda z: {"mu": 5 * z[..., 0], "tau": 5 * np.abs(z[..., 1]), "z": z[..., 2:]},
        "funnel": lambda z: {"v": 3 * z[..., 0], "z": z[..., 1:]},
        "horseshoe": lambda z: {
            "tau": half_cauchy(z[..., 0]) / 10,
            "lam": half_cauchy(z[..., 1:6]),
            "z": z[..., 6:],
        },
    }[name]
    alarms = 0
    for seed in range(60):
        values = sites(autoregressive(0.5, 4, 300, 11, seed))
        prior = sites(np.random.default_rng([seed, 9]).normal(size=(1, 1000, 11)))
        draws = Draws(values, sampled=tuple(values), prior=prior)
        compared = compare_with_prior(draws, np.zeros(1000))
        assert compared is not None
        alarms += compared.p_value < PriorDraws().limit
    assert alarms <= 1


def test_chains_that_are_too_short_are_not_said_to_miss_a_mode() -> None:
    """Of a slow chain the mean differs, but no mode is missed: the effective draws say so."""
    x = autoregressive(0.995, 4, 400, 1, 3)[..., 0] + 0.8
    apart = np.random.default_rng(1).normal(size=(4, 1000))
    for values, several in ((x, False), (apart, True)):
        record = Record(
            from_prior=FromPrior(effective=900, p_value=1e-5, where="x", mean=0.0, deviation=1.0)
        )
        report = bpa.check(Draws({"x": values}, sampled=("x",), record=record))
        advice = {one.name: one.advice for one in report.failures}
        assert ("several modes" in advice[PriorDraws.title]) == several
        assert ("bulk ESS" in advice) != several
