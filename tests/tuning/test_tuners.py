"""What every tuner has in common, and what each of them alone must do."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from problems import planted_pool, problem_of, random_pool

from bpa_ppl import UsageError
from bpa_ppl.tuning import TUNERS, mert, mert_plus, mira, pro
from bpa_ppl.tuning.problem import Pool, Problem, Tuned
from bpa_ppl.tuning.registry import configure, load

#: Enough to find planted weights, and fast.
FEW: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 3},
    "mert+": {"restarts": 3},
    "mira": {"epochs": 20},
    "pro": {"iterations": 5, "interpolation": 0.9, "pairs": 500},
}
TRUE = np.array([0.2, -0.5, 0.3])


def run(name: str, problem: Problem, **settings: Any) -> Tuned:
    """Tune, with the lists themselves as the second set where one is needed."""
    if name == "mert+":
        problem = replace(problem, extra=problem.pool)
    tuned = load(name).tune(problem, configure(name, FEW[name] | settings))
    assert isinstance(tuned, Tuned)
    return tuned


@pytest.mark.parametrize("name", TUNERS)
def test_a_tuner_has_settings_and_tune(name: str) -> None:
    module = load(name)
    assert is_dataclass(module.Settings)
    assert module.Settings.__dataclass_params__.frozen
    assert module.Settings() == configure(name, {})
    signature = inspect.signature(module.tune, eval_str=True)
    annotations = [parameter.annotation for parameter in signature.parameters.values()]
    assert list(signature.parameters) == ["problem", "settings"]
    assert annotations == [Problem, module.Settings]
    assert signature.return_annotation is Tuned


@pytest.mark.parametrize("metric", ["bleu", "ter"])
@pytest.mark.parametrize("name", TUNERS)
def test_planted_weights_are_found(name: str, metric: str) -> None:
    pool = planted_pool(1, TRUE, metric)
    problem = problem_of(pool, -TRUE, metric)
    best, worst = problem.gain(TRUE), problem.gain(-TRUE)
    tuned = run(name, problem)
    assert best - worst > 20
    assert problem.gain(tuned.weights) > best - 0.05 * (best - worst)


@pytest.mark.parametrize("name", TUNERS)
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    problem = problem_of(random_pool(2), np.array([0.3, 0.3, 0.4]))
    once, again = run(name, problem), run(name, problem)
    other = run(name, replace(problem, seed=1))
    np.testing.assert_array_equal(once.visited, again.visited)
    assert not np.array_equal(once.visited, other.visited)


@pytest.mark.parametrize("name", TUNERS)
def test_the_result_was_visited_and_progress_told(name: str) -> None:
    told: list[tuple[int, int, str]] = []
    problem = problem_of(random_pool(3), np.array([0.3, 0.3, 0.4]))
    tuned = run(name, replace(problem, progress=lambda *report: told.append(report)))
    assert (tuned.visited == tuned.weights).all(axis=1).any()
    assert [done for done, _, _ in told] == list(range(1, told[-1][1] + 1))


@pytest.mark.parametrize("name", TUNERS)
def test_lists_of_one_hypothesis_teach_nothing(name: str) -> None:
    pool = Pool(np.arange(4), np.eye(3), np.zeros(3), np.array([[1.0, 5.0]] * 3))
    start = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(run(name, problem_of(pool, start)).weights, start)


@pytest.mark.parametrize("name", TUNERS)
def test_every_setting_must_make_sense(name: str) -> None:
    for field in fields(load(name).Settings):
        for value in (-1, float("nan"), "many", True):
            with pytest.raises(UsageError, match=f"{field.name} must be"):
                configure(name, {field.name: value})
        if field.type == "int":
            with pytest.raises(UsageError, match="must be a whole number"):
                configure(name, {field.name: 2.5})


@pytest.mark.parametrize(("name", "share"), [("mira", "decay"), ("pro", "interpolation")])
def test_a_share_is_at_most_one(name: str, share: str) -> None:
    with pytest.raises(UsageError, match=f"{share} must be a share"):
        configure(name, {share: 1.1})


def test_the_published_defaults() -> None:
    assert mert.Settings() == mert.Settings(restarts=20, random_directions=0, tolerance=0.01)
    assert mira.Settings() == mira.Settings(epochs=60, step=0.01, decay=0.999)
    assert pro.Settings() == pro.Settings(
        pairs=5000, kept=50, minimum_difference=0.05, interpolation=0.1
    )


@pytest.mark.parametrize("seed", range(6))
def test_mert_in_the_plane_beats_every_direction(seed: int) -> None:
    pool = replace(random_pool(seed, features=2), held=np.zeros(int(random_pool(seed).offsets[-1])))
    problem = problem_of(pool, np.array([1.0, 0.1]))
    angles = np.linspace(0, 2 * np.pi, 3000)
    everywhere = [problem.gain(np.array([np.cos(a), np.sin(a)])) for a in angles]
    assert problem.gain(mert.tune(problem, mert.Settings()).weights) >= max(everywhere) - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_mert_never_loses_and_more_starts_never_harm(seed: int) -> None:
    problem = problem_of(random_pool(seed), np.array([0.5, 0.2, -0.3]), seed=seed)
    gains = [
        problem.gain(mert.tune(problem, mert.Settings(restarts=count)).weights)
        for count in (1, 2, 10)
    ]
    assert problem.gain(problem.start) <= gains[0] <= gains[1] <= gains[2]


def test_random_directions_are_searched_too() -> None:
    # Along either axis nothing is gained; along the diagonal everything is.
    features = np.array([[0.0, 0.0], [-3.0, 1.5], [1.5, -3.0], [-1.0, -1.0]])
    counts = np.column_stack([[5.0, 9.0, 9.0, 0.0], np.full(4, 10.0)])
    pool = Pool(np.array([0, 4]), features, np.array([1.0, 0.0, 0.0, 0.0]), counts)
    problem = problem_of(pool, np.zeros(2))
    axes = mert.tune(problem, mert.Settings(restarts=1))
    more = mert.tune(problem, mert.Settings(restarts=1, random_directions=20))
    assert (problem.gain(axes.weights), problem.gain(more.weights)) == (-50.0, 0.0)


def test_mert_plus_is_mert_on_both() -> None:
    start = np.array([0.3, 0.3, 0.4])
    ours, theirs = random_pool(4), random_pool(5)
    problem = replace(problem_of(ours, start), extra=theirs)
    both = problem_of(ours.joined(theirs), start)
    np.testing.assert_array_equal(
        mert_plus.tune(problem, mert.Settings(restarts=2)).weights,
        mert.tune(both, mert.Settings(restarts=2)).weights,
    )
    assert len(both.pool) == len(ours) + len(theirs)


def test_one_step_of_mira() -> None:
    # Hope is the first hypothesis with 1 edit, fear the second with 5: the loss is 4 words.
    pool = Pool(
        np.array([0, 2]),
        np.array([[2.0, 0.0], [0.0, 1.0]]),
        np.zeros(2),
        np.array([[1.0, 10.0], [5.0, 10.0]]),
    )
    capped = mira.tune(problem_of(pool, np.zeros(2)), mira.Settings(epochs=1))
    np.testing.assert_allclose(capped.weights, 0.01 * np.array([2.0, -1.0]))
    full = mira.tune(problem_of(pool, np.zeros(2)), mira.Settings(epochs=1, step=10.0))
    np.testing.assert_allclose(full.weights, 4 / 5 * np.array([2.0, -1.0]))


def test_the_classifier_of_pro_has_its_known_answer() -> None:
    # n pairs that differ by 1: λ is where the penalty λ balances 2·C·n·p(wrong order).
    pairs = pro.Pairs(np.ones((7, 1)), np.zeros(7))
    (weight,) = pro._classifier(pairs, np.array([0.0]), penalty=0.5)
    assert weight == pytest.approx(2 * 0.5 * 7 / (1 + np.exp(weight)), rel=1e-4)


def test_what_is_held_counts_in_the_classifier_of_pro() -> None:
    # Held features that order every pair already leave next to nothing to learn.
    free = pro._classifier(pro.Pairs(np.ones((7, 1)), np.zeros(7)), np.zeros(1), 1.0)
    held = pro._classifier(pro.Pairs(np.ones((7, 1)), np.full(7, 20.0)), np.zeros(1), 1.0)
    assert free[0] > 1
    assert abs(held[0]) < 1e-6


def test_pro_draws_the_pairs_that_differ_most() -> None:
    gains = np.array([0.0, 0.04, 0.5, 1.0])
    settings = pro.Settings(kept=10, pairs=2000)
    drawn = pro._draw_list(gains, settings, np.random.default_rng(0))
    assert {tuple(pair) for pair in drawn.tolist()} == {(3, 0)}
    many = pro._draw_list(gains, pro.Settings(kept=10**6), np.random.default_rng(0))
    difference = gains[many[:, 0]] - gains[many[:, 1]]
    assert difference.min() > 0.05
    assert (np.diff(difference) <= 0).all()
