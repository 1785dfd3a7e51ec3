"""The error surface along a line, compared with brute-force reranking."""

from __future__ import annotations

import numpy as np
import pytest
from support.tuning_problems import problem_of, random_lists

from bpa_ppl.experiments.tuning.mert import choose_step, find_envelopes, search_line


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_surface_agrees_with_reranking(seed: int, whole: bool) -> None:
    lists = random_lists(seed, whole=whole)
    rng = np.random.default_rng(seed)
    start, direction = rng.normal(size=(2, 3))
    problem = problem_of(lists, start)
    breaks, gains = search_line(problem, lists.scores(start), lists.features @ direction)
    edges = np.concatenate([[breaks[0] - 2], breaks, [breaks[-1] + 2]])
    # Distant points too: a missed breakpoint changes the surface from there on.
    inside = np.concatenate([(edges[1:] + edges[:-1]) / 2, rng.normal(scale=3, size=200)])
    clear = np.abs(inside[:, None] - breaks).min(axis=1) > 1e-9
    for x in inside[clear]:
        expected = problem.gain(start + x * direction)
        assert gains[np.searchsorted(breaks, x)] == pytest.approx(expected)
    assert clear.sum() > 200


def test_envelopes_of_special_lines() -> None:
    # Of equal slopes the highest line remains, and of equal lines the first.
    heights = np.array([1.0, 2.0, 2.0, 0.0, 0.0])
    slopes = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    parts = find_envelopes(heights, slopes, np.array([0, 5]))
    assert [part.tolist() for part in parts] == [[1], [2.0], [1], [3]]
    # Three lines through one point meet once; lists of one have no breakpoint.
    parts = find_envelopes(np.zeros(3), np.array([-1.0, 0.0, 1.0]), np.array([0, 3]))
    assert [part.tolist() for part in parts] == [[0], [0.0], [0], [2]]
    assert (
        len(find_envelopes(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0, 1, 2]))[1]) == 0
    )


@pytest.mark.parametrize(
    ("breaks", "gains", "expected"),
    [
        ([], [3.0], (3.0, 0.0)),
        ([0.0, 1e-6, 1.0], [1.0, 9.0, 2.0, 0.0], (2.0, 0.5)),  # very narrow intervals are skipped
        ([1.0], [5.0, 0.0], (5.0, 0.9)),  # intervals without end are entered a little
        ([1.0], [0.0, 5.0], (5.0, 1.1)),
    ],
)
def test_best_step(breaks: list[float], gains: list[float], expected: tuple) -> None:
    step = choose_step(np.array(breaks), np.array(gains))
    assert step == pytest.approx(expected, abs=1e-5)
