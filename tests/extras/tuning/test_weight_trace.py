"""The weights that MERT visits, as samples whose importance weights SciPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import reference_model
from support.published_samples import CANONICAL, ORACLE, log_weights
from support.published_samples import lists as lists
from support.raising import raises

from bpa_ppl import NBest, UsageError, adapt, as_weight_draws, check
from bpa_ppl.extras.tuning.weight_trace import WeightTrace


@pytest.mark.parametrize("settings", [{}, {"delta": 4.0}])
def test_weights_that_mert_visits_are_weighted_by_the_data(
    lists: NBest, settings: dict[str, Any]
) -> None:
    lists, finished = lists.with_references(["2", "0", "1"]), []
    found = adapt(
        lists,
        CANONICAL,
        sampler=WeightTrace(lists, restarts=5, **settings),
        seed=3,
        likelihood="oracle",
        gain=reference_model.given(*ORACLE),
        progress=lambda done, total, note: finished.append((done, total)),
    )
    assert as_weight_draws(found).record.sampler.settings["lists"] == lists.origin
    assert finished[-1] == (1, 1)
    visited = WeightTrace(lists, restarts=5).fitted(CANONICAL, fixed=[], seed=3).visited
    np.testing.assert_allclose(found["posterior"]["weights"].values[0], visited)
    expected = log_weights(lists, visited, 0.1, settings.get("delta", 1.0))
    log_weight = found["sample_stats"]["log_weight"].values[0]
    np.testing.assert_allclose(log_weight - log_weight[0], expected, atol=1e-5)
    assert "ESS of the weights" in {finding.name for finding in check(found).rows}


def test_visited_weights_have_the_length_of_the_free_canonical_weights(toy: NBest) -> None:
    weights = {"LM0": 2.0, "TM0[0]": 1.2, "TM0[1]": -0.8}
    sampler = WeightTrace(toy, restarts=2).fitted(weights, fixed=["TM0[0]"], seed=3)
    visited = np.asarray(sampler.visited)
    assert visited[0].tolist() == pytest.approx([2.0, -0.8])
    np.testing.assert_allclose(np.abs(visited).sum(axis=1), 2.8)


def test_what_does_not_fit_weight_trace_is_refused(lists: NBest) -> None:
    lists = lists.with_references(["2", "0", "1"])
    with raises(UsageError, parameter="visited"):
        adapt(lists, CANONICAL, sampler=WeightTrace(visited=np.zeros((4, 3))))
    with raises(UsageError, "missing-setting", parameter="sampler"):
        adapt(lists, CANONICAL, sampler="weight-trace")
