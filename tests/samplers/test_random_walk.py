"""The random walk: its steps, and whether it rejects what has no density."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support.moment_checks import assert_moments
from support.targets import plane

from bpa_ppl import adapt, check, from_lists
from bpa_ppl.extending import Target
from bpa_ppl.samplers.rwm import random_walk

WALKS = 5_000


@jax.jit
def move(target: Target, variance: float, metric: Any, keys: jax.Array, start: Any) -> Any:
    """Return the walks after one step."""
    state, step, collect = random_walk(target, variance, metric, keys, start)
    return collect(step(state))


def moved(target: Target, variance: float, metric: Any = None) -> tuple[Any, np.ndarray]:
    """Return the walks after one step from the initial position, and this position."""
    start = np.broadcast_to(np.asarray(target.initial_position), (WALKS, 2))
    keys = jax.random.split(jax.random.key(0), WALKS)
    return move(target, variance, metric, keys, {"weights": start}), start


@pytest.mark.parametrize("covariance", [None, [[1.0, 0.9], [0.9, 1.0]]])
def test_steps_have_the_variance_and_the_covariance(covariance: list[list[float]] | None) -> None:
    target = plane().density(prior="isotropic:variance=1e6")  # steps of 0.01 are all accepted
    found, start = moved(target, 1e-12, None if covariance is None else np.array(covariance))
    assert np.asarray(found["accept_prob"]).min() > 0.999
    steps = (np.asarray(found["z"]["weights"]) - start) * 1e6
    assert_moments(steps[None], np.zeros(2), np.eye(2) if covariance is None else covariance)


def test_a_proposal_without_a_density_is_rejected() -> None:
    found, start = moved(plane().density(), np.inf)
    assert not np.asarray(found["accept_prob"]).any()
    np.testing.assert_array_equal(found["z"]["weights"], start)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")  # the canonical weights are as good
@pytest.mark.parametrize(("features", "thinning"), [(2, 10), (14, 21)])
def test_so_many_steps_are_enough(features: int, thinning: int) -> None:
    """Ten steps a draw failed R-hat in a quarter of the runs with 14 weights."""
    rng, names = np.random.default_rng(1), [f"F{k}" for k in range(features)]
    values, texts = rng.normal(size=(20, 4, features)), [list("abcd")] * 20
    gain = values.sum(axis=2) + 0.1 * rng.normal(size=(20, 4))
    lists = from_lists(texts, values, names, extras={"gain": gain.tolist()})
    options = {"gain": "gain", "likelihood": "oracle", "sampler": "rwm"}
    canonical = dict.fromkeys(names, 0.1)
    posterior = adapt(lists, canonical, **options)
    assert (posterior["sample_stats"]["n_steps"].values == thinning).all()
    report = check(posterior)
    assert report, str(report)
    assert {one.name: one.value for one in report.rows}["bulk ESS"] > 1000
    if features == 2:
        few = adapt(lists, canonical, **{**options, "sampler": "rwm:thinning=3,draws=100"})
        assert (few["sample_stats"]["n_steps"].values == 3).all()
