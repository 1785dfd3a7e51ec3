"""Properties of all tuners, and of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.tuning_problems import planted_lists, problem_of, random_lists

from bpa_ppl.experiments.tuning import pro
from bpa_ppl.experiments.tuning.mert import Mert
from bpa_ppl.experiments.tuning.mira import Mira
from bpa_ppl.experiments.tuning.tuner import TUNERS, Tuned, TuningLists, TuningProblem

#: Enough to find planted weights, and fast.
FEW: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 3},
    "mira": {"epochs": 20},
    "pro": {"iterations": 5, "interpolation": 0.9, "pairs": 500},
}
TRUE = np.array([0.2, -0.5, 0.3])


def run(name: str, problem: TuningProblem) -> Tuned:
    """Tune with few steps."""
    return TUNERS.resolve(name, FEW[name]).tune(problem)


@pytest.mark.parametrize("metric", ["bleu", "ter"])
@pytest.mark.parametrize("name", FEW)
def test_planted_weights_are_found(name: str, metric: str) -> None:
    lists = planted_lists(1, TRUE, metric)
    problem = problem_of(lists, -TRUE, metric)
    best, worst = problem.gain(TRUE), problem.gain(-TRUE)
    tuned = run(name, problem)
    assert best - worst > 20
    assert problem.gain(tuned.weights) > best - 0.05 * (best - worst)


@pytest.mark.parametrize("name", FEW)
def test_results_are_reproducible_and_progress_is_reported(name: str) -> None:
    reports: list[int] = []
    problem = problem_of(random_lists(2), np.array([0.3, 0.3, 0.4]))
    once = run(name, replace(problem, progress=lambda done, of, note: reports.append(done)))
    assert reports == list(range(1, len(reports) + 1))
    assert (once.visited == once.weights).all(axis=1).any()
    np.testing.assert_array_equal(once.visited, run(name, problem).visited)
    assert not np.array_equal(once.visited, run(name, replace(problem, seed=1)).visited)


@pytest.mark.parametrize("name", FEW)
def test_lists_of_one_candidate_leave_the_weights_unchanged(name: str) -> None:
    lists = TuningLists(np.arange(4), np.eye(3), np.zeros(3), np.array([[1.0, 5.0]] * 3))
    start = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(run(name, problem_of(lists, start)).weights, start)


@pytest.mark.parametrize("seed", range(6))
def test_mert_in_the_plane_beats_every_direction(seed: int) -> None:
    lists = random_lists(seed, features=2)
    lists = replace(lists, fixed=np.zeros(len(lists.fixed)))
    problem = problem_of(lists, np.array([1.0, 0.1]))
    angles = np.linspace(0, 2 * np.pi, 3000)
    everywhere = [problem.gain(np.array([np.cos(a), np.sin(a)])) for a in angles]
    assert problem.gain(Mert().tune(problem).weights) >= max(everywhere) - 1e-9


def test_random_directions_are_searched_too() -> None:
    # Along either axis nothing is gained; along the diagonal everything is.
    features = np.array([[0.0, 0.0], [-3.0, 1.5], [1.5, -3.0], [-1.0, -1.0]])
    counts = np.column_stack([[5.0, 9.0, 9.0, 0.0], np.full(4, 10.0)])
    lists = TuningLists(np.array([0, 4]), features, np.array([1.0, 0.0, 0.0, 0.0]), counts)
    problem = problem_of(lists, np.zeros(2))
    axes = Mert(restarts=1).tune(problem)
    more = Mert(restarts=1, random_directions=20).tune(problem)
    assert (problem.gain(axes.weights), problem.gain(more.weights)) == (-50.0, 0.0)


def test_one_step_of_mira() -> None:
    # Hope is the first candidate with 1 edit, fear the second with 5: the loss is 4 words.
    counts = np.array([[1.0, 10.0], [5.0, 10.0]])
    lists = TuningLists(np.array([0, 2]), np.diag([2.0, 1.0]), np.zeros(2), counts)
    capped = Mira(epochs=1).tune(problem_of(lists, np.zeros(2)))
    np.testing.assert_allclose(capped.weights, 0.01 * np.array([2.0, -1.0]))
    full = Mira(epochs=1, step=10.0).tune(problem_of(lists, np.zeros(2)))
    np.testing.assert_allclose(full.weights, 4 / 5 * np.array([2.0, -1.0]))


def test_classifier_of_pro_solves_its_equation() -> None:
    # n pairs that differ by 1: λ is where the penalty λ balances 2·C·n·p(wrong order).
    (weight,) = pro._classifier(np.ones((7, 1)), np.zeros(7), np.zeros(1), penalty=0.5)
    assert weight == pytest.approx(2 * 0.5 * 7 / (1 + np.exp(weight)), rel=1e-4)
    assert weight > 1
    # Features with fixed weights that order every pair already leave next to nothing to learn.
    (weight,) = pro._classifier(np.ones((7, 1)), np.full(7, 20.0), np.zeros(1), penalty=0.5)
    assert abs(weight) < 1e-6
