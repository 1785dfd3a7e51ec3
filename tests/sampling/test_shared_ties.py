"""Ties that nothing decides are shared, and the position in a list never matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from support import reference_model
from support.moment_checks import assert_moments
from support.raising import raises
from support.targets import integrated, moments_of

from bpa_ppl import DataError, NBest, adapt, as_draws, from_lists, oracles, rerank
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.lists import Lists

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
NAMES = ("comet", "length")
SENTENCES, SIZE = 12, 5
FEW: dict[str, Any] = {"draws": 60, "chains": 2}


def lists(seed: int = 0, sentences: int = SENTENCES) -> NBest:
    """Lists whose gains are small whole numbers, so that most have several best candidates."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(sentences, SIZE, 2)).astype(np.float32)
    noise = rng.normal(size=(sentences, SIZE))
    mqm = np.minimum(np.round(features[..., 0] + noise), 1.0)
    texts = [[f"text {s} {rng.integers(10**6)}" for _ in range(SIZE)] for s in range(sentences)]
    return from_lists(texts, list(features), NAMES, extras={"mqm": mqm.tolist()})


def permuted(nbest: NBest, seed: int = 1) -> tuple[NBest, np.ndarray]:
    """The same lists with their candidates in another order, and where each one stood."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.permutation(np.arange(len(nbest.features))[nbest.rows(s)]) for s in range(len(nbest))
    ]
    rows = np.concatenate(parts)
    return nbest.regroup(slice(None), rows, nbest.sizes), rows


def brute_force(nbest: NBest, weights: np.ndarray, gamma: float) -> np.ndarray:
    """(1/k) Σ log p(e) over the k best candidates, with a margin, list by list."""
    mqm, found = np.asarray(nbest.extras["mqm"]), []
    for s in range(len(nbest)):
        rows = nbest.rows(s)
        gain, scores = mqm[rows], nbest.features[rows].astype(np.float64) @ weights
        log_p = scores - np.logaddexp.reduce(scores + gamma * (gain.max() - gain))
        found.append(log_p[gain == gain.max()].mean())
    return np.array(found)


@pytest.mark.parametrize("likelihood", ["oracle", "margin"])
def test_the_tied_best_share_the_observation(likelihood: str) -> None:
    pool = lists()
    assert (oracles(pool, "mqm").tied > 1).sum() > 3
    draws = as_draws(adapt(pool, None, gain="mqm", likelihood=likelihood, sampler="map"))
    gamma = draws.record.likelihood.settings.get("gamma", 0.0)
    expected = brute_force(pool, draws.mean, gamma)
    np.testing.assert_allclose(draws.pointwise[0, 0], expected, rtol=1e-5, atol=1e-5)
    variance = draws.constants["prior_variance"]

    def loss(weights: np.ndarray) -> float:
        prior = norm.logpdf(weights, 0.0, np.sqrt(variance)).sum()
        return -float(brute_force(pool, weights, gamma).sum() + prior)

    np.testing.assert_allclose(draws.mean, minimize(loss, np.zeros(2), tol=1e-10).x, atol=2e-4)


def test_draws_have_the_moments_of_shared_ties() -> None:
    """By quadrature."""
    pool, zeros = lists(sentences=24), dict.fromkeys(NAMES, 0.0)
    options = {"gain": "mqm", "likelihood": "oracle:ties=shared", "prior": "isotropic:variance=4.0"}
    draws = as_draws(adapt(pool, zeros, sampler="imh", draws=500, **options))

    def log_density(weights: np.ndarray) -> np.ndarray:
        prior = norm.logpdf(weights, 0.0, 2.0).sum(axis=1)
        return prior + [brute_force(pool, one, 0.0).sum() for one in weights]

    grid, p = integrated(log_density, draws.mean, 6 * draws.deviation.max(), 41)
    assert_moments(draws.weights, *moments_of(grid, p))


def test_many_draws_side_by_side_have_the_density_of_each() -> None:
    """Shapes at which XLA computed a sum of products wrongly from the 33rd draw on."""
    rng = np.random.default_rng(0)
    lists, size, draws = 512, 8, 256
    features = rng.normal(size=(2, lists, size)).astype(np.float32)
    share = np.repeat(np.float32([[0.5, 0.5, 0, 0, 0, 0, 0, 0]]), lists, axis=0)
    weights = rng.normal(size=(draws, 2)).astype(np.float32)
    base = np.zeros((1, lists, size), np.float32)

    bucket = {"features": np.moveaxis(features, 0, 1)[None], "base": base, "share": share[None]}
    oracle = np.zeros(lists, np.int32)
    table = Lists((bucket,), oracle, oracle, oracle, np.array([lists]))
    log_p = jax.vmap(lambda vector: OracleChoice(table, vector).log_prob(oracle))
    found = np.asarray(jax.jit(log_p)(weights))
    scores = np.einsum("dq,qsn->dsn", weights.astype(np.float64), features)
    expected = scores[..., :2].mean(axis=-1) - np.logaddexp.reduce(scores, axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("sampler", "likelihood"), [("map", "oracle"), ("imh", "risk")])
def test_the_order_of_candidates_does_not_matter(sampler: str, likelihood: str) -> None:
    pool = lists()
    other, rows = permuted(pool)
    settings = {} if sampler == "map" else FEW
    one, two = (
        as_draws(adapt(p, None, gain="mqm", likelihood=likelihood, sampler=sampler, **settings))
        for p in (pool, other)
    )
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9, atol=1e-9)
    chosen = rows[other.offsets[:-1] + two.observed["oracle"]]
    np.testing.assert_array_equal(chosen, pool.offsets[:-1] + one.observed["oracle"])


def test_totals_break_ties_where_there_are_no_canonical_weights() -> None:
    pool = lists()
    totals = np.random.default_rng(2).normal(size=len(pool.features))
    scored = replace(pool, totals=totals.astype(np.float32))
    found = as_draws(adapt(scored, None, gain="mqm", sampler="map"))
    assert found.record.observed.ties == "canonical"
    gain = np.asarray(pool.extras["mqm"])
    best = np.repeat(np.maximum.reduceat(gain, pool.offsets[:-1]), pool.sizes)
    expected = pool.best(np.where(gain == best, totals, -np.inf))
    assert found.observed["oracle"].tolist() == expected.tolist()
    shared = as_draws(adapt(pool, None, gain="mqm", sampler="map"))
    assert shared.record.observed.ties == "shared"


def test_all_candidates_equally_good_is_an_error_and_ties_are_counted() -> None:
    pool = lists()
    same = pool.with_extras(mqm=[0.0] * len(pool.features))
    with raises(DataError, "no-data"):
        adapt(same, None, gain="mqm", sampler="map")
    with capture_notes() as notes:
        adapt(pool, None, gain="mqm", sampler="map")
    tied = int((oracles(pool, "mqm").tied > 1).sum())
    (said,) = [n.message for n in notes if "several best candidates" in n.message]
    assert said.startswith(f"{tied} of 12 lists")


class TestMeanRule:
    """Without canonical weights the mean of the scores decides."""

    def test_it_is_recorded_and_chooses_by_the_mean_weights(self) -> None:
        posterior = adapt(lists(), None, gain="mqm", sampler="imh", draws=300, chains=2)
        draws, new = as_draws(posterior), lists(3, 40)
        found = rerank(new, posterior, unchecked=True)
        assert draws.record.start == "none"
        assert found.choice.tolist() == new.best(new.features @ draws.mean).tolist()
        for s in (0, 17):
            p = np.exp(reference_model.log_choice(new.features[new.rows(s)], draws.mean))
            assert found.probability[s] == pytest.approx(p.max(), rel=1e-5)
        named = rerank(new, posterior, rule="predictive", unchecked=True)
        assert not np.allclose(named.probability, found.probability)
        canonical = {"comet": 0.5, "length": 0.0}
        posterior = adapt(lists(), canonical, gain="mqm", sampler="map")
        assert as_draws(posterior).record.start == "canonical"
