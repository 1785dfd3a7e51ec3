"""Tuners: their properties, MERT's line search against reranking, and reestimate by names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.registries import GAINS
from support.tuning_problems import planted_lists, problem_of, random_lists

from bpa_ppl import DataError, NBest, UsageError, Weights, corpus_score
from bpa_ppl.extras.tuning.mert import Mert, choose_step, find_envelopes, search_line
from bpa_ppl.extras.tuning.mira import Mira
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.extras.tuning.tuner import TUNERS, Tuned, TuningLists, TuningProblem

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
    tuner = TUNERS["pro"](iterations=1, kept=7, interpolation=1.0, penalty=0.5)
    features, counts = np.array([[1.0], [0.0]]), np.array([[0.0, 10.0], [10.0, 10.0]])

    def tune(fixed: np.ndarray) -> float:
        lists = TuningLists(np.array([0, 2]), features, fixed, counts)
        return float(tuner.tune(problem_of(lists, np.zeros(1))).weights[0])

    weight = tune(np.zeros(2))
    assert weight == pytest.approx(2 * 0.5 * 7 / (1 + np.exp(weight)), rel=1e-4)
    assert weight > 1
    # Features with fixed weights that order every pair already leave next to nothing to learn.
    assert abs(tune(np.array([20.0, 0.0]))) < 1e-6


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


def envelopes(heights: list[float], slopes: list[float], *offsets: int) -> list[list[float]]:
    parts = find_envelopes(np.array(heights), np.array(slopes), np.array(offsets))
    return [part.tolist() for part in parts]


def test_envelopes_of_special_lines() -> None:
    # Of equal slopes the highest line remains, and of equal lines the first.
    heights, slopes = [1.0, 2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]
    assert envelopes(heights, slopes, 0, 5) == [[1], [2.0], [1], [3]]
    # Three lines through one point meet once; lists of one have no breakpoint.
    assert envelopes([0.0, 0.0, 0.0], [-1.0, 0.0, 1.0], 0, 3) == [[0], [0.0], [0], [2]]
    assert envelopes([0.0, 1.0], [1.0, 2.0], 0, 1, 2)[1] == []


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


CANONICAL = Weights({"LM0": 0.5, "TM0[0]": -0.2, "TM0[1]": 0.3})


def reranked(lists: NBest, weights: Weights, metric: str) -> float:
    """Return sacreBLEU's corpus score of the lists reranked."""
    scores = lists.scores([weights[name] for name in lists.feature_names])
    return corpus_score(lists.chosen(lists.best(scores)), lists.references or (), metric).value


@pytest.mark.parametrize("metric", ["bleu", "ter"])
@pytest.mark.parametrize("tuner", TUNERS)
def test_scores_are_those_of_sacrebleu(toy: NBest, tuner: str, metric: str) -> None:
    result = reestimate(toy, CANONICAL, tuner=tuner, gain=metric)
    for weights, scores, own in (
        (CANONICAL, [change.before for change in result.scores.changes], result.before),
        (result.weights, [change.after for change in result.scores.changes], result.after),
    ):
        assert scores.pop().metric == "length"
        assert (scores[0].metric, scores[0].value) == (metric, pytest.approx(own))
        expected = {name: reranked(toy, weights, name) for name in ("ter", "bleu")}
        assert {score.metric: score.value for score in scores} == pytest.approx(expected)
    assert result.weights.names == toy.feature_names


def test_equivalent_arguments_give_equal_weights(toy: NBest) -> None:
    few = {"gain": "TER", "restarts": 3}
    named = reestimate(toy, CANONICAL, tuner="mert", **few)
    by_object = reestimate(toy, CANONICAL, tuner=Mert(restarts=3), gain=GAINS["ter"]())
    backwards = reestimate(toy, Weights(reversed(list(CANONICAL.items()))), **few)
    two = Weights({"LM0": 0.5, "TM0[0]": -0.2})
    by_default = reestimate(toy, two, defaults={"TM0[1]": 0.3}, **few)
    for result in (by_object, backwards, by_default):
        assert (result.weights, result.scores.changes[0].after.metric) == (named.weights, "ter")


def test_fixed_weights_stay_and_count(toy: NBest) -> None:
    partly = replace(toy, feature_names=("UnknownWordPenalty0", "TM0[0]", "TM0[1]"))
    weights = Weights({"UnknownWordPenalty0": 5.0, "TM0[0]": -0.2, "TM0[1]": 0.3})
    result = reestimate(partly, weights, gain="ter")
    assert result.weights["UnknownWordPenalty0"] == 5.0
    assert (result.visited[:, 0] == 5.0).all()
    assert result.weights["TM0[0]"] != -0.2
    assert result.after == pytest.approx(reranked(partly, result.weights, "ter"))
    freed = reestimate(partly, weights, gain="ter", fixed=[])
    assert freed.weights["UnknownWordPenalty0"] != 5.0
    one = reestimate(partly, weights, gain="ter", fixed=["TM0"]).weights
    assert (one["TM0[0]"], one["TM0[1]"]) == (-0.2, 0.3)


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"tuner": "powell"}, "unknown-name", "tuner"),
        ({"gain": "unbabel"}, "unknown-name", "gain"),
        ({"tuner": "pro", "epochs": 3}, "unknown-setting", "epochs"),
        ({"restarts": 0}, "invalid-setting", "restarts"),
    ],
)
def test_invalid_arguments_are_refused(
    toy: NBest, arguments: dict[str, Any], code: str, parameter: str
) -> None:
    with raises(UsageError, code, parameter=parameter):
        reestimate(toy, CANONICAL, **arguments)


def test_lists_that_cannot_be_used_are_refused(toy: NBest) -> None:
    with raises(DataError, "missing-references", parameter="references"):
        reestimate(replace(toy, references=None), CANONICAL)
    with raises(DataError, "missing-weight", parameter="weights", match="TM0"):
        reestimate(toy, Weights({"LM0": 1.0}))
    with raises(DataError, "no-data"):
        reestimate(toy.select([]), CANONICAL)
