"""The density in the open: pure functions of a flat vector, and the way back to a posterior."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal
from support.moment_checks import assert_weighted_moments
from support.raising import raises
from support.reference_model import given, pairs
from support.registries import SAMPLERS
from support.targets import TARGETS, Target, by_domain

import bpa_ppl
from bpa_ppl import (
    DataError,
    Isotropic,
    NBest,
    Prior,
    UsageError,
    as_weight_draws,
    check,
    from_lists,
    rerank,
    to_posterior,
)
from bpa_ppl.densities.target import Source
from bpa_ppl.extending import Sampled, Sampler
from bpa_ppl.extending import Target as Density

NAMES = ("LM0", "WP0", "TM0")
CANONICAL = dict(zip(NAMES, (0.5, -0.3, 0.2), strict=True))


def judged_lists() -> NBest:
    """Return lists of several sizes and two domains, with a gain."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(2, 9, size=14)
    lists = from_lists(
        [[f"{s} {c}" for c in range(n)] for s, n in enumerate(sizes)],
        [rng.normal(size=(n, 3)) for n in sizes],
        NAMES,
        extras={"mqm": [np.round(rng.normal(size=n)) for n in sizes]},
    )
    return lists.with_sentence_extras(domain=["a", "b"] * 7)


#: Options of `adapt`.
POSTERIORS: dict[str, dict[str, Any]] = {
    "shared ties": {"likelihood": "oracle:ties=shared", "gain": "mqm"},
    "margin": {"likelihood": "margin", "gain": "mqm", "prior": Isotropic(variance=[0.1, 1.0, 4.0])},
    "risk": {"likelihood": "risk", "gain": "mqm"},
    "covariance": {
        "gain": "mqm",
        "prior": Prior.gaussian(CANONICAL, np.eye(3) + 0.3),
        "likelihood": "oracle",
    },
    "horseshoe": {"gain": "mqm", "prior": "horseshoe"},
    "hierarchy": {"gain": "mqm", "likelihood": "oracle", "model": by_domain},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "risk" else pytest.mark.slow) for name in POSTERIORS],
)
def test_it_is_lp_of_the_draws(name: str) -> None:
    density = bpa_ppl.log_density(judged_lists(), CANONICAL, **POSTERIORS[name])
    walk = {"proposal_variance": 0.05, "warmup": 1, "draws": 20, "chains": 2}
    sampled = SAMPLERS.resolve("rwm-isotropic", walk).sample(density, 0, lambda *_: None)
    flat = np.concatenate(
        [np.reshape(sampled.z[site], (40, -1)) for site in sorted(density.start)], axis=1
    )
    assert flat.shape[1] == density.dimension == len(density.initial_position)
    assert len(np.unique(flat, axis=0)) > 5
    lp = np.ravel(sampled.log_density)
    found = jax.jit(jax.vmap(density))(flat)
    np.testing.assert_allclose(found, lp, rtol=0, atol=1e-6 * np.abs(lp).max())


def plane_density() -> tuple[Target, Density]:
    target = TARGETS["plane"]()
    return target, target.density()


def test_derivatives_are_those_of_logistic_regression() -> None:
    """By hand: the gradient −Σ r expit(r λ) − (λ − λ_T) / σ_T, and its derivative."""
    target, density = plane_density()
    rows, centre = target.rows, np.array(list(target.canonical.values()))
    z = np.array([-0.4, 0.7])
    p = expit(rows @ z)
    gradient = -rows.T @ p - (z - centre) / target.variance
    hessian = -(rows * (p * (1 - p))[:, None]).T @ rows - np.eye(2) / target.variance
    first = [jax.grad(density), jax.jacfwd(density)]
    second = [jax.hessian(density), jax.jacrev(jax.jacfwd(density))]
    gradients, hessians = jax.jit(lambda z: ([f(z) for f in first], [f(z) for f in second]))(z)
    for found in gradients:
        np.testing.assert_allclose(found, gradient, rtol=1e-5)
    for found in hessians:
        np.testing.assert_allclose(found, hessian, rtol=1e-5)
    many = jax.jit(jax.vmap(jax.grad(density)))(np.stack([z, z + 1.0]))
    np.testing.assert_allclose(many[0], gradient, rtol=1e-5)


def test_threads_need_not_enable_float64() -> None:
    _, density = plane_density()
    points = np.random.default_rng(0).normal(size=(40, 2))

    def evaluate_one(z: np.ndarray) -> tuple[float, np.ndarray]:
        with jax.enable_x64(False):  # as in a new thread of a program that sets nothing
            return density.value_and_gradient(z)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(evaluate_one, points))
    expected = jax.jit(jax.value_and_grad(density))
    for z, (value, gradient) in zip(points, found, strict=True):
        assert gradient.dtype == np.float64
        for ours, theirs in zip((value, gradient), expected(z), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_draws_become_the_posterior_of_adapt() -> None:
    target, density = plane_density()
    expected = target.adapt("imh")
    z = expected["posterior"]["weights"].values
    rates = expected["sample_stats"]["acceptance_rate"].values
    found = to_posterior(density, z, sampler="mine", statistics={"acceptance_rate": rates})
    assert found.attrs["sampler"] == "mine"
    for group, variable in (
        ("posterior", "weights"),
        ("sample_stats", "lp"),
        ("sample_stats", "acceptance_rate"),
        ("log_likelihood", "oracle"),
        ("constant_data", "prior_variance"),
        ("prior", "weights"),
    ):
        np.testing.assert_allclose(found[group][variable], expected[group][variable], rtol=1e-6)
    same = {"likelihood", "prior", "seed", "oracle_metric", "versions"}
    assert {found.attrs[name] == expected.attrs[name] for name in same} == {True}
    assert check(found)
    again, first = rerank(target.pool, found), rerank(target.pool, expected)
    np.testing.assert_array_equal(again.probability, first.probability)


def test_importance_weights_of_own_proposals() -> None:
    target, density = plane_density()
    proposal = multivariate_normal(target.mean, 1.5 * target.covariance)
    z = proposal.rvs(4000, random_state=3)[None]
    ratio = np.asarray(jax.vmap(density)(z[0]))[None] - proposal.logpdf(z)
    posterior = to_posterior(density, z, sampler="own importance sampling", log_weight=ratio)
    draws = as_weight_draws(posterior)
    assert draws.record.figures.pareto_k < 0.7
    assert check(posterior)
    assert_weighted_moments(z[0], draws.draws.log_weight[0], target.mean, target.covariance)
    narrow = multivariate_normal(target.mean, 0.05 * target.covariance)
    z = narrow.rvs(1000, random_state=3)[None]
    ratio = np.asarray(jax.vmap(density)(z[0]))[None] - narrow.logpdf(z)
    assert not check(to_posterior(density, z, log_weight=ratio))


def test_draws_that_do_not_fit_are_refused() -> None:
    _, density = plane_density()
    good = np.zeros((2, 10, 2))
    for z, code, kind in (
        (good[0], "mismatch", DataError),
        (good[..., :1], "mismatch", DataError),
        (good[:, :0], "mismatch", DataError),
        (good + np.nan, "bad-number", DataError),
        ("draws", "wrong-type", UsageError),
    ):
        with raises(kind, code, parameter="z"):
            to_posterior(density, z)
    for parameter, options in (
        ("n_steps", {"statistics": {"n_steps": np.ones(10)}}),
        ("log_weight", {"log_weight": np.ones(20)}),
        ("warmup", {"warmup": np.ones((2, 3))}),
    ):
        with raises(DataError, "mismatch", parameter=parameter):
            to_posterior(density, good, **options)
    with raises(UsageError, "missing-setting"):
        to_posterior(replace(density, source=Source()), good)


def test_float32_and_other_shapes_are_refused() -> None:
    _, density = plane_density()
    with jax.enable_x64(False), raises(UsageError, "conflict"):
        jax.grad(density)(jnp.zeros(2))
    for z in (np.zeros(3), np.zeros((4, 2)), {"weights": np.zeros(2)}, 0.5):
        with raises(UsageError, "wrong-type", parameter="z"):
            density(z)


class Returns(Sampler, frozen=True):
    """Returns what it is given as its draws."""

    result: Any

    def sample(self, target: Density, seed: int, progress: Any) -> Any:
        return self.result


@pytest.mark.parametrize(
    ("result", "code", "parameter"),
    [({}, "wrong-type", "sampled"), (Sampled(z={"weights": np.zeros((1, 5, 2))}), "mismatch", "z")],
)
def test_what_a_sampler_returns_is_checked(result: Any, code: str, parameter: str) -> None:
    pool = pairs([[1.0], [-2.0]], ["LM0"])
    with raises(UsageError, code, parameter=parameter):
        bpa_ppl.adapt(pool, {"LM0": 0.5}, gain=given(0, 0), sampler=Returns(result=result))
