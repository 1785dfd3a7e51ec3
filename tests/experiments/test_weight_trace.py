"""Weight-trace sampling, against the method in plain NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from plain import log_likelihood, log_prior, predictive

from bpa_ppl import NBest, Weights, check, oracles, rerank
from bpa_ppl.experiments.weight_trace import visited_weights, weight_trace


@pytest.fixture
def weights() -> Weights:
    return Weights({"LM0": 0.5, "TM0[0]": 0.3, "TM0[1]": -0.2})


def test_visited_weights_are_those_of_mert_in_the_length_of_the_canonical(
    toy: NBest, weights: Weights
) -> None:
    visited = visited_weights(toy, weights, restarts=5, seed=3)
    assert visited[0] == pytest.approx(weights.values_array)
    np.testing.assert_allclose(np.abs(visited).sum(axis=1), 1.0)
    assert len(np.unique(visited.round(9), axis=0)) >= 5
    again = visited_weights(toy, weights, restarts=5, seed=3)
    np.testing.assert_array_equal(visited, again)


@pytest.mark.parametrize("delta", [1.0, 4.0])
def test_decisions_are_those_of_the_equation(toy: NBest, weights: Weights, delta: float) -> None:
    visited = visited_weights(toy, weights, restarts=5, seed=3)
    sample = weight_trace(toy, weights, visited, prior_variance=0.2, delta=delta)
    chosen = oracles(toy, scores=toy.scores(weights.values_array)).index
    say = [
        np.exp(log_likelihood(toy, chosen, w).sum() / delta)
        * np.exp(log_prior(w, weights.values_array, 0.2))
        for w in visited
    ]
    expected = predictive(toy, visited, say, 1 / delta)
    result = rerank(toy, sample, unchecked=True)
    assert result.choice.tolist() == [int(np.argmax(p)) for p in expected]
    np.testing.assert_allclose(result.probability, [p.max() for p in expected], rtol=1e-4)


def test_it_is_judged_as_a_weighted_sample(toy: NBest, weights: Weights) -> None:
    visited = visited_weights(toy, weights, restarts=5, seed=3)
    names = {finding.name for finding in check(weight_trace(toy, weights, visited)).findings}
    assert "ESS of the weights" in names
