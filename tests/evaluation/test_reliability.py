"""Agreement of choices between two candidates: by hand, by plain loops, and on simulated judges."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import binom
from support.gained_lists import JUDGED, recorded
from support.gained_lists import lists as graded_lists
from support.posteriors import ObservedRecord, name_weights, record_of
from support.raising import raises

from bpa_ppl import BpaWarning, Draws, NBest, UsageError, adapt, as_weight_draws, from_lists
from bpa_ppl.evaluation.compare_ways import BaselineComparison, read_comparison
from bpa_ppl.evaluation.reliability import (
    RANDOM,
    SLOPES,
    Reliability,
    choose_threshold,
    count_allowed,
)
from bpa_ppl.evaluation.report import posterior_page
from bpa_ppl.evaluation.simple_ways import Way


def posterior_of(predictions: Any) -> Draws:
    """Return draws that record leave-one-out predictions."""
    comparison = BaselineComparison((), "accuracy", predictions=predictions)
    record = record_of(comparison=msgspec.to_builtins(comparison))
    return name_weights(np.zeros((1, 4, 1)), ("lm",), record=record)


def pairs(count: int, seed: int) -> NBest:
    """Return pairs with two features, of which a judge prefers the larger weighted sum."""
    rng = np.random.default_rng(seed)
    tables = rng.normal(size=(count, 2, 2))
    logit = (tables[:, 0] - tables[:, 1]) @ np.array([2.0, 1.0])
    first = rng.random(count) < 1 / (1 + np.exp(-logit))
    lists = from_lists([["a", "b"]] * count, tables, ["good", "fair"])
    return lists.with_sentence_extras(preferences=[[[0, 1]] if f else [[1, 0]] for f in first])


def draw_predictions(
    rng: np.random.Generator, count: int, slope: float = 1.0, random: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of choices, and those of agreement."""
    logits = np.abs(rng.normal(0, 2.5, count))
    agreement = random / 2 + (1 - random) / (1 + np.exp(-slope * logits))
    return 1 / (1 + np.exp(-logits)), agreement


def test_choices_are_sorted_and_those_of_one_list_share_its_weight() -> None:
    draws = posterior_of(((0.6, 0.5), (0.1, 0.5), (0.75, 1.0), (0.5, 1.0)))
    result = Reliability.of(draws.adaptation)
    assert result.probability.tolist() == [0.9, 0.75, 0.6, 0.5]
    assert result.agreement.tolist() == [0.0, 1.0, 1.0, 0.5]
    assert result.weight.tolist() == [0.5, 1.0, 0.5, 1.0]


def test_the_posterior_of_the_curves_is_that_of_plain_loops() -> None:
    rng = np.random.default_rng(1)
    p, right = np.sort(rng.uniform(0.5, 0.99, 12))[::-1], rng.integers(2, size=12)
    result = Reliability(p, right.astype(float), np.ones(12))
    log_p = []
    for slope, random in zip(SLOPES.tolist(), RANDOM.tolist(), strict=True):
        total = -0.5 * (math.log(slope) / 0.17) ** 2 - random / 0.03
        for probability, agrees in zip(p.tolist(), right.tolist(), strict=True):
            odds = (probability / (1 - probability)) ** slope
            expected = random / 2 + (1 - random) * odds / (1 + odds)
            total += math.log(expected if agrees else 1 - expected)
        log_p.append(total)
    shares = np.exp(np.array(log_p) - max(log_p))
    np.testing.assert_allclose(result.posterior, shares / shares.sum(), rtol=1e-6)


@pytest.mark.parametrize(("agree", "confidence"), [(0.8, 0.9), (0.9, 0.9), (0.95, 0.8)])
def test_as_many_may_be_wrong_as_a_binomial_test_allows(agree: float, confidence: float) -> None:
    sizes = np.arange(121)
    allowed = count_allowed(120, agree, confidence)
    possible = allowed >= 0
    assert np.all(binom.cdf(allowed, sizes, 1 - agree)[possible] <= 1 - confidence)
    assert np.all(binom.cdf(allowed + 1, sizes, 1 - agree) > 1 - confidence)


def reliability(p: Any, right: Any, weight: Any = None) -> Reliability:
    """Return the reliability of choices in any order."""
    weight = np.ones(len(p)) if weight is None else np.asarray(weight)
    preferred = np.where(right, p, 1 - np.asarray(p))
    draws = posterior_of(tuple(zip(preferred.tolist(), weight.tolist(), strict=True)))
    found = Reliability.of(draws.adaptation)
    assert found is not None
    return found


def test_tests_go_on_until_one_fails() -> None:
    p, right = np.linspace(0.99, 0.6, 60), np.ones(60, bool)
    assert reliability(p, right).threshold(0.9) == pytest.approx(0.6)
    assert reliability(p, right).share(0.8) == pytest.approx(np.mean(p >= 0.8))
    right[[30, 36]] = False  # 22 without an error, but not 38 with one
    assert reliability(p, right).threshold(0.9) == pytest.approx(p[21], abs=1e-6)
    right[[3, 30, 36]] = False, True, True  # 38 with one, but not 22 without
    assert reliability(p, right).threshold(0.9) == np.inf


def test_the_first_test_is_one_that_should_be_passed() -> None:
    p, right = np.linspace(0.99, 0.8, 400), np.arange(400) > 0
    assert reliability(p, right).threshold(0.8) == pytest.approx(0.8)
    right = np.arange(400) >= 90  # all should pass, by the probabilities, but not with 90
    assert reliability(p, right).threshold(0.8) == np.inf


def test_equal_probabilities_are_tested_together() -> None:
    right = np.arange(44) > 0
    assert reliability(np.full(44, 0.9), right).threshold(0.9) == 0.9  # 38 suffice
    assert reliability(np.full(37, 0.9), right[:37]).threshold(0.9) == np.inf
    assert reliability(np.r_[np.full(43, 0.9), 0.8], right).threshold(0.9) == 0.8


def test_pairs_of_one_list_count_once() -> None:
    p, right = np.repeat(np.linspace(0.99, 0.6, 21), 3), np.ones(63, bool)
    assert reliability(p, right).threshold(0.9) < 1
    assert reliability(p, right, np.full(63, 1 / 3)).threshold(0.9) == np.inf


@pytest.mark.slow
def test_the_level_is_that_of_the_confidence() -> None:
    rng, answered = np.random.default_rng(2), 0
    for _ in range(3000):  # all choices agree just less often than promised
        p = rng.uniform(0.5, 1.0, 60)
        answered += reliability(p, rng.random(60) < 0.9 - 1e-6).threshold(0.9) <= 1
    assert 0.09 < answered / 3000 < binom.ppf(0.999, 3000, 0.1) / 3000  # 0.0985 by 22 answers


@pytest.mark.parametrize(
    ("slope", "random"),
    [(1.0, 0.0), (0.4, 0.1), *(pytest.param(s, 0.0, marks=pytest.mark.slow) for s in (0.2, 1.5))],
)
@pytest.mark.parametrize("agree", [0.8, 0.9])
def test_promises_are_kept(slope: float, random: float, agree: float) -> None:
    rng = np.random.default_rng(3)
    new, expected = draw_predictions(rng, 20_000, slope, random)
    broken, shares = [], []
    for _ in range(300):
        p, agreement = draw_predictions(rng, 50, slope, random)
        sure = new >= reliability(p, rng.random(50) < agreement).threshold(agree)
        broken.append(sure.any() and expected[sure].mean() < agree)
        shares.append(sure.mean())
    assert sum(broken) <= binom.ppf(0.999, len(broken), 0.1)
    if (slope, agree) == (1.0, 0.8):
        assert np.mean(shares) > 0.5


def test_more_answers_promise_more() -> None:
    rng = np.random.default_rng(4)
    shares = []
    for count in (20, 50, 200, 1000):
        found = []
        for _ in range(40):
            p, agreement = draw_predictions(rng, count)
            one = reliability(p, rng.random(count) < agreement)
            found.append(one.share(one.threshold(0.9)))
        shares.append(np.mean(found))
    assert shares == sorted(shares)
    assert shares[0] == 0  # 22 are needed
    # With the probabilities as they are, this share of the choices agrees in 90%.
    many = np.sort(draw_predictions(rng, 100_000)[0])[::-1]
    means = np.cumsum(many) / np.arange(1, len(many) + 1)
    assert shares[-1] == pytest.approx(np.mean(means >= 0.9), abs=0.15)


@pytest.mark.slow
def test_what_more_labels_promise_is_what_they_do() -> None:
    rng, planned, found = np.random.default_rng(6), [], []
    for _ in range(60):
        p, agreement = draw_predictions(rng, 50)
        made = reliability(p, rng.random(50) < agreement).promise(0.85)
        planned.append(made.expected)
        p, agreement = draw_predictions(rng, 100)
        one = reliability(p, rng.random(100) < agreement)
        found.append(one.share(one.threshold(0.85)))
    assert np.mean(planned) == pytest.approx(np.mean(found), abs=0.15)


def test_many_choices_are_merged_for_the_curve() -> None:
    rng = np.random.default_rng(5)
    p, agreement = draw_predictions(rng, 3000)
    right = rng.random(3000) < agreement
    found = reliability(p, right)
    merged = found.merged(500)
    assert len(merged.probability) == 500
    assert merged.weight.sum() == 3000
    assert merged.weight @ merged.agreement == pytest.approx(right.sum())
    np.testing.assert_allclose(found.posterior, merged.posterior)


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("gain", [None, pytest.param("gain", marks=pytest.mark.slow)])
def test_adapt_records_predictions_by_leave_one_out(gain: str | None) -> None:
    lists = pairs(30, seed=6)
    if gain is not None:
        preferred = [entries[0] for entries in lists.sentence_extras["preferences"]]
        gains = [[float(k == best) for k in range(2)] for best, _ in preferred]
        lists = lists.without("preferences").with_extras(gain=np.ravel(gains))
    draws = as_weight_draws(adapt(lists, None, gain=gain, sampler="laplace:draws=1000"))
    comparison = read_comparison(draws.adaptation)
    p, weight = np.array(comparison.predictions).T
    assert weight.tolist() == [1.0] * 30
    row = comparison.row(Way.ADAPTED)
    assert np.mean((p > 0.5) + 0.5 * (p == 0.5)) == pytest.approx(row.gain, abs=0.04)
    if gain is None:
        assert -np.log(p).mean() == pytest.approx(row.log_loss, abs=1e-4)
    assert choose_threshold(draws, None, 0.75) is not None
    assert "How sure are the choices?" in posterior_page(draws)


@pytest.mark.usefixtures("without_drawing")
def test_graded_lists_and_points_promise_nothing() -> None:
    preferences = adapt(pairs(30, seed=7), None, sampler="map")
    with raises(UsageError, "not-supported", parameter="agree", match="with draws"):
        choose_threshold(as_weight_draws(preferences), None, 0.9)
    record = record_of(JUDGED, observed=ObservedRecord(kind="gains"))
    posterior = recorded(graded_lists(7), record=record)
    with raises(UsageError, "not-supported", parameter="ask_below", match="graded lists"):
        choose_threshold(posterior, 0.9, None)
    assert "How sure are the choices?" not in posterior_page(posterior)


@pytest.mark.parametrize(
    ("ask_below", "agree", "code", "parameter"),
    [
        (0.9, 0.9, "conflict", "agree"),
        (0.5, None, "bad-usage", "ask_below"),
        (None, 1.5, "bad-usage", "agree"),
        (None, "0.9", "bad-usage", "agree"),
        (None, True, "bad-usage", "agree"),
    ],
)
def test_probabilities_that_make_no_sense_are_errors(
    ask_below: Any, agree: Any, code: str, parameter: str
) -> None:
    draws = posterior_of(((0.9, 1.0),) * 40)
    with raises(UsageError, code, parameter=parameter):
        choose_threshold(draws, ask_below, agree)


def test_a_confidence_that_makes_no_sense_is_an_error() -> None:
    draws = posterior_of(((0.9, 1.0),) * 40)
    for confidence in (0.4, 1.0, "0.9", True):
        with raises(UsageError, "bad-usage", parameter="confidence"):
            choose_threshold(draws, None, 0.9, confidence)  # type: ignore[arg-type]
    for ask_below in (0.9, None):  # of nothing that is promised
        with raises(UsageError, "conflict", parameter="confidence"):
            choose_threshold(draws, ask_below, None, 0.95)


def test_a_promise_out_of_reach_says_how_many_answers_it_takes() -> None:
    draws = posterior_of(((0.99, 1.0),) * 20)
    with pytest.warns(BpaWarning, match=r"an agreement of 0\.95 cannot .* 20 .*: .* about 150 "):
        assert choose_threshold(draws, None, 0.95) == np.inf
    assert choose_threshold(draws, None, 0.8) == 0.99
    coins = posterior_of(((0.6, 1.0), (0.4, 1.0)) * 25)
    with pytest.warns(BpaWarning, match=r"not from 5,000: promise less, or ask for all"):
        assert choose_threshold(coins, None, 0.8) == np.inf
    assert [choose_threshold(draws, p, None) for p in (0.75, 1.0)] == [0.75, 1.0]
    assert choose_threshold(draws, np.float32(0.75), None) == 0.75  # type: ignore[arg-type]
    assert choose_threshold(draws, None, None) is None
