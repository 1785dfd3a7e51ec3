"""Weight-trace sampling, against the method in plain NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import reference_model
from support.raising import raises

from bpa_ppl import NBest, UsageError, Weights, adapt, check
from bpa_ppl.experiments.samplers.weight_trace import WeightTrace


@pytest.fixture
def weights() -> Weights:
    return Weights({"LM0": 0.5, "TM0[0]": 0.3, "TM0[1]": -0.2})


def test_visited_weights_have_the_length_of_the_free_canonical_weights(toy: NBest) -> None:
    weights = {"LM0": 2.0, "TM0[0]": 1.2, "TM0[1]": -0.8}
    sampler = WeightTrace(restarts=2).fitted(toy, weights, fixed=["TM0[0]"], seed=3)
    visited = np.asarray(sampler.visited)
    assert visited[0].tolist() == pytest.approx([2.0, -0.8])
    np.testing.assert_allclose(np.abs(visited).sum(axis=1), 2.8)


@pytest.mark.parametrize("delta", [1.0, 4.0])
def test_visited_weights_of_the_development_set_are_weighted_by_the_data(
    toy: NBest, weights: Weights, delta: float
) -> None:
    oracle, finished = (2, 0, 1), []
    options: dict[str, Any] = {"delta": delta} if delta != 1 else {}  # the default
    found = adapt(
        toy,
        weights,
        sampler=WeightTrace(restarts=5, **options),
        extra=toy,
        seed=3,
        likelihood="oracle",
        gain=reference_model.given(*oracle),
        progress=lambda done, total, note: finished.append((done, total)),
    )
    assert found.attrs["extra"] == toy.origin
    assert finished[-1] == (1, 1)
    visited = np.asarray(WeightTrace(restarts=5).fitted(toy, weights, fixed=None, seed=3).visited)
    np.testing.assert_allclose(found["posterior"]["weights"].values[0], visited)
    expected = [
        reference_model.log_likelihood(toy, oracle, row).sum() / delta
        + reference_model.log_prior(row, weights.values_array, 0.1)
        for row in visited
    ]
    log_weight = found["sample_stats"]["log_weight"].values[0]
    np.testing.assert_allclose(np.diff(log_weight), np.diff(expected), atol=1e-5)
    assert "ESS of the weights" in {finding.name for finding in check(found).findings}


def test_what_does_not_fit_the_sampler_is_refused(toy: NBest, weights: Weights) -> None:
    with raises(UsageError, parameter="visited"):
        adapt(toy, weights, sampler=WeightTrace(visited=np.zeros((4, 2))))
    with raises(UsageError, parameter="extra"):
        adapt(toy, weights, sampler="imh", extra=toy)
    with raises(UsageError, "missing-setting", parameter="extra"):
        adapt(toy, weights, sampler="weight-trace")
