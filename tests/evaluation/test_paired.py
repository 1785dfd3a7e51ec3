"""Intervals of means, accuracies, differences and scores: SciPy, simulated coverage; digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from sacrebleu import metrics as sacre
from scipy.stats import binom, binomtest, ttest_rel
from support import gained_lists as gained
from support.raising import raises
from support.seeds import refuses_invalid_seeds

from bpa_ppl import DataError, corpus_score, from_lists
from bpa_ppl.evaluation.paired import (
    ADDED,
    ADDED_DIFFERENCES,
    ScoreChange,
    bootstrap_interval,
    compare_choices,
    estimate_interval,
    estimate_proportion,
)
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way

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


def score(value: float) -> Any:
    return replace(corpus_score(["a"], ["a"], "ter"), value=value, decimals=4)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e20, 1e59])
@pytest.mark.parametrize("width", [0.1, 1e-17])
def test_numbers_of_any_scale_are_short(scale: float, width: float) -> None:
    low, high = scale / 8 - width * scale, scale / 8 + width * scale
    row = BaselineRow(Way.FIRST, "baseline", 9, scale, 0.5, scale / 8, low, high)
    assert max(map(len, row.cells)) < 40
    scores = list(map(score, (scale, 2 * scale)))
    for change in (ScoreChange(*scores, scale / 8, low, high), ScoreChange(*scores, scale)):
        assert max(map(len, change.cells)) < 40


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


def test_a_change_has_the_digits_of_its_interval() -> None:
    narrow = ScoreChange(score(0.0003), score(0.00042), 0.00012, 0.00002, 0.00022, "better")
    words = "TER 0.00030 → 0.00042 (+0.00012, 95% interval +0.00002 to +0.00022)"
    assert str(narrow) == words


TEXTS = [["a b c d e", "a b", "a b c d"], ["x y", "x y z w v"]]


REFERENCES = [("a b c d e",), ("x y z w",)]


LISTS = from_lists(
    TEXTS,
    [np.arange(3.0)[:, None], np.arange(2.0)[:, None]],
    ["LM0"],
    references=REFERENCES,
    extras={"comet": [[0.1, 0.2, 0.3], [0.4, 0.5]]},
)


@pytest.mark.parametrize("metric", ["ter", "bleu", "chrf", "comet"])
def test_scores_agree_with_sacrebleu(metric: str) -> None:
    board = compare_choices(LISTS, [1, 0], [2, 1], metric)
    befores, afters = ([getattr(one, of) for one in board.changes] for of in ("before", "after"))
    assert (board.changed, board.sentences, befores[0].metric) == (2, 2, metric)
    others = {"ter", "bleu"} - {metric}
    assert {score.metric for score in afters[1:]} == {*others, "length"}
    scorers = {"ter": sacre.TER(), "bleu": sacre.BLEU(tokenize="none", force=True)}
    streams = [[refs[0] for refs in REFERENCES]]
    for scores, texts in ((befores, ["a b", "x y"]), (afters, ["a b c d", "x y z w v"])):
        for score in scores:
            if score.metric in scorers:
                expected = scorers[score.metric].corpus_score(texts, streams).score
                assert score.value == pytest.approx(expected)
    assert str(board.changes[-1]) == "length 0.444 → 1.000 (+0.556)"
    names = [name if name == "comet" else name.upper() for name in (metric, *sorted(others)[::-1])]
    lines = str(board).splitlines()[2:]
    assert [line.split()[0] for line in lines[: len(names) + 1]] == [*names, "length"]


def test_only_requested_score_without_references() -> None:
    bare = LISTS.without("references")
    small = bare.with_extras(comet=1e-4 * np.asarray(bare.extras["comet"]))
    for lists, words in (
        (bare, "comet 0.2500 → 0.3500 (+0.1000)"),
        (small, "comet 0.000025 → 0.000035 (+0.000010)"),
    ):
        (change,) = compare_choices(lists, [0, 0], [1, 1], "comet").changes
        assert str(change) == words
    with raises(DataError, "missing-references", parameter="references"):
        compare_choices(bare, [0, 0], [1, 1], "ter")


@pytest.fixture
def counts() -> np.ndarray:
    """Counts of TER (draws, sentences, 2)."""
    rng = np.random.default_rng(4)
    edits = rng.integers(0, 9, size=(3, 40))
    return np.stack([edits, np.full_like(edits, 8)], axis=-1).astype(float)


def test_differences_are_paired(counts: np.ndarray) -> None:
    refuses_invalid_seeds(
        lambda _, seed: bootstrap_interval(counts[:2], "ter", seed=seed), gained.lists(1)
    )
    better = counts[0].copy()
    better[::2, 0] = np.maximum(better[::2, 0] - 1, 0)
    low, high = bootstrap_interval(np.stack([counts[0], better]), "ter", seed=3)
    # References have eight words, so that TER is a mean over the sentences.
    changes = 100 * (better - counts[0])[:, 0] / 8
    reach = NormalDist().inv_cdf(0.975) * changes.std() / len(changes) ** 0.5
    expected = [changes.mean() - reach, changes.mean() + reach]
    assert [low, high] == pytest.approx(expected, abs=0.2 * reach)
    assert bootstrap_interval(np.stack([counts[0]] * 2), "ter") == (0, 0)


def test_scores_say_how_many_choices_are_judged() -> None:
    lists, rng = gained.lists(1, 60, missing=True), np.random.default_rng(3)
    choices = [rng.integers(0, lists.sizes) for _ in range(2)]
    chosen = (np.asarray(lists.extras["mqm"])[lists.offsets[:-1] + choice] for choice in choices)
    before, after = (np.isfinite(values).sum() for values in chosen)
    note = f"judged, {before} of canonical and {after} of adapted"
    assert note in str(compare_choices(lists, *choices, "mqm"))
    assert "judged" not in str(compare_choices(lists, *choices, "LM0"))
