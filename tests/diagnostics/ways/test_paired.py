"""Intervals of means, accuracies and differences: SciPy, simulated coverage; their digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ttest_rel

from bpa_ppl._runtime.messages import format_with_spread
from bpa_ppl.diagnostics.ways.paired import (
    ADDED,
    ADDED_DIFFERENCES,
    ScoreChange,
    estimate_interval,
    estimate_proportion,
)
from bpa_ppl.diagnostics.ways.simple_ways import BaselineRow, Way
from bpa_ppl.gains.metric import Score

#: Values of some lists, their weights, and the true mean.
Sample = tuple[np.ndarray, np.ndarray, float]


def normal(rng: np.random.Generator) -> Sample:
    """Return differences of few lists, for which Student's t is exact."""
    return rng.normal(0.7, 2.0, 12), np.ones(12), 0.7


def judgements(rng: np.random.Generator) -> Sample:
    """Return differences with many ties and a few large values."""
    values = rng.choice([0.0, 1.0, -1.0, -5.0], p=[0.6, 0.2, 0.15, 0.05], size=200)
    return values, np.ones(200), 0.2 - 0.15 - 0.25


def accuracies(rng: np.random.Generator, p: float, count: int, answers: int) -> Sample:
    """Return accuracies of lists with one or more answers each."""
    number = rng.integers(1, answers + 1, count)
    values = rng.binomial(number, rng.beta(4 * p, 4 * (1 - p), count)) / number
    return values, number.astype(float), p


def two_accuracies(rng: np.random.Generator, count: int) -> Sample:
    """Return differences of two equally good ways, which differ in a fifth of the lists."""
    return rng.choice([1.0, -1.0, 0.0], p=[0.1, 0.1, 0.8], size=count), np.ones(count), 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "added", "trials", "least"),
    [
        (normal, (), 4000, 0.95),
        (judgements, (), 4000, 0.95),
        # Without the added lists, those of ten lists and p = 0.9 cover in 65 % (one answer a list).
        *(
            (partial(accuracies, p=p, count=count, answers=answers), ADDED, 1500, 0.945)
            for p, count in ((0.6, 10), (0.9, 10), (0.9, 50), (0.97, 50))
            for answers in (1, 6)
        ),
        *(
            (partial(two_accuracies, count=count), ADDED_DIFFERENCES, 1500, 0.95)
            for count in (10, 20, 100)
        ),
    ],
)
def test_intervals_cover_the_mean_at_their_level(
    sample: Callable[[np.random.Generator], Sample],
    added: Sequence[float],
    trials: int,
    least: float,
) -> None:
    """That of means in 95 %, and those of accuracies at least."""
    rng, missed = np.random.default_rng(3), 0
    for _ in range(trials):
        values, weight, mean = sample(rng)
        _, low, high = estimate_interval(values, weight, added)
        missed += low > mean or high < mean
    assert trials - missed >= binom.ppf(1e-3, trials, least)
    if not added:
        assert trials - missed <= binom.ppf(1 - 1e-3, trials, 0.95)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e20, 1e59])
@pytest.mark.parametrize("width", [0.1, 1e-17])
def test_numbers_of_any_scale_are_short(scale: float, width: float) -> None:
    low, high = scale / 8 - width * scale, scale / 8 + width * scale
    row = BaselineRow(Way.FIRST, "baseline", 9, scale, 0.5, scale / 8, low, high)
    assert max(map(len, row.cells)) < 40
    scores = [Score(value, "mqm", "mqm", "", {}, 4) for value in (scale, 2 * scale)]
    for change in (ScoreChange(*scores, scale / 8, low, high), ScoreChange(*scores, scale)):
        assert max(map(len, change.cells)) < 40
    assert len(format_with_spread(scale, scale / 9)) < 40


@pytest.mark.parametrize(("scale", "decimals"), [(1e-5, 8), (0.04, 4), (1, 3), (1000, 3)])
def test_digits_follow_the_width_of_the_interval(scale: float, decimals: int) -> None:
    row = BaselineRow(Way.FIRST, "baseline", 9, scale, 0.5, scale / 8, scale / 16, scale / 4)
    low, high = (f"{end:+.{decimals}f}" for end in (row.low, row.high))
    gain, change = f"{row.gain:.{decimals}f}", f"{row.difference:+.{decimals}f}"
    expected = [Way.FIRST, gain, "–", "–", "50%", change, f"{low} to {high}", "better"]
    assert row.cells == expected


@pytest.mark.parametrize("total", [10, 20, 100])
def test_the_interval_of_a_share_is_that_of_wilson(total: int) -> None:
    """Its coverage is 95 % on average over shares, and nowhere below 83 %."""
    counts = np.arange(total + 1)
    found = np.array([estimate_proportion(int(count), total) for count in counts])
    expected = [binomtest(count, total).proportion_ci(0.95, "wilson") for count in counts.tolist()]
    np.testing.assert_allclose(found, np.array(expected), atol=1e-12)
    shares = np.linspace(0.01, 0.99, 99)[:, None]
    covered = (found[:, 0] <= shares) & (shares <= found[:, 1])
    coverage = (binom.pmf(counts, total, shares) * covered).sum(axis=1)
    assert coverage.mean() == pytest.approx(0.95, abs=0.01)
    assert coverage.min() > 0.83


def test_weights_of_lists_repeat_them() -> None:
    """The mean is that of repeated lists, and the interval that of as many equal ones."""
    values = np.array([0.0, 1.0, 0.5, 1.0])
    mean, *_ = estimate_interval(values, np.array([1.0, 2.0, 1.0, 1.0]))
    assert mean == pytest.approx(np.mean([0.0, 1.0, 1.0, 0.5, 1.0]))
    expected = ttest_rel(values, np.zeros(4)).confidence_interval(0.95)
    for weight in (1.0, 3.0):
        _, low, high = estimate_interval(values, np.full(4, weight))
        assert (low, high) == pytest.approx((expected.low, expected.high))
