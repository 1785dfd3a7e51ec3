"""Accuracy on preferences: by hand, SciPy, plain loops, and simulated coverage."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from support.posteriors import with_parts
from support.preferred_lists import AnswerLoops, judged, lists_of, mixed, posterior, tables_of
from support.raising import capture_notes, raises

import bpa_ppl as bpa
from bpa_ppl.evaluation.compare_ways import LEFT_OUT, NEW, BaselineComparison, read_comparison
from bpa_ppl.evaluation.gain import ACCURACY
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way


def logistic(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weights of the lowest penalised log loss of differences, by SciPy."""
    found = minimize(
        lambda w: weight @ np.logaddexp(0.0, -x @ w) + w @ w / 2,
        np.zeros(x.shape[1]),
        jac=lambda w: w - (weight * expit(-x @ w)) @ x,
        tol=1e-10,
    )
    return found.x


def test_logistic_regressions_have_the_lowest_loss() -> None:
    """By ten folds of lists, with weights; on all features, and on their mean alone."""
    pool = mixed(2)
    plain, tables = AnswerLoops(pool), tables_of(pool)
    spread = pool.select(list(plain.lists)).spread
    mean = [table @ (1 / spread) for table in tables]
    of_mean = np.concatenate([mean[s] - mean[s].mean() for s in plain.lists])
    columns = {
        Way.LOGISTIC: [table / spread for table in tables],
        Way.MEAN: [(m / np.sqrt(np.mean(of_mean**2)))[:, None] for m in mean],
    }
    found = bpa.compare_baselines(pool)
    for name, standard in columns.items():
        rows, weight, fold = [], [], []
        for place, (s, answers) in enumerate(plain.lists.items()):
            for w, pairs in answers:
                rows += [standard[s][a] - standard[s][b] for a, b in pairs]
                weight += [w / len(pairs)] * len(pairs)
                fold += [place % 10] * len(pairs)
        x, w, f = np.array(rows), np.array(weight), np.array(fold)
        scores: list[np.ndarray] = [np.zeros(len(table)) for table in tables]
        for number in range(10):
            left = logistic(x[f != number], w[f != number])
            for place, s in enumerate(plain.lists):
                if place % 10 == number:
                    scores[s] = standard[s] @ left
        row = found.row(name)
        loss = np.average(plain.log_loss(scores), weights=plain.weight)
        assert row.log_loss == pytest.approx(loss, rel=1e-5)
        if name == Way.LOGISTIC:
            accuracy = np.average(plain.accuracy(scores), weights=plain.weight)
            assert row.gain == pytest.approx(accuracy)
            assert list(row.weights.values()) == pytest.approx(logistic(x, w) / spread, rel=1e-4)


def test_the_logistic_regression_has_the_lowest_loss_with_more_features_than_answers() -> None:
    rng = np.random.default_rng(4)
    table, names = rng.normal(size=(12, 2, 40)), [f"f{k}" for k in range(40)]
    first = table[:, 0, 0] > table[:, 1, 0]
    pool = bpa.from_lists([["a", "b"]] * 12, table, names)
    preferences = [[[0, 1]] if better else [[1, 0]] for better in first]
    pool = pool.with_sentence_extras(preferences=preferences)
    row = bpa.compare_baselines(pool).row(Way.LOGISTIC)
    x = (table[:, 0] - table[:, 1]) * np.where(first, 1, -1)[:, None] / pool.spread
    expected = logistic(x, np.ones(12)) / pool.spread
    np.testing.assert_allclose(list(row.weights.values()), expected, atol=1e-4)


def test_an_answer_of_weight_two_counts_like_two_answers() -> None:
    pool = judged(3, 15)
    entries = [of_list[0] for of_list in pool.sentence_extras["preferences"]]
    twice = [[entry, entry] for entry in entries]
    weighted = [[{"candidates": entry, "weight": 2.0}] for entry in entries]
    once, rows = posterior(pool), []
    log_p, ids = np.asarray(once.pointwise), np.asarray(once.sentence_ids)
    for preferences, of_answers, of_lists in (
        (twice, np.repeat(log_p, 2, axis=2), np.repeat(ids, 2)),
        (weighted, 2 * log_p, ids),
    ):
        draws = with_parts(
            once, log_likelihood={"oracle": of_answers}, coords={"sentence": of_lists}
        )
        lists = pool.with_sentence_extras(preferences=preferences)
        rows.append(bpa.compare_baselines(lists, draws).block().rows)
    assert rows[0] == rows[1]


def test_the_mean_is_the_choice_of_equal_weights_for_any_slope() -> None:
    """Where the judge prefers low values, the mean is mostly wrong, and its slope negative."""
    pool = judged(3, 40, size=4)
    low = replace(pool, features=-pool.features)
    row = bpa.compare_baselines(low).row(Way.MEAN)
    assert row.choose(low).tolist() == low.best(low.scores(1 / low.spread)).tolist()
    assert row.gain < 0.4
    assert row.log_loss < np.log(2)
    assert row.slope < 0


def test_choices_count_as_they_were_made() -> None:
    """A chosen candidate is above the others, by whatever rule; equal scores are ½."""
    draws = posterior(mixed(0))
    table = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    new = lists_of([table] * 2, preferences=[[[1, 0]], [[2, 1]]], rankings=[None] * 2)
    expected = {(0, 0): [0.0, 0.5], (1, 0): [1.0, 0.5], (1, 2): [1.0, 1.0]}
    for choice, accuracy in expected.items():
        row = bpa.compare_baselines(new, draws, choice=list(choice)).row(Way.ADAPTED)
        assert row.gain == np.mean(accuracy)


def test_canonical_weights_are_compared_too() -> None:
    comparison = read_comparison(
        bpa.as_weight_draws(bpa.adapt(judged(6, 30), [1.0, 1.0, 1.0], sampler="map")).adaptation
    )
    assert comparison.evaluation == "in-sample"
    assert comparison.row(Way.CANONICAL) is not None


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.6, 0.0])
def test_ten_answers_by_judges_of_equal_worth(noise: float) -> None:
    """Weights of nine judges, each right in 60 %, are often no better than a simple way."""
    warned = said = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=(10, 2, 1))
        scores = 0.45 * quality + rng.normal(size=(10, 2, 9)) if noise else quality + np.eye(9)[0]
        better = quality[..., 0].argmax(axis=1).tolist()
        lists = bpa.from_lists([["a", "b"]] * 10, list(scores), [f"judge{k}" for k in range(9)])
        answers = [[[first, 1 - first]] for first in better]
        with capture_notes() as notes:
            result = bpa.adapt(lists.with_sentence_extras(preferences=answers))
        assert bpa.check(result)
        comparison = read_comparison(bpa.as_weight_draws(result).adaptation)
        baseline = comparison.baseline
        messages = [note.message for note in notes if note.level == logging.WARNING]
        warned += any("do not separate the features" in message for message in messages)
        said += any("are not clearly better than the" in note.message for note in notes)
        assert (baseline.difference <= 0) == ("if more lists confirm" in comparison.messages[0][1])
    assert (warned, said) == (0, 8) if not noise else (warned >= 2 and said >= 4)


def test_the_order_of_the_answers_is_no_baseline() -> None:
    """In data sets of pairs the chosen answer is the first, so the first is always right."""
    pool = judged(7, 30)
    answers = zip(tables_of(pool), pool.sentence_extras["preferences"], strict=True)
    first = [table[entry] for table, (entry,) in answers]
    pairs = lists_of(first, preferences=[[[0, 1]]] * 30)
    result = bpa.adapt(pairs, None, sampler="map")
    comparison = read_comparison(bpa.as_weight_draws(result).adaptation)
    assert comparison.row(Way.FIRST) is None
    assert comparison.selected != Way.FIRST
    assert bpa.compare_baselines(pairs, result, choice=np.zeros(30, int)).row(Way.FIRST) is None
    assert bpa.compare_baselines(pool).row(Way.FIRST) is not None


def test_answers_of_no_difference_are_left_out_and_counted() -> None:
    pool = judged(8, 20)
    with_ties = pool.with_sentence_extras(ties=[[[0, 1]]] * 4 + [None] * 16)
    found = bpa.compare_baselines(with_ties, posterior(with_ties))
    assert "4 answers of “no difference” left out." in found.notes
    rows = [bpa.compare_baselines(lists).block().rows for lists in (with_ties, pool)]
    assert rows[0] == rows[1]
    only = pool.without("preferences").with_sentence_extras(ties=[[[0, 1]]] * 20)
    draws = posterior(mixed(0))
    with raises(bpa.DataError, "missing-references", parameter="references", match="preferences"):
        bpa.compare_baselines(only, draws, choice=np.zeros(20, int))


def test_new_lists_name_the_simple_ways_that_are_as_good() -> None:
    """The best way on the adaptation lists is beaten, but the mean is not, nor a better one."""
    rows = (
        BaselineRow(Way.ADAPTED, "adapted", 300, 0.97, np.nan),
        BaselineRow(Way.MEAN, "baseline", 300, 0.97, np.nan, 0.0, -0.01, 0.01),
        BaselineRow(
            *(Way.FEATURE, "baseline", 300, 0.99, np.nan, -0.02, -0.03, -0.01),
            weights={"judge": 1.0},
        ),
        BaselineRow(Way.LOGISTIC, "baseline", 300, 0.93, np.nan, 0.04, 0.01, 0.07),
    )
    found = BaselineComparison(rows, ACCURACY, Way.LOGISTIC, evaluation=NEW)
    best, mean, single = (note.message for note in found.messages)
    assert best.startswith("the adapted weights are better than the logistic regression: accuracy")
    assert mean.startswith("the adapted weights are not clearly better than the mean of the st")
    assert single == (
        "the adapted weights are worse than the best single feature (judge): accuracy 0.990 → "
        "0.970 (−0.020, 95% interval −0.030 to −0.010) on 300 new lists; choose by judge alone"
    )
    assert len(replace(found, evaluation=LEFT_OUT).messages) == 1
    assert len(replace(found, selected=Way.MEAN).messages) == 1
